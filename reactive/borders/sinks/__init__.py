"""How the changes of a view go out: to files, to tables, to functions and topics.

Lives here:  the sink of a view, the protocol of what it writes to, and calls of functions.
Comes in:    the deltas of a view, and its rows where it has to be compared with what is there.
Goes out:    numbered batches of changes, each there once.
May import:  `subscriptions`, `dataflow`, `durable`, `collections`, `runtime`.
"""
