"""The netted changes of a view since they were last taken.

    rows at the beginning, then deltas  -->  take: their sum

State:  the rows that have changed since, each once.
Cost:   O(changes).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from reactive.api.internal_interface import call_on_close
from reactive.api.subscriptions.observe import Subscription
from reactive.engine.collections.zset import Pair, consolidate
from reactive.engine.dataflow.delta import Delta

FEWEST = 1024
"""The number of waiting changes that starts netting."""


class GatheredChanges:
    """The changes of a view from `begin` on.

    An interrupt while a delta is added makes it incomplete, as `doubt` does: then it must begin
    again.

    Parameters
    ----------
    inside: a context that keeps the view from changing.
    rows: returns the distinct rows of the view, and their commit; called inside.
    listen: subscribes a function to later deltas; called inside.
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
        """A function that is called after changes were added."""
        self.lost: Callable[[BaseException | None], object] | None = None
        """A function that is called when the view was closed, with the error if there is one."""
        self.is_sure = False
        """True if all changes are gathered."""
        self.version = 0
        """The last commit with gathered changes."""

    def begin(self) -> list[Pair]:
        """Return the current rows, and gather later changes."""
        self.end()
        with self._inside():
            rows, self.version = self._rows()
            self._pairs, self._last, self._since = [], None, None
            self._subscription = self._listen(self._add)
            call_on_close(self._subscription, self._lose)
            self.is_sure = True
        return rows

    def take(self) -> list[Pair]:
        """Return the changes since the last call, and release them."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
            self._bound, self._since = FEWEST, None
        return consolidate(pairs)

    def put_back(self, changes: Sequence[Pair]) -> None:
        """Restore changes that were taken and not written."""
        with self._lock:
            self._pairs += changes
            self._since = self._since or time.time()

    def first(self, changes: Sequence[Pair]) -> None:
        """Put changes before the following ones; as they are netted, their order is irrelevant."""
        self.put_back(changes)

    def written(self) -> None:
        """Do nothing: changes that were taken are not held."""

    def reached_version(self, version: int) -> int:
        """Return the last commit with gathered changes.

        Deltas of later ones may be on their way.
        """
        return self.version

    has_moved = False
    """Always False: the place of the view does not matter."""

    def doubt(self) -> None:
        """Mark the changes as incomplete."""
        self.is_sure = False

    def waiting(self) -> tuple[float | None, int | None]:
        """Return the age in seconds and the number of the waiting changes."""
        with self._lock:
            since = self._since
            seconds = None if since is None else max(0.0, time.time() - since)
            return seconds, len(self._pairs) if self.is_sure else None

    def end(self) -> None:
        """Stop gathering."""
        self.is_sure = False
        if self._subscription is not None:
            call_on_close(self._subscription, None)
            self._subscription.close()

    def _lose(self) -> None:
        """Call `lost` with the error that has ended the subscription."""
        if self.lost is not None and self._subscription is not None:
            self.lost(self._subscription.error)

    def _add(self, delta: Delta[Any]) -> None:
        """Add a commit's changes; for a recomputed view or after an error, mark all incomplete."""
        try:
            with self._lock:
                if delta.is_snapshot:  # the view was recomputed: compare again
                    self.doubt()
                elif delta is not self._last:  # repeated after an interrupt
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
        """Consolidate the changes each time that their number has doubled."""
        if len(self._pairs) > self._bound:
            self._pairs = consolidate(self._pairs)
            self._bound = max(FEWEST, 2 * len(self._pairs))
