"""Tables that can be read again from a SQL database, which decides what they hold.

    expect     before a COMMIT: if the answer never comes, these tables are in doubt
    settle     read all rows again, and commit the difference; this ends the doubt

While a table is in doubt, it and its views show the last commit; joint commits that change it are
refused, because its rows may be outdated. It is read again immediately, then by a thread after
`FIRST` seconds, and after twice as many each time, up to `LONGEST`; and by `db.reread()`. If the
answer of a server was lost, the server may still be executing that COMMIT: so the table is read
once more `CONFIRMS` seconds later.

Rows are read at a moment without an open transaction: if a commit happens meanwhile, they are read
again, finally inside a transaction.

State:  the callables; the exception for each table in doubt.
Cost:   `settle` reads all rows, and costs a `replace_all`.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from optimizer.errors import PlanError
from reactive.api.internal_interface import statements_of, unguarded_statements
from reactive.engine.runtime.interrupts import is_asynchronous
from reactive.engine.transactions.transaction import Transaction, run_in_transaction
from reactive.errors import TableError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

log = logging.getLogger("reactive")
Moment: TypeAlias = tuple[int, int]
Reread: TypeAlias = Callable[[], Iterable[Any]]
FIRST = 0.1
"""The seconds until a table in doubt is read again, after the first failure."""
LONGEST = 2.0
"""The most seconds between two attempts."""
CONFIRMS = 5.0
"""The seconds after which a server that has not answered a COMMIT has finished it."""
ATTEMPTS = 3
"""The readings during which others may commit; the next one blocks commits."""


class CommitInDoubt(Exception):
    """The answer to a COMMIT is pending or lost."""

    is_known = False
    """True once the outcome is known."""


class Rereading:
    """The tables of a database that can be read again; created with the first one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.by: dict[Any, Reread] = {}
        """The callable that returns all rows, by table."""
        self._doubts: dict[Any, BaseException] = {}
        self._confirms: dict[Any, float] = {}
        """The times for reading tables once more, although they are not in doubt."""
        self._expected = 0  # the number of COMMITs so far
        self._pause = FIRST
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def begin(self, table: Any, reread: Reread) -> None:
        """Register a new table that is read from a SQL database, and fill it.

        Raises if the table is not stored or only read from a file, or the rows cannot be
        read.

        If reading fails, a table with rows of a file is in doubt: they may be those of an earlier
        commit.
        """
        if not table.plan.stored:
            raise TableError(
                f"table {table.name!r} cannot be read again: its rows are not stored\n"
                "  make it without stored=False, or without reread"
            )
        if not callable(reread):
            raise PlanError(
                f"reread of table {table.name!r} is a callable, () -> all its rows, not "
                f"{reread!r:.100}\n  write reread=lambda: ..., which is called again in a doubt"
            )
        journal = self._engine.journal
        is_durable = journal is not None and table in journal.kept
        if is_durable and not journal.writes:
            raise PlanError(
                f"table {table.name!r} has the rows of a file, and no use for reread\n"
                "  leave it out: db.reread() reads the file again"
            )
        self.by[table] = reread
        try:
            self.reread([table])
        except BaseException as error:
            if is_durable and isinstance(error, Exception):
                self._doubts[table] = error
                self.watch()
                return
            del self.by[table]
            raise

    def there(self) -> list[Any]:
        """Forget dropped tables, and return the other tables that can be read again."""
        tables = self._engine.tables
        self.by = {t: by for t, by in self.by.items() if tables.get(t.plan.number) is t}
        return list(self.by)

    @property
    def doubts(self) -> dict[Any, BaseException]:
        """The tables in doubt, with the reasons.

        This first ends doubts about COMMITs whose outcome has become known.
        """
        known = [
            t for t, e in list(self._doubts.items()) if isinstance(e, CommitInDoubt) and e.is_known
        ]
        self.forget(known)
        return self._doubts

    def expect(self, tables: Iterable[Any], error: BaseException) -> None:
        """Put tables in doubt until they are read again, or the outcome is known."""
        found = [table for table in tables if table in self.by]
        self._expected += 1
        self._doubts.update(dict.fromkeys(found, error))

    def forget(self, tables: Iterable[Any]) -> None:
        """End the doubt about tables."""
        for table in tables:
            self._doubts.pop(table, None)

    def settle(self, error: BaseException, *, confirms: bool) -> None:
        """Read the tables again that are in doubt because of an error.

        Parameters
        ----------
        error: the reason of their doubt.
        confirms: True if the server may still be executing the COMMIT.
        """
        tables = [table for table, known in list(self.doubts.items()) if known is error]
        self._attempt(tables)
        if confirms:
            self._confirms.update(dict.fromkeys(tables, time.monotonic() + CONFIRMS))

    def again(self, tables: Sequence[Any]) -> None:
        """Read some tables again, or all if none are given.

        If one of them is in a file that this database only reads, all tables of the file are first
        moved to its last commit.
        """
        journal, found = self._engine.journal, list(tables) or self.there()
        if journal is not None and not journal.writes:
            if not tables or any(table in journal.kept for table in tables):
                journal.reread()
            found = [table for table in found if table not in journal.kept]
        self.reread(found)

    def reread(self, tables: Iterable[Any]) -> None:
        """Read the given tables again, in one commit.

        Raises
        ------
        TableError: a table has no callable; nothing has changed.
        Exception: a callable raised it, or a view of its rows.
        """
        found = list(tables)
        for table in found:
            if table not in self.by:
                raise TableError(
                    f"table {table.name!r} cannot be read again: nothing says from where\n"
                    "  make it with db.table(..., reread=callable), which gives all its rows"
                )
        self._reread(found)
        self.forget(found)

    def _attempt(self, tables: Sequence[Any]) -> None:
        """Read tables again; if that raises, the exception is the new reason of their doubt."""
        there = [t for t in tables if self._engine.tables.get(t.plan.number) is t]
        self.forget(set(tables) - set(there))
        try:
            self._reread(there)
        except Exception as error:
            if is_asynchronous(error):
                raise
            log.warning("tables could not be read again: %s", repr(error))
            self._doubts.update(dict.fromkeys(there, error))
        else:
            self.forget(there)

    def _reread(self, tables: Sequence[Any]) -> None:
        """Replace the rows of tables by those read now; read again if others commit meanwhile."""
        if not tables:
            return
        for _ in range(ATTEMPTS):
            before, rows = self._moment(), self._rows(tables)
            if run_in_transaction(
                Transaction(self._engine), partial(self._replace, tables, rows, before)
            ):
                return
        run_in_transaction(
            Transaction(self._engine), lambda: self._replace(tables, self._rows(tables), None)
        )

    def _rows(self, tables: Sequence[Any]) -> list[list[Any]]:
        return [self._rows_of(table) for table in tables]

    def _rows_of(self, table: Any) -> list[Any]:
        """Return the rows that a table's `reread` reads. Raises `TableError` if it returns None."""
        found = self.by[table]()
        if found is None:
            raise TableError(
                f"reread of table {table.name!r} has given None, not rows\n"
                "  have it return all rows, or [] if there are none"
            )
        return list(found)

    def _moment(self) -> Moment:
        """Return a value that changes with each commit, here or there."""
        return self._engine.version, self._expected

    def _replace(
        self, tables: Sequence[Any], rows: Sequence[Sequence[Any]], before: Moment | None
    ) -> bool:
        """Replace all rows. Return False if others have committed since the moment `before`.

        If that is None, the rows are replaced in any case.
        """
        if before is not None and self._moment() != before:
            return False
        for table, those in zip(tables, rows, strict=True):
            statements = unguarded_statements(table)
            if statements is statements_of(table):
                table.replace_all(those)
            else:  # of a mirror
                self._engine.write(table, statements.replace_all, those)
        return True

    # The thread.

    def watch(self) -> None:
        """Start the thread if there is something to read, or wake it."""
        if not self.doubts and not self._confirms:
            return
        with self._changed:
            self._pause = FIRST
            self._changed.notify()
            if self._thread is None:
                run = _watch_loop(weakref.ref(self), self._changed)
                self._thread = threading.Thread(target=run, daemon=True, name="reactive rereading")
                self._thread.start()

    def pause(self) -> float:
        """Return the seconds until the next reading.

        If tables are in doubt, the pause after the next reading is twice as long.
        """
        now = time.monotonic()
        due = min(self._confirms.values(), default=now + LONGEST)
        if self.doubts:
            due, self._pause = min(due, now + self._pause), min(2 * self._pause, LONGEST)
        return max(due - now, 0)

    def read_due(self) -> bool:
        """Read the tables that are due. Return True if others are left; False ends the thread."""
        if self._engine.db_lock.is_closed:
            self._confirms, self._doubts = {}, {}
        now = time.monotonic()
        ripe = [table for table, when in list(self._confirms.items()) if when <= now]
        for table in ripe:
            del self._confirms[table]
        for tables in self._together(ripe):
            self._attempt(tables)
        with self._changed:
            if self.doubts or self._confirms:
                return True
            self._thread = None
            return False

    def _together(self, ripe: Sequence[Any]) -> list[list[Any]]:
        """Group the tables to read; tables in doubt for the same reason are read together."""
        groups: dict[int, list[Any]] = {0: [*ripe]}
        for table, error in list(self.doubts.items()):
            if table not in ripe:
                groups.setdefault(id(error), []).append(table)
        return [tables for tables in groups.values() if tables]


def _watch_loop(
    rereading: weakref.ref[Rereading], changed: threading.Condition
) -> Callable[[], None]:
    """Return the function of the thread; while it waits, it does not keep the database alive."""

    def run() -> None:
        while True:
            with changed:
                found = rereading()
                if found is None:
                    return
                pause = found.pause()
                del found
                changed.wait(pause)
            found = rereading()
            if found is None or not found.read_due():
                return
            del found

    return run


def rereading(engine: Engine) -> Rereading:
    """Return the `Rereading` of a database; create it if needed."""
    if engine.rereading is None:
        engine.rereading = Rereading(engine)
    found: Rereading = engine.rereading
    return found
