"""The changes of a view since they were last taken, added up.

    rows of when it began, then deltas  -->  take: what they come to

State:  the rows that have changed since, each once.
Cost:   O(changes).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from reactive.api.subscriptions.observe import Subscription
from reactive.engine.collections.zset import Pair, consolidate
from reactive.engine.dataflow.delta import Delta

FEWEST = 1024
"""Changes from which on they are added up while they wait."""


class GatheredChanges:
    """The changes of a view from `begin` on.

    An interrupt that comes while a delta is added leaves it unsure, and so does `doubt`: then it
    has to begin again.

    Parameters
    ----------
    inside: a context in which the view does not change.
    rows: gives the rows of the view, each once, and the commit that they are of; called inside.
    listen: has a function called with the deltas from then on; called inside.
    """

    def __init__(
        self,
        inside: Callable[[], AbstractContextManager[None]],
        rows: Callable[[], tuple[list[Pair], int]],
        listen: Callable[[Callable[[Delta[Any]], object]], Subscription[Any]],
    ) -> None:
        self._inside, self._rows, self._listen = inside, rows, listen
        self._lock = threading.RLock()
        self._pairs: list[Pair] = []
        self._bound = FEWEST
        self._last: Delta[Any] | None = None
        self._since: float | None = None
        self._subscription: Subscription[Any] | None = None
        self.then: Callable[[], object] | None = None
        """A function that is called when changes have been added."""
        self.lost: Callable[[BaseException | None], object] | None = None
        """A function that is called, with the error if there is one, when the view was closed."""
        self.is_sure = False
        """Whether all that has changed is gathered."""
        self.version = 0
        """The last commit of which something is gathered, or was."""

    def begin(self) -> list[Pair]:
        """The rows of now; what changes from now on is gathered."""
        self.end()
        with self._inside():
            rows, self.version = self._rows()
            self._pairs, self._last, self._since = [], None, None
            self._subscription = self._listen(self._add)
            self._subscription._on_close = self._lose
            self.is_sure = True
        return rows

    def take(self) -> list[Pair]:
        """What has changed since, which is not gathered any more."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
            self._bound, self._since = FEWEST, None
        return consolidate(pairs)

    def put_back(self, changes: Sequence[Pair]) -> None:
        """Let changes wait with those that come."""
        with self._lock:
            self._pairs += changes
            self._since = self._since or time.time()

    def first(self, changes: Sequence[Pair]) -> None:
        """The same: it all comes to one batch."""
        self.put_back(changes)

    def written(self) -> None:
        """What was taken is not held any more."""

    def reached(self, version: int) -> int:
        """The last commit of which something was gathered: of later ones it may be on its way."""
        return self.version

    has_moved = False
    """Where the view is does not matter."""

    def doubt(self) -> None:
        """Some of it may be missing."""
        self.is_sure = False

    def waiting(self) -> tuple[float | None, int | None]:
        """For how many seconds something has waited, and how many changes do."""
        with self._lock:
            since = self._since
            seconds = None if since is None else max(0.0, time.time() - since)
            return seconds, len(self._pairs) if self.is_sure else None

    def end(self) -> None:
        """Gather no more."""
        self.is_sure = False
        if self._subscription is not None:
            self._subscription._on_close = None
            self._subscription.close()

    def _lose(self) -> None:
        if self.lost is not None and self._subscription is not None:
            self.lost(self._subscription.error)

    def _add(self, delta: Delta[Any]) -> None:
        try:
            with self._lock:
                if delta.is_snapshot:  # the view was computed again: it is to be compared
                    self.doubt()
                elif delta is not self._last:  # it comes again after an interrupt
                    self._pairs += delta.items()
                    self._last, self.version = delta, delta.version
                    self._since = self._since or time.time()
                    self._add_up()
            if self.then is not None:
                self.then()
        except BaseException:
            self.doubt()
            raise

    _add.is_repeatable = True  # type: ignore[attr-defined]

    def _add_up(self) -> None:
        if len(self._pairs) > self._bound:
            self._pairs = consolidate(self._pairs)
            self._bound = max(FEWEST, 2 * len(self._pairs))
