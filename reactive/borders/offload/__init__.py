"""Offloading: parts of queries that run elsewhere, by thresholds or on request; spilled tables.

Lives here:  the policy; the mechanism is `remote`.
Comes in:    the sizes of operators, and the users' requests to move.
Goes out:    queries compiled again, with remote parts.
May import:  `engine`, `api`, and the borders before it in `tests/test_architecture.py`.
"""
