"""Rows in order of which a large part changes: all are sorted again, and the edits follow from both
sequences.

    old   a b c d        rows that only one sequence has are deleted, the last first,
    new   a x c          and inserted, the first first:    -d -b +x

Rows are compared by identity, and each occurs once. The rows that stay keep their order: among
incomparable rows of a key, new ones are the newest.

State:  the two sequences, until the edits are read.
Cost:   O(rows log rows), close to O(rows) as most are in order; no row is hashed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress, count
from operator import not_
from typing import Any, overload

from reactive.engine.collections.order import Edit
from reactive.engine.collections.ranked import RankedIndex
from reactive.engine.collections.zset import Pair, Row

_edit: Callable[[type[Edit], tuple[int, Row, int]], Edit] = tuple.__new__


def exchange_in_order(
    ranked: RankedIndex,
    pairs: Sequence[Pair],
    keys_of: Callable[[list[Row]], list[Any]],
    *,
    descending: bool,
) -> tuple[list[Any], list[Row]] | None:
    """Return keys and rows after a net delta, rows of a key in order of arrival.

    Return None if a row has copies, or a deleted row is not there.
    """
    if not {weight for _, weight in pairs} <= {1, -1}:
        return None
    gone = {id(row) for row, weight in pairs if weight < 0}
    come = [row for row, weight in pairs if weight > 0]
    keys, rows = ranked.columns()
    if descending:  # read backwards
        keys.reverse()
        rows.reverse()
    stay = list(map(not_, map(gone.__contains__, map(id, rows))))
    left = [*compress(rows, stay), *come]
    if len(rows) + len(come) - len(left) != len(gone) or len({*map(id, left)}) < len(left):
        return None
    return [*compress(keys, stay), *keys_of(come)], left


class ExchangeEdits(Sequence[Edit]):
    """The edits that turn one sequence of rows into another, made when they are read.

    changes: the difference of both, if it is known.

    >>> one, two = "one", "two"
    >>> list(ExchangeEdits([one], [two, one])), ExchangeEdits([one], [two]).pairs()
    ([Edit(position=0, row='two', weight=1)], [('one', -1), ('two', 1)])
    """

    __slots__ = ("_come", "_edits", "_gone", "_new", "_old")

    def __init__(
        self, old: Sequence[Row], new: Sequence[Row], changes: Sequence[Pair] | None = None
    ) -> None:
        self._old = old
        self._new = new
        self._gone: AbstractSet[int]
        self._come: AbstractSet[int]
        if changes is None:
            had, has = {*map(id, old)}, {*map(id, new)}
            self._gone, self._come = had - has, has - had
        else:
            self._gone = {id(row) for row, weight in changes if weight < 0}
            self._come = {id(row) for row, weight in changes if weight > 0}
        self._edits: list[Edit] | None = None

    def pairs(self) -> list[Pair]:
        """Return the changes without their positions."""
        gone, come = _places(self._old, self._gone), _places(self._new, self._come)
        return [(self._old[at], -1) for at in gone] + [(self._new[at], 1) for at in come]

    @overload
    def __getitem__(self, place: int) -> Edit: ...
    @overload
    def __getitem__(self, place: slice) -> list[Edit]: ...
    def __getitem__(self, place: int | slice) -> Edit | list[Edit]:
        if self._edits is None:
            old, new = self._old, self._new
            gone = [_edit(Edit, (at, old[at], -1)) for at in _places(old, self._gone)[::-1]]
            come = [_edit(Edit, (at, new[at], 1)) for at in _places(new, self._come)]
            self._edits = gone + come
        return self._edits[place]

    def __iter__(self) -> Iterator[Edit]:
        return iter(self[:])

    def __len__(self) -> int:
        return len(self._gone) + len(self._come)


def _places(rows: Sequence[Row], wanted: AbstractSet[int]) -> list[int]:
    """Return the places of the rows with these identities."""
    return list(compress(count(), map(wanted.__contains__, map(id, rows))))
