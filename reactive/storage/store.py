"""The rows of a table: where equal rows become one object.

A store changes by statements, and can take one back. Each statement gives the delta that it was,
in which a row is always the object that the store holds ("interned"), so that operators may know
it by its identity.

    row -> row                 a row that is there once
    row -> Copies              one that is there several times

State:  every row, once; 8 bytes for a reference beside what the dictionary takes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from reactive.collections.zset import Pair, Row, consolidate, repeat
from reactive.errors import TableError


class Absent(Exception):
    """The store does not hold what was to be removed."""


class Duplicate(Exception):
    """The key is taken; the argument is the row that has it."""


class Store(Protocol):
    """What a table needs of its rows. Each method is all or nothing."""

    def add(self, row: Row, count: int) -> Pair: ...
    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]: ...
    def remove(self, row: Row, count: int) -> Pair: ...
    def remove_rows(self, rows: Sequence[Row]) -> Sequence[Row]: ...
    def revert(self, changes: Iterable[Pair]) -> None: ...
    def recount(self) -> None:
        """Make what is known of the rows agree with them, after what was broken off."""
        ...

    def count(self, row: Row) -> int: ...
    def pairs(self) -> Iterable[Pair]: ...
    def __len__(self) -> int: ...
    def bytes(self) -> int: ...


def rows_of(store: Store) -> list[Row]:
    """All rows, each repeated by its weight."""
    distinct = getattr(store, "distinct", None)
    found: list[Row] | None = None if distinct is None else distinct()
    return list(repeat(store.pairs())) if found is None else found


def take_back(changes: Iterable[Pair], change: Callable[[Row, int], object]) -> None:
    """Do the reverse of changes; all of them, or none if anything raises."""
    pairs, done = consolidate(changes), 0
    try:
        for row, weight in pairs:
            change(row, -weight)
            done += 1
    except BaseException:  # an interrupt: who takes it back later begins anew
        for row, weight in pairs[:done]:
            change(row, weight)
        raise


class NoMore:
    """The store of a table that was dropped: whatever is asked of it, it says so."""

    def __init__(self, why: str) -> None:
        self.why = why

    def revert(self, changes: Iterable[Pair]) -> None: ...
    def recount(self) -> None: ...

    def __len__(self) -> int:
        raise TableError(self.why)

    def __getattr__(self, name: str) -> Any:
        raise TableError(self.why)


class Copies:
    """A row that is there several times."""

    __slots__ = ("count", "row")

    def __init__(self, row: Row, count: int) -> None:
        self.row = row
        self.count = count


_NONE: Any = Copies(None, 0)


class BagStore:
    """Rows with how often they are there."""

    __slots__ = ("_held", "_size")

    def __init__(self) -> None:
        self._held: dict[Row, Row | Copies] = {}
        self._size = 0

    def add(self, row: Row, count: int) -> Pair:
        held = self._held
        if count == 1:
            before = len(held)
            try:
                kept = held.setdefault(row, row)
                if len(held) > before:
                    self._size += 1
                    return (row, 1)
            except BaseException:
                if len(held) > before:  # an interrupt
                    held.popitem()
                raise
        else:
            kept = held.get(row, _NONE)
        if kept is _NONE:
            held[row] = Copies(row, count)
        elif kept.__class__ is Copies:
            kept.count += count
            row = kept.row
        else:
            held[row] = Copies(kept, 1 + count)
            row = kept
        self._size += count
        return (row, count)

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Add each once, and say as which objects they are held."""
        held, kept, add = self._held, [], self._held.setdefault
        size, count = len(held), len(rows)
        try:
            for row in rows:
                found = add(row, row)
                if len(held) > size:
                    size += 1
                elif found.__class__ is Copies:
                    found.count += 1
                    found = found.row
                else:
                    held[row] = Copies(found, 2)
                kept.append(found)
        except BaseException:
            if len(held) > size:  # an interrupt
                held.popitem()
            self._size += len(kept)
            self.revert((row, 1) for row in kept)
            raise
        self._size += count
        return kept

    def remove(self, row: Row, count: int) -> Pair:
        if count == 1 and self._size == len(self._held):  # none is there several times
            try:
                kept = self._held.pop(row, _NONE)
            except BaseException:
                if len(self._held) < self._size:  # an interrupt
                    self._held[row] = row
                raise
            if kept is _NONE:
                raise Absent
            self._size -= 1
            return (kept, -1)
        kept = self._held.get(row, _NONE)
        if kept.__class__ is not Copies:
            if count != 1:
                raise Absent
            del self._held[row]
            self._size -= 1
            return (kept, -1)
        left = kept.count - count
        if left < 0:
            raise Absent
        if left == 1:
            self._held[row] = kept.row
        elif not left:
            del self._held[row]
        kept.count = left
        self._size -= count
        return (kept.row, -count)

    def remove_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Remove each once, and say as which objects they were held."""
        gone: list[Row] = []
        try:
            if self._size > len(self._held):  # some are there several times
                for row in rows:
                    gone.append(self.remove(row, 1)[0])
            else:
                self._pop(rows, gone)
        except BaseException:
            self.revert((row, -1) for row in gone)
            raise
        return gone

    def _pop(self, rows: Sequence[Row], gone: list[Row]) -> None:
        held, size, row = self._held, self._size, None
        pop = held.pop
        try:
            for row in rows:
                kept = pop(row, _NONE)
                if kept is _NONE:
                    raise Absent
                gone.append(kept)
        except BaseException:
            if len(held) < size - len(gone):  # an interrupt
                held[row] = row
            raise
        finally:
            self._size = size - len(gone)

    def revert(self, changes: Iterable[Pair]) -> None:
        take_back(changes, self._change)

    def _change(self, row: Row, weight: int) -> None:
        if weight > 0:
            self.add(row, weight)
        else:
            self.remove(row, -weight)

    def recount(self) -> None:
        self._size = sum(count for _, count in self.pairs())

    def count(self, row: Row) -> int:
        kept = self._held.get(row, _NONE)
        return kept.count if kept.__class__ is Copies else 1

    def pairs(self) -> Iterable[Pair]:
        for kept in self._held.values():
            yield (kept.row, kept.count) if kept.__class__ is Copies else (kept, 1)

    def distinct(self) -> list[Row] | None:
        """All rows, if none is there twice."""
        return list(self._held.values()) if self._size == len(self._held) else None

    def __len__(self) -> int:
        return self._size

    def bytes(self) -> int:
        copies = sum(kept.__class__ is Copies for kept in self._held.values())
        return sys.getsizeof(self._held) + copies * sys.getsizeof(_NONE)


class NoStore:
    """Rows that flow through and are not kept.

    `hashable` is a class whose rows are sure to have a hash, so that it need not be tried.
    """

    __slots__ = ("_hashable",)

    def __init__(self, *, hashable: Any = None) -> None:
        self._hashable = hashable

    def add(self, row: Row, count: int) -> Pair:
        if row.__class__ is not self._hashable:
            hash(row)
        return (row, count)

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        if set(map(type, rows)) != {self._hashable}:
            for row in rows:
                hash(row)
        return rows

    def remove(self, row: Row, count: int) -> Pair:
        return self.add(row, -count)

    def remove_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        return self.add_rows(rows)

    def revert(self, changes: Iterable[Pair]) -> None: ...

    def recount(self) -> None: ...

    def count(self, row: Row) -> int:
        return 0

    def pairs(self) -> Iterable[Pair]:
        return ()

    def __len__(self) -> int:
        return 0

    def bytes(self) -> int:
        return 0
