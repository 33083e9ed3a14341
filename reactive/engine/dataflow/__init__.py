"""The graph: connected operators, which each commit steps in topological order, atomically.

Lives here:  nodes, schedules, the leaves that hold the rows of views, the delivery of deltas.
Comes in:    the changes of tables.
Goes out:    deltas for subscribers; rows for readers.
May import:  `operators`, `collections`, `runtime`.
"""
