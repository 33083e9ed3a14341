"""A queue of deltas for a reader; when it is full, the two newest deltas are merged.

State:  the deltas, up to `maxsize`, and up to the estimated bytes that the limits allow.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from reactive.engine.dataflow.delta import Delta
from reactive.engine.dataflow.discrimination import QueueLimits
from reactive.engine.dataflow.merge_deltas import DeltaAccumulator


class WaitingDeltas:
    """A queue of deltas for one reader; the caller holds a lock.

    >>> waiting = WaitingDeltas(1)
    >>> waiting.put(Delta(1, [("to", 1)]))
    >>> waiting.put(Delta(2, [("be", 1)]))
    >>> len(waiting), delta_to_deliver(waiting.pop())
    (1, Delta(version=2, added=('to', 'be')))
    """

    __slots__ = ("_deltas", "_limits", "_maxsize", "_version")

    def __init__(self, maxsize: int | None, limits: QueueLimits | None = None) -> None:
        self._deltas: deque[Delta[Any] | DeltaAccumulator] = deque()
        self._maxsize = maxsize
        self._limits = limits
        self._version = -1  # of the last delta that was put

    def __len__(self) -> int:
        return len(self._deltas)

    def put(self, delta: Delta[Any]) -> None:
        """Queue a delta once; it is put again if its delivery was interrupted."""
        deltas = self._deltas
        last = deltas[-1].version if deltas else self._version
        if last == delta.version and not delta.is_snapshot:
            return
        if not self.is_full():
            deltas.append(delta)
            self._version = delta.version
            return
        newest = deltas[-1]
        if not isinstance(newest, DeltaAccumulator):
            newest = deltas[-1] = DeltaAccumulator(newest)
        newest.add(delta)
        self._version = delta.version
        if newest.is_nothing:
            deltas.pop()

    def is_full(self) -> bool:
        """Return True if the queue has reached its limit."""
        length = len(self._deltas)
        if not length:
            return False
        if self._maxsize is not None:
            return length >= self._maxsize
        return self._limits is not None and self._limits.are_exceeded(
            length + 1, self._unmerged_deltas
        )

    def _unmerged_deltas(self) -> list[Delta[Any]]:
        return [each for each in self._deltas if isinstance(each, Delta)]

    def pop(self) -> Delta[Any] | DeltaAccumulator:
        """Remove and return the oldest delta."""
        return self._deltas.popleft()

    def clear(self) -> None:
        """Discard all deltas."""
        self._deltas.clear()


def delta_to_deliver(waited: Delta[Any] | DeltaAccumulator) -> Delta[Any] | None:
    """Return the delta for the reader; None if merged deltas cancel each other."""
    return waited.delta() if isinstance(waited, DeltaAccumulator) else waited
