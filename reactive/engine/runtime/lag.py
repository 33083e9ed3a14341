"""The lag of tables behind the source that feeds them."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of tables behind their source. Prints as text.

    >>> print(Lag(0.25, 3), "|", Lag(None, None))
    0.25 s, 3 changes | unknown
    """

    seconds: float | None
    """The age of the arrived, uncommitted batch, or else the age of the last batch at its commit.

    The age counts from `Batch.made`, or else from the arrival. None before the first batch.
    """
    waiting: int | None
    """Changes that the source has not delivered yet; None if it cannot tell."""
    bytes: int | None = None
    """Bytes of the source's log that are not in the tables yet; None without a log."""

    def __str__(self) -> str:
        parts = [] if self.seconds is None else [f"{self.seconds:.3g} s"]
        parts += [] if self.waiting is None else [f"{self.waiting:,} changes"]
        parts += [] if self.bytes is None else [f"{self.bytes:,} bytes"]
        return ", ".join(parts) or "unknown"


class LagClock:
    """Measures the age of batches."""

    __slots__ = ("_last", "_lock", "_since")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: float | None = None
        self._last: float | None = None

    def arrives(self, made: float | None) -> None:
        """Record the arrival of a batch, made at a time of `time.time()`."""
        with self._lock:
            self._since = time.time() if made is None else made

    def is_committed(self) -> None:
        """Record the commit of the batch."""
        with self._lock:
            if self._since is not None:
                self._last = max(0.0, time.time() - self._since)
            self._since = None

    def seconds(self) -> float | None:
        """Return the seconds, as in `Lag.seconds`."""
        with self._lock:
            return self._last if self._since is None else max(0.0, time.time() - self._since)
