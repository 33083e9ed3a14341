"""Operators that are not columns: their rows pickled in buckets, worked on in Python workers.

Lives here:  the operator as a `Remote`; what runs in workers, and here where rows are few.
Comes in:    an operator of any kind; deltas of its inputs.
Goes out:    its delta.
May import:  cluster, codec, state, direct, steps, fragments.
"""
