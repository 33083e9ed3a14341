"""What a table keeps: its rows, by themselves or by key.

Lives here:  stores, and which classes of rows they take.
Comes in:    the changes of statements.
Goes out:    deltas; the rows, with one object for all that are equal.
May import:  `codegen`, `collections`, `runtime`.
"""
