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
from reactive.engine.collections.whole_rows import JoinedDelta
from reactive.engine.collections.zset import Pair, Row, UniformDelta, net_by_identity

_edit: Callable[[type[Edit], tuple[int, Row, int]], Edit] = tuple.__new__


def split_rows(delta: Sequence[Pair]) -> tuple[list[Row], list[Row]] | None:
    """Return the deleted and the inserted rows of a delta, without rows that are in both.

    Return None if a row has copies.
    """
    if isinstance(delta, JoinedDelta):
        return delta.split()
    pairs = net_by_identity(delta)
    if not {weight for _, weight in pairs} <= {1, -1}:
        return None
    gone = [row for row, weight in pairs if weight < 0]
    return gone, [row for row, weight in pairs if weight > 0]


def join_rows(gone: list[Row], come: list[Row]) -> JoinedDelta | Sequence[Pair]:
    """Return deleted and inserted rows as one delta; an empty sequence if there are none."""
    return JoinedDelta([UniformDelta(gone, -1), UniformDelta(come, 1)]) if gone or come else ()


def exchange_in_order(
    ranked: RankedIndex,
    gone: list[Row],
    come: list[Row],
    keys_of: Callable[[list[Row]], list[Any]],
    *,
    descending: bool,
) -> tuple[list[Any], list[Row]] | None:
    """Return keys and rows after rows are deleted and inserted, rows of a key in order of arrival.

    Return None if a row has copies, or a deleted row is not there.
    """
    deleted = {*map(id, gone)}
    keys, rows = ranked.columns()
    if descending:  # read backwards
        keys.reverse()
        rows.reverse()
    stay = list(map(not_, map(deleted.__contains__, map(id, rows))))
    left = [*compress(rows, stay), *come]
    is_there = len(rows) + len(come) - len(left) == len(deleted) == len(gone)
    if not is_there or len({*map(id, left)}) < len(left):
        return None
    return [*compress(keys, stay), *keys_of(come)], left


class ExchangeEdits(Sequence[Edit]):
    """The edits that turn one sequence of rows into another, made when they are read.

    changes: the deleted and the inserted rows, if they are known.

    >>> one, two = "one", "two"
    >>> list(ExchangeEdits([one], [two, one])), ExchangeEdits([one], [two]).pairs()
    ([Edit(position=0, row='two', weight=1)], [('one', -1), ('two', 1)])
    """

    __slots__ = ("_changes", "_edits", "_new", "_old")

    def __init__(
        self,
        old: Sequence[Row],
        new: Sequence[Row],
        changes: tuple[Sequence[Row], Sequence[Row]] | None = None,
    ) -> None:
        self._old = old
        self._new = new
        self._changes = changes
        self._edits: list[Edit] | None = None

    def _identities(self) -> tuple[AbstractSet[int], AbstractSet[int]]:
        """Return the identities of the deleted and of the inserted rows."""
        if self._changes is not None:
            gone, come = self._changes
            return {*map(id, gone)}, {*map(id, come)}
        had, has = {*map(id, self._old)}, {*map(id, self._new)}
        return had - has, has - had

    def pairs(self) -> list[Pair]:
        """Return the changes without their positions."""
        deleted, inserted = self._identities()
        gone, come = _places(self._old, deleted), _places(self._new, inserted)
        return [(self._old[at], -1) for at in gone] + [(self._new[at], 1) for at in come]

    @overload
    def __getitem__(self, place: int) -> Edit: ...
    @overload
    def __getitem__(self, place: slice) -> list[Edit]: ...
    def __getitem__(self, place: int | slice) -> Edit | list[Edit]:
        if self._edits is None:
            old, new = self._old, self._new
            deleted, inserted = self._identities()
            gone = [_edit(Edit, (at, old[at], -1)) for at in _places(old, deleted)[::-1]]
            come = [_edit(Edit, (at, new[at], 1)) for at in _places(new, inserted)]
            self._edits = gone + come
        return self._edits[place]

    def __iter__(self) -> Iterator[Edit]:
        return iter(self[:])

    def __len__(self) -> int:
        return sum(map(len, self._changes or self._identities()))


def _places(rows: Sequence[Row], wanted: AbstractSet[int]) -> list[int]:
    """Return the places of the rows with these identities."""
    return list(compress(count(), map(wanted.__contains__, map(id, rows))))
