"""Limits of what may wait to be told: deltas of commits, or of one subscription.

State:  how long the queue was when its bytes were last estimated.
Cost:   a comparison; of estimating bytes, O(1) per delta, each time that twice as many wait.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from optimizer.errors import PlanError
from reactive.dataflow.delta import Delta

OFTEN = 64
"""Deltas that wait before their bytes are estimated, again when twice as many do."""
SAMPLED = 8
"""Rows of a delta by which its bytes are estimated."""
OVERHEAD = 400
"""Bytes of a delta without rows."""


@dataclass(slots=True)
class Limits:
    """How many deltas may wait, how many bytes of them, and what happens when more would.

    >>> limits = Limits(most=2, when_full="merge")
    >>> [limits.are_exceeded(length, list) for length in (1, 2, 3)]
    [False, False, True]
    """

    most: int = 10_000
    most_bytes: int = 256 * 2**20
    when_full: str = "block"
    _looked: int = 0
    _least: int = 0
    _heavy: int = 0
    """How many deltas were too many bytes, until half of them have gone."""

    def __post_init__(self) -> None:
        for name in ("most", "most_bytes"):
            given = getattr(self, name)
            if type(given) is not int or given < 1:
                what = {"most": "max_waiting", "most_bytes": "max_waiting_bytes"}[name]
                raise PlanError(f"{what}={given!r} is no limit\n  give an integer from 1 on")
        if self.when_full not in ("block", "merge", "close"):
            raise PlanError(
                f"when_full={self.when_full!r} is nothing that can be done\n"
                "  give 'block', 'merge' or 'close'"
            )

    def are_exceeded(self, length: int, waiting: Callable[[], Iterable[Delta[Any]]]) -> bool:
        """Return whether more deltas wait than may, or more bytes, which are estimated."""
        if length > max(self.most, 2 * self._least) or 0 < self._heavy <= length:
            return True
        if length < self._heavy // 2:
            self._heavy = 0
        if length < max(2 * self._looked, OFTEN):
            if length < OFTEN:
                self._looked = 0
            return False
        self._looked = length
        if sum(map(bytes_of, waiting())) > self.most_bytes:
            self._heavy = length
        return bool(self._heavy)

    def of_one(self, maxsize: int | None, when_full: str | None) -> Limits:
        """Return the limits of one subscription, which may have said its own."""
        most = self.most if maxsize is None else maxsize
        policy = when_full or ("merge" if self.when_full == "block" else self.when_full)
        return Limits(most, self.most_bytes, policy)

    def note_merged(self, length: int) -> None:
        """Of many views at least one delta each is left."""
        self._least = length
        self._looked = self._heavy = 0


def bytes_of(delta: Delta[Any]) -> int:
    """An estimate by the first rows of a delta, and what is in them."""
    pairs = delta._pairs
    some = [row for row, _ in pairs[:SAMPLED]]
    inside = [value for row in some if isinstance(row, tuple) for value in row]
    size = sum(map(sys.getsizeof, some)) + sum(map(sys.getsizeof, inside))
    return OVERHEAD + size * len(pairs) // max(len(some), 1)
