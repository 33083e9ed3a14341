"""Each: rows that are tuples become rows of several bindings, which are tuples too.

    d(each(L))  =  dL

What a query per group computes is in the operators below, which have the key of the group in their
rows (`optimizer/plans/per_group.py`).

State:  none.
Cost:   O(1), whatever the delta.
Source: [dbsp] linear operators.
"""

from __future__ import annotations

from reactive.collections.zset import Pairs


class Each:
    """Hands deltas on.

    >>> Each().step([(("Bonn", 3), 1)])
    [(('Bonn', 3), 1)]
    """

    __slots__ = ("touched",)

    def __init__(self) -> None:
        self.touched = 0

    def step(self, delta: Pairs) -> Pairs:
        return delta
