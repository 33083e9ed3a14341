"""What a transaction of a SQL database touches: which rows are to be read again when it commits.

Lives here:  what statements, cascades, triggers and texts touch; what of it is noted.
Comes in:    statements of SQLAlchemy, before and after they are run.
Goes out:    keys of tables, or whole tables.
May import:  what is mirrored, `kinds.py` of the room above.
"""
