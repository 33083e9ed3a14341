"""Mirrors: tables that follow a SQL database, by the statements of SQLAlchemy in this process.

Lives here:  records of mapped classes; the rows that a SQL transaction has touched; their reading.
Comes in:    statements, commits and rollbacks of engines of SQLAlchemy.
Goes out:    one commit for each commit of the SQL database, or neither.
May import:  `engine`, `api`, and the borders before it in `tests/test_architecture.py`.
"""
