"""What difference and intersection share: a row's weight depends on its two input weights only.

    out(row)   =  law(L(row), R(row))
    d(row)     =  law(L + dL, R + dR)  -  law(L, R)          at each row that changed

The law maps (0, 0) to 0, so that rows on neither side stay out.

Most rows of the result have weights that their value tells, such as (1, 0) in a difference. They
are held once, as rows of the result, which a view reads there; the weights of all others are held
beside these.

State:  the weight of every row of the result; both weights of the others.
Cost:   O(|dL| + |dR|).
Source: [dbsp] section 4; [i3ql] set operators.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping

from reactive.zset import Pair, Pairs, Row

Weights = tuple[int, int]
Law = Callable[[int, int], int]

FEW = 3
_SHARED = {(a, b): (a, b) for a in range(FEW) for b in range(FEW)}


class Pointwise:
    """Keeps both weights of each row, and gives out how the law's value moves.

    `usual` says which weights most rows of a value v have: (v, v * usual). Of a set no value is
    more than 1.

    >>> smaller = Pointwise(min, usual=1)
    >>> smaller.step([("a", 2)], [("a", 1)]), smaller.step([], [("a", 1)])
    ([('a', 1)], [('a', 1)])
    """

    __slots__ = ("_held", "_is_set", "_last", "_law", "_others", "_usual", "touched")

    def __init__(self, law: Law, *, usual: int, is_set: bool = False) -> None:
        self._law = law
        self._usual = usual
        self._is_set = is_set
        self._held: dict[Row, int] = {}
        self._others: dict[Row, Weights] = {}
        self._last: list[tuple[Row, int, int]] = []
        self.touched = 0

    def step(self, left: Pairs, right: Pairs) -> list[Pair]:
        self.touched += len(left) + len(right)
        law, held, others, usual = self._law, self._held, self._others, self._usual
        self._last = last = []
        out = []
        for row, dl, dr in _both(left, right):
            found = others.get(row)
            if found is None:
                a = before = held.get(row, 0)
                b = a * usual
            else:
                a, b = found
                before = law(a, b)
            last.append((row, a, b))
            value = self._set(row, a + dl, b + dr)
            if value != before:
                out.append((row, value - before))
        return out

    def undo(self) -> None:
        for row, left, right in self._last:
            self._set(row, left, right)
        self._last = []

    def commit(self) -> None:
        self._last = []

    @property
    def shown(self) -> Mapping[Row, object] | None:
        """The rows of the result, if each is there once."""
        return self._held if self._is_set else None

    def contents(self) -> Iterable[Pair]:
        return list(self._held.items())

    def footprint(self) -> tuple[int, int]:
        unusual = sum(weights not in _SHARED for weights in self._others.values())
        size = sys.getsizeof(self._held) + sys.getsizeof(self._others)
        rows = len(self._others.keys() | self._held.keys())
        return rows, size + unusual * sys.getsizeof((0, 0))

    def _set(self, row: Row, left: int, right: int) -> int:
        """Hold the weights of a row; the value of the law at them."""
        value = self._law(left, right)
        if left != value or right != value * self._usual:
            weights = (left, right)
            self._others[row] = _SHARED.get(weights, weights)
        elif row in self._others:
            del self._others[row]
        if value:
            self._held[row] = value
        elif row in self._held:
            del self._held[row]
        return value


def _both(left: Pairs, right: Pairs) -> Iterable[tuple[Row, int, int]]:
    """The change of the left and of the right weight, of each row once."""
    if len(left) + len(right) == 1:
        ((row, weight),) = left or right
        return ((row, weight, 0),) if left else ((row, 0, weight),)
    changed: dict[Row, Weights] = {}
    for row, weight in left:
        a, b = changed.get(row, (0, 0))
        changed[row] = (a + weight, b)
    for row, weight in right:
        a, b = changed.get(row, (0, 0))
        changed[row] = (a, b + weight)
    return [(row, a, b) for row, (a, b) in changed.items()]
