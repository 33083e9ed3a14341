"""The rows of a relation by the two values that each leads from and to.

    u --row--> v    onward  u -> {v: row}
                    back    v -> {u: row}

What is below a value has one row per other end, or, where several rows have both ends, or one is
there several times, these as an index has them (`index.py`).

State:  every row, twice; a dictionary per end.
Cost:   O(1) per change.
Source: tries of generic join: Ngo, Re, Rudra, *Skew strikes back*, 2013.

Which values rows lead from and to: the rows of a binary relation, of which nothing else is read.

    u --> v     onward  u -> {v, ...}
                back    v -> {u, ...}
                times   (u, v) -> how many rows there are, if not one

A join of which no row is read needs no more of an input. What follows two values is intersected as
sets.

State:  each pair of ends, twice; how many rows it has, if it is not one.
Cost:   O(1) per change.
Source: worst-case optimal joins: Ngo, Porat, Re, Rudra, 2012.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from reactive.engine.collections.index import NOTHING, Index, itself, rows_of
from reactive.engine.collections.trie import SEVERAL
from reactive.engine.collections.zset import Pair, Row

End = Hashable


Below = dict[Any, Any]


class NeighbourRows:
    """Rows by their ends. Generated code reads the dictionaries, and changes them where a row comes
    alone or goes. Where rows have one end, all lead from the same, and nothing leads back
    (`is_unary`).

    >>> held = NeighbourRows()
    >>> for row in ["ab", "ac", "ac"]:
    ...     held.add(row[0], row[1], row, 1)
    >>> held.onward["a"]["b"], held.back["b"], held.rows("a", "c")
    ('ab', {'a': 'ab'}, [('ac', 2)])
    """

    __slots__ = ("_index", "_is_unary", "back", "onward")

    def __init__(self, handle: Callable[[Row], Any] = itself, *, is_unary: bool = False) -> None:
        self._index = Index(handle)  # of the dictionary that is at hand
        self._is_unary = is_unary
        self.onward: dict[Any, Below] = {}
        self.back: dict[Any, Below] = {}

    def rows(self, u: End, v: End) -> list[Pair]:
        """The rows that lead from one end to the other."""
        found = self.onward.get(u, {}).get(v, NOTHING)
        return [] if found is NOTHING else list(rows_of(found))

    def items(self) -> Iterator[tuple[End, End, Row, int]]:
        """Every row with its ends, and how often it is there."""
        for u, below in self.onward.items():
            for v, found in below.items():
                for row, weight in rows_of(found):
                    yield u, v, row, weight

    def add(self, u: End, v: End, row: Row, weight: int) -> None:
        """Add a row's weight; what comes to nothing is dropped."""
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
        """Let two ends have these rows, whichever they had, or had half."""
        sides = ((self.onward, u, v), (self.back, v, u))
        for side, one, _ in sides[: 1 if self._is_unary else 2]:
            below = side.get(one, {})
            below.pop(v if side is self.onward else u, None)
            if not below:
                side.pop(one, None)
        for row, weight in pairs:
            self.add(u, v, row, weight)

    def clear(self) -> None:
        """Hold nothing."""
        self.onward.clear()
        self.back.clear()

    def footprint(self) -> tuple[int, int]:
        """How many rows there are, and the bytes of dictionaries."""
        count, size = 0, sys.getsizeof(self.onward) + sys.getsizeof(self.back)
        for side in (self.onward, self.back):
            for below in side.values():
                size += sys.getsizeof(below)
                count += len(below) if side is self.onward else 0
                several = [bucket for bucket in below.values() if bucket.__class__ in SEVERAL]
                size += sum(map(sys.getsizeof, several))
                count += sum(len(bucket) - 1 for bucket in several) * (side is self.onward)
        return count, size


def without(bucket: Any, row: Row, weight: int) -> list[Pair]:
    """The rows of a bucket, without the one that changes, as often as it does.

    >>> without("a", "a", -1), without("b", "a", 1)
    ([], [('b', 1)])
    """
    pairs = [(each, n - abs(weight) * (each is row or each == row)) for each, n in rows_of(bucket)]
    return [pair for pair in pairs if pair[1]]


NeighbourSets = dict[Any, set[Any]]


class Neighbours:
    """Pairs of ends with weights. Generated code reads the dictionaries, and changes them where a
    pair comes once or goes. Where rows have one end, all pairs lead
    from the same, and nothing leads back (`is_unary`).

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
        """How many rows lead from one end to the other."""
        held = self.onward.get(u)
        return self.times.get((u, v), 1) if held is not None and v in held else 0

    def put(self, u: End, v: End, weight: int) -> None:
        """Let a pair have a weight, whatever it had, or had half."""
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
        """Hold nothing."""
        for held in (self.onward, self.back, self.times):
            held.clear()

    def footprint(self) -> tuple[int, int]:
        """How many pairs there are, and the bytes of sets and dictionaries."""
        size = sum(map(sys.getsizeof, (self.onward, self.back, self.times)))
        size += len(self.times) * sys.getsizeof((0, 0))
        for below in (self.onward, self.back):
            size += sum(map(sys.getsizeof, below.values()))
        return sum(map(len, self.onward.values())), size
