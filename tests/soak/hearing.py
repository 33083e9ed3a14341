"""The kinds of subscriptions of a relation, each into a mirror."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.soak.elsewhere import Elsewhere
from tests.soak.mirror import Mirror

MOST: Mapping[str, dict[str, Any]] = {
    "all": {},
    "two at most": {"maxsize": 2},
    "the latest": {"latest": True},
}
"""Number of deltas that wait for a reader of `changes`."""
EVERY = 0.0005
"""Seconds between two calls."""
WAYS = ("in line", "thread", "thread, every", "every", "loop", "loop, every", *MOST)


class Hearing:
    """Follow a relation by one kind of subscription."""

    def __init__(self, source: Any, way: str, elsewhere: Elsewhere, *, in_order: bool) -> None:
        self.mirror = Mirror(in_order=in_order)
        self._elsewhere = elsewhere
        self._is_in_line = way == "in line"
        self._subscription: Any = None
        if way in MOST:
            self._changes = source.changes(snapshot=True, **MOST[way])
            self._task = elsewhere.loop.create_task(self._read())
            return
        on: Any = None
        if "thread" in way:
            on = elsewhere.hears
        elif "loop" in way:
            on = elsewhere.loop
        receive = self._receive if on is not None and "loop" in way else self.mirror.receive
        every = EVERY if "every" in way else None
        self._subscription = source.subscribe(receive, snapshot=True, on=on, every=every)

    @property
    def error(self) -> BaseException | None:
        """The error that ended or broke the subscription."""
        if self._subscription is None:
            return self._task.exception() if self._task.done() else None
        found: BaseException | None = self._subscription.error
        return found

    def close(self) -> None:
        (self._subscription or self._changes).close()

    def settle(self, rows: Any) -> None:
        """Wait until the mirror shows these rows, or has waited for long."""
        if not self._is_in_line:
            self._elsewhere.wait(lambda: self.mirror.shows(rows) or self.error is not None)

    async def _receive(self, delta: Any) -> None:
        self.mirror.receive(delta)

    async def _read(self) -> None:
        async for delta in self._changes:
            self.mirror.receive(delta)
