"""Projection with bag semantics: a function of each row.

    d(select(f, L))  =  select(f, dL)

Linear. Different rows may become the same one; their weights then add up, which is left to
whoever consolidates.

State:  none.
Cost:   O(|dL|).
Source: [dbsp] linear operators; [i3ql] projection.
"""

from __future__ import annotations

from collections.abc import Callable

from reactive.engine.collections.zset import Pair, Pairs, Row, canonical


class Select:
    """Maps the row of each pair.

    >>> Select(lambda row: row % 2).step([(1, 1), (2, 1), (3, -1)])
    [(1, 1), (0, 1), (1, -1)]
    """

    __slots__ = ("_function", "touched")

    def __init__(self, function: Callable[[Row], Row]) -> None:
        self._function = function
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        self.touched += len(delta)
        function = self._function
        out = []
        for row, weight in delta:
            out.append((canonical(function(row)), weight))
        return out
