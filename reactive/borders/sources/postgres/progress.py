"""How far a source has come, for any thread to ask."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque

log = logging.getLogger("reactive")
REMEMBERED = 100
"""Changes of columns that are told."""
GRACE = 2.0
"""Seconds after which a source that has ended, and was not started again, is taken to be so."""


class Progress:
    """See the module. Changed by the thread of the source only."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._server = 0
        self.position = 0
        """All that was committed before it is in the tables."""
        self.waiting = 0
        """Changes of the transaction that is coming in."""
        self.in_transaction = False
        self._ended: float | None = None
        self.cause: BaseException | None = None
        """The error that has stopped it the last time; None if none has."""
        self.schema_changes: deque[str] = deque(maxlen=REMEMBERED)

    def begins(self) -> None:
        """A transaction comes in."""
        self.in_transaction = True

    def is_at(self, position: int) -> None:
        """All up to a position is committed."""
        self.in_transaction = False
        self.waiting = 0
        if position > self.position:
            with self._changed:
                self.position = position
                self._changed.notify_all()

    def starts_at(self, position: int) -> None:
        """It begins here; what was received beyond, and not committed, comes again."""
        with self._changed:
            self.position = position
            self.in_transaction = False
            self.waiting = 0
            self._ended = self.cause = None
            self._changed.notify_all()

    def ends(self) -> None:
        """It runs no more."""
        with self._changed:
            self._ended = time.monotonic()
            self._changed.notify_all()

    def has_ended(self) -> bool:
        """Whether it has ended, and is not just about to be started again."""
        return self._ended is not None and time.monotonic() - self._ended > GRACE

    def server_is_at(self, position: int) -> None:
        """The log of the server has come to here."""
        self._server = position

    def behind(self) -> int:
        """Bytes of the server's log that are not in the tables, as of a second ago."""
        return max(0, self._server - self.position)

    def schema_changed(self, changes: list[str]) -> None:
        """Columns have changed."""
        for change in changes:
            self.schema_changes.append(change)
            log.warning("source %r: %s", self._name, change)

    def wait_for(self, position: int, timeout: float | None) -> bool:
        """Wait until it has come to a position, or has ended; whether it has come there."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while self.position < position and not self.has_ended():
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    return False
                pause = None if self._ended is None else GRACE
                self._changed.wait(min((x for x in (left, pause) if x is not None), default=None))
            return self.position >= position
