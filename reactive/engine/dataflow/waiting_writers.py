"""Writers that wait for subscribers to be told of their commit, and how long they do.

A callback that takes long is told of in the log; of one that takes too long, writers wait no more.

State:  the call that writers wait for, and since when.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

SLOW = 5.0
"""Seconds of one callback after which a writer that waits for it says so in the log."""
STUCK = 60.0
"""Seconds more after which the writer waits no longer."""
log = logging.getLogger("reactive")


def patience(until: float | None) -> float:
    """Return the seconds to wait before looking what it is that takes so long."""
    return SLOW if until is None else max(min(SLOW, until - time.monotonic()), 0.0)


class Writer:
    """A writer that waits for subscribers to be told of a commit."""

    __slots__ = ("has_turn", "is_woken", "takes_turn", "version", "wake")

    def __init__(
        self, version: int, wake: Callable[[], object], *, takes_turn: bool = False
    ) -> None:
        self.version = version
        self.wake = wake
        self.takes_turn = takes_turn
        """True if it may be given the turn; others try to take it when they are woken."""
        self.has_turn = False
        self.is_woken = False


class SlowCallback:
    """The call that writers wait for."""

    __slots__ = ("_call", "_is_told", "_since")

    def __init__(self) -> None:
        self._call: tuple[Any, Any] = (None, None)
        self._since = 0.0
        self._is_told = False

    def is_late(self, call: tuple[Any, Any], until: float | None) -> bool:
        """Return whether to wait no longer; say in the log what takes so long.

        call: the subscription whose callback runs, if one does, and the delta it is told of.
        """
        now, (subscription, delta) = time.monotonic(), call
        if subscription is None or subscription is not self._call[0] or delta is not self._call[1]:
            self._call, self._since, self._is_told = call, now, False
        elif now - self._since >= STUCK:
            log.error(_STUCK, subscription, STUCK)
            return True
        elif not self._is_told:
            self._is_told = True
            log.warning(_SLOW, subscription, SLOW)
        return until is not None and now >= until


_SLOW = (
    "a writer waits for the callback of %s, which has been running for %g s\n"
    "  if that waits for a lock which the writer holds, neither goes on: commit without the lock, "
    "or make Database(deliver='background'), or subscribe(on=executor)"
)
_STUCK = (
    "a writer goes on without the callback of %s, which has been running for %g s more\n"
    "  subscribers are told of its commit when the callback has returned"
)
