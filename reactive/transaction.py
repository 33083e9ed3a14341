"""A transaction: changes of several tables that become one commit, or none.

Tables change at once and are put back if the transaction fails; views change at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Any

from reactive.errors import TransactionError
from reactive.interrupts import surely
from reactive.zset import Batch, Pair, Row, consolidate

if TYPE_CHECKING:
    from reactive.database import Database
    from reactive.schedule import Fed
    from reactive.table import Table


_holder: ContextVar[Any] = ContextVar("transaction", default=None)
"""The transaction that this task is in, or was started in."""


class Pending:
    """The changes of a transaction so far: per table those of each statement, in their order."""

    __slots__ = ("_lost", "_net", "_statements", "depth", "failed")

    def __init__(self) -> None:
        self._statements: dict[Table[Any], list[Sequence[Pair]]] = {}
        self._net: dict[Table[Any], _Net] = {}
        self._lost: set[Table[Any]] = set()
        self.depth = 1
        self.failed = False

    def record(self, table: Table[Any], changes: Sequence[Pair]) -> None:
        """Add a statement's changes."""
        if table not in self._lost and _removes(changes):
            self._lost.add(table)
        self._statements.setdefault(table, []).append(changes)

    def has(self, table: Table[Any], changes: Sequence[Pair]) -> bool:
        """Whether these are the last changes of a table."""
        return any(last is changes for last in self._statements.get(table, ())[-1:])

    def has_lost(self, table: Table[Any]) -> bool:
        """Whether rows of a stored table have been removed, which may come again."""
        return table in self._lost and table.plan.stored

    def interned(self, table: Table[Any], row: Row) -> Row:
        """The object that an equal row is in this transaction, or the row itself."""
        known = self._net_of(table).get(row)
        return row if known is None else known[0]

    def of(self, table: Table[Any]) -> list[Pair]:
        """The net changes of a table."""
        return [pair for pair in self._net_of(table).values() if pair[1]]

    def changes(self) -> list[tuple[Table[Any], Sequence[Pair]]]:
        """The changes of all tables that have any."""
        found = ((table, self._delta(table)) for table in self._statements)
        return [(table, delta) for table, delta in found if delta]

    def revert(self) -> None:
        """Take all changes back, the last one first."""
        for table, statements in self._statements.items():
            for changes in reversed(statements):
                table._store.revert(changes)

    def _delta(self, table: Table[Any]) -> Sequence[Pair]:
        """The statements' changes as one; net, if rows come and go."""
        statements = self._statements[table]
        if len(statements) == 1:
            return statements[0]
        if self.has_lost(table):
            return self.of(table)
        pairs = [pair for changes in statements for pair in changes]
        return consolidate(pairs) if table in self._lost else pairs

    def _net_of(self, table: Table[Any]) -> dict[Row, Pair]:
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


class Transaction:
    """Context manager of `Database.transaction()`, also for `async with`.

    Inside it tables show the changes made so far, views the last commit.

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

    __slots__ = ("_db", "_entered", "_outer")

    def __init__(self, db: Database) -> None:
        self._db = db
        # of each time it was entered: how deep in the gate and nested, and in which pending changes
        self._entered: tuple[tuple[int, int, Pending], ...] = ()
        self._outer: Token[Any] | None = None

    def __repr__(self) -> str:
        return f"Transaction of {self._db!r}"

    def __enter__(self) -> Transaction:
        self._db._enter()
        try:
            self._begin()
        except BaseException:
            self._db._leave()
            raise
        return self

    async def __aenter__(self) -> Transaction:
        await self._db._gate.enter_async(_holder.get())
        self._db._check_entered()
        try:
            self._begin()
        except BaseException:
            self._db._leave()
            raise
        if self._db._gate.holder is None:
            self._db._gate.holder = self
            self._outer = _holder.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        db, gate, pending = self._db, self._db._gate, self._db._pending
        assert pending is not None
        *outer, (depth, nested, _) = self._entered
        self._entered = (*outer,)
        others = pending.depth - nested  # were begun in this one, and are still open
        depth = gate.depth = depth + others  # less, if an interrupt kept a statement from leaving
        pending.failed |= error is not None
        try:
            self._end(pending, failed=error is not None)
        except BaseException:
            if (
                db._pending is pending and pending.depth == nested + others
            ):  # it has not begun to end
                pending.failed = True
                self._end(pending, failed=True)
            raise
        finally:
            try:
                db._leave()
            finally:
                if gate.held == depth:  # an interrupt, before it was left
                    gate.leave()

    def __del__(self) -> None:
        entered = getattr(self, "_entered", ())
        if entered and self._db._gate.held and self._db._pending is entered[-1][2]:
            # an interrupt, before its end; those outside it may have ended meanwhile
            self.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._outer is not None:
            _holder.reset(self._outer)
            self._db._gate.holder = None
        self.__exit__(kind, error, traceback)

    def _begin(self) -> None:
        db = self._db
        pending = db._pending
        if pending is None:
            pending = Pending()
        else:
            pending.depth += 1
        db._pending = pending
        self._entered = (*self._entered, (db._gate.depth, pending.depth, pending))

    def _end(self, pending: Pending, *, failed: bool) -> None:
        db = self._db
        pending.depth -= 1
        if pending.depth:
            return
        db._pending = None
        if not pending.failed:
            version = db._version + 1
            tables: list[Table[Any]] = []
            deltas: list[Fed] = []
            try:
                changes = pending.changes()
                tables = [table for table, _ in changes]
                deltas = [(table._node, pairs) for table, pairs in changes]
                if deltas:
                    db._commit(tables, deltas)
            except BaseException as error:
                if not deltas:
                    surely(pending.revert)
                    raise
                if not db._recovers(error, tables, deltas, version):
                    raise
            return
        surely(pending.revert)
        if not failed:
            raise TransactionError(
                "the transaction was rolled back: one nested in it had failed\n"
                "  let the inner exception pass, or do not nest what may fail"
            )
