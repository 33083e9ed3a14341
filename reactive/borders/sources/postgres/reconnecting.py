"""Go on after a connection is lost: again and again, with longer and longer pauses.

    connected --lost--> pause --> try --> connected
                          ^        |
                          +--------+  twice as long, up to a limit

A server that does not answer is waited for, also the first time: a service may begin before its
server does. A server that answers, and refuses, is not asked again: it says what is wrong.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from optimizer.errors import PlanError
from reactive.borders.sources.batch import Batch
from reactive.borders.sources.postgres.connection import Stopped, is_transient, refuses_us
from reactive.borders.sources.postgres.feed import Feed
from reactive.borders.sources.postgres.rows import nullable
from reactive.engine.runtime.postgres import driver
from reactive.errors import SourceError

log = logging.getLogger("reactive")
BACKOFF = (0.1, 30.0)
"""Seconds before the first try to connect again, and at most before another one."""
IN_USE = 120.0
"""Seconds after which a slot that is read is taken to be somebody else's: a server that is told
nothing ends a connection after 60."""


class SlotInUse(SourceError):
    """It may be the connection that was lost, of which the server does not know yet."""


class Reconnecting:
    """Runs a source over one connection after the other.

    backoff: seconds before the first try to connect again, and at most.
    give_up: seconds without a connection after which it raises.
    """

    def __init__(self, name: str, backoff: tuple[float, float], give_up: float | None) -> None:
        if not 0 < backoff[0] <= backoff[1]:
            raise PlanError(
                f"backoff={backoff!r} is no pair of seconds\n  the first, and the longest"
            )
        self._name = name
        self._backoff = backoff
        self._give_up = give_up
        self.state = "new"
        self.trouble: SourceError | None = None
        """Why there is no connection now, while another one is waited for."""
        self._is_connected = False
        self._has_waited = False
        self._lost: tuple[float, float] | None = None

    def answered(self) -> None:
        """The server has taken the connection; what is asked of it may still be refused."""
        self.trouble = None

    def connected(self) -> None:
        """What is asked of a connection is answered."""
        self._is_connected, self._lost, self.trouble = True, None, None

    def checked(self, feed: Feed) -> Feed:
        """Return a feed, none of whose columns may be NULL over a field that may not be None.

        A service that has begun without its server, or has lost it, goes on with a warning, and
        stops at the first row that has a NULL there.

        Raises
        ------
        SourceError: there is such a column, and the server has answered at once.
        """
        for text in nullable(feed.schema, feed.row_type, feed.fields):
            if not self._has_waited:
                raise SourceError(text)
            log.warning("source %r: %s", self._name, text)
        return feed

    def run(
        self, session: Callable[[], Iterator[Batch[Any]]], stop: threading.Event
    ) -> Iterator[Batch[Any]]:
        """What the sessions give, each over another connection, until it is to stop."""
        self._is_connected, self._has_waited, self._lost = False, False, None
        try:
            yield from self._sessions(session, stop)
        finally:
            self.trouble = None

    def _sessions(
        self, session: Callable[[], Iterator[Batch[Any]]], stop: threading.Event
    ) -> Iterator[Batch[Any]]:
        while True:
            try:
                yield from session()
                return
            except Stopped:
                self.state = "stopped"
                return
            except (driver().Error, SlotInUse) as error:
                pause = self._pause(error)
            if stop.wait(pause):
                self.state = "stopped"
                return

    def _pause(self, error: Exception) -> float:
        """Seconds until the next try; raises if there is to be none."""
        is_in_use = isinstance(error, SlotInUse)
        now = time.monotonic()
        began, before = self._lost or (now, 0.0)
        patience = self._give_up
        if is_in_use and not self._is_connected:
            patience = IN_USE if patience is None else min(patience, IN_USE)
        is_over = patience is not None and now - began > patience
        waits = is_transient(error) and (self._is_connected or not refuses_us(error))
        if is_over or not (is_in_use or waits):
            raise self._refusal(error) from error
        first, longest = self._backoff
        pause = min(longest, before * 2) if before else first
        self._lost, self._has_waited = (began, pause), True
        self.state = "waits for the server"
        self.trouble = self._waiting(error)
        log.warning("source %r: %s; trying again in %.1f s", self._name, line(error), pause)
        return pause

    def _refusal(self, error: Exception) -> SourceError:
        if isinstance(error, SlotInUse):
            return SourceError(str(error))
        return SourceError(
            f"source {self._name!r} cannot read Postgres: {line(error)}\n"
            "  start() of what ingest gave goes on once it can"
        )

    def _waiting(self, error: Exception) -> SourceError:
        found = SourceError(
            f"source {self._name!r} waits for its server: {line(error)}\n"
            "  it goes on by itself once the server answers; give_up= sets a limit"
        )
        found.__cause__ = error
        return found


def line(error: BaseException) -> str:
    """The text of an error in one line."""
    return " ".join(str(error).split())
