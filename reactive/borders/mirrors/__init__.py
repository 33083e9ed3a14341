"""Tables that follow a SQL database, by what an object mapper of this process writes to it.

Lives here:  records of mapped classes; what a SQL transaction has touched; what reads that again.
Comes in:    statements, commits and rollbacks of engines of SQLAlchemy and connections of Django.
Goes out:    one commit for each commit of the SQL database, or neither.
May import:  `engine`, `api`, and the borders before it in `tests/test_architecture.py`.
"""
