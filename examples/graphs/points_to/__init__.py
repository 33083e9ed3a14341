"""Points-to analysis of Python code: the objects that the variables of a program may hold.

    file --extract--> facts --tables--> rows --query--> what variables and fields may hold

`facts.py` defines the facts about code. `extract.py` reads them from syntax trees (with `scopes.py`
for names, `functions.py` for definitions, `values.py` for expressions), `query.py` is the analysis,
as recursive queries, and `program.py` keeps it live for some files.
"""
