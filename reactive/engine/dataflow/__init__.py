"""The graph: operators wired together, stepped by a commit in topological order, all or nothing.

Lives here:  nodes, schedules, the leaves that hold the rows of views, what is told to whom.
Comes in:    the changes of tables.
Goes out:    deltas for subscribers; rows for readers.
May import:  `operators`, `collections`, `runtime`.
"""
