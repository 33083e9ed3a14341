"""What a database does with statements: each is part of a transaction, or a commit of its own.

    statement --> delta of its table --> a transaction is open: kept until its end
                                     --> else: graph --> outbox --> subscribers
                                               (all or nothing)     (outside the gate)

State:  what of a transaction, what of leaves that nobody holds any more.
Cost:   of a statement half a microsecond, beside the table and the nodes that it reaches.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from reactive.closing import Closing
from reactive.errors import ClosedError, TransactionError
from reactive.gate import BRIEF, Gate
from reactive.interrupts import surely
from reactive.operators.sums_by import Unfit
from reactive.zset import Pair, negate

if TYPE_CHECKING:
    from reactive.graph import Graph
    from reactive.outbox import Outbox
    from reactive.overflow import Overflow
    from reactive.schedule import Fed
    from reactive.table import Table
    from reactive.transaction import Pending

MANY = 16
"""Rows of a commit from which on the garbage collector pauses."""


class Commits(Closing):
    """The part of a `Database` that changes its tables and its graph together."""

    _gate: Gate
    _graph: Graph
    _outbox: Outbox
    _overflow: Overflow | None
    _version: int
    _pending: Pending | None
    _dropped: deque[int]
    _closed: bool

    def _write(
        self, table: Table[Any], statement: Callable[[Any], Sequence[Pair]], of: Any
    ) -> None:
        """A statement on a table. It enters the gate by itself: calls would take longer."""
        gate = self._gate
        if gate.depth:
            self._write_inside(table, statement, of)
            return
        is_inside = False
        try:
            gate.lock.acquire()
            gate.depth, gate.task = 1, BRIEF
            is_inside = True
            if self._closed:
                self._refuse()
            changes = statement(of)
            version = self._version + 1
            try:
                if changes:
                    source = table._node
                    straight = source.straight
                    if straight is None or len(changes) >= MANY:
                        self._commit((table,), ((source, changes),))
                    else:
                        straight(changes, version)
                        self._version = version
                        table._flowed = True
                        if self._overflow is not None:
                            self._overflow.note(len(changes))
            except BaseException as error:
                if not self._recovers(error, (table,), ((table._node, changes),), version):
                    raise
        finally:
            if is_inside:
                gate.turns += 1
                gate.task = None
                gate.depth = 0
                gate.lock.release()
                if self._outbox:
                    self._outbox.deliver()
                if self._dropped or self._overflow is not None or self._graph.interrupt:
                    self._look_after()
            else:
                gate.let_go()

    def _write_inside(
        self, table: Table[Any], statement: Callable[[Any], Sequence[Pair]], of: Any
    ) -> None:
        """A statement of a transaction, or of who may not make one."""
        self._enter()
        try:
            changes = statement(of)
            if not changes:
                return
            if self._pending is None:
                self._commit_surely((table,), ((table._node, changes),))
                return
            try:
                self._pending.record(table, changes)
            except BaseException:
                if not self._pending.has(table, changes):
                    table._store.revert(changes)
                raise
        finally:
            self._leave()

    def _commit_surely(self, tables: Sequence[Table[Any]], deltas: Sequence[Fed]) -> None:
        """One step of the graph; on failure the tables are put back too."""
        version = self._version + 1
        try:
            self._commit(tables, deltas)
        except BaseException as error:
            if not self._recovers(error, tables, deltas, version):
                raise

    def _commit(self, tables: Sequence[Table[Any]], deltas: Sequence[Fed]) -> None:
        """One step of the graph. If it fails, who called puts the tables back (`_recovers`)."""
        if self._dropped:
            self._drain()
        collects = gc.isenabled()
        try:  # as `paused`, whose end an interrupt could keep from coming
            gc.disable()
            self._graph.commit(deltas, self._version + 1)
        finally:
            if collects:
                gc.enable()
        self._committed(tables, _rows(deltas))

    def _recovers(
        self,
        error: BaseException,
        tables: Sequence[Table[Any]],
        deltas: Sequence[Fed],
        version: int,
    ) -> bool:
        """Whether a commit that raised was made in another way; else the tables are put back.

        An interrupt may have come when it stood.
        """
        if isinstance(error, Unfit):
            self._begin_without(error, tables, deltas)
            return True
        if self._graph.version != version:
            _revert(tables, deltas)
        elif self._version != version:
            self._committed(tables, _rows(deltas))
        return False

    def _begin_without(
        self, unfit: Unfit, tables: Sequence[Table[Any]], deltas: Sequence[Fed]
    ) -> None:
        """Commit changes once an aggregate is computed as its plan was without factors."""
        _revert(tables, deltas)
        self._compile_without(unfit)
        for table, (_, delta) in zip(tables, deltas, strict=True):
            table._store.revert(negate(delta))
        self._commit_surely(tables, deltas)

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

    def _enter(self) -> None:
        """Begin something that changes tables, views or the graph."""
        gate = self._gate
        depth = gate.held
        try:
            gate.__enter__()
            self._check_entered()
        except BaseException:
            if gate.held > depth:  # an interrupt
                gate.leave()
            raise

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(_CLOSED)

    def _check_entered(self) -> None:
        if self._graph.stepping or self._closed:
            self._gate.leave()
            self._refuse()

    def _refuse(self) -> None:
        """Raise what keeps this database from being changed."""
        self._check_open()
        raise TransactionError(
            "a callable of a query cannot change tables or make views\n"
            "  subscribe to the view, and make the change in the subscriber"
        )

    def _leave(self) -> None:
        """End it. The outermost time, tell subscribers what happened."""
        if self._gate.leave():
            self._end()

    def _end(self) -> None:
        """What is done after a commit, when others may make the next one."""
        if self._outbox:
            self._outbox.deliver()
        self._look_after()

    def _look_after(self) -> None:
        """What is due when nobody is inside."""
        if self._dropped:
            self._sweep()
        if self._overflow is not None and self._overflow.is_due:
            self._overflow.look_after()
        if self._graph.interrupt is not None:
            self._graph.raise_interrupt()

    # Leaves that nobody holds.

    def _drop(self, leaf: int) -> None:
        """A leaf that nobody holds any more; called by the garbage collector, at any time."""
        self._dropped.append(leaf)
        self._sweep()

    def _sweep(self) -> None:
        """Take dropped leaves out of the graph, unless somebody is at work in it."""
        if self._dropped and self._gate.try_enter():
            try:
                self._drain()
            finally:
                self._gate.leave()

    def _drain(self) -> None:
        while self._dropped:
            self._graph.drop_leaf(self._dropped.popleft())


def _rows(deltas: Sequence[Fed]) -> int:
    return sum([len(delta) for _, delta in deltas])


def _revert(tables: Sequence[Table[Any]], deltas: Sequence[Fed]) -> None:
    """Put the tables back to what they were before their deltas."""

    def put_back() -> None:
        for table, (_, delta) in zip(tables, deltas, strict=True):
            table._store.revert(delta)

    surely(put_back)


_CLOSED = "the database is closed\n  make another one"
