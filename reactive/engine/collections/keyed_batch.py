"""Pairs of a delta beside their keys, and how many of them are added to an index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, Protocol, overload

from reactive.engine.collections.zset import Pair, Row

Keyed = tuple[Any, Pair]
"""A key and a pair."""


class KeyedBatch(Sequence[Keyed]):
    """Rows of the same weight beside their keys: two lists, and no pairs.

    >>> list(KeyedBatch([4, 3], ["anna", "eva"], 1))
    [(4, ('anna', 1)), (3, ('eva', 1))]
    """

    __slots__ = ("differ", "keys", "rows", "weight")

    def __init__(self, keys: Sequence[Any], rows: Sequence[Row], weight: int) -> None:
        self.keys = keys
        self.rows = rows
        self.weight = weight
        self.differ = False
        """Whether it is known that no object is in it twice."""

    @overload
    def __getitem__(self, place: int) -> Keyed: ...
    @overload
    def __getitem__(self, place: slice) -> KeyedBatch: ...
    def __getitem__(self, place: int | slice) -> Keyed | KeyedBatch:
        if isinstance(place, slice):
            return KeyedBatch(self.keys[place], self.rows[place], self.weight)
        return (self.keys[place], (self.rows[place], self.weight))

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Keyed]:
        return zip(self.keys, zip(self.rows, repeat(self.weight)), strict=False)


def keys_of(keyed: Sequence[Keyed]) -> Sequence[Any]:
    """The keys of a delta."""
    return keyed.keys if type(keyed) is KeyedBatch else [key for key, _ in keyed]


class Added(Protocol):
    """What rows are added to by a key."""

    def add(self, key: Any, row: Row, weight: int) -> None: ...


def add_each(index: Added, keyed: Sequence[Keyed]) -> None:
    """Add all pairs of a delta one by one, or none."""
    done = 0
    try:
        for done, (key, (row, weight)) in enumerate(keyed):  # noqa: B007
            index.add(key, row, weight)
    except BaseException:
        take_back(index, keyed[:done])
        raise


def take_back(index: Added, keyed: Sequence[Keyed]) -> None:
    """Take pairs out again that were added, the last first."""
    for key, (row, weight) in reversed(keyed):
        index.add(key, row, -weight)
