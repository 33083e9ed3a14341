"""Sinks: write the changes of a view to files, tables, functions and topics.

Lives here:  the sink of a view, the protocol of its target, and calls of functions.
Comes in:    the deltas of a view; its rows, when they are compared with the target.
Goes out:    numbered batches of changes, each exactly once.
May import:  `subscriptions`, `dataflow`, `durable`, `collections`, `runtime`.
"""
