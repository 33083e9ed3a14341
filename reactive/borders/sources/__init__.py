"""Sources of rows, their batches, and the threads that commit the batches.

Lives here:  the protocol of a source; the ledger of its token and errors; two small sources.
Comes in:    batches of a source, from a token on.
Goes out:    one commit per batch, with its token.
May import:  `engine`, `api`, and the borders before it in `tests/test_architecture.py`.
"""
