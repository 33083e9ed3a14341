"""Commit in two phases: all changes stand, or none does.

    prepare     operators have stepped; the lock is held, so readers of other threads wait
    between     the caller's code, such as the COMMIT of another system
    write       durable tables are in their store (`journal`), which decides from then on
    publish     views show the commit, and its deltas are queued for delivery
    undo        instead of publishing: restore operators and tables

Statements, transactions, and commits that are repeated with other plans (`BailOut`; values that
clash: `equality_checks.py`) all go this way. If only `write` happens between the phases, one
generated function does both phases and calls it (`commit_few_rows`): adding a row takes 2.1 us that
way, and 5.9 us by a `Commit` with separate phases.

An asynchronous exception (`interrupts.py`) is not undone here: the engine notes what to undo, and
the next access repairs it (`repair`).

State:  the table changes to undo, until they are undone or noted.

`CommitTimes` measures how long commits take; each is logged at level DEBUG of the logger
"reactive".

Most commits change one row within two microseconds, and reading a clock would cost a tenth of that.
So commits of few rows are timed only while they are logged, and for a while after the times were
read; the others are estimated by the mean.

State:  a few numbers.
Cost:   0.03 us to test if commits are logged; half a microsecond for a timed commit.

`repair` restores a database after an exception that may have left anything half done.

    tables   undo their noted changes
    views    recompute from the tables; subscribers get all rows, as a snapshot

Such an exception is asynchronous (`interrupts.py`): a second Ctrl-C, a time limit. It is unknown
which operators had stepped, so all are rebuilt. A view over an unstored table cannot be recomputed:
it is closed with a reason.

Cost: that of building all views anew.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from logging import DEBUG
from time import perf_counter
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from reactive.engine.collections.zset import Pair, negate
from reactive.engine.compiler import equality_checks
from reactive.engine.compiler.leaves import rebuild
from reactive.engine.dataflow.schedule import CommitStep, Fed
from reactive.engine.operators.operator import BailOut
from reactive.engine.runtime.collector import pause_collector
from reactive.engine.runtime.interrupts import is_asynchronous, surely
from reactive.engine.runtime.lock import BROKEN
from reactive.engine.transactions.row_gate import Base
from reactive.errors import TableError

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import LeafDelta, Node
    from reactive.engine.transactions.engine import Engine

log = logging.getLogger("reactive")


T = TypeVar("T")
P = ParamSpec("P")
Change = tuple[Base, Sequence[Pair]]
"""A table, and its delta."""
Between = Sequence[Callable[[], object]]
"""The functions to call between the two phases, in this order."""
Restore = Callable[[], None] | None
"""Restores the plans that were replaced for a commit; None if they stay."""
MANY = 16
"""Minimum number of rows for a commit to be timed, and the garbage collector paused."""


class ParkReason(Exception):
    """Reason to undo a commit that has not failed."""


class Commit:
    """Changes that become one version. Call its methods inside the lock.

    `back` lists the table changes to revert if the commit is undone; it is emptied then, so that
    they are not reverted twice. Without changes there is no new version, but the functions between
    the phases are called.
    """

    __slots__ = (
        *("_between", "_deltas", "_engine", "_record", "_rows", "_seconds", "_step"),
        *("back", "changes", "version"),
    )

    def __init__(
        self,
        engine: Engine,
        version: int,
        changes: Sequence[Change],
        back: list[Change],
        between: Between = (),
    ) -> None:
        self._engine = engine
        self.version = version
        self.changes = changes
        self.back = back
        self._between = between
        self._deltas: list[Fed] = [(table._node, delta) for table, delta in changes]
        self._rows = sum([len(delta) for _, delta in changes])
        self._step: CommitStep | None = None
        self._record: Any = None
        """The record to write to the store before publishing."""
        self._seconds = 0.0

    def run(self) -> None:
        """Prepare, call the functions between the phases, and publish.

        If that raises, the caller calls `undo_and_retry`.
        """
        engine = self._engine
        if not self._between:
            if self.changes:
                self._drain()
                self._step_with_moves(engine.graph.commit, between=self._write())
                self._count()
            return
        self.prepare()
        if self._between:
            with engine.graph.running():  # no changes are allowed, even if the commit has none
                for act in self._between:
                    act()
        self.publish()

    @property
    def leaf_deltas(self) -> Sequence[LeafDelta]:
        """The deltas of the leaves, once it is prepared."""
        return () if self._step is None else self._step.leaf_deltas

    def prepare(self) -> None:
        """Step the operators."""
        if self.changes:
            self._drain()
            if self._engine.journal is not None:
                self._record = self._engine.journal.record(self.changes, self.version)
            self._step = self._step_with_moves(self._engine.graph.prepare)

    def publish(self) -> None:
        """Write the record to the store, if any, and publish."""
        if self._record is not None:
            self._engine.journal.write(self._record)
            self._record = None
        if self._step is not None:
            self._run_timed(self._engine.graph.publish, self._step)
            self._count()

    def undo(self, error: BaseException | None) -> None:
        """Undo the commit, because of an error or on request: operators first, then tables.

        An asynchronous exception may have hit after the commit stood, or left operators half
        changed. Then the commit is noted, and the next access repairs it; so also if `undo` is
        interrupted.
        """
        engine, step = self._engine, self._step
        break_off(engine, self.back, self.version)
        cause = error.__cause__ if isinstance(error, BailOut) else error
        broken = engine.broken
        if step is not None and engine.graph.version != self.version:
            assert error is not None
            engine.graph.undo(step, error)
            self._step = None
        if engine.graph.stepping or is_asynchronous(cause):
            if cause is not None and cause is not error:
                raise cause
            return
        if broken is not None:
            broken.views = False
            if broken.back:
                surely(broken.restore_tables)
            engine.broken, engine.db_lock.at_rest = None, engine.db_lock.idle

    def park(self) -> None:
        """Undo the operators, until the commit is prepared once more; tables keep their changes.

        If that is interrupted, the next access recomputes all views.
        """
        engine = self._engine
        engine.broken, engine.db_lock.at_rest = InterruptedCommit([]), BROKEN
        engine.prepared, step, self._step = None, self._step, None
        if step is not None:
            engine.graph.undo(step, ParkReason())
        if not engine.graph.stepping:
            engine.broken, engine.db_lock.at_rest = None, engine.db_lock.idle

    def stand(self) -> None:
        """Let the commit stand, whatever the operators did; all views are recomputed.

        If the store neither has the commit nor accepts it, it accepts no later commits.
        """
        engine = self._engine
        record, self._record = self._record, None
        if record is not None and not engine.journal.has(self.version):
            engine.journal.write_late(record)
        engine.broken, engine.db_lock.at_rest = engine.broken or InterruptedCommit([]), BROKEN
        if self.changes and engine.version != self.version:
            engine.graph.version = self.version
            engine.count_commit(self.changes, self._rows)

    def undo_and_retry(self, error: BaseException, act: Callable[[], None] | None = None) -> bool:
        """Undo the commit after an error. Return True if it was then repeated with other plans.

        The repeated part is `act`, or the whole commit.
        """
        remedy = self._remedy(error)
        stays = self._stays() if remedy is not None else []
        try:
            self.undo(error)
        except BaseException:
            self.back[:0] = stays
            break_off(self._engine, self.back, self.version)
            raise
        try:
            if remedy is None or self._engine.broken is not None:
                return False
            try:
                with self._engine.shaping():
                    restore = remedy()
            except BaseException as refusal:
                self._undo_assignments(stays, refusal)
                raise
            self.back[:0] = stays
            self._again(self.run if act is None else act, restore)
            return True
        finally:
            if act is None and self._engine.pending is None:  # a whole commit, no statement
                self._engine.updates.discard()

    def _remedy(self, error: BaseException) -> Callable[[], Restore] | None:
        """Return a function that replaces plans so that the commit can stand; None if none can."""
        queries = self._engine.queries
        if isinstance(error, BailOut):
            return partial(queries.recompile_without, error, self._deltas)
        found = equality_checks.unchecked_after(queries, error)
        return partial(equality_checks.add_checks, queries, found, error) if found else None

    def _stays(self) -> list[Change]:
        """Remove assignments to objects from `back`, and return them: a retry keeps them."""
        objects = self._engine.objects
        if objects is None:
            return []
        found = [change for change in self.back if change[0] is objects]
        self.back[:] = [change for change in self.back if change[0] is not objects]
        return [*found, *objects.assigned_with(self.back)]

    def _undo_assignments(self, stays: list[Change], error: BaseException) -> None:
        """Undo the assignments that were kept for a retry, which `error` prevents."""
        broken = self._engine.broken
        if broken is None:
            self.back[:0] = stays
            self.undo(error)
        else:
            broken.back += [change for change in stays if change[1]]

    def _again(self, act: Callable[[], None], restore: Restore) -> None:
        """Change the tables again, and run the commit again; restore the plans if it fails."""
        self._step, self._seconds = None, 0.0
        try:
            for table, delta in self.changes:
                table._store.revert(negate(delta))
                self.back.append((table, delta))
            act()
        except BaseException as error:
            stands = False
            try:
                stands = self.undo_and_retry(error, act)
            finally:
                if not stands:
                    self._restore_plans(restore)
            if not stands:
                raise

    def _restore_plans(self, restore: Restore) -> None:
        """Restore the plans before the commit, if it is undone; if that fails, all are rebuilt."""
        engine = self._engine
        if restore is None or engine.broken is not None or engine.graph.version >= self.version:
            return
        try:
            restore()
        except BaseException:
            engine.broken, engine.db_lock.at_rest = InterruptedCommit([]), BROKEN
            raise

    def _write(self) -> Callable[[], object] | None:
        """Return the function that writes the commit; None if nothing is written now."""
        journal = self._engine.journal
        return None if journal is None else journal.begin(self.changes, self.version)

    def _step_with_moves(self, act: Callable[..., T], **named: Any) -> T:
        """Run a step with the moves of the commit set, so that subscribers get updates."""
        graph = self._engine.graph
        graph.moved = self._engine.updates.moves_by_source(self.changes, self.version)
        try:
            return self._run_timed(act, self._deltas, self.version, **named)
        finally:
            graph.moved = None

    def _drain(self) -> None:
        """Drop the leaves whose views were collected since."""
        if self._engine.dropped:
            self._engine.drain()

    def _count(self) -> None:
        """Count the published commit, and its time if measured."""
        engine, rows = self._engine, self._rows
        engine.count_commit(self.changes, rows)
        if self._seconds:
            engine.times.note(self._seconds, engine.version, self._deltas, few=rows < MANY)

    def _run_timed(self, act: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a phase; if the commit has many rows, measure it and pause the garbage collector."""
        if self._rows < MANY and not (self._engine.times.wanted or is_logged(DEBUG)):
            return act(*arguments, **named)
        began = perf_counter()
        collects = gc.isenabled()
        try:  # like `pause_collector`, but safe against an interrupt at its end
            gc.disable()
            return act(*arguments, **named)
        finally:
            if collects:
                gc.enable()
            self._seconds += perf_counter() - began


def commit_few_rows(engine: Engine, table: Base, changes: Sequence[Pair], version: int) -> bool:
    """Commit a few rows of one table by its generated function.

    Return False, with nothing done, if there is none, or if the commit needs more than it does.
    """
    compiled_step = table._node.compiled_step
    if compiled_step is None or len(changes) >= MANY or engine.times.wanted:
        return False
    if engine.graph.past:  # `previous()` relations change too
        return False
    if may_be_logged(DEBUG, True):
        return False
    write = None
    if engine.journal is not None:
        if table._node.note is None:
            write = engine.journal.begin(((table, changes),), version)
        else:
            table._node.note(changes, version)
    if table._node.tracers and len(changes) > 1:
        engine.graph.moved = engine.updates.moves_by_source([(table, changes)], version)
        try:
            compiled_step(changes, version, between=write)
        finally:
            engine.graph.moved = None
    else:
        compiled_step(changes, version, between=write)
    engine.version = version
    table._flowed = True
    if table._followers is not None:
        table._followers.note(changes, table._store)
    if engine.overflow is not None:
        engine.overflow.note(len(changes))
    return True


def commit_tables_directly(engine: Engine, changes: Sequence[Change], version: int) -> bool:
    """Commit a few rows of several untraced tables.

    Return False, with nothing done, if they are many, or the commit must be timed or logged.
    """
    rows = sum([len(delta) for _, delta in changes])
    if rows >= MANY or engine.times.wanted or may_be_logged(DEBUG, True):
        return False
    if engine.dropped or any(table._node.tracers for table, _ in changes):
        return False
    write = None if engine.journal is None else engine.journal.begin(changes, version)
    engine.graph.commit([(table._node, delta) for table, delta in changes], version, write)
    engine.count_commit(changes, rows)
    return True


def break_off(engine: Engine, back: list[Change], version: int) -> None:
    """Note that a commit broke off, and its changes to undo, unless such a commit is noted.

    There are no changes to undo if the version stands, or is in the store, which decides.
    `back` is emptied, so a repeated call does no harm.
    """
    if back and engine.broken is None:
        journal, graph = engine.journal, engine.graph
        if journal is not None and graph.version != version and journal.has(version):
            graph.version = version
        stands = engine.graph.version == version
        if stands and engine.version != version:
            rows = sum([len(changes) for _, changes in back])
            engine.count_commit(back, rows)
        undone = [] if stands else [change for change in back if change[1]]
        if beneath := getattr(back, "beneath", None):  # commits not rebased on
            undone[:0] = [(table, negate(delta)) for table, delta in reversed(beneath)]
        engine.broken, engine.db_lock.at_rest = InterruptedCommit(undone), BROKEN
    back.clear()


is_logged = log.isEnabledFor
"""True if commits are logged; call it with the level `DEBUG`."""
may_be_logged: Callable[[int, bool], bool] = vars(log)["_cache"].get
"""Read the logger's cached answer by level, without a call of Python code.

The logger clears this cache when a level changes; the default is for that case.
"""
SAMPLES = 64
"""Commits of few rows that are timed after the times were read; three times as many at first.

During the first ones, code is generated.
"""
LAST = 8
"""Approximate number of commits in the mean; the first ones, which generate code, drop out."""


class CommitTimes:
    """The total time of the commits of a database; untimed commits are estimated."""

    __slots__ = ("_estimated", "_mean", "_seconds", "_timed", "_untimed", "_window", "wanted")

    def __init__(self) -> None:
        self._timed = 0
        self._seconds = 0.0
        self._untimed = 0  # the commits already estimated
        self._estimated = 0.0
        self._mean = 0.0  # of a commit with few rows
        self._window = 0  # number of commits in the mean
        self.wanted = 3 * SAMPLES
        """Remaining number of commits of few rows to time."""

    def note(self, seconds: float, version: int, deltas: Sequence[Fed], *, few: bool) -> None:
        """Record the time of a commit, and log it."""
        self._timed += 1
        self._seconds += seconds
        if few:
            self._window += self._window < LAST
            self._mean += (seconds - self._mean) / self._window
            self.wanted -= self.wanted > 0
        if is_logged(DEBUG):
            names = [(node.plan.name, len(delta)) for node, delta in deltas]  # type: ignore[union-attr]
            changed = ", ".join(f"{name}: {_describe_row_count(count)}" for name, count in names)
            log.debug("commit %d (%s) in %.3f ms", version, changed, 1000 * seconds)

    def pass_over(self, commits: int) -> None:
        """Exclude commits that another process made."""
        self._untimed += commits

    def total(self, version: int) -> float:
        """Return the seconds of all commits up to a version, and start to time the next ones.

        Commits that were not timed are estimated by the mean.
        """
        untimed = version - self._timed - self._untimed
        mean = self._mean or self._seconds / max(self._timed, 1)
        self._untimed += untimed
        self._estimated += untimed * mean
        self._window, self.wanted = 0, SAMPLES
        return self._seconds + self._estimated


def _describe_row_count(count: int) -> str:
    return f"{count} row" + "s" * (count != 1)


WHY = "an exception from outside broke a commit off, and table {} keeps no rows to begin anew with"


@dataclass(slots=True)
class InterruptedCommit:
    """The table changes of an interrupted commit that are still to be undone."""

    back: list[tuple[Base, Sequence[Pair]]]
    views: bool = True
    """True if operators may be half changed too."""

    def restore_tables(self) -> None:
        """Undo the changes; an interrupted call can be repeated."""
        while self.back:
            table, changes = self.back[-1]
            table._store.revert(changes)
            self.back.pop()


def repair(engine: Engine) -> None:
    """Undo the interrupted commit, and recompute all views. Call it inside the lock.

    A prepared commit is not broken: its operators are undone, until its end. If the repair is
    interrupted, the next one resumes it.
    """
    db_lock = engine.db_lock
    if engine.prepared is not None:
        engine.prepared.park()
    broken = engine.broken
    if broken is None:
        return
    was_critical, db_lock.critical = db_lock.critical, True
    try:
        broken.restore_tables()
        for table in engine.tables.values():
            table._store.recount()
            if table._followers is not None:
                table._followers.forget()
        leaves = _all_again(engine) if broken.views else 0
        engine.broken, db_lock.at_rest = None, db_lock.idle
        db_lock.has_news = True
    finally:
        db_lock.critical = was_critical
    if broken.views:
        log.warning("a commit was broken off; %d views were computed again", leaves)


def _all_again(engine: Engine) -> int:
    """Recompute all views; return how many could be."""
    engine.graph.reset()
    engine.offloading.reset()
    with pause_collector():
        return sum([_again(engine, leaf) for leaf in engine.graph.leaves()])


def _again(engine: Engine, leaf: Node) -> bool:
    """Recompute a leaf; return False if it cannot be, and is closed."""
    try:
        engine.queries.over(leaf.leaf.base, partial(rebuild, engine.graph, leaf))
    except TableError:
        gone = next(t for t in engine.tables.values() if t._flowed and not t.plan.stored)
        engine.end(leaf, WHY.format(repr(gone.name)))
        return False
    engine.queries.watch(leaf, leaf.leaf.plan)
    return True
