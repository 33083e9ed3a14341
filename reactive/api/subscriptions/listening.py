"""How to hear of changes: what relations and views share.

A subscription with a name: a durable database knows what it was told, after a restart too.

    commit --> delta n is kept in the file --> callback(delta n) --> delta n was taken

A delta whose callback has raised, or during which the process ended, comes again: the same rows
under the same number. What commits change meanwhile is the next one.

State:  that of the sink, by which it is told.
Cost:   a commit that changes the rows takes a sync of the disk more in a durable database.
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
from reactive.engine.runtime.closeable import Closeable, NotCopied, hint
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
    """Base of what can be subscribed to."""

    _engine: Engine
    plan: plan.Node

    def _subscribed(
        self, callback: Callable[[Delta[Any]], object], *, snapshot: bool, way: Relay | None
    ) -> Subscription[Any]:
        """Subscribe a callback, which `way` takes deltas to if it runs elsewhere."""
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
        callback: callable, `Delta` -> ignored. Runs after the commit, outside the lock, in the
            order of the commits. What it writes is the next transaction. If it raises, that is
            logged and kept in `Subscription.error`. One that writes what it listens to is told of
            that, and so on; after 100,000 times in a row its subscription is closed, with a
            `TransactionError`.
        snapshot: first call it with all rows of now, without gap or overlap to what follows.
        on: where it runs, one delta after the other: a `concurrent.futures.Executor`, or an asyncio
            event loop, which awaits an asynchronous callback too. By default in the thread that
            made the commit, before it goes on.
        every: at least so many seconds are between two calls; what comes meanwhile is merged into
            one delta. Without `on`, it runs in a thread of the database.
        path: of rows that have bags, hear of one bag alone: `(key, "orders")` is that of the row
            with this key, or of this row; `(key, "orders", is_it, "lines")` that of one in it. A
            callable is true of the row that is meant.
        maxsize: how many deltas may wait for `on`; as `Database(max_waiting=)` unless given.
        when_full: what happens when so many do. `"merge"`: the two newest become one, as by
            default; `"block"`: the writer waits, but for an event loop; `"close"`: the subscription
            ends, and `error` says why.

        name: under which a durable database keeps what was told: subscribed again after a restart,
            the callback is told what has changed since. `Delta.number` counts what it is told; a
            delta comes again under its number if the callback raises, or the process ends. It waits
            for the disk at each commit that changes the rows. Without one nothing is kept.
        row_type: of a subscription with a name, the classes of the rows, if the query does not say
            them.
        migrate: whether one with a name whose query has changed is told the difference between what
            it was told and the rows of today.

        Of a relation nothing is kept for this; a view is held. Hold what is returned: it ends
        otherwise. It also ends when its executor is shut down or its loop closed, which is logged.

        Raises
        ------
        PlanError: the callback is asynchronous, and there is no loop to run it; a path does not
            lead to a field; or there is a subscription of the name, or one that was told of another
            query, and `migrate` is not given.
        DurabilityError: what was told under the name cannot be read or written.
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
        return self._subscribed(callback, snapshot=snapshot, way=way)

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
        on, every: where and how often, as of `subscribe`.

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
        return self._subscribed(callback, snapshot=False, way=way)

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
        """The deltas to come as an asynchronous iterator: `async for delta in r.changes(): ...`.

        Parameters
        ----------
        snapshot: the first one has all rows of now.
        maxsize: how many may wait for a reader that does not keep up; as `Database(max_waiting=)`
            unless given. When so many do, the two newest are merged, so that none is missed and the
            last state is right.
        latest: `maxsize=1`: a reader gets all that has changed since it read last, as one delta.

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
        most, engine = bound(latest, maxsize), self._engine
        if most == 1:
            from reactive.api.subscriptions.latest import latest as reader

            return reader(
                engine,
                self._shared_by(),
                lambda f, begins: self._subscribed(f, snapshot=begins, way=None),
                snapshot=snapshot,
            )
        limits = engine.delivery_queue.limits.of_one(most, "merge")
        return Changes(lambda f: self._subscribed(f, snapshot=snapshot, way=None), most, limits)

    def _shared_by(self) -> object:
        """Return what is equal for all whose changes are the same: the channel of a view, else a
        plan."""
        return getattr(self, "_channel", self.plan)


# What `subscribe` and `observe` take: callbacks, observers, and where and when they are to run.

Event = tuple[Callable[..., object], tuple[Any, ...]]
"""A method of an observer, and what it is called with."""


def relay(
    callback: Callback,
    on: Any,
    every: float | None,
    timer: Timer,
    limits: QueueLimits,
    own: tuple[int | None, str | None] = (None, None),
) -> Relay | None:
    """What takes deltas to a callback; None for one that runs in the thread of the writer.

    Raises
    ------
    PlanError: what is given is nothing of the kind; or the callback is asynchronous, and there is
        no loop to run it.
    """
    _check(on, every)
    _check_called(callback)
    _check_awaited("subscribe", callback, on)
    if own != (None, None) and (on is None or every is not None):
        raise PlanError(
            "maxsize= and when_full= are of what waits for on=executor or on=loop\n"
            "  with every= one delta waits; without on= the writer does"
        )
    if on is None and every is None:
        return None
    bound(latest=False, maxsize=own[0])
    return Relay(callback, on, every, timer, limits.of_one(*own))


def notify(observer: Any, on: Any) -> Callback:
    """The callback that calls an observer's methods."""
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


def bound(latest: bool, maxsize: int | None) -> int | None:
    """How many deltas may wait for a reader of `changes`."""
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


def _check(on: Any, every: Any) -> None:
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
    kinds = (("process", "ProcessPoolExecutor"), ("interpreter", "InterpreterPoolExecutor"))
    for module, name in kinds:
        kind = getattr(sys.modules.get(f"concurrent.futures.{module}"), name, None)
        if kind is not None and isinstance(executor, kind):
            return True
    return False


def _check_called(callback: Any) -> None:
    """Refuse what cannot be called with a delta, of which else the log would tell."""
    if not callable(callback):
        raise PlanError(
            f"subscribe takes a callable, delta -> anything, not {callback!r:.100}\n"
            "  observe() takes an object with methods added, removed and updated"
        )
    try:
        signature = inspect.signature(callback)
    except (TypeError, ValueError):  # of some that are not in Python
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise PlanError(
            f"subscribe calls its callable with one argument, the delta: {_named(callback)} takes "
            f"{signature}\n  use `lambda delta: ...`"
        ) from error


def _named(function: Any) -> str:
    """A function, and where it is written."""
    place = place_of(function)
    name = getattr(function, "__qualname__", type(function).__name__).rpartition(".<locals>.")[2]
    return f"{name}{'' if place is None else f' ({place})'}"


def _check_awaited(role: str, function: Any, on: Any) -> None:
    """Refuse a function that gives something to be awaited, where nobody would."""
    if is_loop(on) or not _is_asynchronous(function):
        return
    raise PlanError(
        f"{role}: {_named(function)} is asynchronous, and nobody would await it\n"
        "  `async for delta in relation.changes()`, or on=loop, the event loop that is to run it"
    )


def _is_asynchronous(function: Any) -> bool:
    call = getattr(type(function), "__call__", None)  # noqa: B004
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(is_kind(each) for is_kind in kinds for each in (function, call))


def _ignore(row: Any) -> None:
    """What is done about an event that an observer has no method for."""


Delivered = TypeVar("Delivered", default=Any)


class CallbackSink(Protocol):
    """The sink that calls the callback, as far as a subscription asks it."""

    @property
    def state(self) -> str: ...
    @property
    def error(self) -> BaseException | None: ...
    @property
    def position(self) -> Any: ...
    def flush(self) -> object: ...
    def stop(self) -> object: ...
    def forget(self) -> object: ...


@boundary
class NamedSubscription(NotCopied, Closeable, Generic[Delivered]):
    """A subscription with a name, which `subscribe(callback, name=)` returns.

    It goes on if nobody holds it, until it, its view or the database is closed. The next one of the
    name is told what has changed since, its commits by other processes too.

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
        """True once the callback is called no more."""
        return self._told.state == "stopped"

    @property
    def error(self) -> BaseException | None:
        """The exception that the callback raised for the last delta, which comes again."""
        return self._told.error

    @property
    def position(self) -> Any:
        """The number of the last delta, and the commit that it is up to date through."""
        return self._told.position

    def flush(self) -> None:
        """Tell what waits, now: what the callback has raised is raised here."""
        self._told.flush()

    def forget(self) -> None:
        """Close it, and remove from the database what it was told: the next one of the name begins
        anew.

        Raises
        ------
        PlanError: the database is not durable.
        """
        self._told.forget()

    def close(self) -> None:
        """Hear no more. Closing twice is no error."""
        self._told.stop()

    _copy_instead = "subscribe once more, under another name"
    _pickle_instead = "subscribe again under its name where the database is; a Delta can be pickled"

    def _called(self) -> str:
        return f"the subscription {self.name!r}"

    def __repr__(self) -> str:
        return f"NamedSubscription({self.name!r}, {self._told.state}, {self.position})"


def check_named(name: Any, on: Any, every: float | None, others: dict[str, Any]) -> None:
    """Refuse what a subscription with a name cannot have.

    Raises
    ------
    PlanError: one of them is given; or the name is none.
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
