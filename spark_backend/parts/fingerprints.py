"""A multiset of marks of 16 bytes, in 20 bytes each: sorted arrays, and a dictionary of changes.

With wider counts, of 24 bytes each, a count may be anything that is added up, such as a place.

State:  the arrays; a change for every eighth mark at most.
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
        elif len(changes) > max(FEW, len(self._counts) // 8):
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
        if not marks:
            return
        given = np.frombuffer(b"".join(marks), _HALF).astype(np.uint64).reshape(-1, 2)
        high = np.concatenate([self._high, given[:, 0]])
        low = np.concatenate([self._low, given[:, 1]])
        counts = np.concatenate([self._counts, np.fromiter(times, self._counts.dtype)])
        order = np.lexsort((low, high))
        high, low, counts = high[order], low[order], counts[order]
        first = _begins(high, low)
        sums: Any = np.add.reduceat(counts, first)
        kept = sums != 0
        self._high, self._low = high[first][kept], low[first][kept]
        self._counts = sums[kept].astype(self._counts.dtype)


def _begins(high: Any, low: Any) -> Any:
    """Where in sorted arrays another mark begins."""
    differs = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    return np.concatenate([[0], np.flatnonzero(differs) + 1])
