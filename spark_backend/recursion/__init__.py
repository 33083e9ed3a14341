"""Recursions on Spark: a fixpoint by partitions, each run to its end by this engine.

Lives here:  the step of a fixpoint in a fragment; its computation in workers.
Comes in:    a fixpoint that is many small ones (`optimizer.plans.closures`), and deltas.
Goes out:    how its rows change.
May import:  cluster, codec, state, direct, tables, steps, fragments.
"""
