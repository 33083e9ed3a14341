"""A database of a file that is read alone: its tables are as they were at one moment.

    reread             all tables go on to what has been committed since, in one commit: by the last
                       commits that the file keeps, if it keeps them all; else rows are compared
    a table is made    so do the others, before that is read

State:  of each table how it is read; of which commit they are.
Cost:   of `reread` O(changes since) if they are kept, else O(rows) of all tables.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from optimizer.kinds.fields import TRACKED
from reactive.borders.durable.journal import Changes, Journal
from reactive.borders.durable.opening import Adoption
from reactive.borders.durable.sqlite_file import SqliteSnapshot
from reactive.borders.durable.store import Record, Values
from reactive.engine.transactions.patches import Guarded
from reactive.engine.transactions.transaction import Transaction, within
from reactive.errors import TableError, TransactionError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

IS_READ = "is of a file that is open for reading alone"
REMEDY = "change it in the process that writes the file, and take that in by db.reread()"


class ReadOnlyJournal(Journal):
    """Writes nothing: its commits are those of the file."""

    writes = False
    store: SqliteSnapshot

    def __init__(self, engine: Engine, store: SqliteSnapshot) -> None:
        super().__init__(store)
        self._engine = engine
        self._adoptions: dict[Any, Adoption] = {}
        self._coming: SqliteSnapshot = store
        store.close()
        self._rereads = threading.Lock()

    def adopted(self, table: Any, adoption: Adoption) -> None:
        """A table was made, with the rows of the file."""
        self._adoptions[table] = adoption
        Guarded(table, IS_READ, REMEDY)

    def record(self, changes: Changes, version: int) -> Record | None:
        """A commit of the file has nothing to be written; but the file goes on with it.

        Raises
        ------
        TableError: it is none, such as an assignment to a tracked object.
        """
        of_file = [table.name for table, _ in changes if table in self.kept]
        if of_file and self._coming is self.store:
            raise TableError(f"table {of_file[0]!r} {IS_READ}\n  {REMEDY}")
        return Record(version, 0.0, ()) if of_file else None

    def begin(self, changes: Changes, version: int) -> Any:
        """As `record`, between the phases of a commit."""
        found = self.record(changes, version)
        return None if found is None else partial(self.write, found)

    def write(self, record: Record) -> None:
        """From now on the file is as it was for this commit."""
        self._writing, self.store = record.version, self._coming

    def has(self, version: int) -> bool:
        """Whether the file has gone on with a commit."""
        return self._writing == version

    @contextmanager
    def making(self) -> Iterator[None]:
        """A table is made: all are of the same commit, which is read meanwhile."""
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
        """Go on to what has been committed since.

        Raises
        ------
        DurabilityError: the file cannot be read; nothing has changed.
        PlanError: rows are of another class since; nothing has changed.
        Exception: of a view; nothing has changed.
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
        """Whether this thread has a transaction open."""
        return self._engine.mine is not None

    def _reread(self) -> None:
        newer = self.store.newer()
        try:
            within(Transaction(self._engine), partial(self._go_on, newer))
        finally:
            self._coming = self.store
            if self.store is not newer:
                newer.close()

    def _go_on(self, newer: SqliteSnapshot) -> None:
        """Have all tables be as they are there, within a transaction."""
        self._coming = newer
        is_whole, schemas = newer.has_all_since(self.store), newer.tables()
        rest = {}
        for adoption in self._adoptions.values():
            name = adoption.table.name
            is_tracked = hasattr(adoption.table.row_type, TRACKED)  # its objects are made anew
            if is_whole and schemas.get(name) == adoption.codec.schema and not is_tracked:
                rest[name] = adoption
            else:
                self._state(adoption, "replace_all", list(_rows(adoption, newer)))
        if rest:
            self._by_history(rest, newer)
        assert self._engine.pending is not None
        if not self._engine.pending.changes():  # there is no commit, which would do it
            self.store = newer

    def _by_history(self, adoptions: Mapping[str, Adoption], newer: SqliteSnapshot) -> None:
        """Change what the commits since have changed."""
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
        table = adoption.table
        self._engine.write(table, getattr(table._do.unguarded, statement), rows)

    def forget(self, table: Any) -> None:
        """A table was dropped here; the file has it."""
        self.release(table)

    def release(self, table: Any) -> None:
        """It is not followed any more."""
        self.kept.pop(table, None)
        self._adoptions.pop(table, None)

    def settle(self) -> None:
        """All there is is in the file."""


def _rows(adoption: Adoption, snapshot: SqliteSnapshot) -> Iterator[Any]:
    """All rows of a table, as often as they are there; none if it was dropped."""
    if adoption.table.name in snapshot.tables():
        once, often = adoption.read(snapshot)
        yield from once
        for row, weight in often:
            yield from [row] * weight
