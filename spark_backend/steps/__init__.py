"""Nodes of a fragment as queries over its changes: rows with weights in, rows with weights out.

Lives here:  what all steps have in common; keys as columns; a step per node but aggregates.
Comes in:    a node, the steps below it, the deltas of a flush.
Goes out:    the node's delta, and what state tables keep for it.
May import:  cluster, codec, state, direct, tables.
"""
