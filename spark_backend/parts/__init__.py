"""Tables whose rows only parts on Spark read: on disk, with a mark of each row in the process.

Lives here:  spilled tables, their files and marks, and the bytes that equal rows have in common.
Comes in:    rows that are added and removed.
Goes out:    whether a row is there, and all rows.
May import:  cluster, codec, tables.
"""
