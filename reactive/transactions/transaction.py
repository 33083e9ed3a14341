"""A transaction: changes of several tables that become one commit, or none.

Tables change at once and are put back if the transaction fails; views change at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Any

from reactive.collections.zset import Batch, Pair, Row, consolidate
from reactive.errors import TransactionError
from reactive.runtime.boundary import hide
from reactive.runtime.copying import NotCopied
from reactive.runtime.gate import BROKEN
from reactive.runtime.interrupts import SIGINT, is_asynchronous, surely
from reactive.transactions.repair import Broken

if TYPE_CHECKING:
    from reactive.transactions.base import Base
    from reactive.transactions.engine import Engine


_holder: ContextVar[Any] = ContextVar("transaction", default=None)
"""The transaction that this task is in, or was started in."""


class Pending:
    """The changes of a transaction so far: per table those of each statement, in their order."""

    __slots__ = ("_lost", "_net", "_statements", "depth", "failed", "taken", "version")

    def __init__(self) -> None:
        self._statements: dict[Base, list[Sequence[Pair]]] = {}
        self._net: dict[Base, _Net] = {}
        self._lost: set[Base] = set()
        self.depth = 1
        self.failed = False
        self.taken: list[Any] = []
        """What a commit has begun with: from then on it puts that back if it fails."""
        self.version: int | None = None
        """The version of the graph when it began to end."""

    def record(self, table: Base, changes: Sequence[Pair]) -> None:
        """Add a statement's changes."""
        if table not in self._lost and _removes(changes):
            self._lost.add(table)
        self._statements.setdefault(table, []).append(changes)

    def has(self, table: Base, changes: Sequence[Pair]) -> bool:
        """Whether these are the last changes of a table."""
        return any(last is changes for last in self._statements.get(table, ())[-1:])

    def has_lost(self, table: Base) -> bool:
        """Whether rows of a stored table have been removed, which may come again."""
        return table in self._lost and table.plan.stored

    def interned(self, table: Base, row: Row) -> Row:
        """The object that an equal row is in this transaction, or the row itself."""
        known = self._net_of(table).get(row)
        return row if known is None else known[0]

    def of(self, table: Base) -> list[Pair]:
        """The net changes of a table."""
        return [pair for pair in self._net_of(table).values() if pair[1]]

    def changes(self) -> list[tuple[Base, Sequence[Pair]]]:
        """The changes of all tables that have any."""
        found = [(table, self._delta(table)) for table in self._statements]
        return [pair for pair in found if pair[1]]

    def revert(self) -> None:
        """Take all changes back, the last one first."""
        for table, statements in self._statements.items():
            while statements:
                table._store.revert(statements[-1])
                statements.pop()

    def all(self) -> list[tuple[Base, Sequence[Pair]]]:
        """The changes of each statement that have not been taken back."""
        return [(table, changes) for table, of in self._statements.items() for changes in of]

    def _delta(self, table: Base) -> Sequence[Pair]:
        """The statements' changes as one; net, if rows come and go."""
        statements = self._statements[table]
        if len(statements) == 1:
            return statements[0]
        if self.has_lost(table):
            return self.of(table)
        pairs = [pair for changes in statements for pair in changes]
        return consolidate(pairs) if table in self._lost else pairs

    def _net_of(self, table: Base) -> dict[Row, Pair]:
        net = self._net.get(table)
        if net is None:
            net = self._net[table] = _Net()
        return net.after(self._statements.get(table, ()))


class _Net:
    """The changes of a table's statements, added up per row.

    A row whose changes cancel stays in here: should an equal row come again, it must become the
    object that the indexes know.
    """

    __slots__ = ("_pairs", "_seen")

    def __init__(self) -> None:
        self._pairs: dict[Row, Pair] = {}
        self._seen = 0

    def after(self, statements: Sequence[Sequence[Pair]]) -> dict[Row, Pair]:
        """The sum of all statements, each of which is added when it is first seen."""
        try:
            while self._seen < len(statements):
                for row, weight in statements[self._seen]:
                    known, old = self._pairs.get(row, (row, 0))
                    self._pairs[row] = (known, old + weight)
                self._seen += 1
        except BaseException:  # half added: begin again the next time
            self._pairs, self._seen = {}, 0
            raise
        return self._pairs


def _removes(changes: Sequence[Pair]) -> bool:
    if type(changes) is Batch:
        return changes.weight < 0
    return any(weight < 0 for _, weight in changes)


class Transaction(NotCopied):
    """Context manager of `Database.transaction()`, also for `async with`.

    Inside it tables show the changes made so far, views the last commit. Others see the last
    commit, and wait only if they write.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str)
    >>> view = words.materialize()
    >>> with db.transaction():
    ...     words.add("be")
    ...     print(len(words), len(view))
    1 0
    >>> len(view)
    1
    """

    __slots__ = ("_engine", "_entered", "_outer")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._entered: tuple[Pending, ...] = ()
        """The pending changes of each time it was entered and not yet left."""
        self._outer: Token[Any] | None = None

    _copy_instead = "each call of db.transaction() makes another one"
    _pickle_instead = "pickle the rows of its tables, list(table) of each of db.tables()"

    def _called(self) -> str:
        return "a transaction"

    def __repr__(self) -> str:
        return f"Transaction of {self._engine!r}"

    def __enter__(self) -> Transaction:
        gate = self._engine.gate
        try:
            gate.enter_to_write()
            try:
                self._engine.check_entered()
                self._begin()
            finally:
                gate.depth -= 1
                if not gate.depth:
                    gate.turns, gate.depth = gate.turns + 1, gate.at_rest
                gate.lock.release()
        except Exception as error:
            hide(error)
            raise
        if gate.noted is not None:
            try:
                SIGINT.release(gate)
            except BaseException:
                self._leave(failed=True)
                raise
        return self

    async def __aenter__(self) -> Transaction:
        gate = self._engine.gate
        try:
            try:
                await gate.begin_async(_holder.get())
                self._engine.check_entered()
                self._begin()
            except BaseException:
                if self._engine.pending is None and gate.is_mine:
                    gate.end()
                raise
        except Exception as error:
            hide(error)
            raise
        if gate.transaction is None:
            gate.transaction = self
            self._outer = _holder.set(self)
        if gate.noted is not None:
            try:
                SIGINT.release(gate)
            except BaseException as error:
                await self.__aexit__(type(error), error, error.__traceback__)
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._leave(failed=error is not None)
        except Exception as own:
            hide(own)
            raise

    def __del__(self) -> None:
        """An interrupt came before its end."""
        while getattr(self, "_entered", ()):
            self._leave(failed=True, is_lost=True)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._outer is not None:
            _holder.reset(self._outer)
            self._outer = self._engine.gate.transaction = None
        try:
            self._leave(failed=error is not None)
        except Exception as own:
            hide(own)
            raise

    def _begin(self) -> None:
        engine = self._engine
        pending = engine.pending
        if pending is None:
            pending = Pending()
        else:
            pending.depth += 1
        self._entered = (*self._entered, pending)
        engine.pending = pending
        engine.gate.begin()

    def _leave(self, *, failed: bool, is_lost: bool = False) -> None:
        """End it as often as it was entered; the outermost time, commit or take all back.

        One that is lost may be ended by any thread: that of the garbage collector.
        """
        engine, gate = self._engine, self._engine.gate
        *outer, pending = self._entered
        try:
            if is_lost:
                gate.enter()
            else:
                gate.enter_to_write()
        except BaseException:
            if gate.noted is not None and not gate.held:
                SIGINT.release(gate)
            raise
        try:
            gate.critical = True
            self._entered = (*outer,)
            if engine.pending is pending:
                pending.failed |= failed
                pending.depth -= 1
                if not pending.depth:
                    self._finish(pending, failed=failed)
        except BaseException as error:
            is_left = pending.all() and not pending.taken
            if not pending.depth and (is_left or is_asynchronous(error)):
                self._break_off(pending)
            raise
        finally:
            gate.depth -= 1
            if not gate.depth:
                gate.turns, gate.critical, gate.depth = gate.turns + 1, False, gate.at_rest
            gate.lock.release()
            if gate.owner is None:
                engine.after()
            elif gate.noted is not None:
                SIGINT.release(gate)

    def _finish(self, pending: Pending, *, failed: bool) -> None:
        engine = self._engine
        pending.version = engine.graph.version
        engine.gate.end()
        engine.pending = None
        try:
            changes = [] if pending.failed else pending.changes()
            tables = [table for table, _ in changes]
            deltas = [(table._node, pairs) for table, pairs in changes]
        except BaseException:
            surely(pending.revert)
            raise
        if changes:
            engine.commit_surely(tables, deltas, pending.taken)
        elif pending.failed:
            surely(pending.revert)
        if pending.failed and not failed:
            raise TransactionError(
                "the transaction was rolled back: one nested in it had failed\n"
                "  let the inner exception pass, or do not nest what may fail"
            )

    def _break_off(self, pending: Pending) -> None:
        """Its end was broken off, wherever that was: what it changed is taken back later."""
        engine = self._engine
        if engine.pending is pending:
            engine.pending = None
            engine.gate.end()
        if engine.broken is None and pending.version in (None, engine.graph.version):
            engine.broken, engine.gate.at_rest = Broken(pending.all()), BROKEN
