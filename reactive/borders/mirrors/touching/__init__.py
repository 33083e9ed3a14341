"""Touched rows: the rows to read again when a transaction of a SQL database commits.

Lives here:  the rows touched by statements, cascades, triggers and texts; their record.
Comes in:    statements of SQLAlchemy, before and after they run.
Goes out:    keys of tables, or whole tables.
May import:  the mirrored kinds, `kinds.py` of the room above.
"""
