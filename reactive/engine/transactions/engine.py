"""The engine of a database: its tables, its graph, and the commits that move both together.

    statement --> delta of its table --> a transaction is open: kept until its end
                                     --> else: graph --> delivery queue --> subscribers
                                               (all or nothing)     (outside the lock)

An exception that may have come at any moment (`interrupts.py`) is not undone step by step: what
it left behind is repaired at the next access (`commit.py`).

State:  what of a transaction, what of leaves that nobody holds any more.
Cost:   of a statement half a microsecond, beside the table and the nodes that it reaches.
"""

from __future__ import annotations

import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from optimizer.callables.captures import Capture
from optimizer.callables.opaque import Opaque
from optimizer.callables.source import Place
from optimizer.errors import PlanError
from optimizer.plans.properties import free
from optimizer.traverse import Rule
from reactive.engine.collections.zset import Pair
from reactive.engine.compiler import placement
from reactive.engine.compiler.queries import Queries
from reactive.engine.dataflow.delivery_queue import DeliveryQueue
from reactive.engine.dataflow.delta import Channel
from reactive.engine.dataflow.graph import Graph
from reactive.engine.dataflow.moment import Moment
from reactive.engine.dataflow.node import Node
from reactive.engine.runtime.interrupts import SIGINT, is_asynchronous
from reactive.engine.runtime.lock import BROKEN, DatabaseLock, me
from reactive.engine.runtime.timer import Timer
from reactive.engine.storage.rows import NamedTables
from reactive.engine.transactions import pending as set_aside
from reactive.engine.transactions import refusals
from reactive.engine.transactions.commit import (
    Broken,
    Commit,
    CommitTimes,
    at_once,
    break_off,
    repair,
)
from reactive.engine.transactions.row_gate import Base, Updates
from reactive.errors import ClosedError, StaleCaptureError, StaleCaptureWarning, TransactionError

if TYPE_CHECKING:
    from reactive.engine.transactions.pending import Pending


NO_CHANGES: Sequence[Pair] = ()


class Engine:
    """What the tables, relations, views and transactions of a database share.

    Parameters
    ----------
    rules, rewrite, strict: as of `Database`.
    """

    def __init__(self, rules: Sequence[Rule], *, rewrite: bool, strict: bool) -> None:
        self.strict = strict
        self.delivery_queue = DeliveryQueue()
        self.db_lock = DatabaseLock(self._repair, self._tell)
        self.delivery_queue.alone = self._alone
        self.broken: Broken | None = None
        self.moments: weakref.WeakValueDictionary[Any, Moment] = weakref.WeakValueDictionary()
        """What has changed of rows that are asked for as they were, by their plan."""
        self.timer = Timer()
        self.graph = Graph(partial(report_stale, strict), self.delivery_queue)
        self.graph.trees.inside = self.db_lock.inside
        self.queries = Queries(self.graph, self._node_of, rules, rewrite=rewrite)
        self.tables = NamedTables()
        """By their number in plans."""
        self.numbers = count()
        self.views: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        """Those that somebody holds, by the rank of their leaf."""
        self.ledgers: dict[str, Any] = {}
        """What is noted of sources, by their names; kept when they have stopped."""
        self.ingestions: dict[str, Any] = {}
        """The sources that run, by their names."""
        self.sinks: list[Any] = []
        """What views are written to, until it is stopped."""
        self.mirrors: list[Any] = []
        """Those that follow SQL databases, an engine of them each, until they are closed."""
        self.version = 0
        """How many commits there were that changed something."""
        self.times = CommitTimes()
        self.pending: Pending | None = None
        self.prepared: Commit | None = None
        """The commit whose operators have stepped, and which is neither published nor undone."""
        self.updates = Updates()
        self.aside: tuple[Pending, ...] = ()
        """The changes of transactions that are open, and set aside (`pending.py`)."""
        self.dropped: deque[int] = deque()
        self.feeds: weakref.WeakSet[Channel] = weakref.WeakSet()
        self.latest: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
        """Feeds that readers of the latest changes share, by the view or plan that they read."""
        self.materialize: Callable[..., Any]
        """Makes a view of a relation."""
        self.nest: Callable[..., Any]
        """Gives the rows of a relation others inside."""
        self.rows_of_groups: Callable[..., Any]
        """Gives the keys of a relation the rows that have them."""
        self.catalog: Any = None
        """What names stand for in SQL; made when there is some."""
        self.objects: Any = None
        """Which objects have changed, if there are tables of objects that change."""
        self.dialect = "duckdb"
        self.timezone = "UTC"
        """Of SQL."""
        self.offloading: placement.Placement
        self.overflow: placement.Overflow | None = None
        self.journal: Any = None
        """What writes commits to a store, if tables are durable (`durable/journal.py`)."""
        self.joined: dict[int, Any] = {}
        """What takes part in a transaction, and was not told to commit or to roll back yet, by the
        identity of what was given (`two_commits/joint.py`)."""
        self.rereading: Any = None
        """Which tables are read from SQL databases, if any (`two_commits/rereading.py`)."""

    def place(self, offloading: placement.Placement) -> None:
        """Be told where parts of queries are; before anything else is done."""
        self.offloading = self.queries.placement = offloading
        self.overflow = offloading.overflow

    def begin_at(self, version: int) -> None:
        """Begin with the commits of earlier processes; before anything else is done."""
        self.version = self.graph.version = version
        self.times.pass_over(version)

    def __repr__(self) -> str:
        state = "closed" if self.db_lock.is_closed else f"version {self.version}"
        return f"Database({len(self.tables)} tables, {len(self.live_views())} views, {state})"

    # Tables and views.

    def table_of(self, plan: Any) -> Any:
        """The table that a plan reads.

        Raises
        ------
        PlanError: it was dropped.
        """
        found = self.tables.get(plan.number)
        if found is None:
            raise PlanError(
                f"table {plan.name!r} of this query was dropped, or replaced by another one\n"
                "  make the query again, over a table that is there: see db.tables()"
            )
        return found

    def moment_of(self, rows: Any) -> Moment:
        """The one of a plan, the same for equal ones.

        Raises
        ------
        PlanError: its rows are recursive.
        """
        if free(rows):
            raise placement.without_past("rows that are recursive")
        with self.inside():
            if (found := self.moments.get(rows)) is None:
                found = self.moments[rows] = Moment(self.graph)
            return found

    def live_views(self) -> list[Any]:
        """The views that somebody holds, in the order they were made."""
        self.sweep()
        return [view for _, view in sorted(self.views.items()) if not view.closed]

    def end(self, leaf: Node, why: str) -> None:
        """Close the view that a leaf belongs to, and its subscriptions; who reads it is told
        why."""
        leaf.leaf.reason = why
        view = self.views.get(leaf.rank)
        if view is not None:
            view.close()
        leaf.leaf.close()
        self.graph.drop_leaf(leaf.rank)

    def _node_of(self, plan: Any) -> Node:
        node: Node = self.table_of(plan)._node
        return node

    # Statements and commits.

    def write(self, table: Base, statement: Callable[[Any], Sequence[Pair]], of: Any) -> None:
        """A statement on a table. It enters the lock by itself: calls would take longer."""
        db_lock, pending = self.db_lock, self.pending
        is_mine, is_inside = pending is not None, False
        if db_lock.is_special and db_lock.owner != me():
            self._write_inside(table, statement, of)
            return
        try:
            db_lock.lock.acquire()
            if db_lock.depth or self.pending is not pending or db_lock.is_special is not is_mine:
                db_lock.lock.release()
                self._write_inside(table, statement, of)
                return
            db_lock.depth, db_lock.critical = 1, True
            is_inside = True
            self._change(table, statement, of)
        finally:
            if is_inside:
                db_lock.sequence += 1
                db_lock.critical = False
                db_lock.depth = db_lock.at_rest
                db_lock.lock.release()
                if pending is None:
                    if self.delivery_queue:
                        self.delivery_queue.deliver(self.version)
                    if self.dropped or self.overflow is not None or db_lock.noted:
                        self.look_after()
                elif db_lock.noted is not None:
                    SIGINT.release(db_lock)
            else:
                db_lock.let_go()

    def _write_inside(
        self, table: Base, statement: Callable[[Any], Sequence[Pair]], of: Any
    ) -> None:
        """A statement of a transaction, or one that has to wait, or of who may not make one."""
        db_lock = self.db_lock
        db_lock.enter_to_write(self.set_aside)
        try:
            self.check_entered()
            self.check_filling()
            db_lock.critical = True
            self._change(table, statement, of)
        finally:
            db_lock.depth -= 1
            if not db_lock.depth:
                db_lock.sequence, db_lock.critical, db_lock.depth = (
                    db_lock.sequence + 1,
                    False,
                    db_lock.at_rest,
                )
            is_over = db_lock.owner is None
            db_lock.lock.release()
            if is_over:
                self.after()
            elif db_lock.noted is not None:
                SIGINT.release(db_lock)

    def _change(self, table: Base, statement: Callable[[Any], Sequence[Pair]], of: Any) -> None:
        """Change a table; keep that for the end of the transaction, or commit it."""
        changes, version, pending = NO_CHANGES, self.version + 1, self.pending
        try:
            changes = statement(of)
            if not changes:
                return
            if pending is not None:
                pending.append((table, changes))
            elif self.aside:
                set_aside.commit_beside(self, table, changes, version)
            elif not at_once(self, table, changes, version):
                Commit(self, version, [(table, changes)], []).run()
        except BaseException as error:
            back = [
                (table, NO_CHANGES if pending is not None and pending.has(changes) else changes)
            ]
            try:
                if not Commit(self, version, [(table, changes)], back).failed(error):
                    refusals.report_clash(table, of, changes, pending or (), error)
                    raise
                if self.aside:
                    set_aside.note_beneath(self, [(table, changes)])
            except BaseException:
                break_off(self, back, version)
                raise

    def committed(self, tables: Sequence[Base], rows: int) -> None:
        """Count a commit of `rows` rows."""
        self.version += 1
        for table in tables:
            table._flowed = True
        if self.overflow is not None:
            self.overflow.note(rows)

    # The lock.

    @property
    def mine(self) -> Pending | None:
        """The changes of the transaction that the running thread, or task, has open; or None."""
        if self.pending is not None and self.db_lock.is_mine:
            return self.pending
        return next((each for each in self.aside if each.owner == me()), None)

    def set_aside(self) -> None:
        """Take the transaction of another task out of the tables, for what this one does."""
        set_aside.set_aside(self)

    def _repair(self) -> None:
        repair(self)
        if self.aside:
            set_aside.bring_mine_back(self)

    @contextmanager
    def inside(self, *, to_write: bool = False) -> Iterator[None]:
        """Be inside to look at views or the graph with care, or to change them or tables."""
        try:
            with self.db_lock.inside(to_write=to_write):
                self.check_entered()
                yield
        finally:
            self.after()

    @contextmanager
    def shaping(self, *, to_write: bool = False) -> Iterator[None]:
        """Be inside to make or drop views; or tables, which no transaction may have changed.

        Ctrl-C may come while callables of the user's run over rows that are there; what is left
        half done then is repaired at the next access.
        """
        if self.objects is not None:
            self.objects.show_all()
        with self.inside(to_write=to_write):
            try:
                yield
                if self.objects is not None:
                    self.objects.forget_reads()
            except BaseException as error:
                if is_asynchronous(error) and self.graph.is_changing:
                    self.broken, self.db_lock.at_rest = self.broken or Broken([]), BROKEN
                raise
        if self.objects is not None:
            self.objects.show_all()

    def making(self, *, durable: bool) -> AbstractContextManager[None]:
        """What a table is made within."""
        return self.journal.making() if durable and self.journal is not None else nullcontext()

    def check_open(self) -> None:
        if self.db_lock.is_closed:
            raise ClosedError(_CLOSED)

    def check_entered(self) -> None:
        """Raise what keeps this database from being changed."""
        self.check_open()
        if self.graph.stepping:
            raise TransactionError(
                "a callable of a query cannot change tables or make views\n"
                "  subscribe to the view, and make the change in the subscriber"
            )

    def check_filling(self) -> None:
        """Raise if the transaction takes no more statements."""
        if self.pending is not None and self.pending.is_prepared:
            raise TransactionError(
                "a transaction takes no more changes while it is committed\n"
                "  make them before the commit, or in another transaction after it"
            )

    def after(self) -> None:
        """What is done when nobody is inside: the subscribers hear what happened.

        Not while the caller has a transaction open, of which what they write would be part.
        """
        db_lock = self.db_lock
        if db_lock.held:
            return
        if db_lock.owner is None or not db_lock.is_mine:
            if self.delivery_queue:
                self.delivery_queue.deliver(self.version)
            self.look_after()
        elif db_lock.noted is not None:
            SIGINT.release(db_lock)

    def _tell(self) -> None:
        """Tell subscribers what a repair has left."""
        self.delivery_queue.deliver(self.version)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep commits out, and Ctrl-C until it is over."""
        with self.db_lock.inside():
            self.db_lock.critical = True
            yield

    def look_after(self) -> None:
        """What is due when nobody is inside."""
        if self.dropped:
            self.sweep()
        if self.overflow is not None and self.overflow.is_due:
            self.overflow.look_after()
        if self.db_lock.noted is not None:
            SIGINT.release(self.db_lock)

    # Leaves that nobody holds.

    def drop(self, leaf: int) -> None:
        """A leaf that nobody holds any more; called by the garbage collector, at any time."""
        self.dropped.append(leaf)
        self.sweep()

    def sweep(self) -> None:
        """Take dropped leaves out of the graph, unless somebody is at work in it."""
        db_lock = self.db_lock
        if self.dropped and db_lock.try_enter():
            try:
                self.drain()
            finally:
                db_lock.sequence, db_lock.depth = db_lock.sequence + 1, db_lock.at_rest
                db_lock.lock.release()

    def drain(self) -> None:
        while self.dropped:
            self.graph.drop_leaf(self.dropped.popleft())


_CLOSED = "the database is closed\n  make another one"


# Reports captured variables that have changed since their query was made.

_COPIED: dict[type, str] = {list: "tuple", set: "frozenset", dict: "dict", bytearray: "bytes"}


def report_stale(strict: bool, function: Opaque, capture: Capture, others: int) -> None:
    """Warn where the callable stands; of a strict database, raise."""
    message = stale(function, capture, others)
    if strict:
        raise StaleCaptureError(message)
    place = function.place or Place("?", 0)
    warnings.warn_explicit(message, StaleCaptureWarning, place.file, place.line)


def stale(function: Opaque, capture: Capture, others: int = 0) -> str:
    """The message; so many other callables were made there, of which it is true as well."""
    text = _of_one(function, capture)
    if not others:
        return text
    are = "callable that was made there is" if others == 1 else "callables that were made there are"
    return f"{text}\n  {others:,} other {are} concerned too"


def _of_one(function: Opaque, capture: Capture) -> str:
    name, short = capture.name, capture.name.rpartition(".")[2]
    made = "has changed since the relation was made"
    again = "  make the relation again, or bind the value"
    if capture.is_live:
        by = function if capture.reader is None else f"{capture.reader}, called by {function}"
        return (
            f"{name!r}, read by {by}, {made}; its views hold results of both values\n"
            f"{again}: `lambda row, {short}={name}: ...`"
        )
    kept = f"its views keep the value of then, {capture.frozen!r:.80}"
    if capture.now() is capture.original:
        return (
            f"{name!r}, captured by {function}, was changed in place; {kept}\n"
            f"{again}, copied: `lambda row, {name}={_COPIED[type(capture.original)]}({name}): ...`"
        )
    return (
        f"{name!r}, captured by {function}, {made}; {kept}\n"
        f"{again}: `lambda row, {name}={name}: ...`"
    )


# End of what works for a database beside its commits, before the database is closed.


def stop_work(engine: Engine) -> None:
    """Stop sinks, moves to elsewhere and the thread that stores views, which does so once more."""
    for sink in list(engine.sinks):
        sink.stop()
    if engine.pending is not None or engine.aside:
        return  # it is not closed then
    if engine.overflow is not None:
        engine.overflow.stop()
    if engine.journal is not None and engine.journal.kept_views is not None:
        engine.journal.kept_views.close()
