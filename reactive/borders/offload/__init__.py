"""Which parts of queries are elsewhere: thresholds, moves, spilled tables.

Lives here:  the policy; the mechanism is `remote`.
Comes in:    the sizes of operators, and what users ask to move.
Goes out:    queries compiled again, with parts elsewhere.
May import:  `engine`, `api`, and the borders before it in `tests/test_architecture.py`.
"""
