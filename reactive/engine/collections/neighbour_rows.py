"""Binary relations by their two ends: with rows, or as bare pairs of ends.

NeighbourRows: the rows of a relation by the two values that each connects.

    u --row--> v    onward  u -> {v: row}
                    back    v -> {u: row}

The dictionary below a value has one row per other end; if several rows have both ends, or one has
another weight than 1, it has a bucket of an index (`index.py`).

State:  every row, twice; a dictionary per end.
Cost:   O(1) per change.
Source: tries of generic join: Ngo, Re, Rudra, *Skew strikes back*, 2013.

Neighbours: the pairs of ends of a relation whose rows are not read otherwise.

    u --> v     onward  u -> {v, ...}
                back    v -> {u, ...}
                times   (u, v) -> the number of rows, if it is not 1

A join that only counts its rows needs no more of an input. It intersects the neighbours of two
values as sets.

State:  each pair of ends, twice; its number of rows, if it is not 1.
Cost:   O(1) per change.
Source: worst-case optimal joins: Ngo, Porat, Re, Rudra, 2012.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from reactive.engine.collections.index import NOTHING, Index, bucket_pairs, itself
from reactive.engine.collections.trie import SEVERAL
from reactive.engine.collections.zset import Pair, Row

End = Hashable


Below = dict[Any, Any]


class NeighbourRows:
    """Rows by their ends.

    Generated code reads the dictionaries, and changes them for single rows. If rows have only one
    end (`is_unary`), the other is the same for all, and `back` stays empty.

    >>> held = NeighbourRows()
    >>> for row in ["ab", "ac", "ac"]:
    ...     held.add(row[0], row[1], row, 1)
    >>> held.onward["a"]["b"], held.back["b"], held.rows("a", "c")
    ('ab', {'a': 'ab'}, [('ac', 2)])
    """

    __slots__ = ("_index", "_is_unary", "back", "onward")

    def __init__(self, handle: Callable[[Row], Any] = itself, *, is_unary: bool = False) -> None:
        self._index = Index(handle)  # index over one inner dictionary, set before each use
        self._is_unary = is_unary
        self.onward: dict[Any, Below] = {}
        self.back: dict[Any, Below] = {}

    def rows(self, u: End, v: End) -> list[Pair]:
        """Return the rows from one end to the other."""
        found = self.onward.get(u, {}).get(v, NOTHING)
        return [] if found is NOTHING else list(bucket_pairs(found))

    def items(self) -> Iterator[tuple[End, End, Row, int]]:
        """Yield every row with its ends and its weight."""
        for u, below in self.onward.items():
            for v, found in below.items():
                for row, weight in bucket_pairs(found):
                    yield u, v, row, weight

    def add(self, u: End, v: End, row: Row, weight: int) -> None:
        """Add a row's weight; a row of weight zero is dropped."""
        sides = ((self.onward, u, v), (self.back, v, u))
        for side, one, other in sides[: 1 if self._is_unary else 2]:
            below = side.setdefault(one, {})
            self._index.buckets = below
            try:
                self._index.add(other, row, weight)
            finally:
                if not below:
                    del side[one]

    def put(self, u: End, v: End, pairs: Sequence[Pair]) -> None:
        """Set the rows of two ends, even if an interrupted change left half of them."""
        sides = ((self.onward, u, v), (self.back, v, u))
        for side, one, _ in sides[: 1 if self._is_unary else 2]:
            below = side.get(one, {})
            below.pop(v if side is self.onward else u, None)
            if not below:
                side.pop(one, None)
        for row, weight in pairs:
            self.add(u, v, row, weight)

    def clear(self) -> None:
        """Remove all rows."""
        self.onward.clear()
        self.back.clear()

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows, and the bytes of the dictionaries."""
        count, size = 0, sys.getsizeof(self.onward) + sys.getsizeof(self.back)
        for side in (self.onward, self.back):
            for below in side.values():
                size += sys.getsizeof(below)
                count += len(below) if side is self.onward else 0
                several = [bucket for bucket in below.values() if bucket.__class__ in SEVERAL]
                size += sum(map(sys.getsizeof, several))
                count += sum(len(bucket) - 1 for bucket in several) * (side is self.onward)
        return count, size


def subtract_row(bucket: Any, row: Row, weight: int) -> list[Pair]:
    """Return the rows of a bucket, with `row` reduced by the absolute `weight`.

    >>> subtract_row("a", "a", -1), subtract_row("b", "a", 1)
    ([], [('b', 1)])
    """
    pairs = [
        (each, n - abs(weight) * (each is row or each == row)) for each, n in bucket_pairs(bucket)
    ]
    return [pair for pair in pairs if pair[1]]


NeighbourSets = dict[Any, set[Any]]


class Neighbours:
    """Pairs of ends with weights.

    Generated code reads the sets, and changes them for pairs of weight 1. If rows have only one end
    (`is_unary`), the other is the same for all, and `back` stays empty.

    >>> held = Neighbours()
    >>> for u, v in [("a", "b"), ("a", "c"), ("a", "b")]:
    ...     held.put(u, v, held.weight(u, v) + 1)
    >>> sorted(held.onward["a"]), held.back["c"], held.times
    (['b', 'c'], {'a'}, {('a', 'b'): 2})
    """

    __slots__ = ("_is_unary", "back", "onward", "times")

    def __init__(self, *, is_unary: bool = False) -> None:
        self._is_unary = is_unary
        self.onward: NeighbourSets = {}
        self.back: NeighbourSets = {}
        self.times: dict[tuple[Any, Any], int] = {}

    def weight(self, u: End, v: End) -> int:
        """Return the number of rows from one end to the other."""
        held = self.onward.get(u)
        return self.times.get((u, v), 1) if held is not None and v in held else 0

    def put(self, u: End, v: End, weight: int) -> None:
        """Set the weight of a pair, even if an interrupted change left half of it."""
        sides = ((self.onward, u, v), (self.back, v, u))
        for below, one, other in sides[: 1 if self._is_unary else 2]:
            if weight:
                below.setdefault(one, set()).add(other)
                continue
            held = below.get(one, set())
            held.discard(other)
            if not held:
                below.pop(one, None)
        if weight in (0, 1):
            self.times.pop((u, v), None)
        else:
            self.times[u, v] = weight

    def clear(self) -> None:
        """Remove all pairs."""
        for held in (self.onward, self.back, self.times):
            held.clear()

    def footprint(self) -> tuple[int, int]:
        """Return the number of pairs, and the bytes of sets and dictionaries."""
        size = sum(map(sys.getsizeof, (self.onward, self.back, self.times)))
        size += len(self.times) * sys.getsizeof((0, 0))
        for below in (self.onward, self.back):
            size += sum(map(sys.getsizeof, below.values()))
        return sum(map(len, self.onward.values())), size
