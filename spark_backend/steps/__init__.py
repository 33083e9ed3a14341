"""Nodes of a fragment as queries over its changes: rows with weights in, rows with weights out.

Lives here:  the interface of steps; keys as columns; a step per node except aggregates.
Comes in:    a node, the steps below it, the deltas of a flush.
Goes out:    the delta of the node, and the rows of its state tables.
May import:  cluster, codec, state, direct, tables.
"""
