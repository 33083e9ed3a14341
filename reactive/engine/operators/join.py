"""Equi-join: pair the rows of two inputs that agree on a key.

Join is bilinear, so its delta needs two products, not a recomputation:

    d(L join R)  =  dL join (R + dR)  +  L join dR

            dL --- IndexBy --+
                             Join --- d(L join R)
            dR --- IndexBy --+

Both indexes have taken their delta in already; `L` of before is `L` of now less `dL`. A predicate
on top of the keys is a selection of the pairs. When both inputs change, a pair may come and go in
the same commit; it is cancelled here, so that nothing above sees it.

Where the optimizer found the keys in a predicate, `on` is what is left of it. While an index has
error rows, the `whole` predicate is asked of all candidates (`error_rows.py`).

State:  none of its own; one index per input, shared with other joins on the same key.
Cost:   O(|dL| + |dR| + matches) per commit, independent of |L| and |R|.
Source: [dbsp] proposition 3.4 and section 4, bilinear operators; [i3ql] join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reactive.engine.collections.index import FILTERED, KeyedPair
from reactive.engine.collections.zset import Pair, Row, consolidate
from reactive.engine.operators.error_rows import Candidates
from reactive.engine.operators.index_by import IndexBy


class Join:
    """Pairs the rows of two indexes; `pair(left, right)` makes the row.

    >>> from reactive.engine.operators.index_by import IndexBy
    >>> left, right = IndexBy(len), IndexBy(len)
    >>> join = Join(left, right, lambda a, b: (a, b))
    >>> join.step(left.step([("anna", 1)]), right.step([("otto", 2), ("eva", 1)]))
    [(('anna', 'otto'), 2)]
    """

    __slots__ = ("_left", "_on", "_pair", "_right", "_whole", "touched")

    def __init__(
        self,
        left: IndexBy,
        right: IndexBy,
        pair: Callable[[Row, Row], Row],
        on: Callable[[Row], object] | None = None,
        whole: Callable[[Row], object] | None = None,
    ) -> None:
        self._left = left
        self._right = right
        self._pair = pair
        self._on = on
        self._whole = whole
        self.touched = 0

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> list[Pair]:
        if self._left.poisoned or self._right.poisoned:
            return self._careful(left, right)
        out = self._left_part(left, self._right.index)
        if right:
            index = self._left.index
            out += self._right_part(right, index.earlier(left) if left else index)
        self.touched += len(left) + len(right) + len(out)
        if left and right:
            out = consolidate(out)
        return self._fitting(out, self._on)

    def contents(self) -> Iterable[Pair]:
        items = list(self._left.index.items())
        if not (self._left.poisoned or self._right.poisoned):
            return self._fitting(self._left_part(items, self._right.index), self._on)
        kept = [(row, -weight) for _, (row, weight) in items]
        left_out = consolidate([*self._left.all_rows(), *kept])
        items += [(FILTERED, pair) for pair in left_out]
        return self._fitting(self._left_part(items, Candidates(self._right)), self._whole)

    def _careful(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> list[Pair]:
        """The same while there are error rows, here or before the commit."""
        out = self._left_part(left, Candidates(self._right))
        out += self._right_part(right, Candidates(self._left, left))
        self.touched += len(left) + len(right) + len(out)
        return self._fitting(consolidate(out), self._whole)

    def _fitting(self, pairs: list[Pair], on: Callable[[Row], object] | None) -> list[Pair]:
        """Those for which the predicate is true."""
        if on is None:
            return pairs
        out = []
        for pair in pairs:
            if on(pair[0]):
                out.append(pair)
        return out

    def _left_part(self, delta: Iterable[KeyedPair], others: Any) -> list[Pair]:
        pair, lookup = self._pair, others.pairs
        return [
            (pair(row, other), weight * times)
            for key, (row, weight) in delta
            for other, times in lookup(key)
        ]

    def _right_part(self, delta: Iterable[KeyedPair], others: Any) -> list[Pair]:
        pair, lookup = self._pair, others.pairs
        return [
            (pair(other, row), weight * times)
            for key, (row, weight) in delta
            for other, times in lookup(key)
        ]
