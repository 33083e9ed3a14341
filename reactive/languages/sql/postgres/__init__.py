"""The dialect of Postgres: its grammar, operators, functions and casts.

`grammar` reads texts, `functions`, `operators` and `casts` make expressions of nodes; the other
modules are called of rows. Nothing here is read where a database has another dialect.
"""
