"""Limits of what may wait to be told: deltas of commits, or of one subscription.

State:  how long the queue was when its bytes were last estimated.
Cost:   a comparison; of estimating bytes, O(1) per delta, each time that twice as many wait.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from optimizer.errors import PlanError
from reactive.engine.dataflow.delta import Delta

Subscribers = Sequence["weakref.ref[Any]"]
Delivery = tuple[Subscribers, Delta[Any]]
OFTEN = 64
"""Deltas that wait before their bytes are estimated, again when twice as many do."""
SAMPLED = 8
"""Rows of a delta by which its bytes are estimated."""
OVERHEAD = 400
"""Bytes of a delta without rows."""


@dataclass(slots=True)
class Limits:
    """Limits of the deltas that wait: their number, their bytes, and what happens to more.

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
    """Number of deltas that were too many bytes, until half of them have gone."""

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
        """Note how many deltas are left: one for each view at least."""
        self._least = length
        self._looked = self._heavy = 0


def bytes_of(delta: Delta[Any]) -> int:
    """An estimate by the first rows of a delta, and what is in them."""
    pairs = delta._pairs
    some = [row for row, _ in pairs[:SAMPLED]]
    inside = [value for row in some if isinstance(row, tuple) for value in row]
    size = sum(map(sys.getsizeof, some)) + sum(map(sys.getsizeof, inside))
    return OVERHEAD + size * len(pairs) // max(len(some), 1)


@dataclass(slots=True)
class Counts:
    """Counts of writers that waited, or did not, and of merged deltas."""

    late: int = 0
    """Writers that went on before subscribers were told of their commit."""
    blocked: int = 0
    """Writers that waited since too many deltas did."""
    merged: int = 0
    """Deltas that were merged into others since too many waited."""


def merged(waiting: Sequence[Delivery]) -> list[Delivery]:
    """Return deltas of which those for the same subscribers are one."""
    from reactive.engine.dataflow.merge_deltas import Merged

    found: dict[object, tuple[Subscribers, Merged]] = {}
    for place, (subscribers, delta) in enumerate(waiting):
        key = place if _needs_each(subscribers) else (id(subscribers),)
        kept = found.pop(key, None)  # its place is that of its newest
        if kept is None:
            kept = subscribers, Merged(delta)
        else:
            kept[1].add(delta)
        found[key] = kept
    told = [(subscribers, several.delta()) for subscribers, several in found.values()]
    return [(subscribers, delta) for subscribers, delta in told if delta is not None]


def _needs_each(subscribers: Subscribers) -> bool:
    """Return whether one of them keeps each delta, as a history does."""
    found = [reference() for reference in subscribers]
    return any(getattr(each._callback, "needs_each", False) for each in found if each is not None)


def checked_delivery(deliver: object, timeout: object) -> None:
    """Refuse what says nothing about who tells subscribers, or how long that is waited for."""
    if deliver not in (None, "writer", "background"):
        raise PlanError(f"deliver={deliver!r} is nobody\n  give 'writer' or 'background'")
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0
    ):
        raise PlanError(f"deliver_timeout={timeout!r} is no time\n  give the seconds to wait")
