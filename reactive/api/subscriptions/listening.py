"""How to hear of changes: what relations and views share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, TypeVarTuple, overload

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans.properties import shapes
from reactive.api.subscriptions import at_bag
from reactive.api.subscriptions.callbacks import bound, notify, relay
from reactive.api.subscriptions.named_subscription import NamedSubscription, check_named
from reactive.api.subscriptions.observe import Changes, Observes, Subscription
from reactive.engine.dataflow.delta import Delta
from reactive.engine.runtime.boundary import boundary

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from concurrent.futures import Executor

    from reactive.api.subscriptions.relay import Relay
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
            callback = at_bag.heard(shapes(self.plan), callback, path)
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
