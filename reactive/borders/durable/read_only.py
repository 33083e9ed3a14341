"""A database that reads a file which another process writes: its tables are as of one commit.

    reread             moves all tables to the last commit of the file, in one commit: by the
                       commits that the file keeps, if it keeps them all; else by comparing rows
    a table is made    all other tables are moved first, so that all are as of the same commit

State:  the decoder of each table; the version that all tables are of.
Cost:   `reread` is O(changes) if the commits are kept, else O(rows) of all tables.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from optimizer.kinds.fields import TRACKED
from reactive.api.internal_interface import unguarded_statements
from reactive.borders.durable.journal import Changes, Journal
from reactive.borders.durable.opening import Adoption
from reactive.borders.durable.sqlite_file import SqliteSnapshot
from reactive.borders.durable.store import Record, Values
from reactive.engine.transactions.patches import StatementGuard
from reactive.engine.transactions.transaction import Transaction, run_in_transaction
from reactive.errors import TableError, TransactionError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

IS_READ = "is of a file that is open for reading alone"
REMEDY = "change it in the process that writes the file, and take that in by db.reread()"


class ReadOnlyJournal(Journal):
    """A journal that writes nothing: it follows the commits of the file."""

    writes = False
    store: SqliteSnapshot

    def __init__(self, engine: Engine, store: SqliteSnapshot) -> None:
        super().__init__(store)
        self._engine = engine
        self._adoptions: dict[Any, Adoption] = {}
        self._coming: SqliteSnapshot = store
        store.close()
        self._rereads = threading.Lock()

    def register_table(self, table: Any, adoption: Adoption) -> None:
        """Register a table that has the rows of the file, and guard it against changes."""
        self._adoptions[table] = adoption
        StatementGuard(table, IS_READ, REMEDY)

    def record(self, changes: Changes, version: int) -> Record | None:
        """Return an empty record, whose `write` moves the file to the commit of `reread`.

        Raises
        ------
        TableError: the commit is not one of `reread`, such as an assignment to a tracked object.
        """
        of_file = [table.name for table, _ in changes if table in self.kept]
        if of_file and self._coming is self.store:
            raise TableError(f"table {of_file[0]!r} {IS_READ}\n  {REMEDY}")
        return Record(version, 0.0, ()) if of_file else None

    def begin(self, changes: Changes, version: int) -> Any:
        """Return the function that moves the file, or None; see `record`."""
        found = self.record(changes, version)
        return None if found is None else partial(self.write, found)

    def write(self, record: Record) -> None:
        """Make the newer snapshot the current one."""
        self._writing, self.store = record.version, self._coming

    def has(self, version: int) -> bool:
        """Return True if the file has moved with commit `version`."""
        return self._writing == version

    @contextmanager
    def making(self) -> Iterator[None]:
        """Move all tables to the last commit, and keep the file open while a table is made."""
        if self._is_inside:
            yield
            return
        with self._rereads:
            self._reread()
            try:
                yield
            finally:
                self.store.close()

    def reread(self) -> None:
        """Move all tables to the last commit of the file.

        Raises
        ------
        DurabilityError: the file cannot be read; nothing has changed.
        PlanError: the stored rows have another class by now; nothing has changed.
        Exception: a view raised; nothing has changed.
        """
        if self._is_inside:
            raise TransactionError(
                "a file cannot be read again inside a transaction\n"
                "  call reread() before the `with` block, or after it"
            )
        with self._rereads:
            self._reread()
            self.store.close()

    @property
    def _is_inside(self) -> bool:
        """True if this thread has an open transaction."""
        return self._engine.mine is not None

    def _reread(self) -> None:
        """Move all tables to the current file in one transaction; if it fails, nothing moves."""
        newer = self.store.newer()
        try:
            run_in_transaction(Transaction(self._engine), partial(self._go_on, newer))
        finally:
            self._coming = self.store
            if self.store is not newer:
                newer.close()

    def _go_on(self, newer: SqliteSnapshot) -> None:
        """Change all tables to the rows of `newer`, within a transaction."""
        self._coming = newer
        is_whole, schemas = newer.has_all_since(self.store), newer.tables()
        rest = {}
        for adoption in self._adoptions.values():
            name = adoption.table.name
            is_tracked = hasattr(adoption.table.row_type, TRACKED)  # its objects are rebuilt
            if is_whole and schemas.get(name) == adoption.codec.schema and not is_tracked:
                rest[name] = adoption
            else:
                self._state(adoption, "replace_all", list(_expand_rows(adoption, newer)))
        if rest:
            self._by_history(rest, newer)
        assert self._engine.pending is not None
        if not self._engine.pending.changes():  # no table changed, so no commit will move the file
            self.store = newer

    def _by_history(self, adoptions: Mapping[str, Adoption], newer: SqliteSnapshot) -> None:
        """Apply the commits after the current snapshot to the tables of `adoptions`."""
        found: dict[str, dict[Values, int]] = {name: {} for name in adoptions}
        for logged in newer.history(self.store.at):
            for name in found.keys() & logged.changes.keys():
                net = found[name]
                for values, weight in logged.changes[name]:
                    net[values] = net.get(values, 0) + weight
        for name, net in found.items():
            for sign, statement in ((-1, "remove_all"), (1, "add_all")):
                weights = {values: sign * n for values, n in net.items() if sign * n > 0}
                rows = adoptions[name].codec.read(list(weights))
                often = zip(rows, weights.values(), strict=True)
                self._state(adoptions[name], statement, [row for row, n in often for _ in range(n)])

    def _state(self, adoption: Adoption, statement: str, rows: list[Any]) -> None:
        """Run a statement of a table by its name, past the guard against changes."""
        table = adoption.table
        self._engine.write(table, getattr(unguarded_statements(table), statement), rows)

    def forget(self, table: Any) -> None:
        """Forget a table that was dropped here; the file keeps it."""
        self.release(table)

    def release(self, table: Any) -> None:
        """Stop following a table."""
        self.kept.pop(table, None)
        self._adoptions.pop(table, None)

    def settle(self) -> None:
        """Do nothing: a file that is only read has all its commits."""


def _expand_rows(adoption: Adoption, snapshot: SqliteSnapshot) -> Iterator[Any]:
    """Yield all rows of a table, with repetitions; none if the file has no such table."""
    if adoption.table.name in snapshot.tables():
        once, often = adoption.read(snapshot)
        yield from once
        for row, weight in often:
            yield from [row] * weight
