"""A transaction: changes of several tables that become one commit, or none.

Tables change at once and are put back if the transaction fails; views change at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Any

from reactive.errors import TransactionError
from reactive.zset import Pair, Row

if TYPE_CHECKING:
    from reactive.database import Database
    from reactive.table import Table


_holder: ContextVar[Any] = ContextVar("transaction", default=None)
"""The transaction that this task is in, or was started in."""


class Pending:
    """The changes of a transaction so far, added up per table and row.

    A row whose changes cancel stays in here: should an equal row come again, it must become the
    object that the indexes know.
    """

    __slots__ = ("_changes", "depth", "failed")

    def __init__(self) -> None:
        self._changes: dict[Table[Any], dict[Row, Pair]] = {}
        self.depth = 1
        self.failed = False

    def record(self, table: Table[Any], changes: Sequence[Pair]) -> None:
        """Add a statement's changes."""
        net = self._changes.setdefault(table, {})
        merged: dict[Row, Pair] = {}
        for row, weight in changes:
            known, old = merged.get(row) or net.get(row, (row, 0))
            merged[row] = (known, old + weight)
        net.update(merged)

    def interned(self, table: Table[Any], row: Row) -> Row:
        """The object that an equal row is in this transaction, or the row itself."""
        known = self._changes.get(table, {}).get(row)
        return row if known is None else known[0]

    def of(self, table: Table[Any]) -> list[Pair]:
        """The net changes of a table."""
        return [pair for pair in self._changes.get(table, {}).values() if pair[1]]

    def changes(self) -> list[tuple[Table[Any], list[Pair]]]:
        """The net changes of all tables that have any."""
        net = ((table, self.of(table)) for table in self._changes)
        return [(table, pairs) for table, pairs in net if pairs]


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

    __slots__ = ("_db", "_outer")

    def __init__(self, db: Database) -> None:
        self._db = db
        self._outer: Token[Any] | None = None

    def __repr__(self) -> str:
        return f"Transaction of {self._db!r}"

    def __enter__(self) -> Transaction:
        self._db._enter()
        self._begin()
        return self

    async def __aenter__(self) -> Transaction:
        await self._db._gate.enter_async(_holder.get())
        self._db._check_entered()
        self._begin()
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
        try:
            self._end(failed=error is not None)
        finally:
            self._db._leave()

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
        pending = self._db._pending
        if pending is None:
            self._db._pending = Pending()
        else:
            pending.depth += 1

    def _end(self, *, failed: bool) -> None:
        db, pending = self._db, self._db._pending
        assert pending is not None
        pending.failed |= failed
        pending.depth -= 1
        if pending.depth:
            return
        db._pending = None
        changes = pending.changes()
        if not pending.failed:
            db._commit(changes)
            return
        for table, pairs in changes:
            table._store.revert(pairs)
        if not failed:
            raise TransactionError(
                "the transaction was rolled back: one nested in it had failed\n"
                "  let the inner exception pass, or do not nest what may fail"
            )
