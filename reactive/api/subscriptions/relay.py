"""Where and when a callback runs that does not run in the writer's thread.

    on=executor        a worker of it takes what waits, one delta after the other
    on=loop            a task of the event loop does, and awaits an asynchronous callback
    every=seconds      the timer of the database starts one of these, or calls by itself

The deltas of a subscription are handed over in the order of the commits, never two at a time. With
`every` at most one waits: what comes meanwhile is merged into it. Without it so many may wait as
its limits say, of which the newest are merged, or the writer waits, or the subscription ends.

When the subscription is closed, or nobody holds it, nothing more is handed over. When the executor
is shut down or the loop is closed, the subscription ends.

State:  what waits (`waiting.py`).
"""

from __future__ import annotations

import inspect
import logging
import math
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reactive.api.subscriptions import waiting as queues
from reactive.engine.dataflow.delta import Delta
from reactive.engine.dataflow.limits import Limits
from reactive.engine.runtime.lock import running_loop
from reactive.engine.runtime.timer import Timer

if TYPE_CHECKING:
    from reactive.api.subscriptions.observe import Subscription

Callback = Callable[[Delta[Any]], object]
log = logging.getLogger("reactive")


class Relay:
    """Takes the deltas of a subscription to its callback.

    `on` is an executor or an event loop; without one, the callback runs in the timer's thread.
    """

    def __init__(
        self, callback: Callback, on: Any, every: float | None, timer: Timer, limits: Limits
    ) -> None:
        self._callback = callback
        self._on = on
        self._every = every
        self._timer = timer
        self._waiting = queues.Waiting(None if every is None else 1, limits)
        self._when_full = limits.when_full if every is None else "merge"
        self._lock = threading.RLock()
        self._has_room = threading.Condition(self._lock)
        self._is_begun = False
        """Whether somebody will look at what waits, who has been told to and is not done."""
        self._last = -math.inf
        """When the callback was last called."""
        self._task: Any = None  # a loop does not keep its tasks alive
        self._of: weakref.ref[Subscription[Any]]

    def belong(self, subscription: Subscription[Any]) -> None:
        """Say whose deltas these are. They do not keep it alive."""
        self._of = weakref.ref(subscription)

    def __len__(self) -> int:
        """How many deltas wait."""
        return len(self._waiting)

    def put(self, delta: Delta[Any]) -> None:
        """Have a delta handed over. Called in the order of the commits."""
        begins = False
        try:
            with self._lock:
                if self._when_full != "merge" and self._waiting.is_full() and self._is_over():
                    return
                self._waiting.put(delta)
                if not self._waiting or (self._is_begun and not self._is_closed()):
                    return
                self._is_begun = begins = True
            self._begin()
        except BaseException:  # an interrupt: it is handed over again
            if begins:
                self._is_begun = False
            raise

    put.is_repeatable = True  # type: ignore[attr-defined]

    def _is_over(self) -> bool:
        """Wait for room, or end the subscription, of which so much waits; return whether it has
        ended. An event loop does not wait: the newest deltas are merged."""
        subscription = self._of()
        if subscription is None or subscription.closed:
            return True
        if self._when_full == "close":
            subscription._end_slow(len(self._waiting))
            return True
        if running_loop() is None:
            self._has_room.wait_for(lambda: not self._waiting.is_full() or subscription.closed)
        return subscription.closed

    def close(self) -> None:
        """Hand over nothing more."""
        with self._lock:
            self._waiting.clear()
            self._has_room.notify_all()

    # When.

    def _begin(self) -> None:
        """Have somebody look at what waits, when it is time."""
        now = time.monotonic()
        due = now if self._every is None else max(now, self._last + self._every)
        try:
            if self._on is None or due > now:
                self._timer.call(due, self._go)
            else:
                self._go()
        except Exception as error:
            self._end(error)

    def _next(self) -> tuple[Subscription[Any], Delta[Any]] | None:
        """What is to be handed over now, and whose it is; None if nothing is, or not yet."""
        while True:
            with self._lock:
                subscription = self._of()
                if subscription is None or subscription.closed:
                    self._waiting.clear()
                if not self._waiting:
                    self._is_begun = False
                    return None
                now = time.monotonic()
                if self._every is not None and now < self._last + self._every:
                    break
                waited = self._waiting.pop()
                if self._when_full == "block":
                    self._has_room.notify_all()
            delta = queues.told(waited)
            if delta is not None and subscription is not None:
                self._last = now
                return subscription, delta
        self._begin()
        return None

    # Where.

    def _go(self) -> None:
        """Have somebody look at what waits, now."""
        try:
            if self._on is None:
                self._run()
            elif is_loop(self._on):
                self._on.call_soon_threadsafe(self._start)
            else:
                self._on.submit(self._run).add_done_callback(self._done)
        except Exception as error:
            self._end(error)

    def _run(self) -> None:
        """Hand over what waits, in a thread that is not the writer's."""
        while (found := self._next()) is not None:
            subscription, delta = found
            try:
                subscription._heard(self._callback(delta))
            except BaseException as error:  # nobody else is to be told
                subscription._failed(error)
            del found, subscription

    def _start(self) -> None:
        self._task = self._on.create_task(self._run_in_task())

    async def _run_in_task(self) -> None:
        """As `_run`, in the loop, which has a turn after each delta."""
        try:
            while (found := self._next()) is not None:
                subscription, delta = found
                await _awaited(self._callback, delta, subscription)
                del found, subscription
        except BaseException:  # the loop ends; or else the next delta begins again
            self._is_begun = False
            raise

    def _done(self, future: Any) -> None:
        if future.cancelled():
            self._end(RuntimeError("cannot run what was submitted: it was cancelled"))

    def _is_closed(self) -> bool:
        """Whether the loop will never get to what it has been told."""
        return is_loop(self._on) and bool(self._on.is_closed())

    def _end(self, error: Exception) -> None:
        """Nobody can be told to look at anything any more."""
        subscription = self._of()
        if subscription is not None and not subscription.closed:
            subscription.error = error
            where = "event loop" if is_loop(self._on) else "executor" if self._on else "timer"
            log.error("%r ends, since its %s does not run any more: %s", subscription, where, error)
            subscription.close()
        self.close()
        self._is_begun = False


async def _awaited(callback: Callback, delta: Delta[Any], of: Subscription[Any]) -> None:
    """Call, and wait for what may have to be awaited."""
    import asyncio

    try:
        result = callback(delta)
        await (result if inspect.isawaitable(result) else asyncio.sleep(0))
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        of._failed(error)
    except Exception as error:
        of._failed(error)


def is_loop(on: Any) -> bool:
    """Whether it is an event loop, of asyncio or with the same methods."""
    return hasattr(on, "call_soon_threadsafe")
