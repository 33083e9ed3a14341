"""A fragment of a plan on Spark: one job per flush, whatever its depth.

Lives here:  compilation to steps; sharing between fragments; the fragment as a `Remote`.
Comes in:    a fragment; deltas of its inputs.
Goes out:    its delta, and DataFrames of its rows.
May import:  cluster, codec, state, direct, tables, steps, aggregates.
"""
