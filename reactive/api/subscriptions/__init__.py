"""Delivery of changes to the user's code, after the commit and outside the lock.

Lives here:  subscriptions, observers, `changes()`, and where and when callbacks run.
Comes in:    deltas from the delivery queue.
Goes out:    calls of the user's functions.
May import:  `compiler`, `dataflow`, `collections`, `runtime`.
"""
