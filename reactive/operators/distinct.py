"""Distinct: each row once, however often it occurs.

    distinct(L)(row)  =  1 if L(row) > 0 else 0

Not linear, but a row's own weights before and after tell all:

    d(row)  =  [L(row) + dL(row) > 0]  -  [L(row) > 0]

State:  the weight of every distinct row.
Cost:   O(|dL|).
Source: [dbsp] proposition 4.7, incremental distinct; [i3ql] duplicate elimination.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from reactive.zset import Pair, Pairs, Row, consolidate, insert_new, integrate, negate

MANY = 16
"""Rows of a delta from which on it is worth a try that all are new."""


class Distinct:
    """Tells when a row comes to be, and when its last copy goes.

    >>> distinct = Distinct()
    >>> distinct.step([("a", 2), ("b", 1)]), distinct.step([("a", -1), ("b", -1)])
    ([('a', 1), ('b', 1)], [('b', -1)])
    """

    __slots__ = ("_last", "_weights", "touched")

    def __init__(self) -> None:
        self._weights: dict[Row, int] = {}
        self._last: Pairs = []
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        self.touched += len(delta)
        if len(delta) > MANY and insert_new(self._weights, delta):
            self._last = delta
            return [(row, 1) for row, _ in delta]
        changes = consolidate(delta)
        get = self._weights.get
        out = []
        for row, change in changes:
            before = get(row, 0)
            if (before > 0) != (before + change > 0):
                out.append((row, -1 if before > 0 else 1))
        self._last = changes
        try:
            integrate(self._weights, changes)
        except BaseException:
            self._last = []
            raise
        return out

    def undo(self) -> None:
        integrate(self._weights, negate(self._last))
        self._last = []

    def commit(self) -> None:
        self._last = []

    def contents(self) -> Iterable[Pair]:
        return [(row, 1) for row, weight in self._weights.items() if weight > 0]

    def footprint(self) -> tuple[int, int]:
        return len(self._weights), sys.getsizeof(self._weights)
