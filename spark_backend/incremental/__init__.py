"""A fragment of a plan as queries over its changes: one Spark job per flush, whatever its depth.

Lives here:  a step per node, which makes its delta as a DataFrame; the fragment as a `Remote`.
Comes in:    a fragment; deltas of its inputs.
Goes out:    its delta, and DataFrames of its rows.
May import:  cluster, codec, state, direct, tables.
"""
