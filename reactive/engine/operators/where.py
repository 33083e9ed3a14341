"""Selection: the rows for which a predicate is true.

    d(where(p, L))  =  where(p, dL)

Linear: a row is kept or dropped for itself, whatever its weight and whatever else is there.

State:  none.
Cost:   O(|dL|).
Source: [dbsp] linear operators; [i3ql] selection.
"""

from __future__ import annotations

from collections.abc import Callable

from reactive.engine.collections.zset import Pair, Pairs, Row


class Where:
    """Keeps the pairs whose row passes.

    >>> Where(lambda row: row > 1).step([(1, 1), (2, 1), (3, -1)])
    [(2, 1), (3, -1)]
    """

    __slots__ = ("_predicate", "touched")

    def __init__(self, predicate: Callable[[Row], object]) -> None:
        self._predicate = predicate
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        self.touched += len(delta)
        predicate = self._predicate
        out = []
        for pair in delta:
            if predicate(pair[0]):
                out.append(pair)
        return out
