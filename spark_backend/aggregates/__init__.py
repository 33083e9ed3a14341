"""Aggregates of a fragment: sums of groups as columns, values of groups, what Python works out.

Lives here:  the step of `Aggregate`, and the kinds of aggregates it tells apart.
Comes in:    aggregates of the plan, the step below, the deltas of a flush.
Goes out:    rows of groups as they were and as they are, with weights.
May import:  codec, state, direct, steps.
"""
