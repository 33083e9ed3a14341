"""Queries and their neighbours, which differ by one thing: none may cost much more than another.

query, conditions --> bases, variations --> texts (methods, comprehension, SQL) --> world (tables
and changes) --> costs --> judged (the ratios of neighbours)
"""
