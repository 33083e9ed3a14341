"""Bag union: the rows of both sides, weights added (SQL's UNION ALL).

    d(L + R)  =  dL + dR

Linear in both inputs together.

State:  none.
Cost:   O(|dL| + |dR|).
Source: [dbsp] addition of Z-sets.
"""

from __future__ import annotations

from reactive.engine.collections.zset import Pair, Pairs


class UnionAll:
    """Joins the two lists.

    >>> UnionAll().step([("a", 1)], [("a", 1), ("b", -1)])
    [('a', 1), ('a', 1), ('b', -1)]
    """

    __slots__ = ("touched",)

    def __init__(self) -> None:
        self.touched = 0

    def step(self, left: Pairs, right: Pairs) -> list[Pair]:
        self.touched += len(left) + len(right)
        return [*left, *right]
