"""The store in a schema of a Postgres database.

    reactive.state      the format, the version of the last commit, and the id of the writer
    reactive.tables     the schema of each table, and the SQL table with its rows
    one table each      the rows, with one SQL column per field, readable by other programs
    reactive.reactive_commits,
    reactive.reactive_changes   the last commits, if any are kept

Each `write` is one transaction of Postgres that includes the version, so it is present as a whole
or not at all. If the connection is lost during a write, a new connection finds out whether it was
committed, and writes it once more if not.

An advisory lock excludes a second writer for as long as the connection lives. The store records the
id of its writer: if another database has opened the store while the connection was lost, nothing
more is written.

State:  a connection, the list of tables.
Cost:   a commit takes three round trips to the server, and a fourth per table that it changes.
Source: PostgreSQL, "Advisory Locks".
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, TypeVar

from reactive.borders.durable import sqlite_file, store
from reactive.borders.durable.refusals import later_format, written_by_others
from reactive.engine.runtime.needs import driver, driver_dsn
from reactive.engine.runtime.sql_names import quote_name
from reactive.errors import DurabilityError

T = TypeVar("T")
FORMAT = 1
"""The format of the schema; a later one is refused."""
PATIENCE = 10.0
"""The seconds during which a lost server is retried."""
PAUSE = 0.1
"""The seconds between two tries."""


class PostgresStore:
    """A schema of a Postgres database as a `Store`.

    Parameters
    ----------
    address: the database, in the form of `psycopg2.connect` or SQLAlchemy. The user needs the right
        to create the schema, or to create tables in it.
    synchronous: "full" makes each commit wait for the server's disk, whatever the server's setting;
        "normal" uses the server's setting, which usually waits too.
    schema: the name of the schema.

    >>> store = PostgresStore("postgresql://ann:secret@localhost/shop")
    >>> store.name
    'Postgres, schema reactive of localhost/shop'
    """

    def __init__(
        self,
        address: str,
        *,
        synchronous: Literal["normal", "full"] = "normal",
        schema: str = "reactive",
    ) -> None:
        self._dsn = driver_dsn(address)
        given = driver().extensions.parse_dsn(self._dsn)
        where = f"{given.get('host', 'localhost')}/{given.get('dbname', '')}"
        self.name = f"Postgres, schema {schema} of {where}"
        self._schema = schema
        self._synchronous = synchronous
        self._owner = secrets.token_hex(8)
        self._keep = 0
        self._has_past = True
        """True if the history may hold commits that the next write must delete."""
        self._connection: Any = None
        self._forgotten: Any = None
        self._is_open = False
        self._tables: dict[str, store.PostgresTable] = {}

    # Opening and closing.

    def open(self, keep: int) -> None:
        """Connect, lock, and create what is missing; close again on any error. See `Store.open`."""
        self._keep = keep
        try:
            with self._reporting("open"):
                self._connect()
                self._in_transaction(self._make)
                self._look()
        except BaseException:
            self.close()
            raise
        self._is_open = True

    def _connect(self) -> None:
        """Connect, and acquire the lock. Raises if another database holds the lock."""
        psycopg2 = driver()
        self._connection = psycopg2.connect(
            self._dsn, application_name="reactive store", client_encoding="UTF8"
        )
        self._run("set extra_float_digits = 1")
        self._run(f"set search_path = {quote_name(self._schema)}, pg_catalog")
        if self._synchronous == "full":
            self._run("set synchronous_commit = on")
        lock = "select pg_try_advisory_lock(hashtextextended(?, 0))"
        (taken,) = self._run(lock, [f"reactive {self._schema}"]).fetchone()
        self._connection.commit()
        if not taken:
            self._connection.close()
            raise _LockHeldError(
                f"{self.name} is open in another process, or in another database of this one\n"
                "  durable tables have one writer; others may read them by SQL"
            )

    def _make(self) -> None:
        """Create the schema and its catalog if missing, and become its owner.

        Raises `DurabilityError` if its format is later than that of this library.
        """
        self._run("set local client_min_messages = warning")
        found = self._run("select 1 from pg_namespace where nspname = ?", [self._schema]).fetchone()
        if found is None:
            self._run(f"create schema {quote_name(self._schema)}")
        for statement in sqlite_file.MADE:
            self._run(statement.format(schema=quote_name(self._schema)))
        self._run(
            f"insert into {self._state} values ('format', ?), ('version', '0') "
            "on conflict do nothing",
            [str(FORMAT)],
        )
        found = self._state_number("format")
        if found > FORMAT:
            raise DurabilityError(later_format(self.name, found, FORMAT))
        self._run(
            f"insert into {self._state} values ('owner', ?) "
            "on conflict (name) do update set value = excluded.value",
            [self._owner],
        )

    def _look(self) -> None:
        """Read the catalog of tables."""
        query = f"select {', '.join(sqlite_file.LISTED)} from {self._catalog} order by rank"
        self._tables = {}
        for entry in self._run(query).fetchall():
            with sqlite_file.report_damage(
                self.name, "tables", dict(zip(sqlite_file.LISTED, entry, strict=True))
            ):
                table = sqlite_file.postgres_table_of(self._schema, *entry)
            self._tables[table.schema.table] = table
        self._connection.commit()

    def _state_number(self, name: str) -> int:
        """Return the number stored as `version` or `format`. Raises if it is damaged."""
        found = self._run(f"select value from {self._state} where name = ?", [name]).fetchone()
        with sqlite_file.report_damage(self.name, "state", {name: found and found[0]}):
            return int(found[0])

    def close(self) -> None:
        """Close the connection, which releases the lock; do nothing if there is none."""
        connection, self._connection = self._connection, None
        self._is_open = False
        if connection is not None:
            with self._reporting("close"):
                _release(connection)
                connection.close()

    def after_fork(self) -> None:
        """Give up the connection in a forked child, without closing it."""
        self._forgotten = self._connection  # the driver closes it in the process that opened it
        self._connection = None
        self._is_open = False

    # Reading.

    def version(self) -> int:
        """Return the last commit's number, after a rollback or a new connection."""
        self._check_open()
        with self._reporting("read"):
            self._recover()
            self._look()
            found = self._state_number("version")
            self._connection.rollback()
            return found

    def _recover(self) -> None:
        """Roll back; reconnect if the connection is lost, trying for `PATIENCE` seconds."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                self._undo()
                return
            except (driver().OperationalError, driver().InterfaceError, _LockHeldError):
                if time.monotonic() > until:
                    raise
            time.sleep(PAUSE)

    def _undo(self) -> None:
        """Roll back; connect again if the connection is lost.

        Raises `DurabilityError` if another database has opened the schema meanwhile.
        """
        if self._connection is not None and not self._connection.closed:
            try:
                self._connection.rollback()
                self._run("select 1")
                self._connection.rollback()
                return
            except driver().Error:
                self._connection.close()
        self._connect()
        owner = self._run(f"select value from {self._state} where name = 'owner'").fetchone()
        self._connection.rollback()
        if owner is None or owner[0] != self._owner:
            raise DurabilityError(
                f"{self.name} was opened by another database while the connection was lost\n"
                "  close this database, and open it anew: it will be as stored"
            )

    def tables(self) -> Mapping[str, store.Schema]:
        return {name: table.schema for name, table in self._tables.items()}

    def rows(self, table: str) -> store.Rows:
        """Yield the rows of a table in batches, by a cursor of the server. See `Store.rows`."""
        self._check_open()
        found = self._tables[table]
        with self._reporting("read"):
            cursor = self._connection.cursor(name="reactive_rows")
            cursor.itersize = store.BATCH
            cursor.execute(found.rows)
        while True:
            with self._reporting("read"):
                batch = cursor.fetchmany(store.BATCH)
            if not batch:
                break
            yield from sqlite_file.read_postgres_rows(self.name, found, batch)
        with self._reporting("read"):
            cursor.close()
            self._connection.rollback()

    def history(self, since: int) -> Sequence[store.LoggedCommit]:
        """Return the kept commits after version `since`.

        Raises `DurabilityError` if one is damaged.
        """
        self._check_open()
        kept = f"a commit after {since}"
        with (
            self._reporting("read"),
            sqlite_file.report_damage(self.name, "reactive_changes", kept),
        ):
            found = sqlite_file.read_history(self._run, since)
            self._connection.rollback()
            return [sqlite_file.unescape_commit(logged) for logged in found]

    # Writing.

    def write(self, records: Sequence[store.Record]) -> None:
        """Write commits in one transaction; again if a lost connection prevented the first."""
        self._check_open()
        with self._reporting("write"):
            try:
                self._in_transaction(lambda: self._write(records))
            except driver().Error:
                if not self._connection.closed or not records[-1].is_commit:
                    raise
                if not self._stands(records):
                    self._in_transaction(lambda: self._write(records))
        self._has_past = False

    def _stands(self, records: Sequence[store.Record]) -> bool:
        """Return True if a transaction whose connection was lost is committed.

        Holding the lock again proves that the lost session has ended, and its transaction with it.
        """
        self._recover()
        found = self._state_number("version")
        self._connection.rollback()
        return found >= records[-1].version

    def _write(self, records: Sequence[store.Record]) -> None:
        """Run the statements of `write`: rows, history and version. The caller commits."""
        if records[-1].is_safe:
            self._run("set local synchronous_commit = on")
        for record in records:
            for change in record.changes:
                self._change(self._tables[change.table], change)
            if self._keep and record.is_commit:
                changes = [
                    c._replace(table=sqlite_file.escape_name(c.table)) for c in record.changes
                ]
                noted = record._replace(changes=changes)
                sqlite_file.record_commit(self._run, self._many, noted)
        if self._keep or self._has_past:
            sqlite_file.trim_history(self._run, self._keep)
        self._run(
            f"update {self._state} set value = ? where name = 'version'",
            [str(records[-1].version)],
        )

    def _change(self, table: store.PostgresTable, change: store.Change) -> None:
        """Apply a change to its table. Raises if a row to delete or to count is not there."""
        gone = {table.id_of(row): row for row in change.gone}
        come = [(row, 1) for row in change.come]
        for row, before, after in change.counted:
            if not after:
                gone[table.id_of(row)] = row
            else:
                come.append((row, after))
            if before and after:
                self._check_there(table, [row])
        written = [table.written(row, weight) for row, weight in come]
        for values in written:
            gone.pop(values[0], None)  # the insert replaces it
        if gone:
            changed = self._run(table.delete, [list(gone)]).rowcount
            if changed != len(gone):
                raise self._refusal(table, changed, list(gone.values()))
        self._put(table, written)

    def _check_there(self, table: store.PostgresTable, rows: list[Any]) -> None:
        """Raise `DurabilityError` if some of the rows are not in the table."""
        found = self._run(table.there, [[table.id_of(row) for row in rows]]).rowcount
        if found != len(rows):
            raise self._refusal(table, found, rows)

    def _refusal(
        self, table: store.PostgresTable, changed: int, rows: list[Any]
    ) -> DurabilityError:
        return DurabilityError(written_by_others(self.name, table.schema.table, changed, rows))

    def _put(self, table: store.PostgresTable, written: Sequence[Sequence[Any]]) -> None:
        """Insert rows in their written form, replacing rows with the same `_id`."""
        if written:
            values = driver().extras.execute_values
            values(self._connection.cursor(), table.put, written, page_size=store.BATCH)

    def create(self, schema: store.Schema, rows: store.Rows = ()) -> None:
        """Create a table with rows, replacing one of the same name. See `Store.create`."""
        self._check_open()
        with self._reporting("write"):
            old = self._tables.get(schema.table)
            taken = [each.place for each in self._tables.values() if each is not old]
            new = store.place_postgres_table(schema, self._schema, taken)
            self._in_transaction(lambda: self._create(new, old, rows))
            self._tables.pop(schema.table, None)
            self._tables[schema.table] = new

    def _create(
        self, new: store.PostgresTable, old: store.PostgresTable | None, rows: store.Rows
    ) -> None:
        """Run the statements of `create`, after those that drop `old`. The caller commits."""
        if old is not None:
            self._drop(old)
        self._run(new.create)
        self._run(
            f"insert into {self._catalog} (name, text, place, columns) values (?, ?, ?, ?)",
            [
                sqlite_file.escape_name(new.schema.table),
                store.text_of_schema(new.schema),
                new.place,
                list(new.columns),
            ],
        )
        for batch, weight in rows:
            self._put(new, [new.written(row, weight) for row in batch])

    def drop(self, table: str) -> None:
        """Delete a table and its rows; do nothing if there is none of this name."""
        self._check_open()
        with self._reporting("write"):
            found = self._tables.get(table)
            if found is not None:
                self._in_transaction(lambda: self._drop(found))
                del self._tables[table]

    def _drop(self, table: store.PostgresTable) -> None:
        """Delete a table, its catalog entry, and the history if commits write to the table."""
        self._run(table.drop)
        name = sqlite_file.escape_name(table.schema.table)
        self._run(f"delete from {self._catalog} where name = ?", [name])
        if not table.schema.is_beside:
            sqlite_file.trim_history(self._run, 0)

    def _in_transaction(self, act: Callable[[], T]) -> T:
        """Run `act` in one transaction, and return its result; roll back if it raises."""
        self._connection.rollback()
        try:
            done = act()
            self._connection.commit()
        except BaseException:
            if not self._connection.closed:
                self._connection.rollback()
            raise
        return done

    # Calls of the driver.

    @property
    def _state(self) -> str:
        return f"{quote_name(self._schema)}.state"

    @property
    def _catalog(self) -> str:
        return f"{quote_name(self._schema)}.tables"

    def _run(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement with `?` for its values; return the cursor, to fetch from."""
        cursor = self._connection.cursor()
        cursor.execute(statement.replace("?", "%s"), values or None)
        return cursor

    def _many(self, statement: str, rows: Sequence[Any]) -> None:
        """Run an insert for many rows, in few messages."""
        values = driver().extras.execute_values
        values(self._connection.cursor(), f"{statement.partition('(')[0]}%s", rows)

    def _check_open(self) -> None:
        if not self._is_open:
            raise DurabilityError(f"{self.name} is not open\n  open the database that it is of")

    @contextmanager
    def _reporting(self, what: str) -> Iterator[None]:
        """Raise errors of the driver as `DurabilityError`, which names the failed action `what`."""
        try:
            yield
        except driver().Error as error:
            text = " ".join(str(error).split())
            raise DurabilityError(
                f"cannot {what} {self.name}: {text}\n"
                "  see that the server can be reached, and that the user may do this"
            ) from error


def _release(connection: Any) -> None:
    """Release locks now: the server ends a session some time after its connection is closed."""
    with suppress(driver().Error):
        connection.rollback()
        with connection.cursor() as cursor:
            cursor.execute("select pg_advisory_unlock_all()")
        connection.commit()


class _LockHeldError(DurabilityError):
    """The lock is held, perhaps by the connection that was lost."""
