"""One writer at a time, atomically.

Lives here:  statements, transactions, the single path of their commits (`commit.py`), and the
             repair after an asynchronous exception.
Comes in:    statements on tables.
Goes out:    commits of the graph; for other threads and tasks, tables as of the last commit.
May import:  `compiler`, `dataflow`, `storage`, `collections`, `runtime`.
"""
