"""Outer joins: a join that keeps the rows without a partner, with None for what is missing.

    L left_join R   =  L join R  +  alone(L, R) x {None}
    L right_join R  =  L join R  +  {None} x alone(R, L)
    L full_join R   =  L join R  +  alone(L, R) x {None}  +  {None} x alone(R, L)

State:  one index per input, and what `matching.py` counts for each side that is kept whole.
Cost:   as join, plus rows whose presence flips.
Source: [i3ql] has none; the law is SQL's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from reactive.engine.collections.index import KeyedPair
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.operators.join import Join
from reactive.engine.operators.matching import Matching, alone

Kept = tuple[Matching, Callable[[Row], Row]]
"""How a side that is kept whole is matched, and what a row of it without a partner becomes."""


class OuterJoin:
    """A join, and the rows alone of the sides that are kept.

    >>> from reactive.engine.operators.index_by import IndexBy
    >>> from reactive.engine.operators.matching import KeyMatching
    >>> left, right = IndexBy(len), IndexBy(len)
    >>> join = Join(left, right, lambda a, b: (a, b))
    >>> kept = (KeyMatching(left.index), lambda row: (row, None))
    >>> OuterJoin(join, left=kept).step(left.step([("anna", 1)]), [])
    [(('anna', None), 1)]
    """

    __slots__ = ("_join", "_kept", "_matchings")

    def __init__(self, join: Join, *, left: Kept | None = None, right: Kept | None = None) -> None:
        self._join = join
        self._kept = [(side, kept) for side, kept in enumerate((left, right)) if kept is not None]
        self._matchings = [matching for _, (matching, _) in self._kept]

    @property
    def touched(self) -> int:
        return self._join.touched + sum(m.touched for m in self._matchings)

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> list[Pair]:
        missing = self.match(left, right)
        try:
            return self.rows(left, right, missing)
        except BaseException:
            self.undo()
            raise

    def match(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> list[Sequence[Pair]]:
        """The deltas of the rows alone on the left, and on the right, if they are kept."""
        found: list[Sequence[Pair]] = [(), ()]
        done: list[Matching] = []
        try:
            for side, (matching, _) in self._kept:
                changes = matching.step(right, left) if side else matching.step(left, right)
                done.append(matching)
                if changes:
                    found[side] = alone(changes, both_changed=bool(left and right))
        except BaseException:
            for matching in done:
                matching.undo()
            raise
        return found

    def rows(
        self,
        left: Sequence[KeyedPair],
        right: Sequence[KeyedPair],
        missing: Sequence[Sequence[Pair]],
    ) -> list[Pair]:
        """The delta, of what `match` found."""
        out = self._join.step(left, right)
        for side, (_, pad) in self._kept:
            out += [(pad(row), weight) for row, weight in missing[side]]
        return out

    def undo(self) -> None:
        for matching in self._matchings:
            matching.undo()

    def commit(self) -> None:
        for matching in self._matchings:
            matching.commit()

    def contents(self) -> Iterable[Pair]:
        yield from self._join.contents()
        for _, (matching, pad) in self._kept:
            for row, weight in alone(matching.contents(), both_changed=False):
                yield pad(row), weight

    def footprint(self) -> tuple[int, int]:
        sizes = [m.footprint() for m in self._matchings]
        return sum(rows for rows, _ in sizes), sum(size for _, size in sizes)
