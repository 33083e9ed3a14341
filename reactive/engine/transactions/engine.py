"""The engine of a database: its tables, its graph, and the commits that change both together.

    statement --> delta of its table --> a transaction is open: collected until its end
                                     --> else: graph --> delivery queue --> subscribers
                                               (atomic)     (outside the lock)

An asynchronous exception (`interrupts.py`) is not undone step by step: the next access repairs the
database (`commit.py`).

State:  the open transactions; the leaves that were dropped, until they are removed.
Cost:   half a microsecond per statement, beside the table and the nodes that it reaches.
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
    Commit,
    CommitTimes,
    InterruptedCommit,
    break_off,
    commit_few_rows,
    repair,
)
from reactive.engine.transactions.row_gate import Base, UpdateLog
from reactive.errors import ClosedError, StaleCaptureError, StaleCaptureWarning, TransactionError

if TYPE_CHECKING:
    from reactive.engine.transactions.pending import Pending


NO_CHANGES: Sequence[Pair] = ()


class Engine:
    """State shared by the tables, relations, views and transactions of a database.

    Parameters
    ----------
    rules, rewrite, strict: as of `Database`.
    """

    def __init__(self, rules: Sequence[Rule], *, rewrite: bool, strict: bool) -> None:
        self.strict = strict
        self.delivery_queue = DeliveryQueue()
        self.db_lock = DatabaseLock(self._repair, self._tell)
        self.delivery_queue.alone = self._alone
        self.broken: InterruptedCommit | None = None
        self.moments: weakref.WeakValueDictionary[Any, Moment] = weakref.WeakValueDictionary()
        """The changes that `previous()` reads, by the plan of the rows."""
        self.timer = Timer()
        self.graph = Graph(partial(report_stale, strict), self.delivery_queue)
        self.graph.strict = strict
        self.graph.trees.inside = self.db_lock.inside
        self.queries = Queries(self.graph, self._node_of, rules, rewrite=rewrite)
        self.tables = NamedTables()
        """The tables, by their number in plans."""
        self.numbers = count()
        self.views: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        """The referenced views, by the rank of their leaf."""
        self.ledgers: dict[str, Any] = {}
        """The records of ingested sources, by name; kept after a source has stopped."""
        self.ingestions: dict[str, Any] = {}
        """The running sources, by name."""
        self.sinks: list[Any] = []
        """The running sinks."""
        self.mirrors: list[Any] = []
        """The mirrors of SQL databases, one per SQL engine, until closed."""
        self.version = 0
        """The number of commits with changes."""
        self.times = CommitTimes()
        self.pending: Pending | None = None
        self.prepared: Commit | None = None
        """The commit whose operators have stepped, neither published nor undone yet."""
        self.supposition: Any = None
        """The supposition whose block runs (`supposition.py`), or None."""
        self.log: Any = None
        """The last commits (`commit_log.py`), if they are kept in memory."""
        self.said: tuple[str | None, Any] = (None, None)
        """The label of the transaction that commits, and what it does to an earlier commit."""
        self.updates = UpdateLog()
        self.aside: tuple[Pending, ...] = ()
        """Open transactions that are set aside (`pending.py`)."""
        self.dropped: deque[int] = deque()
        self.feeds: weakref.WeakSet[Channel] = weakref.WeakSet()
        self.latest: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
        """Feeds that readers of the latest changes share, by the view or plan that they read."""
        self.materialize: Callable[..., Any]
        """Creates a view of a relation."""
        self.nest: Callable[..., Any]
        """Nests the rows of other relations inside the rows of a relation."""
        self.rows_of_groups: Callable[..., Any]
        """Maps the keys of a relation to their rows."""
        self.catalog: Any = None
        """Resolves names in SQL; created on first use."""
        self.recipes: Any = None
        """Copies queries of functions that were read before; created on first use."""
        self.objects: Any = None
        """Tracks changed objects, if there are tables of tracked objects."""
        self.dialect = "duckdb"
        self.timezone = "UTC"
        """The time zone of SQL."""
        self.add_table: Callable[..., Any]
        """Adds a table that this database makes for itself."""
        self.constraints: dict[int, list[Any]] = {}
        """Views that must stay empty, by the number of the table that declares them."""
        self.clock: Any = None
        """The clock (`api/clock.py`); made on first use."""
        self.feedback: Any = None
        """The loops by which commits go on (`feedback.py`), if there are some."""
        self.offloading: placement.Placement
        self.overflow: placement.Overflow | None = None
        self.journal: Any = None
        """Writes commits to a store, if tables are durable (`durable/journal.py`)."""
        self.joined: dict[int, Any] = {}
        """Participants of joint transactions still to be committed or rolled back, by `id`.

        The `id` is that of the object given to the transaction (`two_commits/joint.py`).
        """
        self.rereading: Any = None
        """Finds tables that are read from SQL databases, if any (`two_commits/rereading.py`)."""

    def place(self, offloading: placement.Placement) -> None:
        """Set the placement of queries, before anything else is done."""
        self.offloading = self.queries.placement = offloading
        self.overflow = offloading.overflow

    def begin_at(self, version: int) -> None:
        """Start after the commits of earlier processes, before anything else is done."""
        self.version = self.graph.version = version
        self.times.pass_over(version)

    def __repr__(self) -> str:
        state = "closed" if self.db_lock.is_closed else f"version {self.version}"
        return f"Database({len(self.tables)} tables, {len(self.live_views())} views, {state})"

    # Tables and views.

    def table_of(self, plan: Any) -> Any:
        """Return the table that a plan reads.

        Raises
        ------
        PlanError: the table was dropped.
        """
        found = self.tables.get(plan.number)
        if found is None:
            raise PlanError(
                f"table {plan.name!r} of this query was dropped, or replaced by another one\n"
                "  make the query again, over a table that is there: see db.tables()"
            )
        return found

    def moment_of(self, rows: Any) -> Moment:
        """Return the moment of a plan; equal plans share one.

        Raises
        ------
        PlanError: the rows are recursive.
        """
        if free(rows):
            raise placement.without_past("rows that are recursive")
        with self.inside():
            if (found := self.moments.get(rows)) is None:
                found = self.moments[rows] = Moment(self.graph)
            return found

    def live_views(self) -> list[Any]:
        """Return the open views that are still referenced, in the order of creation.

        Views of constraints are left out.
        """
        self.sweep()
        found = [view for _, view in sorted(self.views.items()) if not view.closed]
        if not self.constraints:
            return found
        hidden = {id(view) for views in self.constraints.values() for view in views}
        return [view for view in found if id(view) not in hidden]

    def end(self, leaf: Node, why: str) -> None:
        """Close the view of a leaf and its subscriptions; later reads raise an error with `why`."""
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
        """Run a statement on a table. Entering the lock is inlined, because calls take longer."""
        db_lock, pending = self.db_lock, self.pending
        if self.feedback is not None and self.mine is None:
            self.feedback.write(table, statement, of)
            return
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
        """Run a statement that is inside a transaction, must wait, or must be refused."""
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
        """Change a table; then commit, or add the change to the open transaction."""
        changes, version, pending = NO_CHANGES, self.version + 1, self.pending
        try:
            changes = statement(of)
            if not changes:
                return
            if table._followers is not None and table._followers.expiry is not None:
                table._followers.expiry.check(changes)
            if pending is not None:
                pending.append((table, changes))
            elif self.aside:
                set_aside.commit_beside(self, table, changes, version)
            elif not commit_few_rows(self, table, changes, version):
                Commit(self, version, [(table, changes)], []).run()
        except BaseException as error:
            back = [
                (table, NO_CHANGES if pending is not None and pending.has(changes) else changes)
            ]
            try:
                if not Commit(self, version, [(table, changes)], back).undo_and_retry(error):
                    refusals.report_clash(table, of, changes, pending or (), error)
                    raise
                if self.aside:
                    set_aside.note_beneath(self, [(table, changes)])
            except BaseException:
                break_off(self, back, version)
                raise

    def count_commit(self, changes: Sequence[tuple[Base, Sequence[Pair]]], rows: int) -> None:
        """Count a commit of `rows` rows."""
        self.version += 1
        for table, delta in changes:
            table._flowed = True
            if table._followers is not None:
                table._followers.note(delta, table._store)
        if self.overflow is not None:
            self.overflow.note(rows)

    # The lock.

    @property
    def mine(self) -> Pending | None:
        """The open transaction of the running thread or task, or None."""
        if self.pending is not None and self.db_lock.is_mine:
            return self.pending
        return next((each for each in self.aside if each.owner == me()), None)

    def set_aside(self) -> None:
        """Set the transaction of another task aside, so that this task can write."""
        set_aside.set_aside(self)

    def _repair(self) -> None:
        if self.supposition is not None and self.broken is None:
            self.supposition.enter(is_writing=self.db_lock.is_writing)
            return
        repair(self)
        if self.aside:
            set_aside.bring_mine_back(self)

    @contextmanager
    def inside(self, *, to_write: bool = False) -> Iterator[None]:
        """Hold the lock, to read views or the graph, or to change them or tables."""
        try:
            with self.db_lock.inside(to_write=to_write):
                self.check_entered()
                yield
        finally:
            self.after()

    @contextmanager
    def shaping(self, *, to_write: bool = False) -> Iterator[None]:
        """Hold the lock to create or drop views, or tables that no transaction has changed.

        Ctrl-C is possible while user callables run over existing rows; the next access
        repairs what that leaves half done. Before and after, the rows of tracked objects
        show all assignments. `to_write` enters the lock as a writer.
        """
        if self.supposition is not None and self.mine is not None:
            raise TransactionError(
                "views and tables cannot be made or dropped inside db.suppose()\n"
                "  make them before its block"
            )
        if self.objects is not None:
            self.objects.show_all()
        with self.inside(to_write=to_write):
            try:
                yield
                if self.objects is not None:
                    self.objects.forget_reads()
            except BaseException as error:
                if is_asynchronous(error) and self.graph.is_changing:
                    self.broken, self.db_lock.at_rest = self.broken or InterruptedCommit([]), BROKEN
                raise
        if self.objects is not None:
            self.objects.show_all()

    def making(self, *, durable: bool) -> AbstractContextManager[None]:
        """Return the context manager for the creation of a table."""
        return self.journal.making() if durable and self.journal is not None else nullcontext()

    def check_open(self) -> None:
        if self.db_lock.is_closed:
            raise ClosedError(_CLOSED)

    def check_entered(self) -> None:
        """Raise if the database cannot be changed now."""
        self.check_open()
        if self.graph.stepping:
            raise TransactionError(
                "a callable of a query cannot change tables or make views\n"
                "  subscribe to the view, and make the change in the subscriber"
            )

    def check_filling(self) -> None:
        """Raise if the transaction is closed for statements."""
        if self.pending is not None and self.pending.is_prepared:
            raise TransactionError(
                "a transaction takes no more changes while it is committed\n"
                "  make them before the commit, or in another transaction after it"
            )

    def after(self) -> None:
        """Deliver deltas and finish pending work, after the lock is released.

        Do nothing inside an open transaction of the caller: changes by subscribers would become
        part of it.
        """
        db_lock = self.db_lock
        if db_lock.depth_here:
            return
        if db_lock.owner is None or not db_lock.is_mine:
            if self.delivery_queue:
                self.delivery_queue.deliver(self.version)
            self.look_after()
        elif db_lock.noted is not None:
            SIGINT.release(db_lock)

    def _tell(self) -> None:
        """Deliver the deltas of a repair."""
        self.delivery_queue.deliver(self.version)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Exclude commits, and defer Ctrl-C until the end."""
        with self.db_lock.inside():
            self.db_lock.critical = True
            yield

    def look_after(self) -> None:
        """Do the pending work that needs the lock to be free."""
        if self.dropped:
            self.sweep()
        if self.overflow is not None and self.overflow.is_due:
            self.overflow.look_after()
        if self.db_lock.noted is not None:
            SIGINT.release(self.db_lock)

    # Dropped leaves.

    def drop(self, leaf: int) -> None:
        """Drop an unreferenced leaf; the garbage collector calls this, at any time."""
        self.dropped.append(leaf)
        self.sweep()

    def sweep(self) -> None:
        """Remove dropped leaves from the graph, unless the lock is taken."""
        db_lock = self.db_lock
        if self.dropped and db_lock.try_enter():
            try:
                self.drain()
            finally:
                db_lock.sequence, db_lock.depth = db_lock.sequence + 1, db_lock.at_rest
                db_lock.lock.release()

    def drain(self) -> None:
        """Drop the leaves that are queued to be dropped."""
        while self.dropped:
            self.graph.drop_leaf(self.dropped.popleft())


_CLOSED = "the database is closed\n  make another one"


# Reports captured variables that have changed since their query was made.

_COPIED: dict[type, str] = {list: "tuple", set: "frozenset", dict: "dict", bytearray: "bytes"}


def report_stale(strict: bool, function: Opaque, capture: Capture, others: int) -> None:
    """Warn at the place of the callable; raise if the database is strict."""
    message = stale(function, capture, others)
    if strict:
        raise StaleCaptureError(message)
    place = function.place or Place("?", 0)
    warnings.warn_explicit(message, StaleCaptureWarning, place.file, place.line)


def stale(function: Opaque, capture: Capture, others: int = 0) -> str:
    """Return the message; `others` is the number of other callables with the same change."""
    text = _of_one(function, capture)
    if not others:
        return text
    are = "callable that was made there is" if others == 1 else "callables that were made there are"
    return f"{text}\n  {others:,} other {are} concerned too"


def _of_one(function: Opaque, capture: Capture) -> str:
    """Return the warning for a captured variable that has changed: its effect, and a remedy."""
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


# Stop the background work of a database before it is closed.


def stop_work(engine: Engine) -> None:
    """Stop sinks, moves to elsewhere, and the storage of views after storing them once more."""
    for sink in list(engine.sinks):
        sink.stop()
    if engine.pending is not None or engine.aside:
        return  # then the database stays open
    if engine.clock is not None:
        engine.clock.stop()
    if engine.overflow is not None:
        engine.overflow.stop()
    if engine.journal is not None and engine.journal.kept_views is not None:
        engine.journal.kept_views.close()
