"""The joint commit of a mirror: touched rows are read, operators step, then SQL commits.

    begin      other writes to the database wait from here to the end
    read       touched rows, inside the SQL transaction; only differences are changes
    prepare    exceptions of a view's callables are raised here: SQL does not commit
    COMMIT     if refused, everything is undone, and both are unchanged
    publish    views show the commit, subscribers are notified

So commits are in the order of the lock: of two transactions that touched the same rows, the one
that SQL commits first is published first. If the answer to COMMIT is lost, the outcome is unknown:
then the rows are read again over another connection, and the result is published. If that fails
too, the next commit retries it, or `reload`.

`wait_for_lock` waits for the end of another transaction before a session commits, but not forever,
because of deadlocks across the two systems:

    A    with db.transaction(commit_with=session): ...      waits for a row that B has changed
    B    session.commit()                                   waits for A's transaction to end

Neither system knows the other one's lock. So B gives up after `PATIENCE` seconds, its SQL
transaction is rolled back, and A continues.

State:  the rows to read again after a failure.
Cost:   a commit takes one or more SELECTs by keys for each touched class; waiting is free if no
        transaction is open.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from threading import get_ident
from typing import Any

from sqlalchemy import Connection, Engine, inspect, util

from reactive.api.internal_interface import keyed_of, unguarded_statements
from reactive.api.table import Table
from reactive.borders.mirrors.kinds import Key, MirrorKind
from reactive.borders.mirrors.touching.statements import written_by_triggers
from reactive.borders.mirrors.touching.touched_rows import TouchedRows, commit_over, without_old
from reactive.engine.runtime.collector import pause_collector
from reactive.engine.transactions.prepared import PreparedTransaction
from reactive.errors import TransactionError


class MirrorPublisher:
    """The tables of one engine of a mirror, and the commits to them.

    Parameters
    ----------
    engine: the engine of the database, `db._engine`.
    source: the engine of SQLAlchemy that is read.
    tables: the mirrored kinds, with their tables.
    """

    def __init__(
        self, engine: Any, source: Engine, tables: list[tuple[MirrorKind, Table[Any]]]
    ) -> None:
        self._engine = engine
        self.source = source
        self.tables = tables
        self.behind: TouchedRows | None = None
        """The rows that could not be read again yet; None without any."""
        self.changed: dict[Any, list[Any]] = {}
        """The keys of the rows that the last commit changed."""
        self.follower: Any = None
        """The follower that records touched rows."""

    def has_no_tables(self) -> bool:
        """Return True if all tables were dropped or replaced."""
        there = self._engine.tables
        return all(there.get(table.plan.number) is not table for _, table in self.tables)

    def stop(self) -> None:
        """Stop following."""
        self.follower.stop()
        if self in self._engine.mirrors:
            self._engine.mirrors.remove(self)

    def publish(self, touched: TouchedRows, commit: Callable[[], None]) -> None:
        """Commit both, or neither.

        Raises
        ------
        Exception: a view or the SQL database raised it; both are unchanged.
        TransactionError: the caller has an open transaction of the database.
        """
        if self._engine.db_lock.is_closed:
            commit()
            return
        try:
            self._publish(touched, commit)
        except BaseException:
            _roll_back(touched.connection)  # SQLAlchemy assumes that COMMIT was sent
            raise

    def read_again(self, touched: TouchedRows) -> None:
        """Publish the changes of a statement that has committed by itself.

        Raises
        ------
        Exception: a view or the SQL database raised it; the mirror is behind.
        """
        try:
            self.publish(touched, _commit_nothing)
        except BaseException as error:
            behind = TouchedRows(touched.connection)
            behind.take(touched)
            self.behind = behind
            error.add_note(_COMMITTED)
            raise

    def _publish(self, touched: TouchedRows, commit: Callable[[], None]) -> None:
        """Change the tables, and commit both sides; undo the tables if the commit fails.

        If the outcome is unknown, the touched rows are read again over a new connection.
        """
        prepared = self._begun()
        try:
            parts = self._gather_parts(touched)
            for part, each in parts:
                part.fill(each)
            prepared.prepare()
            for part, _ in parts:
                commit = partial(commit_over, partial(part.others, touched), part.changed, commit)
            try:
                commit()
            except BaseException as error:
                prepared.undo()
                if self._is_unknown(error, touched):
                    for part, each in parts:
                        part._look_again(each, error)
                raise
            prepared.publish()
            for part, _ in parts:
                part.behind = None
        finally:
            prepared.undo()

    def others(self, touched: TouchedRows) -> list[TouchedRows]:
        """Return the other open transactions that read a snapshot."""
        found: list[TouchedRows] = [] if self.follower is None else self.follower.others(touched)
        return found

    def _gather_parts(self, touched: TouchedRows) -> list[tuple[MirrorPublisher, TouchedRows]]:
        """Return this part and the other mirrors over the same engine, each with the rows to read.

        The other mirrors would otherwise commit only after this one has stepped.
        """
        parts = [(self, touched)]
        for part in self._engine.mirrors:
            if part.source is self.source and part is not self:
                parts.append((part, part.follower.take_touched(touched.connection)))
        return parts

    def fill(self, touched: TouchedRows) -> None:
        """Update tables with the touched rows, inside a transaction.

        Rows that could not be read before are added to `touched`.
        """
        self.changed = {}
        if self.behind is not None:
            touched.take(self.behind)
        with pause_collector():
            for kind, table in self.tables:
                if self._engine.tables.get(table.plan.number) is table:  # else dropped
                    self._fill(touched, kind, table, touched.of(kind))

    def follows(self, connection: Connection) -> bool:
        """Return True if a connection belongs to the followed engine."""
        return connection.dialect is self.source.dialect

    def gather(self, connection: Connection) -> None:
        """Update tables for a joint transaction, which commits the connection itself.

        See `fill`.
        """
        touched = self.follower.take_touched(connection)
        if touched or self.behind is not None:
            self.fill(touched)
            self.follower.touched(connection).gathered = self.changed

    def rows(self, kind: MirrorKind) -> list[Any]:
        """Read all rows of a kind, over a new connection."""
        with self.source.connect() as connection:
            return kind.rows(connection)

    def load(self) -> None:
        """Load all rows of the SQL database, in one commit."""
        with self.source.connect() as connection:
            watched = self.follower.watched
            watched.know_triggers(written_by_triggers(connection, watched.tables))
        with self.source.connect() as connection:
            touched = TouchedRows(_at_one_time(connection), everything=True)
            self.publish(touched, _commit_nothing)

    def _begun(self) -> PreparedTransaction:
        """Return an open transaction of the tables, once the lock of the database is free."""
        wait_for_lock(self._engine.db_lock, is_async=self.source.dialect.is_async)
        prepared = PreparedTransaction(self._engine)
        if self.source.dialect.is_async:
            begun: PreparedTransaction = util.await_only(prepared.begin_async())
            return begun
        return prepared.begin()

    def _fill(
        self, touched: TouchedRows, kind: MirrorKind, table: Table[Any], keys: set[Key] | None
    ) -> None:
        """Read the rows of `keys` again (None: all rows), and write what differs to the table."""
        statements, write = unguarded_statements(table), self._engine.write
        if keys is not None and not keys:
            return
        connection = touched.connection
        if not touched.dropped.isdisjoint(kind.places) and not _is_there(connection, kind):
            found = []
        else:
            found = kind.rows(connection) if keys is None else kind.rows_of(connection, keys)
        keyed = keyed_of(table)
        assert keyed is not None
        key, held = keyed.key, keyed.by_key
        rows = {key(row): row for row in found}
        asked = list(held if keys is None else _table_keys(keys, kind))
        if touched.overtaken or touched.doubtful:
            rows, asked = without_old(touched, table, rows, asked, held)
        if not held:
            self.changed[table] = list(rows)
            write(table, statements.add_all, list(rows.values()))
            return
        gone = [held[each] for each in asked if each not in rows and each in held]
        new = [row for each, row in rows.items() if held.get(each) != row]
        self.changed[table] = [*map(key, gone), *map(key, new)]
        if gone:
            write(table, statements.remove_all, gone)
        if new:
            write(table, statements.upsert_all, new)

    def _is_unknown(self, error: BaseException, touched: TouchedRows) -> bool:
        """Return True if the SQL database may have committed nevertheless."""
        dialect: Any = self.source.dialect
        if not isinstance(error, dialect.loaded_dbapi.Error):
            return True
        found: bool = dialect.is_disconnect(error, touched.connection.connection, None)
        return found

    def _look_again(self, touched: TouchedRows, error: BaseException) -> None:
        """Read the touched rows again over a new connection, and publish them.

        If that fails, the mirror stays behind. `error` gets a note of the outcome.
        """
        behind = self.behind = TouchedRows(touched.connection)
        behind.take(touched)
        try:
            _roll_back(touched.connection)
            with self.source.connect() as connection:
                behind.connection = connection
                self.publish(behind, _commit_nothing)
            error.add_note(_READ_AGAIN)
        except Exception as own:
            error.add_note(_BEHIND.format(own))


def _roll_back(connection: Connection) -> None:
    """Roll back the transaction of a connection, if it is not committed."""
    dialect: Any = connection.dialect
    with suppress(Exception):  # the connection is lost
        dialect.do_rollback(connection.connection)


def _is_there(connection: Connection, kind: MirrorKind) -> bool:
    """Return True if all SQL tables exist that a kind reads."""
    found = inspect(connection)
    return all(found.has_table(table.name, schema=table.schema) for table in kind.places)


def _commit_nothing() -> None:
    """Do nothing: the rows that are read are committed already."""


def _table_keys(keys: Iterable[Key], kind: MirrorKind) -> Iterable[Any]:
    """Return the keys in the form of tables: a single value bare."""
    return (key[0] for key in keys) if len(kind.key) == 1 else keys


def _at_one_time(connection: Connection) -> Connection:
    """Return a connection whose statements all see one snapshot, if the database supports that."""
    if connection.dialect.name != "postgresql":
        return connection
    return connection.execution_options(isolation_level="REPEATABLE READ")


_COMMITTED = (
    "  the SQL database has committed the statement by itself: the mirror is behind until its next "
    "commit, or m.reload()"
)
_READ_AGAIN = (
    "  the answer to COMMIT was lost: the mirror has read again what the transaction had touched, "
    "and shows what the SQL database has"
)
_BEHIND = (
    "  the answer to COMMIT was lost, and what the transaction had touched could not be read again:"
    " {!r:.100}\n  the mirror is behind until its next commit, or m.reload()"
)


PATIENCE = 10.0
"""The seconds that a commit waits for another transaction."""
FIRST = 0.0002
LONGEST = 0.005
"""The seconds between two checks: at first, and at most."""


def wait_for_lock(db_lock: Any, *, is_async: bool) -> None:
    """Wait until no other transaction is open; the next one to begin gets the lock.

    is_async: True to wait in the event loop, so that its other tasks run.

    Raises
    ------
    TransactionError: the wait takes longer than `PATIENCE`.
    """
    deadline, pause = time.monotonic() + PATIENCE, FIRST
    while db_lock.is_taken:
        if time.monotonic() > deadline:
            raise TransactionError(_TOO_LONG.format(PATIENCE))
        if is_async:
            util.await_only(asyncio.sleep(pause))
        else:
            if _is_of_this_loop(db_lock):
                return  # waiting would block its task: `begin` raises
            time.sleep(pause)
        pause = min(2 * pause, LONGEST)


def _is_of_this_loop(db_lock: Any) -> bool:
    """Return True if a transaction of this thread has the lock, so that waiting would block it."""
    owner = db_lock.owner
    return (db_lock.aside if owner is None else owner[0]) == get_ident()  # type: ignore[no-any-return]


_TOO_LONG = (
    "another transaction of the database has been open for {:g} seconds, for which this commit "
    "waits; it may wait itself for a row that this one has changed\n"
    "  nothing has changed, here or there; do it again, and keep transactions short"
)
