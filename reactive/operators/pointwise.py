"""What difference and intersection share: a row's weight depends on its two input weights only.

    out(row)   =  law(L(row), R(row))
    d(row)     =  law(L + dL, R + dR)  -  law(L, R)          at each row that changed

The law maps (0, 0) to 0, so that rows on neither side stay out.

State:  the two weights of every row that either side has.
Cost:   O(|dL| + |dR|).
Source: [dbsp] section 4; [i3ql] set operators.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from reactive.zset import Pair, Pairs, Row

Law = Callable[[int, int], int]
Weights = dict[Row, tuple[int, int]]


class Pointwise:
    """Keeps both weights of each row, and gives out how the law's value moves.

    >>> smaller = Pointwise(min)
    >>> smaller.step([("a", 2)], [("a", 1)]), smaller.step([], [("a", 1)])
    ([('a', 1)], [('a', 1)])
    """

    __slots__ = ("_last", "_law", "_weights", "touched")

    def __init__(self, law: Law) -> None:
        self._law = law
        self._weights: Weights = {}
        self._last: Weights = {}
        self.touched = 0

    def step(self, left: Pairs, right: Pairs) -> list[Pair]:
        self.touched += len(left) + len(right)
        law, get = self._law, self._weights.get
        changed = _both(left, right)
        before = {row: get(row, (0, 0)) for row in changed}
        out = []
        for row, (dl, dr) in changed.items():
            a, b = before[row]
            weight = law(a + dl, b + dr) - law(a, b)
            if weight:
                out.append((row, weight))
        self._last = before
        for row, (dl, dr) in changed.items():
            a, b = before[row]
            self._set(row, (a + dl, b + dr))
        return out

    def undo(self) -> None:
        for row, weights in self._last.items():
            self._set(row, weights)
        self._last = {}

    def commit(self) -> None:
        self._last = {}

    def contents(self) -> Iterable[Pair]:
        pairs = ((row, self._law(a, b)) for row, (a, b) in self._weights.items())
        return [pair for pair in pairs if pair[1]]

    def footprint(self) -> tuple[int, int]:
        size = sys.getsizeof((0, 0))
        return len(self._weights), sys.getsizeof(self._weights) + size * len(self._weights)

    def _set(self, row: Row, weights: tuple[int, int]) -> None:
        if weights == (0, 0):
            self._weights.pop(row, None)
        else:
            self._weights[row] = weights


def _both(left: Pairs, right: Pairs) -> Weights:
    """The changes of the left and of the right weight, per row."""
    changed: Weights = {}
    for row, weight in left:
        a, b = changed.get(row, (0, 0))
        changed[row] = (a + weight, b)
    for row, weight in right:
        a, b = changed.get(row, (0, 0))
        changed[row] = (a, b + weight)
    return changed
