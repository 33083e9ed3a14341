"""Transactions that a SQL database commits too: `db.transaction(commit_with=...)`.

    shop       tables and views over a SQLite file, and connections that fail on request
    faults     an error at every call, an exception from outside at every moment, a process killed
    drivers    the argument: SQLAlchemy, Django, drivers, any object with the two methods

The oracle is the file, as another connection reads it.
"""
