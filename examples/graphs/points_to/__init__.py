"""Points-to analysis of Python code: which objects the variables of a program may hold.

    file --extract--> facts --tables--> rows --query--> what variables and fields may hold

`facts.py` says what is stated about code. `extract.py` reads it from syntax trees (with `scopes.py`
for names, `functions.py` for definitions, `values.py` for expressions), `query.py` is the analysis,
as recursive queries, and `program.py` keeps it live for some files.
"""
