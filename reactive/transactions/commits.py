"""What a database does with statements: each is part of a transaction, or a commit of its own.

    statement --> delta of its table --> a transaction is open: kept until its end
                                     --> else: graph --> outbox --> subscribers
                                               (all or nothing)     (outside the gate)

An exception that may have come at any moment (`interrupts.py`) is not taken back step by step: what
it left behind is repaired at the next access (`repair.py`).

State:  what of a transaction, what of leaves that nobody holds any more.
Cost:   of a statement half a microsecond, beside the table and the nodes that it reaches.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from logging import DEBUG
from time import perf_counter
from typing import TYPE_CHECKING, Any

from reactive.collections.zset import Pair, negate
from reactive.errors import ClosedError, TransactionError
from reactive.operators.sums_by import Unfit
from reactive.runtime.closing import Closing
from reactive.runtime.gate import BROKEN, IDLE, Gate
from reactive.runtime.interrupts import SIGINT, is_asynchronous, surely
from reactive.transactions.commit_times import CommitTimes, is_logged
from reactive.transactions.repair import Broken

if TYPE_CHECKING:
    from reactive.api.table import Table
    from reactive.dataflow.graph import Graph
    from reactive.dataflow.outbox import Outbox
    from reactive.dataflow.schedule import Fed
    from reactive.offload.overflow import Overflow
    from reactive.transactions.transaction import Pending

NO_CHANGES: Sequence[Pair] = ()
MANY = 16
"""Rows of a commit from which on it is timed, and the garbage collector pauses."""


class Commits(Closing):
    """The part of a `Database` that changes its tables and its graph together."""

    _gate: Gate
    _graph: Graph
    _outbox: Outbox
    _overflow: Overflow | None
    _version: int
    _pending: Pending | None
    _dropped: deque[int]
    _broken: Broken | None
    _times: CommitTimes

    def _write(
        self, table: Table[Any], statement: Callable[[Any], Sequence[Pair]], of: Any
    ) -> None:
        """A statement on a table. It enters the gate by itself: calls would take longer."""
        gate = self._gate
        if gate.depth or gate.is_special:
            self._write_inside(table, statement, of)
            return
        is_inside = False
        try:
            gate.lock.acquire()
            if gate.depth or gate.is_special:  # by now
                gate.lock.release()
                self._write_inside(table, statement, of)
                return
            gate.depth, gate.critical = 1, True
            is_inside = True
            changes, version = NO_CHANGES, self._version + 1
            try:
                changes = statement(of)
                if changes:
                    source = table._node
                    straight = source.straight
                    if (
                        straight is None
                        or len(changes) >= MANY
                        or self._times.wanted
                        or is_logged(DEBUG)
                    ):
                        self._commit((table,), ((source, changes),))
                    else:
                        straight(changes, version)
                        self._version = version
                        table._flowed = True
                        if self._overflow is not None:
                            self._overflow.note(len(changes))
            except BaseException as error:
                deltas = ((table._node, changes),)
                try:
                    self._put_back(error, (table,), deltas, version)
                except BaseException:
                    self._break((table,), deltas, version)
                    raise
                if not isinstance(error, Unfit):
                    raise
                self._begin_without(error, (table,), deltas)
        finally:
            if is_inside:
                gate.turns += 1
                gate.critical = False
                gate.depth = gate.at_rest
                gate.lock.release()
                if self._outbox:
                    self._outbox.deliver()
                if self._dropped or self._overflow is not None or gate.noted:
                    self._look_after()
            else:
                gate.let_go()

    def _write_inside(
        self, table: Table[Any], statement: Callable[[Any], Sequence[Pair]], of: Any
    ) -> None:
        """A statement of a transaction, or one that has to wait, or of who may not make one."""
        gate, changes, version = self._gate, NO_CHANGES, self._version + 1
        taken: list[Sequence[Fed]] = []
        gate.enter_to_write()
        try:
            self._check_entered()
            gate.critical = True
            changes = statement(of)
            if changes and self._pending is not None:
                self._pending.record(table, changes)
            elif changes:
                self._commit_surely((table,), ((table._node, changes),), taken)
        except BaseException as error:
            recorded = self._pending is not None and self._pending.has(table, changes)
            if is_asynchronous(error) or (changes and not recorded and not taken):
                pairs = NO_CHANGES if recorded else changes
                self._break((table,), ((table._node, pairs),), version)
            raise
        finally:
            gate.depth -= 1
            if not gate.depth:
                gate.turns, gate.critical, gate.depth = gate.turns + 1, False, gate.at_rest
            gate.lock.release()
            if gate.owner is None:
                self._after()
            elif gate.noted is not None:
                SIGINT.release(gate)

    def _commit_surely(
        self, tables: Sequence[Table[Any]], deltas: Sequence[Fed], taken: list[Sequence[Fed]]
    ) -> None:
        """One step of the graph; on failure the tables are put back too.

        What is `taken` the caller has not to put back any more.
        """
        version = self._version + 1
        try:
            taken.append(deltas)
            self._commit(tables, deltas)
        except BaseException as error:
            try:
                self._put_back(error, tables, deltas, version)
            except BaseException:
                self._break(tables, deltas, version)
                raise
            if not isinstance(error, Unfit):
                raise
            self._begin_without(error, tables, deltas)

    def _commit(self, tables: Sequence[Table[Any]], deltas: Sequence[Fed]) -> None:
        """One step of the graph. If it fails, who called puts the tables back."""
        if self._dropped:
            self._drain()
        rows = _rows(deltas)
        if rows < MANY and not (self._times.wanted or is_logged(DEBUG)):
            self._graph.commit(deltas, self._version + 1)
            self._committed(tables, rows)
            return
        began = perf_counter()
        collects = gc.isenabled()
        try:  # as `paused`, whose end an interrupt could keep from coming
            gc.disable()
            self._graph.commit(deltas, self._version + 1)
        finally:
            if collects:
                gc.enable()
        self._committed(tables, rows)
        self._times.note(perf_counter() - began, self._version, deltas, few=rows < MANY)

    def _put_back(
        self,
        error: BaseException,
        tables: Sequence[Table[Any]],
        deltas: Sequence[Fed],
        version: int,
    ) -> None:
        """Put the tables back to what they were before a commit that raised.

        What may have come at any moment may have come when the commit stood, or has left operators
        half changed: then it is noted, and the next access does what is to be done. So it is if
        putting back is broken off itself.
        """
        self._break(tables, deltas, version)
        cause = error.__cause__ if isinstance(error, Unfit) else error
        assert cause is not None and self._broken is not None
        if self._graph.stepping or is_asynchronous(cause):
            if cause is not error:
                raise cause
            return
        self._broken.views = False
        if self._broken.back:
            surely(self._broken.put_back)
        self._broken, self._gate.at_rest = None, IDLE

    def _break(self, tables: Sequence[Table[Any]], deltas: Sequence[Fed], version: int) -> None:
        """Note what is to be taken back before anything else is done, unless that is noted."""
        if self._broken is not None:
            return
        stands = self._graph.version == version
        if stands and self._version != version:
            self._committed(tables, _rows(deltas))
        fed = [] if stands else [*zip(tables, deltas, strict=True)]
        back = [(table, pairs) for table, (_, pairs) in fed if pairs]
        self._broken, self._gate.at_rest = Broken(back), BROKEN

    def _begin_without(
        self, unfit: Unfit, tables: Sequence[Table[Any]], deltas: Sequence[Fed]
    ) -> None:
        """Commit changes once an aggregate is computed as its plan was without factors."""
        with self._shaping():
            self._compile_without(unfit)
        for table, (_, delta) in zip(tables, deltas, strict=True):
            table._store.revert(negate(delta))
        self._commit_surely(tables, deltas, [])

    def _compile_without(self, unfit: Unfit) -> None:
        """Have all views computed without what proved not to hold."""
        raise NotImplementedError

    def _committed(self, tables: Sequence[Table[Any]], rows: int) -> None:
        """Count a commit of so many rows."""
        self._version += 1
        for table in tables:
            table._flowed = True
        if self._overflow is not None:
            self._overflow.note(rows)

    # The gate.

    @contextmanager
    def _inside(self, *, to_write: bool = False) -> Iterator[None]:
        """Be inside to look at views or the graph with care, or to change them or tables."""
        try:
            with self._gate.inside(to_write=to_write):
                self._check_entered()
                yield
        finally:
            self._after()

    @contextmanager
    def _shaping(self, *, to_write: bool = False) -> Iterator[None]:
        """Be inside to make or drop views; or tables, which no transaction may have changed.

        Ctrl-C may come while callables of the user's run over rows that are there; what is left
        half done then is repaired at the next access.
        """
        with self._inside(to_write=to_write):
            try:
                yield
            except BaseException as error:
                if is_asynchronous(error) and self._graph.is_changing:
                    self._broken, self._gate.at_rest = self._broken or Broken([]), BROKEN
                raise

    def _check_open(self) -> None:
        if self._gate.is_closed:
            raise ClosedError(_CLOSED)

    def _check_entered(self) -> None:
        """Raise what keeps this database from being changed."""
        self._check_open()
        if self._graph.stepping:
            raise TransactionError(
                "a callable of a query cannot change tables or make views\n"
                "  subscribe to the view, and make the change in the subscriber"
            )

    def _after(self) -> None:
        """What is done when nobody is inside: the subscribers hear what happened.

        Not while the caller has a transaction open, of which what they write would be part.
        """
        gate = self._gate
        if gate.held:
            return
        if gate.owner is None or not gate.is_mine:
            if self._outbox:
                self._outbox.deliver()
            self._look_after()
        elif gate.noted is not None:
            SIGINT.release(gate)

    def _look_after(self) -> None:
        """What is due when nobody is inside."""
        if self._dropped:
            self._sweep()
        if self._overflow is not None and self._overflow.is_due:
            self._overflow.look_after()
        if self._gate.noted is not None:
            SIGINT.release(self._gate)

    # Leaves that nobody holds.

    def _drop(self, leaf: int) -> None:
        """A leaf that nobody holds any more; called by the garbage collector, at any time."""
        self._dropped.append(leaf)
        self._sweep()

    def _sweep(self) -> None:
        """Take dropped leaves out of the graph, unless somebody is at work in it."""
        gate = self._gate
        if self._dropped and gate.try_enter():
            try:
                self._drain()
            finally:
                gate.turns, gate.depth = gate.turns + 1, gate.at_rest
                gate.lock.release()

    def _drain(self) -> None:
        while self._dropped:
            self._graph.drop_leaf(self._dropped.popleft())


def _rows(deltas: Sequence[Fed]) -> int:
    return sum([len(delta) for _, delta in deltas])


_CLOSED = "the database is closed\n  make another one"
