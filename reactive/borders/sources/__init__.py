"""Where rows come from: sources, their batches, and the threads that make commits of them.

Lives here:  the protocol of a source; what is noted of one beside its rows; two small sources.
Comes in:    batches of a source, from a place that can be gone on from by a token.
Goes out:    one commit per batch, with its token.
May import:  `engine`, `api`, and the borders before it in `tests/test_architecture.py`.
"""
