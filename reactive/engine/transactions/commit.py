"""The one road of a commit, in two phases: all of its changes stand, or none does.

    prepare     operators have stepped; the lock is held, so readers of other threads wait
    between     code of the caller's, such as the COMMIT of another system
    write       durable tables are in their store (`journal`), which is the truth from then on
    publish     views show it, and the delivery queue has what subscribers are to hear
    undo        instead of publishing: operators and tables are as they were before

Statements and transactions commit by it, and so do changes that are made again with other plans
(`BailOut`; values that clash: `equality_checks.py`). Where nothing but `write` is to be done
between the phases, one generated function does both, and calls it (`at_once`): adding a row so
takes 2.1 us, and 5.9 us by a `Commit` whose phases are apart.

An exception that may have come at any moment (`interrupts.py`) is not undone here: what is to be
undone is noted in the engine, and the next access repairs it (`commit.py`).

State:  the changes of tables that are to be undone, until that is done or noted.

How long commits take; and a line of the log for each, at level DEBUG of the logger "reactive".

Most commits change a row and take a microsecond or two, of which nobody is to spend a tenth on
looking at a clock. So commits of few rows are timed only while they are logged, and some after
somebody has asked for times, of which the others are taken as alike.

State:  a few numbers.
Cost:   0.03 us to look whether they are logged; half a microsecond for a commit that is timed.

Repair a database after an exception that may have left anything half done.

    tables   their changes that are to be undone are
    views    are computed again from the tables; subscribers are told all rows, as a snapshot

Such an exception comes from outside (`interrupts.py`): a second Ctrl-C, a time limit. Nobody knows
which operators had stepped, so none is believed. A view over a table that is not stored cannot be
computed again: it is closed, and says why.

Cost: that of making all views anew.
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
from reactive.engine.runtime.collector import paused
from reactive.engine.runtime.interrupts import is_asynchronous, surely
from reactive.engine.runtime.lock import BROKEN
from reactive.engine.transactions.row_gate import Base
from reactive.errors import TableError

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import Node
    from reactive.engine.transactions.engine import Engine

log = logging.getLogger("reactive")


T = TypeVar("T")
P = ParamSpec("P")
Change = tuple[Base, Sequence[Pair]]
"""A table, and a delta of it."""
Between = Sequence[Callable[[], object]]
"""What is called between the phases, in this order."""

MANY = 16
"""Rows of a commit from which on it is timed, and the garbage collector pauses."""


class Parked(Exception):
    """Why a commit is undone of which nothing has failed."""


class Commit:
    """Changes that become one version. Done inside the lock.

    `back` is what has been changed in the tables, and is reverted if the commit is undone. It
    is empty afterwards, so that nobody takes it back again. Without changes no version is made,
    but what is to be called between the phases is.
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
        """What is to be written to the store before it is published."""
        self._seconds = 0.0

    def run(self) -> None:
        """Prepare it, call what is to be called between, and publish it.

        If that raises, the caller has it undone (`failed`).
        """
        engine = self._engine
        if not self._between:
            if self.changes:
                self._drain()
                self._stepped(engine.graph.commit, between=self._write())
                self._count()
            return
        self.prepare()
        if self._between:
            with engine.graph.running():  # nothing may be changed, also if nothing has been
                for act in self._between:
                    act()
        self.publish()

    def prepare(self) -> None:
        """Have the operators step."""
        if self.changes:
            self._drain()
            if self._engine.journal is not None:
                self._record = self._engine.journal.record(self.changes, self.version)
            self._step = self._stepped(self._engine.graph.prepare)

    def publish(self) -> None:
        """It stands; after it has been written to the store, if it is to be."""
        if self._record is not None:
            self._engine.journal.write(self._record)
            self._record = None
        if self._step is not None:
            self._timed(self._engine.graph.publish, self._step)
            self._count()

    def undo(self, error: BaseException | None) -> None:
        """Undo it because of an error, or for another reason: operators first, then the tables.

        What may have come at any moment may have come when the commit stood, or has left operators
        half changed: then it is noted, and the next access does what is to be done. So it is if
        undoing is broken off itself.
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
                surely(broken.put_back)
            engine.broken, engine.db_lock.at_rest = None, engine.db_lock.idle

    def park(self) -> None:
        """Undo what the operators have done, until it is prepared once more; the tables stay.

        If that is broken off, the next access computes all views again.
        """
        engine = self._engine
        engine.broken, engine.db_lock.at_rest = Broken([]), BROKEN
        engine.prepared, step, self._step = None, self._step, None
        if step is not None:
            engine.graph.undo(step, Parked())
        if not engine.graph.stepping:
            engine.broken, engine.db_lock.at_rest = None, engine.db_lock.idle

    def stand(self) -> None:
        """It stands, whatever has become of the operators: all views are computed again.

        If the store does not have it, and does not take it, it takes nothing any more.
        """
        engine = self._engine
        record, self._record = self._record, None
        if record is not None and not engine.journal.has(self.version):
            engine.journal.write_late(record)
        engine.broken, engine.db_lock.at_rest = engine.broken or Broken([]), BROKEN
        if self.changes and engine.version != self.version:
            engine.graph.version = self.version
            engine.committed([table for table, _ in self.changes], self._rows)

    def failed(self, error: BaseException, act: Callable[[], None] | None = None) -> bool:
        """It has raised: undo it. Whether it stands nevertheless, made again with other plans, or
        what was to be done of it (`act`) is done."""
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
            with self._engine.shaping():
                remedy()
            self.back[:0] = stays
            self._again(self.run if act is None else act)
            return True
        finally:
            if act is None and self._engine.pending is None:  # nor was it but one of its statements
                self._engine.updates.forget()

    def _remedy(self, error: BaseException) -> Callable[[], None] | None:
        """What has views computed by other plans, by which the commit may stand."""
        queries = self._engine.queries
        if isinstance(error, BailOut):
            return partial(queries.without, error)
        found = equality_checks.unchecked_after(queries, error)
        return partial(equality_checks.add_checks, queries, found, error) if found else None

    def _stays(self) -> list[Change]:
        """What is taken out of what is undone, as it stands in the commit that is made again: what
        was assigned to objects."""
        objects = self._engine.objects
        if objects is None:
            return []
        found = [change for change in self.back if change[0] is objects]
        self.back[:] = [change for change in self.back if change[0] is not objects]
        return [*found, *objects.assigned_with(self.back)]

    def _again(self, act: Callable[[], None]) -> None:
        """Change the tables again as they had been, and commit that."""
        self._step, self._seconds = None, 0.0
        try:
            for table, delta in self.changes:
                table._store.revert(negate(delta))
                self.back.append((table, delta))
            act()
        except BaseException as error:
            if not self.failed(error, act):
                raise

    def _write(self) -> Callable[[], object] | None:
        """What writes it to the store, if it is to be written before it is published."""
        journal = self._engine.journal
        return None if journal is None else journal.begin(self.changes, self.version)

    def _stepped(self, act: Callable[..., T], **named: Any) -> T:
        """Have the operators step, and subscribers be told of rows that were replaced."""
        graph = self._engine.graph
        graph.moved = self._engine.updates.of(self.changes, self.version)
        try:
            return self._timed(act, self._deltas, self.version, **named)
        finally:
            graph.moved = None

    def _drain(self) -> None:
        if self._engine.dropped:
            self._engine.drain()

    def _count(self) -> None:
        """It has been published."""
        engine, rows = self._engine, self._rows
        engine.committed([table for table, _ in self.changes], rows)
        if self._seconds:
            engine.times.note(self._seconds, engine.version, self._deltas, few=rows < MANY)

    def _timed(self, act: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """A phase; of many rows with its time taken, and without collections."""
        if self._rows < MANY and not (self._engine.times.wanted or is_logged(DEBUG)):
            return act(*arguments, **named)
        began = perf_counter()
        collects = gc.isenabled()
        try:  # as `paused`, whose end an interrupt could keep from coming
            gc.disable()
            return act(*arguments, **named)
        finally:
            if collects:
                gc.enable()
            self._seconds += perf_counter() - began


def at_once(engine: Engine, table: Base, changes: Sequence[Pair], version: int) -> bool:
    """Commit by a generated function, of a few rows of one table; whether there is one."""
    compiled_step = table._node.compiled_step
    if compiled_step is None or len(changes) >= MANY or engine.times.wanted:
        return False
    if engine.graph.past:  # which changes too
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
        engine.graph.moved = engine.updates.of([(table, changes)], version)
        try:
            compiled_step(changes, version, between=write)
        finally:
            engine.graph.moved = None
    else:
        compiled_step(changes, version, between=write)
    engine.version = version
    table._flowed = True
    if engine.overflow is not None:
        engine.overflow.note(len(changes))
    return True


def together_at_once(engine: Engine, changes: Sequence[Change], version: int) -> bool:
    """As `at_once`, of several tables of which nobody hears what replaced what."""
    rows = sum([len(delta) for _, delta in changes])
    if rows >= MANY or engine.times.wanted or may_be_logged(DEBUG, True):
        return False
    if engine.dropped or any(table._node.tracers for table, _ in changes):
        return False
    write = None if engine.journal is None else engine.journal.begin(changes, version)
    engine.graph.commit([(table._node, delta) for table, delta in changes], version, write)
    engine.committed([table for table, _ in changes], rows)
    return True


def break_off(engine: Engine, back: list[Change], version: int) -> None:
    """Note what is to be undone before anything else is done, unless that is noted.

    It is not if the version stands, or is in the store: what is there is the truth. `back` is empty
    afterwards: whoever calls this again, because it was broken off itself, does no harm.
    """
    if back and engine.broken is None:
        journal, graph = engine.journal, engine.graph
        if journal is not None and graph.version != version and journal.has(version):
            graph.version = version
        stands = engine.graph.version == version
        if stands and engine.version != version:
            rows = sum([len(changes) for _, changes in back])
            engine.committed([table for table, _ in back], rows)
        undone = [] if stands else [change for change in back if change[1]]
        if beneath := getattr(back, "beneath", None):  # of others, which it has not been put over
            undone[:0] = [(table, negate(delta)) for table, delta in reversed(beneath)]
        engine.broken, engine.db_lock.at_rest = Broken(undone), BROKEN
    back.clear()


is_logged = log.isEnabledFor
"""Whether commits are logged, asked with the level `DEBUG`."""
may_be_logged: Callable[[int, bool], bool] = vars(log)["_cache"].get
"""As that, without a call of Python code: what the logger remembers of its answers, by level. It
forgets them when a level changes, so whoever finds none there asks."""
SAMPLES = 64
"""Commits of few rows that are timed after somebody has asked, thrice as many at first: of these
some prove that a table is in use, and the last run as all others will."""
LAST = 8
"""Commits of few rows that the mean is of, roughly: the first ones generate code."""


class CommitTimes:
    """The seconds that the commits of a database have taken; those not timed are taken as alike."""

    __slots__ = ("_estimated", "_mean", "_seconds", "_timed", "_untimed", "_window", "wanted")

    def __init__(self) -> None:
        self._timed = 0
        self._seconds = 0.0
        self._untimed = 0  # the commits that have been estimated
        self._estimated = 0.0
        self._mean = 0.0  # of a commit of few rows
        self._window = 0  # how many that is the mean of
        self.wanted = 3 * SAMPLES
        """Commits of few rows that are still to be timed."""

    def note(self, seconds: float, version: int, deltas: Sequence[Fed], *, few: bool) -> None:
        """A commit, of few rows or of many, has been made, and took so long."""
        self._timed += 1
        self._seconds += seconds
        if few:
            self._window += self._window < LAST
            self._mean += (seconds - self._mean) / self._window
            self.wanted -= self.wanted > 0
        if is_logged(DEBUG):
            changed = ", ".join(f"{node.plan.name}: {_rows(len(delta))}" for node, delta in deltas)  # type: ignore[union-attr]
            log.debug("commit %d (%s) in %.3f ms", version, changed, 1000 * seconds)

    def pass_over(self, commits: int) -> None:
        """These were made in another process."""
        self._untimed += commits

    def total(self, version: int) -> float:
        """The seconds up to a version, and from now on some commits of few rows are timed."""
        untimed = version - self._timed - self._untimed
        mean = self._mean or self._seconds / max(self._timed, 1)
        self._untimed += untimed
        self._estimated += untimed * mean
        self._window, self.wanted = 0, SAMPLES
        return self._seconds + self._estimated


def _rows(count: int) -> str:
    return f"{count} row" + "s" * (count != 1)


WHY = "an exception from outside broke a commit off, and table {} keeps no rows to begin anew with"


@dataclass(slots=True)
class Broken:
    """What a commit that was broken off had changed in tables, and is still to be undone."""

    back: list[tuple[Base, Sequence[Pair]]]
    views: bool = True
    """Whether operators may be half changed too."""

    def put_back(self) -> None:
        """Take it back; who is broken off may begin anew."""
        while self.back:
            table, changes = self.back[-1]
            table._store.revert(changes)
            self.back.pop()


def repair(engine: Engine) -> None:
    """Undo what was broken off, and compute all views again. Done inside the lock.

    A commit that is prepared is not broken: its operators step back, until its end. If this is
    broken off itself, the next one resumes it.
    """
    db_lock = engine.db_lock
    if engine.prepared is not None:
        engine.prepared.park()
    broken = engine.broken
    if broken is None:
        return
    was_critical, db_lock.critical = db_lock.critical, True
    try:
        broken.put_back()
        for table in engine.tables.values():
            table._store.recount()
        leaves = _all_again(engine) if broken.views else 0
        engine.broken, db_lock.at_rest = None, db_lock.idle
        db_lock.has_news = True
    finally:
        db_lock.critical = was_critical
    if broken.views:
        log.warning("a commit was broken off; %d views were computed again", leaves)


def _all_again(engine: Engine) -> int:
    """Compute all views again; how many could be."""
    engine.graph.reset()
    engine.offloading.reset()
    with paused():
        return sum([_again(engine, leaf) for leaf in engine.graph.leaves()])


def _again(engine: Engine, leaf: Node) -> bool:
    """Compute what a leaf stands for again; False if it cannot be, and is closed."""
    try:
        engine.queries.over(leaf.leaf.base, partial(rebuild, engine.graph, leaf))
    except TableError:
        gone = next(t for t in engine.tables.values() if t._flowed and not t.plan.stored)
        engine.end(leaf, WHY.format(repr(gone.name)))
        return False
    engine.queries.watch(leaf, leaf.leaf.plan)
    return True
