"""The dialect of SQLite: column affinity, collations, order of storage classes, functions.

Comes in: nodes and values of the dialect "sqlite". Goes out: values whose functions give what
SQLite gives. May import terms and runtime, and functions.py the expressions; the rest of SQL asks
this.
"""
