"""Subscriptions: how changes reach the user's code, after the commit and outside the lock."""

from __future__ import annotations

import inspect
import logging
import threading
import weakref
from collections.abc import Callable, Sized
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeAlias

from typing_extensions import TypeVar

from reactive.api.subscriptions import waiting as queues
from reactive.engine.dataflow.delta import Delta
from reactive.engine.runtime.boundary import hide
from reactive.engine.runtime.closeable import Closeable
from reactive.engine.runtime.copying import NotCopied
from reactive.engine.runtime.foreign_names import OF_SUBSCRIPTIONS
from reactive.engine.runtime.name_hints import hint
from reactive.errors import TransactionError

if TYPE_CHECKING:
    import asyncio

    from reactive.api.subscriptions.relay import Relay
    from reactive.engine.dataflow.channel import Channel
    from reactive.engine.dataflow.limits import Limits
    from reactive.engine.dataflow.node import Node
    from reactive.engine.transactions.engine import Engine

T = TypeVar("T", default=Any)
T_contra = TypeVar("T_contra", contravariant=True, default=Any)
log = logging.getLogger("reactive")


class Observer(Protocol[T_contra]):
    """What `observe` takes: an object with any of these methods.

    Without `updated`, an update arrives as `removed` and `added`; what is one, `Delta` says. Of one
    commit, removals come first, then updates, then additions; a row of weight n comes n times.

    >>> from reactive import Count, Database
    >>> class Log:
    ...     def updated(self, old, new): print(old, "->", new)
    >>> words = Database().table(str)
    >>> watching = words.aggregate(Count()).observe(Log())
    >>> words.add("be")
    0 -> 1
    """

    def added(self, row: T_contra, /) -> object: ...
    def removed(self, row: T_contra, /) -> object: ...
    def updated(self, old: T_contra, new: T_contra, /) -> object: ...


class Added(Protocol[T_contra]):
    """An object with the method `added`."""

    def added(self, row: T_contra, /) -> object: ...


class Removed(Protocol[T_contra]):
    """An object with the method `removed`."""

    def removed(self, row: T_contra, /) -> object: ...


class Updated(Protocol[T_contra]):
    """An object with the method `updated`."""

    def updated(self, old: T_contra, new: T_contra, /) -> object: ...


Observes: TypeAlias = Added[T] | Removed[T] | Updated[T]
"""What hears of rows: an object with at least one of the methods of `Observer`."""


class Subscription(NotCopied, Closeable, Generic[T]):
    """Calls a function after each commit that changes a relation, while somebody holds it.

    Keep it, or use it in a `with`: one that nobody holds ends. It holds the view it listens to.
    An exception of the callback is logged and kept in `error`; the subscription goes on. Closed, it
    calls no more, also not for what waits; `error` also says that its executor or loop has ended.

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
        """What waits for the callback, or for who reads."""
        self._feed: Any = None
        """The feed of several readers, if this tells them (`latest.py`)."""
        if relay is not None:
            relay.belong(self)

    def close(self) -> None:
        """Hear no more, from now on. Closing twice is no error."""
        self.closed = True
        self._channel.discard(self)
        self._held = None
        if self._on_close is not None:
            self._on_close()

    def _waits(self) -> list[int]:
        """Return how many deltas wait for each of those whom it tells and who have a queue."""
        if self._feed is not None:
            return [reader.waits() for reader in list(self._feed.readers)]
        return [] if self._queue is None else [len(self._queue)]

    def _listeners(self) -> int:
        """Return how many it tells."""
        return 1 if self._feed is None else len(self._feed.readers)

    _copy_instead = "subscribe once more"
    _pickle_instead = "subscribe where the database is; a Delta can be pickled"

    def _called(self) -> str:
        return f"a subscription of {self._channel}"

    def __repr__(self) -> str:
        return f"Subscription({self._channel}{', closed' if self.closed else ''})"

    def _heard(self, result: object) -> None:
        """The callback gave something back, which is of no interest but to be awaited."""
        if inspect.iscoroutine(result):
            result.close()
            raise TypeError(
                f"the callback of {self} gave {result.__qualname__}(), which nobody awaits\n"
                "  use changes(), or on=loop, the event loop that is to run it"
            )

    def _failed(self, error: BaseException) -> None:
        """The callback raised."""
        hide(error)
        self.error = error
        text = "subscriber of %s raised; it stays subscribed"
        log.error(text, self._channel, exc_info=error)

    def _end_endless(self, times: int) -> None:
        """The callback has written what it listens to as often as it may."""
        self.error = TransactionError(
            f"a subscriber of {self._channel} has written what it listens to {times} times in a "
            "row, and would so for ever: it was told of each change, and made the next\n"
            "  have it write only where there is something to be changed, or what it does not "
            "listen to\n  its subscription is closed; tables and objects are as it left them"
        )
        log.error("%r ends: %s", self, self.error)
        self.close()

    def _end_slow(self, waiting: int) -> None:
        """The callback is so slow that more deltas wait than may."""
        self.error = TransactionError(
            f"a subscriber of {self._channel} is too slow: {waiting:,} deltas wait\n"
            "  its subscription is closed; subscribe(every=seconds) merges what comes meanwhile, "
            "Database(max_waiting=) sets how many may wait"
        )
        log.error("%r ends: %s", self, self.error)
        self.close()


class Leaf:
    """Holds a leaf of the graph; when nobody holds this, the leaf is dropped."""

    __slots__ = ("__weakref__", "node")

    def __init__(self, engine: Engine, node: Node) -> None:
        self.node = node
        drop_with(self, engine, node)


def drop_with(holder: object, engine: Engine, node: Node) -> weakref.finalize[..., Any]:
    """Drop a leaf when nobody holds `holder` any more, or when the result is called.

    It knows the database weakly: what finalizers know lives until they have run.
    """
    finalizer = weakref.finalize(holder, _drop, weakref.ref(engine), node.rank)
    finalizer.atexit = False
    return finalizer


def _drop(engine: weakref.ref[Engine], leaf: int) -> None:
    owner = engine()
    if owner is not None:
        owner.drop(leaf)


class Changes(NotCopied, Closeable, Generic[T]):
    """The deltas of a relation as an asynchronous iterator; none is missed, from its making on.

    Deltas wait while the loop's body runs: as many as `changes(maxsize=n)` or
    `Database(max_waiting=n)` says; of more, the newest are merged. Leaving the loop early, call
    `close()` or use it in a `with`.

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
        limits: Limits | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._waiting = queues.Waiting(maxsize, limits)
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
        """End the iteration, after what is waiting."""
        self._subscription.close()

    def _is_over(self) -> bool:
        """Return whether nothing more comes."""
        return self._subscription.closed

    def _wait(self) -> bool:
        """Be woken from now on; return whether there is nothing to be read."""
        with self._lock:
            return not self._waiting

    def _next(self) -> Delta[T] | None:
        """Return the next delta that waits, if one does."""
        while True:
            with self._lock:
                if not self._waiting:
                    return None
                waited = self._waiting.pop()
            delta = queues.told(waited)
            if delta is not None:
                return delta

    def _put(self, delta: Delta[T]) -> None:
        with self._lock:
            self._waiting.put(delta)
        self._rouse()

    _put.is_repeatable = True  # type: ignore[attr-defined]

    def _rouse(self) -> None:
        with self._lock:
            wakes, self._wakes = self._wakes, []
        for loop, event in wakes:
            with suppress(RuntimeError):  # its loop has been closed
                loop.call_soon_threadsafe(event.set)


hint(Subscription, OF_SUBSCRIPTIONS)
