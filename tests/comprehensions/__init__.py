"""Comprehensions over relations against Python: `python -m tests.comprehensions 1000` plays texts.

`texts` draws functions of all forms. `play` makes queries of them, changes the tables, and compares
the views after every commit with the result of Python for the same text over shuffled lists.
"""
