"""One writer at a time, all or nothing.

Lives here:  statements, transactions, the one road of their commits (`commit.py`), and the repair
             after an exception from outside.
Comes in:    statements on tables.
Goes out:    commits of the graph; tables as of the last commit for everybody else.
May import:  `compiler`, `dataflow`, `storage`, `collections`, `runtime`.
"""
