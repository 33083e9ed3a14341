"""Windows by partition: an operator that loads all rows at once without hashing them.

    load        rows by the key of their partition; each partition is sorted and evaluated
    later       the changes of each partition (`KeptGroups`)

The rows that a load shows are listed when a reader asks for them, or before the next step: a view
that is made reads the contents instead.

Cost:   O(n log n) to load n rows.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, overload

from reactive.engine.collections.zset import (
    EXACT,
    Pair,
    Pairs,
    Row,
    UniformDelta,
    canonical,
    is_mixed,
)
from reactive.engine.operators.aggregate import GroupStates
from reactive.engine.operators.windows.facts import Packed
from reactive.engine.operators.windows.partition import WindowPartition


class WindowGroups(GroupStates[WindowPartition]):
    """The partitions of a window; shown rows are pairs of the key and the row."""

    __slots__ = ("_unread", "_updated")

    def __init__(self, key: Callable[[Row], Any], new: Callable[[], WindowPartition]) -> None:
        super().__init__(key, new)
        self._unread: weakref.ref[UnreadRows] | None = None
        self._updated: WindowPartition | None = None
        """The only partition that the last step has changed, if it replaced a row."""

    def step(self, delta: Pairs) -> Any:
        """Return the changes of the shown rows; undo all partitions if one raises."""
        self._updated = None
        if self._unread is not None:
            unread, self._unread = self._unread(), None
            if unread is not None:
                unread.read()
        if len(delta) == 2 and self._groups:
            shown = self._step_update(*delta)
            return super().step(delta) if shown is None else shown
        if self._groups or len(delta) < 2 or least_weight(delta) < 1:
            return super().step(delta)
        self._stepped, self._made = {}, []
        try:
            for key, rows in rows_by_partition(self._key, delta).items():
                self._group(key).load(rows)
        except BaseException:
            self.undo()
            raise
        found = UnreadRows(self.contents)
        self._unread = weakref.ref(found)
        self.touched += len(delta) + sum(group.sight for group in self._groups.values())
        return found

    def _step_update(self, one: Pair, other: Pair) -> list[Pair] | None:
        """Apply two changes of one partition that exists; return None if they are of two.

        Equal rows need not be found: they are deleted and inserted.
        """
        key, also = self._key(one[0]), self._key(other[0])
        for value in key:
            if value.__class__ not in EXACT:
                key, also = canonical(key), canonical(also)
                break
        group = self._groups.get(key)
        if key != also or group is None:
            return None
        self._stepped, self._made = {key: group}, []
        try:
            if one[1] == -1 and other[1] == 1:
                out = group.update(key, one[0], other[0])
                if out is not None:
                    self._updated = group
                    self.touched += 2 + len(out)
                    return out
            shown = group.step((one, other))
        except BaseException:
            self.undo()
            raise
        self.touched += 2 + len(shown)
        return [((key, row), weight) for row, weight in shown]

    def commit(self) -> None:
        group, self._updated = self._updated, None
        if group is None:
            super().commit()
            return
        group.commit()  # it holds the row that came

    def _step_group(self, key: Any, changes: Sequence[Pair]) -> list[Pair]:
        """Apply the changes of a partition; return those of its rows, in pairs with the key."""
        shown = self._group(key).step(changes)
        self.touched += len(changes) + len(shown)
        return [((key, row), weight) for row, weight in shown]

    def contents(self) -> UniformDelta:
        """Return all rows, each in a pair with the key of its partition."""
        rows = [(key, row) for key, group in self._groups.items() for row in group.rows()]
        return UniformDelta(rows, 1)


def rows_by_partition(key: Callable[[Row], Any], delta: Pairs) -> dict[Any, list[Packed]]:
    """Return the rows of a load by the key of their partition, as often as they occur."""
    rows = [row for row, weight in delta for _ in range(weight)]
    keys = list(map(key, rows))
    if not all(key.__class__ is tuple for key in keys) or not _are_exact(keys):
        keys = list(map(canonical, keys))
    found: dict[Any, list[Packed]] = defaultdict(list)
    for partition, row in zip(keys, rows, strict=True):
        found[partition].append(row)
    return found


def _are_exact(keys: list[tuple[Any, ...]]) -> bool:
    return set(map(type, chain.from_iterable(keys))) <= EXACT


def least_weight(delta: Pairs) -> int:
    """Return the least weight of a delta that is not empty."""
    if type(delta) is UniformDelta:
        return delta.weight
    return -1 if is_mixed(delta) else min(weight for _, weight in delta)


class UnreadRows(Sequence[Pair]):
    """The rows that a load shows, listed when they are read."""

    __slots__ = ("__weakref__", "_list", "_rows")

    def __init__(self, make: Callable[[], UniformDelta]) -> None:
        self._list: Callable[[], UniformDelta] | None = make
        self._rows = UniformDelta((), 1)

    def read(self) -> UniformDelta:
        """Return the rows, listed once."""
        if self._list is not None:
            self._rows, self._list = self._list(), None
        return self._rows

    def __len__(self) -> int:
        return len(self.read())

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.read())

    @overload
    def __getitem__(self, place: int) -> Pair: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Pair]: ...
    def __getitem__(self, place: int | slice) -> Pair | Sequence[Pair]:
        return self.read()[place]
