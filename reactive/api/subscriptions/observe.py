"""Subscriptions: deliver changes to the user's code, after the commit and outside the lock.

Relays run a callback outside of the writer's thread.

    on=executor        a worker of it takes the queue, one delta after the other
    on=loop            a task of the event loop does, and awaits an asynchronous callback
    every=seconds      the timer of the database starts one of these, or calls by itself

The deltas of a subscription are delivered in the order of the commits, never two at a time. With
`every` at most one delta waits, into which later ones are merged. Without `every` the queue has a
limit; if it is full, the newest deltas are merged, or the writer waits, or the subscription ends.

A subscription that is closed or unreferenced delivers nothing more. It ends when its executor is
shut down or its loop is closed.

State:  the queue of deltas (`waiting.py`).
"""

from __future__ import annotations

import inspect
import logging
import math
import threading
import time
import weakref
from collections.abc import Callable, Sized
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeAlias

from typing_extensions import TypeVar

from reactive.api.subscriptions import waiting as queues
from reactive.engine.dataflow.delta import Delta
from reactive.engine.dataflow.discrimination import QueueLimits
from reactive.engine.runtime.boundary import hide
from reactive.engine.runtime.closeable import Closeable, Uncopyable, hint
from reactive.engine.runtime.foreign_names import OF_SUBSCRIPTIONS
from reactive.engine.runtime.lock import running_loop
from reactive.engine.runtime.timer import Timer
from reactive.errors import TransactionError

if TYPE_CHECKING:
    import asyncio

    from reactive.engine.dataflow.delta import Channel
    from reactive.engine.dataflow.node import Node
    from reactive.engine.transactions.engine import Engine

log = logging.getLogger("reactive")


T = TypeVar("T", default=Any)
T_contra = TypeVar("T_contra", contravariant=True, default=Any)


class Observer(Protocol[T_contra]):
    """An object for `observe`, with any of these methods.

    Without `updated`, an update is delivered as `removed` and `added`; `Delta` defines updates. In
    one commit, removals come first, then updates, then additions; a row of weight n is delivered n
    times.

    >>> from reactive import Count, Database
    >>> class Log:
    ...     def updated(self, old, new): print(old, "->", new)
    >>> words = Database().table(str)
    >>> watching = words.aggregate(Count()).observe(Log())
    >>> words.add("be")
    0 -> 1
    """

    def added(self, row: T_contra, /) -> object:
        """Handle an inserted row."""

    def removed(self, row: T_contra, /) -> object:
        """Handle a deleted row."""

    def updated(self, old: T_contra, new: T_contra, /) -> object:
        """Handle a replaced row."""


class AddedObserver(Protocol[T_contra]):
    """An object with the method `added`."""

    def added(self, row: T_contra, /) -> object:
        """Handle an inserted row."""


class RemovedObserver(Protocol[T_contra]):
    """An object with the method `removed`."""

    def removed(self, row: T_contra, /) -> object:
        """Handle a deleted row."""


class UpdatedObserver(Protocol[T_contra]):
    """An object with the method `updated`."""

    def updated(self, old: T_contra, new: T_contra, /) -> object:
        """Handle a replaced row."""


Observes: TypeAlias = AddedObserver[T] | RemovedObserver[T] | UpdatedObserver[T]
"""An object with at least one of the methods of `Observer`."""


class Subscription(Uncopyable, Closeable, Generic[T]):
    """Call a function after each commit that changes a relation, as long as it is referenced.

    Keep a reference to it, or use it in a `with`: otherwise it ends. It keeps the view it listens
    to alive. An exception of the callback is logged and kept in `error`; the subscription stays
    open. After `close` the callback is not called, not even for waiting deltas. `error` also tells
    that its executor or loop has ended.

    >>> from reactive import Database
    >>> words = Database().table(str)
    >>> with words.subscribe(lambda delta: print(delta.added)):
    ...     words.add("be")
    ('be',)
    >>> words.add("not heard")
    """

    def __init__(
        self,
        channel: Channel,
        callback: Callable[[Delta[T]], object],
        held: object,
        relay: Relay | None = None,
    ) -> None:
        self.error: BaseException | None = None
        self.closed = False
        self._channel = channel
        self._callback = callback if relay is None else relay.put
        self._held = held
        self._on_close: Callable[[], None] | None = None if relay is None else relay.close
        self._queue: Sized | None = relay
        """The deltas that wait for the callback, or for a reader."""
        self._feed: Any = None
        """The feed of several readers, if it delivers to them (`latest.py`)."""
        if relay is not None:
            relay.belong(self)

    def close(self) -> None:
        """Stop the delivery immediately. Closing twice is no error."""
        self.closed = True
        self._channel.discard(self)
        self._held = None
        if self._on_close is not None:
            self._on_close()

    def _waits(self) -> list[int]:
        """Return the number of waiting deltas for each of its readers that has a queue."""
        if self._feed is not None:
            return [reader.waits() for reader in list(self._feed.readers)]
        return [] if self._queue is None else [len(self._queue)]

    def _listeners(self) -> int:
        """Return the number of its readers."""
        return 1 if self._feed is None else len(self._feed.readers)

    _copy_instead = "subscribe once more"
    _pickle_instead = "subscribe where the database is; a Delta can be pickled"

    def _called(self) -> str:
        return f"a subscription of {self._channel}"

    def __repr__(self) -> str:
        return f"Subscription({self._channel}{', closed' if self.closed else ''})"

    def _heard(self, result: object) -> None:
        """Ignore the result of the callback, but raise for a coroutine, which nothing awaits."""
        if inspect.iscoroutine(result):
            result.close()
            raise TypeError(
                f"the callback of {self} gave {result.__qualname__}(), which nobody awaits\n"
                "  use changes(), or on=loop, the event loop that is to run it"
            )

    def _record_failure(self, error: BaseException) -> None:
        """Record and log the exception of the callback."""
        hide(error)
        self.error = error
        text = "subscriber of %s raised; it stays subscribed"
        log.error(text, self._channel, exc_info=error)

    def _end_endless(self, times: int) -> None:
        """End a subscription whose callback changed its own rows `times` times in a row."""
        self.error = TransactionError(
            f"a subscriber of {self._channel} has written what it listens to {times} times in a "
            "row, and would so for ever: it was told of each change, and made the next\n"
            "  have it write only where there is something to be changed, or what it does not "
            "listen to\n  its subscription is closed; tables and objects are as it left them"
        )
        log.error("%r ends: %s", self, self.error)
        self.close()

    def _end_slow(self, waiting: int) -> None:
        """End a subscription whose queue is full."""
        self.error = TransactionError(
            f"a subscriber of {self._channel} is too slow: {waiting:,} deltas wait\n"
            "  its subscription is closed; subscribe(every=seconds) merges what comes meanwhile, "
            "Database(max_waiting=) sets how many may wait"
        )
        log.error("%r ends: %s", self, self.error)
        self.close()


class LeafHolder:
    """A reference to a leaf of the graph; when it is collected, the leaf is dropped."""

    __slots__ = ("__weakref__", "node")

    def __init__(self, engine: Engine, node: Node) -> None:
        self.node = node
        drop_with(self, engine, node)


def drop_with(holder: object, engine: Engine, node: Node) -> weakref.finalize[..., Any]:
    """Drop a leaf when `holder` is garbage collected, or when the result is called.

    The finalizer refers to the database weakly, because its arguments live until it has run.
    """
    finalizer = weakref.finalize(holder, _drop, weakref.ref(engine), node.rank)
    finalizer.atexit = False
    return finalizer


def _drop(engine: weakref.ref[Engine], leaf: int) -> None:
    """Drop a leaf, if its database still exists."""
    owner = engine()
    if owner is not None:
        owner.drop(leaf)


class Changes(Uncopyable, Closeable, Generic[T]):
    """The deltas of a relation as an asynchronous iterator, which misses none after its making.

    Deltas wait while the body of the loop runs. If more wait than `changes(maxsize=n)` or
    `Database(max_waiting=n)` allows, the newest are merged. To leave the loop early, call `close()`
    or use the iterator in a `with`.

    >>> import asyncio
    >>> from reactive import Database
    >>> words = Database().table(str)
    >>> async def first():
    ...     with words.changes() as changes:
    ...         words.add("be")
    ...         return (await anext(changes)).added
    >>> asyncio.run(first())
    ('be',)
    """

    def __init__(
        self,
        subscribe: Callable[[Callable[[Delta[T]], object]], Subscription[T]],
        maxsize: int | None = None,
        limits: QueueLimits | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._waiting = queues.WaitingDeltas(maxsize, limits)
        self._wakes: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._subscription = subscribe(self._put)
        self._subscription._on_close = self._rouse
        self._subscription._queue = self._waiting

    _copy_instead = "each call of changes() makes another one"
    _pickle_instead = "a Delta can be pickled"

    def _called(self) -> str:
        return f"the changes of {self._subscription._channel}"

    def __repr__(self) -> str:
        return f"Changes({self._subscription._channel}, {len(self._waiting)} waiting)"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta[T]:
        import asyncio

        while True:
            if (delta := self._next()) is not None:
                return delta
            wake = (asyncio.get_running_loop(), asyncio.Event())
            with self._lock:
                self._wakes.append(wake)
            try:
                if self._wait():
                    if self._is_over():
                        raise StopAsyncIteration
                    await wake[1].wait()
            finally:
                with self._lock, suppress(ValueError):
                    self._wakes.remove(wake)

    def close(self) -> None:
        """End the iteration, after the waiting deltas."""
        self._subscription.close()

    def _is_over(self) -> bool:
        """Return True after the subscription ended."""
        return self._subscription.closed

    def _wait(self) -> bool:
        """Register for a wake-up; return True if no delta waits."""
        with self._lock:
            return not self._waiting

    def _next(self) -> Delta[T] | None:
        """Return the next waiting delta; None if none waits."""
        while True:
            with self._lock:
                if not self._waiting:
                    return None
                waited = self._waiting.pop()
            delta = queues.delta_to_deliver(waited)
            if delta is not None:
                return delta

    def _put(self, delta: Delta[T]) -> None:
        with self._lock:
            self._waiting.put(delta)
        self._rouse()

    _put.is_repeatable = True  # type: ignore[attr-defined]

    def _rouse(self) -> None:
        """Wake all waiting readers; a reader whose event loop is closed is skipped."""
        with self._lock:
            wakes, self._wakes = self._wakes, []
        for loop, event in wakes:
            with suppress(RuntimeError):  # its loop has been closed
                loop.call_soon_threadsafe(event.set)


hint(Subscription, OF_SUBSCRIPTIONS)


Callback = Callable[[Delta[Any]], object]


class Relay:
    """Deliver the deltas of a subscription to its callback.

    `on` is an executor or an event loop; without one, the callback runs in the timer's thread.
    """

    def __init__(
        self, callback: Callback, on: Any, every: float | None, timer: Timer, limits: QueueLimits
    ) -> None:
        self._callback = callback
        self._on = on
        self._every = every
        self._timer = timer
        self._waiting = queues.WaitingDeltas(None if every is None else 1, limits)
        self._when_full = limits.when_full if every is None else "merge"
        self._lock = threading.RLock()
        self._has_room = threading.Condition(self._lock)
        self._is_begun = False
        """True if a run over the queue is scheduled or in progress."""
        self._last = -math.inf
        """The time of the last call of the callback."""
        self._task: Any = None  # a loop does not keep its tasks alive
        self._of: weakref.ref[Subscription[Any]]

    def belong(self, subscription: Subscription[Any]) -> None:
        """Set the subscription of the deltas; the reference is weak."""
        self._of = weakref.ref(subscription)

    def __len__(self) -> int:
        """Return the number of waiting deltas."""
        return len(self._waiting)

    def put(self, delta: Delta[Any]) -> None:
        """Queue a delta for the callback. Call it in the order of the commits."""
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
        except BaseException:  # an interrupt: `put` is called again
            if begins:
                self._is_begun = False
            raise

    put.is_repeatable = True  # type: ignore[attr-defined]

    def _is_over(self) -> bool:
        """Wait for room in a full queue, or end the subscription; return True if it has ended.

        An event loop does not wait: the newest deltas are merged.
        """
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
        """Deliver nothing more."""
        with self._lock:
            self._waiting.clear()
            self._has_room.notify_all()

    # When.

    def _begin(self) -> None:
        """Schedule a run over the queue for the time when it is due."""
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
        """Take the delta to deliver now from the queue, and return it with its subscription.

        Return None if there is none, or none is due yet.
        """
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
            delta = queues.delta_to_deliver(waited)
            if delta is not None and subscription is not None:
                self._last = now
                return subscription, delta
        self._begin()
        return None

    # Where.

    def _go(self) -> None:
        """Start a run over the queue now."""
        try:
            if self._on is None:
                self._run()
            elif is_loop(self._on):
                self._on.call_soon_threadsafe(self._start)
            else:
                self._on.submit(self._run).add_done_callback(self._end_if_cancelled)
        except Exception as error:
            self._end(error)

    def _run(self) -> None:
        """Deliver the waiting deltas, in a thread other than the writer's."""
        while (found := self._next()) is not None:
            subscription, delta = found
            try:
                subscription._heard(self._callback(delta))
            except (
                BaseException
            ) as error:  # recorded in the subscription: the thread has no caller to raise it to
                subscription._record_failure(error)
            del found, subscription

    def _start(self) -> None:
        self._task = self._on.create_task(self._run_in_task())

    async def _run_in_task(self) -> None:
        """Deliver the waiting deltas in the loop, which runs other tasks after each delta."""
        try:
            while (found := self._next()) is not None:
                subscription, delta = found
                await _call_and_await(self._callback, delta, subscription)
                del found, subscription
        except BaseException:  # the loop ends, or the next delta starts another task
            self._is_begun = False
            raise

    def _end_if_cancelled(self, future: Any) -> None:
        """End the subscription if the executor has cancelled the run."""
        if future.cancelled():
            self._end(RuntimeError("cannot run what was submitted: it was cancelled"))

    def _is_closed(self) -> bool:
        """Return True if the loop was closed and will not run its scheduled tasks."""
        return is_loop(self._on) and bool(self._on.is_closed())

    def _end(self, error: Exception) -> None:
        """End the subscription, because its executor, loop or timer does not run."""
        subscription = self._of()
        if subscription is not None and not subscription.closed:
            subscription.error = error
            where = "event loop" if is_loop(self._on) else "executor" if self._on else "timer"
            log.error("%r ends, since its %s does not run any more: %s", subscription, where, error)
            subscription.close()
        self.close()
        self._is_begun = False


async def _call_and_await(callback: Callback, delta: Delta[Any], of: Subscription[Any]) -> None:
    """Call the callback, and await its result if it is awaitable."""
    import asyncio

    try:
        result = callback(delta)
        await (result if inspect.isawaitable(result) else asyncio.sleep(0))
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        of._record_failure(error)
    except Exception as error:
        of._record_failure(error)


def is_loop(on: Any) -> bool:
    """Return True for an event loop, of asyncio or with the same methods."""
    return hasattr(on, "call_soon_threadsafe")
