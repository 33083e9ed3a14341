"""Tables that can be read from a SQL database, which is then the truth of what they hold.

    expect     a COMMIT is under way: should nobody come back from it, these tables are in doubt
    settle     read all rows again, and make the difference a commit; then there is no doubt

While a table is in doubt, it and the views over it show the last commit; it takes no commit with a
SQL database, for statements were made on rows that may be others. It is read again at once, then
by a thread of its own after `FIRST` seconds, and after twice as many each time, up to `LONGEST`;
and by `db.reread()`. Where the answer of a server was lost, the server may still be at that COMMIT:
so it is read once more `CONFIRMS` seconds later.

What is read is of a moment at which nobody had a transaction open: rows that were read while
somebody committed are read again, at last within a transaction.

State:  the callables; what was raised for each table in doubt.
Cost:   of `settle` that of reading all rows, and of `replace_all`.
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
from reactive.engine.runtime.interrupts import is_asynchronous
from reactive.engine.transactions.transaction import Transaction, run_in_transaction
from reactive.errors import TableError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

log = logging.getLogger("reactive")
Moment: TypeAlias = tuple[int, int]
Reread: TypeAlias = Callable[[], Iterable[Any]]
FIRST = 0.1
"""Seconds after which a table in doubt is read again, if that failed at once."""
LONGEST = 2.0
"""Seconds between two attempts, at most."""
CONFIRMS = 5.0
"""Seconds after which a server that had not answered a COMMIT is taken to have done with it."""
ATTEMPTS = 3
"""Readings while others commit, after which nobody may."""


class CommitInDoubt(Exception):
    """The answer to a COMMIT is still to come, or was lost."""

    is_known = False
    """Whether it has come."""


class Rereading:
    """What is read again of a database; made when there is a table for it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.by: dict[Any, Reread] = {}
        """What gives all rows of a table."""
        self._doubts: dict[Any, BaseException] = {}
        self._confirms: dict[Any, float] = {}
        """Tables that are read once more, though they are not in doubt: when."""
        self._expected = 0  # how often a COMMIT was under way
        self._pause = FIRST
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def begin(self, table: Any, reread: Reread) -> None:
        """A table has been made that is read from a SQL database: it begins with its rows.

        If it cannot be read, one with rows of a file is in doubt: they may be those of a commit
        before the last one.
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
        """The tables that can be read again, without those that were dropped."""
        tables = self._engine.tables
        self.by = {t: by for t, by in self.by.items() if tables.get(t.plan.number) is t}
        return list(self.by)

    @property
    def doubts(self) -> dict[Any, BaseException]:
        """The tables in doubt, with why."""
        known = [
            t for t, e in list(self._doubts.items()) if isinstance(e, CommitInDoubt) and e.is_known
        ]
        self.forget(known)
        return self._doubts

    def expect(self, tables: Iterable[Any], error: BaseException) -> None:
        """These are in doubt until they are read again, if they can be; or the outcome is known."""
        found = [table for table in tables if table in self.by]
        self._expected += 1
        self._doubts.update(dict.fromkeys(found, error))

    def forget(self, tables: Iterable[Any]) -> None:
        """It is known what they hold."""
        for table in tables:
            self._doubts.pop(table, None)

    def settle(self, error: BaseException, *, confirms: bool) -> None:
        """Read again what is in doubt because of an error.

        Parameters
        ----------
        error: what put them in doubt.
        confirms: whether the server may still be at work.
        """
        tables = [table for table, known in list(self.doubts.items()) if known is error]
        self._attempt(tables)
        if confirms:
            self._confirms.update(dict.fromkeys(tables, time.monotonic() + CONFIRMS))

    def again(self, tables: Sequence[Any]) -> None:
        """Read these again, or all; those of a file that is read alone go on together, first."""
        journal, found = self._engine.journal, list(tables) or self.there()
        if journal is not None and not journal.writes:
            if not tables or any(table in journal.kept for table in tables):
                journal.reread()
            found = [table for table in found if table not in journal.kept]
        self.reread(found)

    def reread(self, tables: Iterable[Any]) -> None:
        """Read these again, in one commit.

        Raises
        ------
        TableError: one of them cannot be; nothing has changed.
        Exception: what a callable raises, or a view of what it gives.
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
        """Read them again; what is raised is why they are in doubt from now on."""
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
        found = self.by[table]()
        if found is None:
            raise TableError(
                f"reread of table {table.name!r} has given None, not rows\n"
                "  have it return all rows, or [] if there are none"
            )
        return list(found)

    def _moment(self) -> Moment:
        """What is another one when somebody has committed, here or there."""
        return self._engine.version, self._expected

    def _replace(
        self, tables: Sequence[Any], rows: Sequence[Sequence[Any]], before: Moment | None
    ) -> bool:
        """Replace all rows, unless others have committed meanwhile; whether it was done."""
        if before is not None and self._moment() != before:
            return False
        for table, those in zip(tables, rows, strict=True):
            unguarded = getattr(table._do, "unguarded", None)  # of a mirror
            if unguarded is None:
                table.replace_all(those)
            else:
                self._engine.write(table, unguarded.replace_all, those)
        return True

    # The thread.

    def watch(self) -> None:
        """Have a thread read what is still to be read, if there is anything."""
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
        """Seconds until something is to be read."""
        now = time.monotonic()
        due = min(self._confirms.values(), default=now + LONGEST)
        if self.doubts:
            due, self._pause = min(due, now + self._pause), min(2 * self._pause, LONGEST)
        return max(due - now, 0)

    def read_due(self) -> bool:
        """Read what is to be read now; whether there is more."""
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
        """What is read again, those in doubt since one moment together."""
        groups: dict[int, list[Any]] = {0: [*ripe]}
        for table, error in list(self.doubts.items()):
            if table not in ripe:
                groups.setdefault(id(error), []).append(table)
        return [tables for tables in groups.values() if tables]


def _watch_loop(
    rereading: weakref.ref[Rereading], changed: threading.Condition
) -> Callable[[], None]:
    """What the thread runs. It holds no database while it waits: one that nobody has may go."""

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
    """That of a database; made when it is first asked for."""
    if engine.rereading is None:
        engine.rereading = Rereading(engine)
    found: Rereading = engine.rereading
    return found
