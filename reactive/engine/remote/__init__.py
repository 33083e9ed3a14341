"""Operators whose state and work are elsewhere: the engine's side of offloading.

Lives here:  the operator that packs changes and stores them until a flush, and the flush itself.
Comes in:    deltas, and the store of a fragment elsewhere (`Remote`; `spark_backend` has one).
Goes out:    deltas, at flushes.
May import:  `dataflow`, `operators`, `collections`, `runtime`.
"""
