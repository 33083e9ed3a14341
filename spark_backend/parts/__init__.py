"""Tables whose rows only parts on Spark read: on disk, with a mark of each row in the process.

Lives here:  spilled tables, their files and marks, and the encoding that equal rows share.
Comes in:    inserted and deleted rows.
Goes out:    whether a table has a row, and all rows.
May import:  cluster, codec, tables.
"""
