"""The rows of an input that match a row of a recursive relation, now and before a change.

    relation  --key-->  rows of the input with the key, of which a predicate is true

Where a key could not be computed, it says nothing: then all rows are asked.

State:  none but the indexes of both sides, which the recursion and the graph keep.
Cost:   O(rows with the key) of each row that is asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from reactive.engine.collections.index import Before, KeyedPair
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.operators.error_rows import Candidates
from reactive.engine.operators.fixpoint.recursive_index import RecursiveIndex
from reactive.engine.operators.index_by import IndexBy

Keyed = Sequence[KeyedPair]
Of = Callable[[Any, Row], list[Pair]]
"""The partners of a row with a key."""


class Partners:
    """The partners that rows of a relation have in an input.

    Parameters
    ----------
    fits: whether a row and another of the same key match.
    whole: whether two rows of any keys do.
    """

    __slots__ = ("_fits", "_unseen", "_whole", "left", "right", "touched")

    def __init__(
        self,
        sides: tuple[RecursiveIndex, IndexBy],
        fits: Callable[[Row, Row], object],
        whole: Callable[[Row, Row], object],
    ) -> None:
        self.left, self.right = sides
        self._fits = fits
        self._whole = whole
        self._unseen: Keyed = ()
        self.touched = 0

    @contextmanager
    def before(self, keyed: Keyed) -> Iterator[None]:
        """As it would be if the input had not taken a delta yet."""
        self._unseen = keyed
        try:
            yield
        finally:
            self._unseen = ()

    def asked(self, keyed: Keyed) -> Sequence[tuple[Row, Any]]:
        """The rows of the relation that changed rows of the input may match, with their keys."""
        found: dict[Row, Any] = {}
        index = self.left.index_by
        rows = Candidates(index) if self._is_poisoned() else index.index
        for key, _ in keyed:
            for row, _ in rows.pairs(key):
                found.setdefault(row, key)
        self.touched += len(found)
        return [*found.items()]

    def of(self, since: Keyed) -> Of:
        """What finds the partners that a row has; or had, before a delta of the input."""
        others: Any = self.right.index
        fits = self._fits
        if self._unseen:
            since = [*self._unseen, *since]
        if self._is_poisoned():  # keys say nothing then
            others, fits = _Everything(self.right, since), self._whole
        elif since:
            others = Before(others, since)

        def partners(key: Any, row: Row) -> list[Pair]:
            candidates = others.pairs(key)
            self.touched += len(candidates)
            return [pair for pair in candidates if fits(row, pair[0])]

        return partners

    def _is_poisoned(self) -> bool:
        return self.left.index_by.poisoned or self.right.poisoned


class _Everything:
    """All rows of an input, whatever the key; or as it was before a delta."""

    def __init__(self, rows: IndexBy, since: Keyed) -> None:
        self._rows = list(rows.all_rows(since))

    def pairs(self, key: Any) -> Sequence[Pair]:
        return self._rows
