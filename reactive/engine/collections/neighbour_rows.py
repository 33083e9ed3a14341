"""The rows of a relation by the two values that each leads from and to.

    u --row--> v    onward  u -> {v: row}
                    back    v -> {u: row}

What is below a value has one row per other end, or, where several rows have both ends, or one is
there several times, these as an index has them (`index.py`).

State:  every row, twice; a dictionary per end.
Cost:   O(1) per change.
Source: tries of generic join: Ngo, Re, Rudra, *Skew strikes back*, 2013.
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
