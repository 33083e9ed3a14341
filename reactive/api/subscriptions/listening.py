"""Subscribing to relations and views: `subscribe`, `observe` and `changes`.

A subscription with a name: a durable database stores which deltas it delivered, for after a
    restart.

    commit --> delta n is stored in the file --> callback(delta n) --> delta n is marked delivered

If the callback raises, or the process ends during the call, delta n is delivered again with the
same rows and number. Later commits are merged into the next delta.

State:  that of the sink that calls the callback.
Cost:   one more sync of the disk for a commit that changes the rows, in a durable database.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVarTuple, overload

from typing_extensions import TypeVar

from optimizer import plan
from optimizer.callables.source import place_of
from optimizer.errors import PlanError
from optimizer.plans.properties import shapes
from reactive.api.subscriptions import at_path
from reactive.api.subscriptions.observe import (
    Callback,
    Changes,
    Observes,
    Relay,
    Subscription,
    is_loop,
)
from reactive.engine.dataflow.delta import Delta
from reactive.engine.dataflow.discrimination import QueueLimits
from reactive.engine.runtime.boundary import boundary
from reactive.engine.runtime.closeable import Closeable, Uncopyable, hint
from reactive.engine.runtime.foreign_names import OF_SUBSCRIPTIONS
from reactive.engine.runtime.timer import Timer

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from concurrent.futures import Executor

    from reactive.engine.transactions.engine import Engine


Ts = TypeVarTuple("Ts")
Cs = TypeVarTuple("Cs")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


@boundary
class Listening(Generic[*Ts]):
    """Base of relations and views, with the methods to subscribe."""

    _engine: Engine
    plan: plan.Node

    def _subscribe_callback(
        self, callback: Callable[[Delta[Any]], object], *, snapshot: bool, way: Relay | None
    ) -> Subscription[Any]:
        """Subscribe a callback; `way` delivers the deltas if it runs elsewhere."""
        raise NotImplementedError

    def _subscribed_as(self, name: str, callback: Any, **how: Any) -> NamedSubscription[Any]:
        """Subscribe under a name."""
        raise NotImplementedError

    @overload
    def subscribe(
        self: Listening[T],
        callback: Callable[[Delta[T]], object],
        *,
        snapshot: bool = False,
        on: Executor | AbstractEventLoop | None = None,
        every: float | None = None,
        path: tuple[Any, ...] | None = None,
        maxsize: int | None = None,
        when_full: Literal["block", "merge", "close"] | None = None,
    ) -> Subscription[T]: ...
    @overload
    def subscribe(
        self: Listening[A, B, *Cs],
        callback: Callable[[Delta[tuple[A, B, *Cs]]], object],
        *,
        snapshot: bool = False,
        on: Executor | AbstractEventLoop | None = None,
        every: float | None = None,
        path: tuple[Any, ...] | None = None,
        maxsize: int | None = None,
        when_full: Literal["block", "merge", "close"] | None = None,
    ) -> Subscription[tuple[A, B, *Cs]]: ...
    @overload
    def subscribe(
        self: Listening[T],
        callback: Callable[[Delta[T]], object],
        *,
        name: str,
        snapshot: bool = False,
        on: Executor | None = None,
        every: float | None = None,
        row_type: Any = None,
        migrate: bool = False,
    ) -> NamedSubscription[T]: ...
    @overload
    def subscribe(
        self: Listening[A, B, *Cs],
        callback: Callable[[Delta[tuple[A, B, *Cs]]], object],
        *,
        name: str,
        snapshot: bool = False,
        on: Executor | None = None,
        every: float | None = None,
        row_type: Any = None,
        migrate: bool = False,
    ) -> NamedSubscription[tuple[A, B, *Cs]]: ...
    def subscribe(
        self,
        callback: Callable[[Delta[Any]], object],
        *,
        snapshot: bool = False,
        on: Executor | AbstractEventLoop | None = None,
        every: float | None = None,
        path: tuple[Any, ...] | None = None,
        maxsize: int | None = None,
        when_full: Literal["block", "merge", "close"] | None = None,
        name: str | None = None,
        row_type: Any = None,
        migrate: bool = False,
    ) -> Any:
        """Call a function with the `Delta` of every commit that changes the rows.

        Parameters
        ----------
        callback: callable, `Delta` -> ignored. It runs after the commit, outside the lock, in the
            order of the commits; its own writes are the next transaction. An exception is logged
            and kept in `Subscription.error`. A callback that changes the rows it listens to is
            called again; after 100,000 such calls in a row its subscription is closed, with a
            `TransactionError`.
        snapshot: call it first with all current rows; the next delta continues without gap or
            overlap.
        on: an executor (`concurrent.futures.Executor`) or an asyncio event loop to run the
            callback, one delta after the other; an event loop awaits an asynchronous callback. By
            default it runs in the thread that made the commit, before that continues.
        every: the least seconds between two calls; deltas meanwhile are merged into one. Without
            `on`, the callback runs in a thread of the database.
        path: listen to one bag inside a row: `(key, "orders")` is the bag of the row with this key,
            or of this row; `(key, "orders", test, "lines")` that of an inner row, for which the
            callable `test` is true.
        maxsize: the most deltas that may wait for `on`; by default `Database(max_waiting=)`.
        when_full: the reaction to a full queue. `"merge"`, the default: the two newest deltas
            become one. `"block"`: the writer waits, except in an event loop. `"close"`: the
            subscription ends, and `error` says why.
        name: a name under which a durable database stores the delivered deltas: subscribed again
            after a restart, the callback gets the changes since. `Delta.number` counts its deltas;
            a delta is repeated with its number if the callback raises or the process ends. Each
            commit that changes the rows waits for the disk. Without a name nothing is stored.
        row_type: for a subscription with a name, the classes of the rows, if the query does not
            determine them.
        migrate: for a subscription with a name whose query has changed, deliver the difference
            between the delivered rows and the current ones.

        Keep a reference to the returned `Subscription`: it ends when it is garbage collected. It
        keeps a view alive; for a relation it keeps no rows. It also ends, with a log entry, when
        its executor is shut down or its loop closed.

        Raises
        ------
        PlanError: the callback is asynchronous without a loop to run it; `path` does not lead to a
            bag; a subscription of the name is open; or the stored subscription is of another query,
            and `migrate` is False.
        DurabilityError: the stored subscription cannot be read or written.
        """
        if name is not None:
            others = {"path": path, "maxsize": maxsize, "when_full": when_full}
            check_named(name, on, every, others)
            relay(callback, on, every, self._engine.timer, self._engine.delivery_queue.limits)
            keep = {"row_type": row_type, "snapshot": snapshot, "migrate": migrate}
            return self._subscribed_as(name, callback, on=on, every=every, **keep)
        if row_type is not None or migrate:
            raise PlanError(
                "row_type= and migrate= are of what is kept under a name\n"
                "  give name='alerts', or leave them out"
            )
        if path is not None:
            callback = at_path.hear_bag(shapes(self.plan), callback, path)
        own, engine = (maxsize, when_full), self._engine
        way = relay(callback, on, every, engine.timer, engine.delivery_queue.limits, own)
        return self._subscribe_callback(callback, snapshot=snapshot, way=way)

    @overload
    def observe(
        self: Listening[T],
        observer: Observes[T],
        *,
        on: Executor | AbstractEventLoop | None = None,
        every: float | None = None,
    ) -> Subscription[T]: ...
    @overload
    def observe(
        self: Listening[A, B, *Cs],
        observer: Observes[tuple[A, B, *Cs]],
        *,
        on: Executor | AbstractEventLoop | None = None,
        every: float | None = None,
    ) -> Subscription[tuple[A, B, *Cs]]: ...
    def observe(
        self,
        observer: Observes[Any],
        *,
        on: Executor | AbstractEventLoop | None = None,
        every: float | None = None,
    ) -> Subscription[Any]:
        """Call an object's `added(row)`, `removed(row)`, `updated(old, new)`; see `Observer`.

        Parameters
        ----------
        observer: an object with any of these methods.
        on, every: as for `subscribe`.

        Keep a reference to the returned `Subscription`: it ends when it is garbage collected.

        Raises
        ------
        PlanError: the object has none of the methods, or one that is asynchronous without a loop to
            run it.

        >>> from reactive import Database
        >>> class Log:
        ...     def added(self, row): print("+", row)
        ...     def removed(self, row): print("-", row)
        >>> words = Database().table(str)
        >>> watching = words.observe(Log())
        >>> words.add("be")
        + be
        """
        callback = notify(observer, on)
        engine = self._engine
        way = relay(callback, on, every, engine.timer, engine.delivery_queue.limits)
        return self._subscribe_callback(callback, snapshot=False, way=way)

    @overload
    def changes(
        self: Listening[T],
        *,
        snapshot: bool = False,
        latest: bool = False,
        maxsize: int | None = None,
    ) -> Changes[T]: ...
    @overload
    def changes(
        self: Listening[A, B, *Cs],
        *,
        snapshot: bool = False,
        latest: bool = False,
        maxsize: int | None = None,
    ) -> Changes[tuple[A, B, *Cs]]: ...
    def changes(
        self, *, snapshot: bool = False, latest: bool = False, maxsize: int | None = None
    ) -> Changes[Any]:
        """Return later deltas as an asynchronous iterator: `async for delta in r.changes(): ...`.

        Parameters
        ----------
        snapshot: True for a first delta with all current rows.
        maxsize: the most deltas that may wait for a slow reader; by default
            `Database(max_waiting=)`. In a full queue the two newest deltas are merged, so that no
            change is lost.
        latest: True for `maxsize=1`: a reader gets all changes since its last read, as one delta.

        Raises
        ------
        PlanError: `maxsize` is not an int from 1 on, or contradicts `latest`.

        >>> import asyncio
        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> async def late():
        ...     with words.changes(latest=True) as changes:
        ...         for word in ["to", "be", "or"]:
        ...             words.add(word)
        ...         words.remove("be")
        ...         return await anext(changes)
        >>> asyncio.run(late())
        Delta(version=4, added=('to', 'or'))
        """
        most, engine = queue_bound(latest, maxsize), self._engine
        if most == 1:
            from reactive.api.subscriptions.latest import latest as reader

            return reader(
                engine,
                self._shared_by(),
                lambda f, begins: self._subscribe_callback(f, snapshot=begins, way=None),
                snapshot=snapshot,
            )
        limits = engine.delivery_queue.limits.of_one(most, "merge")
        return Changes(
            lambda f: self._subscribe_callback(f, snapshot=snapshot, way=None), most, limits
        )

    def _shared_by(self) -> object:
        """Return a key that is equal for relations with the same changes."""
        return getattr(self, "_channel", self.plan)


# Arguments of `subscribe` and `observe`: callbacks, observers, executors, loops and intervals.

Event = tuple[Callable[..., object], tuple[Any, ...]]
"""A method of an observer, and its arguments."""


def relay(
    callback: Callback,
    on: Any,
    every: float | None,
    timer: Timer,
    limits: QueueLimits,
    own: tuple[int | None, str | None] = (None, None),
) -> Relay | None:
    """Return the relay of a callback; None if it runs in the thread of the writer.

    Raises
    ------
    PlanError: an argument is of the wrong kind; or the callback is asynchronous, without a loop to
        run it.
    """
    _check_delivery(on, every)
    _check_callback(callback)
    _check_awaited("subscribe", callback, on)
    if own != (None, None) and (on is None or every is not None):
        raise PlanError(
            "maxsize= and when_full= are of what waits for on=executor or on=loop\n"
            "  with every= one delta waits; without on= the writer does"
        )
    if on is None and every is None:
        return None
    queue_bound(latest=False, maxsize=own[0])
    return Relay(callback, on, every, timer, limits.of_one(*own))


def notify(observer: Any, on: Any) -> Callback:
    """Return the callback that calls an observer's methods; refuses an observer without any."""
    names = ("added", "removed", "updated")
    found = {name: getattr(observer, name, None) for name in names}
    methods = {name: method if callable(method) else None for name, method in found.items()}
    given = [method for method in methods.values() if method is not None]
    if not given:
        raise PlanError(
            f"observe takes an object with a method added, removed or updated, not {observer!r}\n"
            "  for a function of one argument use subscribe()"
        )
    for method in given:
        _check_awaited("observe", method, on)
    added = methods["added"] or _ignore
    removed = methods["removed"] or _ignore
    updated = methods["updated"]

    def events(delta: Delta[Any]) -> Iterator[Event]:
        for row in delta.removed:
            yield removed, (row,)
        for old, new in delta.updated:
            if updated is not None:
                yield updated, (old, new)
            else:
                yield removed, (old,)
                yield added, (new,)
        for row in delta.added:
            yield added, (row,)

    def call(delta: Delta[Any]) -> None:
        for method, given in events(delta):
            method(*given)

    async def wait_for(delta: Delta[Any]) -> None:
        for method, given in events(delta):
            result = method(*given)
            if inspect.isawaitable(result):
                await result

    return wait_for if any(map(_is_asynchronous, given)) else call


def queue_bound(latest: bool, maxsize: int | None) -> int | None:
    """Return the most deltas that may wait for a reader of `changes`; None for the default.

    Refuses a `maxsize` below 1, or one that contradicts `latest`.
    """
    if not latest and maxsize is None:
        return None
    if latest and maxsize not in (None, 1):
        raise PlanError(
            f"changes(latest=True, maxsize={maxsize}): latest=True is maxsize=1\n  give one of them"
        )
    if not latest and (type(maxsize) is not int or maxsize < 1):
        raise PlanError(
            f"changes(maxsize={maxsize!r}) is no number of deltas that may wait\n"
            "  give an integer from 1 on; latest=True is maxsize=1"
        )
    return 1 if latest else maxsize


def _check_delivery(on: Any, every: Any) -> None:
    """Refuse an `every=` that is no interval, and an `on=` that cannot run callbacks here."""
    if every is not None and (
        isinstance(every, bool) or not isinstance(every, int | float) or not 0 < every < math.inf
    ):
        raise PlanError(
            f"every={every!r} is no interval\n  give the seconds from one call to the next"
        )
    if on is None or is_loop(on):
        return
    if not hasattr(on, "submit"):
        raise PlanError(
            f"on={on!r:.100} is neither an executor nor an event loop\n"
            "  such as on=ThreadPoolExecutor(1), or on=asyncio.get_running_loop()"
        )
    if _leaves_the_interpreter(on):
        raise PlanError(
            f"on={on!r:.100}: a callback cannot go to another process or interpreter\n"
            "  use a ThreadPoolExecutor"
        )


def _leaves_the_interpreter(executor: Any) -> bool:
    """Return True if an executor runs calls in other processes or interpreters."""
    kinds = (("process", "ProcessPoolExecutor"), ("interpreter", "InterpreterPoolExecutor"))
    for module, name in kinds:
        kind = getattr(sys.modules.get(f"concurrent.futures.{module}"), name, None)
        if kind is not None and isinstance(executor, kind):
            return True
    return False


def _check_callback(callback: Any) -> None:
    """Refuse an object that cannot be called with a delta; otherwise only the log would show it."""
    if not callable(callback):
        raise PlanError(
            f"subscribe takes a callable, delta -> anything, not {callback!r:.100}\n"
            "  observe() takes an object with methods added, removed and updated"
        )
    try:
        signature = inspect.signature(callback)
    except (TypeError, ValueError):  # some builtins have no signature
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise PlanError(
            "subscribe calls its callable with one argument, the delta: "
            f"{_describe_callback(callback)} takes {signature}\n  use `lambda delta: ...`"
        ) from error


def _describe_callback(function: Any) -> str:
    """Describe a function with the place of its code."""
    place = place_of(function)
    name = getattr(function, "__qualname__", type(function).__name__).rpartition(".<locals>.")[2]
    return f"{name}{'' if place is None else f' ({place})'}"


def _check_awaited(role: str, function: Any, on: Any) -> None:
    """Refuse an asynchronous function without a loop that awaits it."""
    if is_loop(on) or not _is_asynchronous(function):
        return
    raise PlanError(
        f"{role}: {_describe_callback(function)} is asynchronous, and nobody would await it\n"
        "  `async for delta in relation.changes()`, or on=loop, the event loop that is to run it"
    )


def _is_asynchronous(function: Any) -> bool:
    call = getattr(type(function), "__call__", None)  # noqa: B004
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(is_kind(each) for is_kind in kinds for each in (function, call))


def _ignore(row: Any) -> None:
    """Do nothing about an event that an observer has no method for."""


Delivered = TypeVar("Delivered", default=Any)


class CallbackSink(Protocol):
    """The part of a callback's sink that a subscription uses."""

    @property
    def state(self) -> str:
        """Return "stopped" after the sink was stopped, else another text."""

    @property
    def error(self) -> BaseException | None:
        """Return the exception of the callback for the last delta, or None."""

    @property
    def position(self) -> Any:
        """Return the number of the last delta, and its commit."""

    def flush(self) -> object:
        """Deliver waiting changes now."""

    def stop(self) -> object:
        """Stop the delivery."""

    def forget(self) -> object:
        """Stop the delivery, and delete the stored state."""


@boundary
class NamedSubscription(Uncopyable, Closeable, Generic[Delivered]):
    """A subscription with a name; `subscribe(callback, name=)` makes it.

    It stays open without a reference, until it, its view or the database is closed. The next
    subscription of the name gets the changes since, also those committed by other processes.

    >>> from reactive import Database
    >>> words = Database().table(str, name="words")
    >>> watching = words.subscribe(lambda delta: print(delta.number, delta.added), name="print")
    >>> words.add("to")
    1 ('to',)
    >>> print(watching.position)
    batch 1, through commit 1
    >>> watching.close()
    """

    def __init__(self, name: str, told: CallbackSink) -> None:
        self.name = name
        self._told = told

    @property
    def closed(self) -> bool:
        """True after the subscription was closed."""
        return self._told.state == "stopped"

    @property
    def error(self) -> BaseException | None:
        """The exception that the callback raised for the last delta; None if it raised none.

        That delta will be delivered again.
        """
        return self._told.error

    @property
    def position(self) -> Any:
        """The number of the last delta, and the last commit in it."""
        return self._told.position

    def flush(self) -> None:
        """Deliver waiting changes now, and raise the exception of the callback."""
        self._told.flush()

    def forget(self) -> None:
        """Close the subscription and delete its stored state; the next one of the name begins anew.

        Raises
        ------
        PlanError: the database is not durable.
        """
        self._told.forget()

    def close(self) -> None:
        """Stop the delivery. Closing twice is no error."""
        self._told.stop()

    _copy_instead = "subscribe once more, under another name"
    _pickle_instead = "subscribe again under its name where the database is; a Delta can be pickled"

    def _called(self) -> str:
        return f"the subscription {self.name!r}"

    def __repr__(self) -> str:
        return f"NamedSubscription({self.name!r}, {self._told.state}, {self.position})"


def check_named(name: Any, on: Any, every: float | None, others: dict[str, Any]) -> None:
    """Refuse arguments that a subscription with a name cannot have.

    Raises
    ------
    PlanError: such an argument is given; or the name is not a text.
    """
    if type(name) is not str or not name:
        raise PlanError(
            f"cannot subscribe under the name {name!r:.100}: it is no text\n"
            "  give a name that the subscription has after a restart, such as name='alerts'"
        )
    for given in [n for n, value in others.items() if value is not None]:
        raise PlanError(
            f"cannot subscribe with {given}= under a name: what waits for it is kept as what it "
            "comes to\n  leave out one of them"
        )
    if is_loop(on):
        raise PlanError(
            "cannot run the callback of a subscription with a name in an event loop: it would wait "
            "for the disk\n  give on=ThreadPoolExecutor(1), and call the loop from there"
        )
    if on is not None and every is not None:
        raise PlanError(
            "cannot subscribe with on= and every= under a name: a thread of its own runs the "
            "callback by every=\n  leave out one of them"
        )


hint(NamedSubscription, OF_SUBSCRIPTIONS)
