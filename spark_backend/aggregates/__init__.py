"""Aggregates of a fragment: sums of groups as columns, values of groups, results of Python workers.

Lives here:  the step of `Aggregate`, and the kinds of aggregates.
Comes in:    aggregates of the plan, the step below, the deltas of a flush.
Goes out:    old and new rows of groups, with weights.
May import:  codec, state, direct, steps.
"""
