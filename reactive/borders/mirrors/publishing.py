"""A commit of both: what a SQL transaction has touched is read, operators step, SQL commits.

    begin      others' writes to the database wait from here to the end
    read       what was touched, within the SQL transaction; only the difference is a change
    prepare    what a callable of a view raises is raised here: SQL does not commit
    COMMIT     refused: all is undone, and both are as they were
    publish    views show it, subscribers hear

So the order of commits is that of the lock: of two transactions that touched the same rows the one
that SQL commits first is published first. If the answer to COMMIT is lost, nobody knows which of
the two it is: then the rows are read again, by another connection, and what is found is published.
Should that fail too, it is done with the next commit, or by `reload`.

State:  what is still to be read again.
Cost:   of a commit one or more SELECTs by keys for each class that was touched.

Waiting for the transaction of another one to end, before a session commits; not for ever.

    A    with db.transaction(commit_with=session): ...      waits for a row that B has changed
    B    session.commit()                                   waits for A's transaction to end

Neither system knows of the other one's lock. So B gives up after `PATIENCE` seconds, its SQL
transaction is rolled back, and A goes on.

Cost: nothing if nobody has a transaction open.
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

from reactive.api.table import Table
from reactive.borders.mirrors.kinds import Key, MirrorKind
from reactive.borders.mirrors.touching.statements import written_by_triggers
from reactive.borders.mirrors.touching.touched import TouchedRows, commit_over, without_old
from reactive.engine.transactions.prepared import Prepared
from reactive.errors import TransactionError


class MirrorPublisher:
    """The tables of one engine of a mirror, and what is written to them.

    Parameters
    ----------
    engine: of the database, `db._engine`.
    source: the engine of SQLAlchemy that is read.
    tables: what is mirrored, and by which tables.
    """

    def __init__(
        self, engine: Any, source: Engine, tables: list[tuple[MirrorKind, Table[Any]]]
    ) -> None:
        self._engine = engine
        self.source = source
        self.tables = tables
        self.behind: TouchedRows | None = None
        """What could not be read again yet."""
        self.changed: dict[Any, list[Any]] = {}
        """The keys of the rows that the last commit changed."""
        self.follower: Any = None
        """Who notes what is touched."""

    def has_no_tables(self) -> bool:
        """Whether all were dropped, or replaced."""
        there = self._engine.tables
        return all(there.get(table.plan.number) is not table for _, table in self.tables)

    def stop(self) -> None:
        """Follow no more."""
        self.follower.stop()
        if self in self._engine.mirrors:
            self._engine.mirrors.remove(self)

    def publish(self, touched: TouchedRows, commit: Callable[[], None]) -> None:
        """Commit both, or neither.

        Raises
        ------
        Exception: what a view raises, or the SQL database; both are as they were.
        TransactionError: the caller has a transaction of the database open.
        """
        if self._engine.db_lock.is_closed:
            commit()
            return
        try:
            self._publish(touched, commit)
        except BaseException:
            _roll_back(touched.connection)  # SQLAlchemy does not: it takes COMMIT to have been sent
            raise

    def read_again(self, touched: TouchedRows) -> None:
        """Publish what a statement has committed by itself.

        Raises
        ------
        Exception: what a view raises, or the SQL database; the mirror is behind then.
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
        prepared = self._begun()
        try:
            parts = self._gathered(touched)
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
        """The transactions that are open beside one, and read one state."""
        found: list[TouchedRows] = [] if self.follower is None else self.follower.others(touched)
        return found

    def _gathered(self, touched: TouchedRows) -> list[tuple[MirrorPublisher, TouchedRows]]:
        """Return this part and the others of the database over the same engine.

        The others would be notified only after this one has stepped. Each is paired with the rows
        that it must read.
        """
        parts = [(self, touched)]
        for part in self._engine.mirrors:
            if part.source is self.source and part is not self:
                parts.append((part, part.follower.taken(touched.connection)))
        return parts

    def fill(self, touched: TouchedRows) -> None:
        """Make tables what the SQL transaction has made of its rows; in a transaction."""
        self.changed = {}
        if self.behind is not None:
            touched.take(self.behind)
        for kind, table in self.tables:
            if self._engine.tables.get(table.plan.number) is table:  # it may have been dropped
                self._fill(touched, kind, table, touched.of(kind))

    def follows(self, connection: Connection) -> bool:
        """Whether a connection is of the engine that is followed."""
        return connection.dialect is self.source.dialect

    def gather(self, connection: Connection) -> None:
        """As `fill`, for a transaction that commits a connection itself; in that transaction."""
        touched = self.follower.taken(connection)
        if touched or self.behind is not None:
            self.fill(touched)
            self.follower.touched(connection).gathered = self.changed

    def rows(self, kind: MirrorKind) -> list[Any]:
        """All rows of a kind, by a connection of its own."""
        with self.source.connect() as connection:
            return kind.rows(connection)

    def load(self) -> None:
        """Make tables what the SQL database has in its own, in one commit."""
        with self.source.connect() as connection:
            watched = self.follower.watched
            watched.know_triggers(written_by_triggers(connection, watched.tables))
        with self.source.connect() as connection:
            touched = TouchedRows(_at_one_time(connection), everything=True)
            self.publish(touched, _commit_nothing)

    def _begun(self) -> Prepared:
        wait_for_lock(self._engine.db_lock, is_async=self.source.dialect.is_async)
        prepared = Prepared(self._engine)
        if self.source.dialect.is_async:
            begun: Prepared = util.await_only(prepared.begin_async())
            return begun
        return prepared.begin()

    def _fill(
        self, touched: TouchedRows, kind: MirrorKind, table: Table[Any], keys: set[Key] | None
    ) -> None:
        guarded: Any = table._do
        statements, write = guarded.unguarded, self._engine.write
        if keys is not None and not keys:
            return
        connection = touched.connection
        if not touched.dropped.isdisjoint(kind.places) and not _is_there(connection, kind):
            found = []
        else:
            found = kind.rows(connection) if keys is None else kind.rows_of(connection, keys)
        key, held = table._keyed.key, table._keyed.by_key
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
        """Whether the SQL database may have committed nevertheless."""
        dialect: Any = self.source.dialect
        if not isinstance(error, dialect.loaded_dbapi.Error):
            return True
        found: bool = dialect.is_disconnect(error, touched.connection.connection, None)
        return found

    def _look_again(self, touched: TouchedRows, error: BaseException) -> None:
        """Publish what the SQL database has now."""
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
    """Have the transaction of a connection be over, if it is not committed."""
    dialect: Any = connection.dialect
    with suppress(Exception):  # it is lost
        dialect.do_rollback(connection.connection)


def _is_there(connection: Connection, kind: MirrorKind) -> bool:
    """Whether all SQL tables are there that a kind is read from."""
    found = inspect(connection)
    return all(found.has_table(table.name, schema=table.schema) for table in kind.places)


def _commit_nothing() -> None:
    """What is read is committed already."""


def _table_keys(keys: Iterable[Key], kind: MirrorKind) -> Iterable[Any]:
    """The keys as tables have them: a single value as it is."""
    return (key[0] for key in keys) if len(kind.key) == 1 else keys


def _at_one_time(connection: Connection) -> Connection:
    """A connection whose statements all see one state of the database, where that is an option."""
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
"""Seconds that a commit waits for the transaction of another one."""
FIRST = 0.0002
LONGEST = 0.005
"""Seconds between two looks: the first time, and at most."""


def wait_for_lock(db_lock: Any, *, is_async: bool) -> None:
    """Wait until nobody else has a transaction open; whoever begins first then has it.

    Raises
    ------
    TransactionError: that takes too long.
    """
    deadline, pause = time.monotonic() + PATIENCE, FIRST
    while db_lock.is_taken:
        if time.monotonic() > deadline:
            raise TransactionError(_TOO_LONG.format(PATIENCE))
        if is_async:
            util.await_only(asyncio.sleep(pause))
        else:
            if _is_of_this_loop(db_lock):
                return  # its task could never end it while this one waits: `begin` says so
            time.sleep(pause)
        pause = min(2 * pause, LONGEST)


def _is_of_this_loop(db_lock: Any) -> bool:
    owner = db_lock.owner
    return (db_lock.aside if owner is None else owner[0]) == get_ident()  # type: ignore[no-any-return]


_TOO_LONG = (
    "another transaction of the database has been open for {:g} seconds, for which this commit "
    "waits; it may wait itself for a row that this one has changed\n"
    "  nothing has changed, here or there; do it again, and keep transactions short"
)
