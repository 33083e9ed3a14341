"""The rows of a table: where equal rows become one object.

A store changes by statements, and can take one back. Each statement gives the delta that it was,
in which a row is always the object that the store holds ("interned"), so that operators may know
it by its identity. Pairs of weight 1 are shared with the indexes that hold the row.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from reactive.zset import Pair, Row, consolidate


class Absent(Exception):
    """The store does not hold what was to be removed."""


class Duplicate(Exception):
    """The key is taken; the argument is the row that has it."""


class Store(Protocol):
    """What a table needs of its rows. Each method is all or nothing."""

    def add(self, row: Row, count: int) -> Pair: ...
    def remove(self, row: Row, count: int) -> Pair: ...
    def revert(self, changes: Iterable[Pair]) -> None: ...
    def count(self, row: Row) -> int: ...
    def pairs(self) -> Iterable[Pair]: ...
    def __len__(self) -> int: ...
    def bytes(self) -> int: ...


class BagStore:
    """Rows with how often they are there."""

    __slots__ = ("_pairs", "_size")

    def __init__(self) -> None:
        self._pairs: dict[Row, Pair] = {}
        self._size = 0

    def add(self, row: Row, count: int) -> Pair:
        held = self._pairs.get(row)
        if held is None:
            change = self._pairs[row] = (row, count)
        else:
            change = (held[0], count)
            self._pairs[row] = (held[0], held[1] + count)
        self._size += count
        return change

    def remove(self, row: Row, count: int) -> Pair:
        held = self._pairs.get(row)
        if held is None or held[1] < count:
            raise Absent
        if held[1] == count:
            del self._pairs[row]
        else:
            self._pairs[row] = (held[0], held[1] - count)
        self._size -= count
        return (held[0], -count)

    def revert(self, changes: Iterable[Pair]) -> None:
        for row, weight in consolidate(changes):
            if weight > 0:
                self.remove(row, weight)
            else:
                self.add(row, -weight)

    def count(self, row: Row) -> int:
        held = self._pairs.get(row)
        return 0 if held is None else held[1]

    def pairs(self) -> Iterable[Pair]:
        return self._pairs.values()

    def __len__(self) -> int:
        return self._size

    def bytes(self) -> int:
        return sys.getsizeof(self._pairs) + len(self._pairs) * sys.getsizeof((0, 0))


class KeyedStore:
    """At most one row per key."""

    __slots__ = ("_by_key", "key")

    def __init__(self, key: Callable[[Row], Any]) -> None:
        self.key = key
        self._by_key: dict[Any, Pair] = {}

    def add(self, row: Row, count: int) -> Pair:
        hash(row)  # a row must have one, though only its key is asked for here
        key = self.key(row)
        held = self._by_key.get(key)
        if held is not None or count != 1:
            raise Duplicate(row if held is None else held[0])
        change = self._by_key[key] = (row, 1)
        return change

    def remove(self, row: Row, count: int) -> Pair:
        key = self.key(row)
        held = self._by_key.get(key)
        if held is None or count != 1 or held[0] != row:
            raise Absent
        del self._by_key[key]
        return (held[0], -1)

    def revert(self, changes: Iterable[Pair]) -> None:
        net = consolidate(changes)
        for row, weight in net:
            if weight > 0:
                del self._by_key[self.key(row)]
        for row, weight in net:
            if weight < 0:
                self._by_key[self.key(row)] = (row, 1)

    def get(self, key: Any) -> Row | None:
        """The row of a key, or None. (A row is never None: it would have no key.)"""
        held = self._by_key.get(key)
        return None if held is None else held[0]

    def has(self, key: Any) -> bool:
        return key in self._by_key

    def count(self, row: Row) -> int:
        held = self._by_key.get(self.key(row))
        return int(held is not None and held[0] == row)

    def pairs(self) -> Iterable[Pair]:
        return self._by_key.values()

    def keys(self) -> Iterator[Any]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def bytes(self) -> int:
        return sys.getsizeof(self._by_key) + len(self._by_key) * sys.getsizeof((0, 0))


class NoStore:
    """Rows that flow through and are not kept."""

    __slots__ = ()

    def add(self, row: Row, count: int) -> Pair:
        hash(row)
        return (row, count)

    def remove(self, row: Row, count: int) -> Pair:
        return self.add(row, -count)

    def revert(self, changes: Iterable[Pair]) -> None: ...

    def count(self, row: Row) -> int:
        return 0

    def pairs(self) -> Iterable[Pair]:
        return ()

    def __len__(self) -> int:
        return 0

    def bytes(self) -> int:
        return 0
