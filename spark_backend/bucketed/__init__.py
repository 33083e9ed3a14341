"""Operators that are not columns: their rows are pickled in buckets, and processed by Python
workers.

Lives here:  the operator as a `Remote`; its computation in workers, and here for few rows.
Comes in:    an operator of any kind; deltas of its inputs.
Goes out:    its delta.
May import:  cluster, codec, state, direct, steps, fragments.
"""
