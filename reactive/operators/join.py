"""Equi-join: pair the rows of two inputs that agree on a key.

Join is bilinear, so its delta needs two products, not a recomputation:

    d(L join R)  =  dL join (R + dR)  +  L join dR

            dL --- IndexBy --+
                             Join --- d(L join R)
            dR --- IndexBy --+

Both indexes have taken their delta in already; `L` of before is `L` of now less `dL`. A predicate
on top of the keys is a selection of the pairs. When both inputs change, a pair may come and go in
the same commit; it is cancelled here, so that nothing above sees it.

State:  none of its own; one index per input, shared with other joins on the same key.
Cost:   O(|dL| + |dR| + matches) per commit, independent of |L| and |R|.
Source: [dbsp] proposition 3.4 and section 4, bilinear operators; [i3ql] join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reactive.index import Index, KeyedPair
from reactive.operators.index_by import Before
from reactive.zset import Pair, Row, consolidate


class Join:
    """Pairs the rows of two indexes; `pair(left, right)` makes the row.

    >>> from reactive.operators.index_by import IndexBy
    >>> left, right = IndexBy(len), IndexBy(len)
    >>> join = Join(left.index, right.index, lambda a, b: (a, b))
    >>> join.step(left.step([("anna", 1)]), right.step([("otto", 2), ("eva", 1)]))
    [(('anna', 'otto'), 2)]
    """

    __slots__ = ("_left", "_on", "_pair", "_right", "touched")

    def __init__(
        self,
        left: Index,
        right: Index,
        pair: Callable[[Row, Row], Row],
        on: Callable[[Row], object] | None = None,
    ) -> None:
        self._left = left
        self._right = right
        self._pair = pair
        self._on = on
        self.touched = 0

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> list[Pair]:
        out = self._left_part(left)
        if right:
            before = Before(self._left, left) if left else self._left
            out += self._right_part(right, before)
        self.touched += len(left) + len(right) + len(out)
        if left and right:
            out = consolidate(out)
        return self._fitting(out)

    def contents(self) -> Iterable[Pair]:
        return self._fitting(self._left_part(self._left.items()))

    def _fitting(self, pairs: list[Pair]) -> list[Pair]:
        """Those for which the predicate is true."""
        on = self._on
        if on is None:
            return pairs
        out = []
        for pair in pairs:
            if on(pair[0]):
                out.append(pair)
        return out

    def _left_part(self, delta: Iterable[KeyedPair]) -> list[Pair]:
        pair, lookup = self._pair, self._right.pairs
        return [
            (pair(row, other), weight * times)
            for key, (row, weight) in delta
            for other, times in lookup(key)
        ]

    def _right_part(self, delta: Iterable[KeyedPair], before: Any) -> list[Pair]:
        pair, lookup = self._pair, before.pairs
        return [
            (pair(other, row), weight * times)
            for key, (row, weight) in delta
            for other, times in lookup(key)
        ]
