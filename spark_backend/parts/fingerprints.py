"""A multiset of marks of 16 bytes, in 20 bytes each: sorted arrays, and a dictionary of changes.

With wider counts, of 24 bytes each, a count may be anything that is added up, such as a place.

State:  the arrays; a change for every 32nd mark at most.
Cost:   O(log n) to look one up; amortised O(1) array steps to change one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

SIZE = 16
Fingerprint = bytes
FEW = 10_000
"""Changes that are kept apart at least."""
PART = 32
"""One in so many of all marks may be kept apart, which take some 150 bytes each there."""
_HALF = np.dtype(">u8")
_COUNT = np.dtype(np.int32)


class Fingerprints:
    """The count of each mark.

    >>> marks = Fingerprints()
    >>> marks.add(bytes(16), 2)
    >>> marks.count(bytes(16)), len(marks)
    (2, 1)
    """

    def __init__(self, counts: np.dtype[Any] = _COUNT) -> None:
        self._high = np.empty(0, np.uint64)
        self._low = np.empty(0, np.uint64)
        self._counts = np.empty(0, counts)
        self._changes: dict[Fingerprint, int] = {}

    def count(self, mark: Fingerprint) -> int:
        """The count of a mark."""
        return self._sorted(mark) + self._changes.get(mark, 0)

    def add(self, mark: Fingerprint, times: int) -> None:
        """Add `times` to the count of a mark."""
        changes = self._changes
        changes[mark] = changes.get(mark, 0) + times
        if not changes[mark]:
            del changes[mark]
        elif len(changes) > max(FEW, len(self._counts) // PART):
            self._merge()

    def add_all(self, counts: Iterable[tuple[Fingerprint, int]]) -> None:
        """Add to the counts of many marks."""
        marks, times = tuple(zip(*counts, strict=True)) or ((), ())
        self._merge()
        self._take(marks, times)

    def __len__(self) -> int:
        """How many different ones there are."""
        self._merge()
        return len(self._counts)

    def bytes(self) -> int:
        """What they take."""
        changes = len(self._changes) * 150
        return int(self._high.nbytes + self._low.nbytes + self._counts.nbytes) + changes

    def _sorted(self, mark: Fingerprint) -> int:
        high, low = np.frombuffer(mark, _HALF).astype(np.uint64)
        place = int(np.searchsorted(self._high, high))
        while place < len(self._high) and self._high[place] == high:
            if self._low[place] == low:
                return int(self._counts[place])
            place += 1
        return 0

    def _merge(self) -> None:
        changes, self._changes = self._changes, {}
        self._take(changes.keys(), changes.values())

    def _take(self, marks: Collection[Fingerprint], times: Iterable[int]) -> None:
        """Add to counts: to those of marks that are there, and new ones between them. One array is
        copied at a time, so that it takes room for one more."""
        if not marks:
            return
        high, low, counts = _added_up(marks, np.fromiter(times, np.int64))
        place, is_there = self._places(high, low)
        self._counts[place[is_there]] += counts[is_there].astype(self._counts.dtype)
        new = ~is_there & (counts != 0)
        at = place[new]
        self._high = np.insert(self._high, at, high[new])
        self._low = np.insert(self._low, at, low[new])
        self._counts = np.insert(self._counts, at, counts[new].astype(self._counts.dtype))
        if not self._counts.all():
            kept = self._counts != 0
            self._high, self._low = self._high[kept], self._low[kept]
            self._counts = self._counts[kept]

    def _places(self, high: Any, low: Any) -> tuple[Any, Any]:
        """Where marks are, or are to be, and whether they are there."""
        place = np.searchsorted(self._high, high, "left")
        last = np.searchsorted(self._high, high, "right")
        while True:
            inside = np.flatnonzero(place < last)
            before = inside[self._low[place[inside]] < low[inside]]
            if not len(before):
                break
            place[before] += 1
        is_there = np.zeros(len(place), bool)
        is_there[inside] = self._low[place[inside]] == low[inside]
        return place, is_there


def _added_up(marks: Collection[Fingerprint], times: Any) -> tuple[Any, Any, Any]:
    """Both halves of marks in order, each once, with the sums."""
    given = np.frombuffer(b"".join(marks), _HALF).astype(np.uint64).reshape(-1, 2)
    order = np.lexsort((given[:, 1], given[:, 0]))
    high, low = given[order, 0], given[order, 1]
    first = _begins(high, low)
    sums: Any = np.add.reduceat(times[order], first)
    return high[first], low[first], sums


def _begins(high: Any, low: Any) -> Any:
    """Where in sorted arrays another mark begins."""
    differs = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    return np.concatenate([[0], np.flatnonzero(differs) + 1])
