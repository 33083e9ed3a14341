"""An operator whose state and work are elsewhere, as a mechanism.

Lives here:  the operator that packs and keeps changes until a flush, and the flush itself.
Comes in:    deltas, and what keeps a fragment there (`Remote`; `spark_backend` has one).
Goes out:    deltas, at flushes.
May import:  `dataflow`, `operators`, `collections`, `runtime`.
"""
