"""SQLite files with durable tables: reading, snapshots, history, backup; the Postgres catalog.

`SqliteFile` reads a file through an open connection; `SqliteStore` derives from it and writes.

`SqliteSnapshot` is a file as of one commit; another process may write to the file meanwhile. In WAL
mode a reader sees the last commit before it began, and does not block the writer. But the log
cannot be restarted, and grows, while a reader is open: so a snapshot is open only while it is read.
A closed snapshot keeps the version that it had.

`Database.backup` copies a file that may be written to meanwhile:

    commits until now  -->  read in one transaction  -->  PATH-part  -->  synced, renamed to PATH

Commits continue during the copy: in WAL mode a reader sees the file as of its beginning.

The catalog of a Postgres store:

    tables          the schema of each table, and the SQL table with its rows
    names           as JSON, since text in Postgres cannot contain NUL

History: the last commits of a store, for `Store.history`.

State:  a file has a connection and the list of its tables; a snapshot, while open, a read
        transaction; the history one line per commit, and one per row that it changed.
Cost:   that of SQLite; `newer` takes some 200 us; a backup reads and writes the file once; the
        catalog is read in O(entries); the history writes the rows of a commit a second time.
Source: sqlite.org/isolation.html, sqlite.org/wal.html ("Read-Only Databases"),
        sqlite.org/backup.html.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from optimizer.errors import PlanError
from reactive.borders.durable import sqlite_tables
from reactive.borders.durable.file_lock import other_name_with_log
from reactive.borders.durable.refusals import (
    DAMAGED,
    WRITER,
    call_failure,
    changed_by_others,
    damaged_row,
    has_other_name,
    is_for_reading,
    later_format,
    no_database,
    no_file,
    not_whole,
)
from reactive.borders.durable.rows.values import tree, untree
from reactive.borders.durable.sqlite_tables import SqliteTable, group_by_weight
from reactive.borders.durable.store import (
    LoggedCommit,
    PostgresTable,
    Record,
    Rows,
    Schema,
    schema_of_text,
)
from reactive.errors import DurabilityError

FORMAT = 1
"""The format of the file; a later one is refused."""


class SqliteFile:
    """The reading half of a store in a SQLite file; subclasses open the connection."""

    def __init__(self, path: str | os.PathLike[str], connect: Callable[..., Any]) -> None:
        self.name = os.path.realpath(os.fspath(path))
        self._connect = connect
        self._connection: Any = None
        self._tables: dict[str, SqliteTable] = {}
        self._schemas: dict[str, Schema] = {}
        self._places: set[str] = set()
        """The lower-case names of the SQL tables."""
        self._last_rank = 0

    def version(self) -> int:
        """Return the last version, after reading the catalog again; see `Store.version`."""
        with self._reporting("read"):
            self._look()
            return self._state_number("version")

    def tables(self) -> Mapping[str, Schema]:
        """Return the schemas; see `Store.tables`."""
        return self._schemas

    def rows(self, table: str) -> Rows:
        """Yield the rows of a table; see `Store.rows`."""
        found = self._tables[table]
        self._check_columns(found)
        cursor = self._reading(found.rows)
        while batch := self._fetch_batch(cursor):
            yield batch if found.columns else [()] * len(batch), 1
        if not found.is_keyed:
            cursor = self._reading(found.rows_often)
            while batch := self._fetch_batch(cursor):
                try:
                    weights = group_by_weight(batch)
                except ValueError as error:
                    raise DurabilityError(damaged_row(self.name, table, str(error))) from error
                for weight, rows in weights.items():
                    yield rows if found.columns else [()] * len(rows), weight

    def _check_columns(self, table: SqliteTable) -> None:
        """Raise if the table has other columns: SQLite reads a missing column as its name."""
        there = [name for _, name, *_ in self._reading(table.there)]
        if there != [*table.columns, *([] if table.is_keyed else [table.weight])]:
            raise DurabilityError(changed_by_others(self.name, table.schema.table, table.name))

    def _reading(self, statement: str) -> Any:
        with self._reporting("read"):
            return self._run(statement)

    def _fetch_batch(self, cursor: Any) -> list[tuple[Any, ...]]:
        """Return the next rows of a cursor; an empty list after the last one."""
        with self._reporting("read"):
            found: list[tuple[Any, ...]] = cursor.fetchmany(sqlite_tables.BATCH)
            return found

    def history(self, since: int) -> Sequence[LoggedCommit]:
        """Return the kept commits; see `Store.history`."""
        with self._reporting("read"):
            try:
                found = read_history(self._run, since)
                for logged in found:
                    datetime.fromtimestamp(logged.time, UTC)
                return found
            except DAMAGED as error:
                kept = f"a commit after {since}"
                raise DurabilityError(damaged_row(self.name, "reactive_changes", kept)) from error

    def _check_opened(self) -> None:
        """Check the format of the opened file, and read its catalog.

        Raises
        ------
        DurabilityError: the format is later than this library's.
        """
        found = self._state_number("format")
        if found > FORMAT:
            raise DurabilityError(later_format(self.name, found, FORMAT))
        self._look()

    def _state_number(self, name: str) -> int:
        """Return the number stored as `version` or `format`. Raises if it is damaged."""
        found = self._run("select value from reactive_state where name = ?", (name,)).fetchone()
        if found is None or type(found[0]) is not int:
            raise DurabilityError(damaged_row(self.name, "reactive_state", {name: found}))
        return int(found[0])

    def _check_whole(self) -> None:
        """Raise if pages of the file are missing or inconsistent."""
        (found,) = self._run("pragma quick_check(1)").fetchone()
        if found != "ok":
            raise DurabilityError(not_whole(self.name, found))

    def _look(self) -> None:
        """Read the catalog of tables. Raises `DurabilityError` if an entry is damaged."""
        found = self._run(f"select {', '.join(_LISTED)} from reactive_tables order by rank")
        self._tables, self._schemas, self._places = {}, {}, set()
        for rank, *entry in found.fetchall():
            try:
                self._add(_sqlite_table_of(*entry))
                self._last_rank = int(rank)
            except DAMAGED as error:
                told = dict(sorted(zip(_LISTED[1:], entry, strict=True)))
                raise DurabilityError(damaged_row(self.name, "reactive_tables", told)) from error

    def _add(self, table: SqliteTable) -> None:
        """Add a table to the catalog in memory."""
        self._tables[table.schema.table] = table
        self._schemas[table.schema.table] = table.schema
        self._places.add(table.name.lower())

    def _take_out(self, table: SqliteTable) -> None:
        """Remove a table from the catalog in memory."""
        del self._tables[table.schema.table], self._schemas[table.schema.table]
        self._places.discard(table.name.lower())

    # Opening.

    def _begin(self) -> None:
        """Connect to the file, and check what it contains."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the file; see `Store.close`."""
        raise NotImplementedError

    def _begin_or_close(self) -> None:
        """Open the file; close the connection if that fails."""
        try:
            with self._reporting("open"):
                self._begin()
        except BaseException:
            self.close()
            raise

    # Calls of SQLite.

    def _closed_error(self) -> DurabilityError:
        return DurabilityError(f"{self.name} is not open\n  {WRITER}")

    def _run(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(statement, values)

    @contextmanager
    def _reporting(self, what: str) -> Iterator[None]:
        """Raise errors of SQLite and the file system as `DurabilityError`.

        The error names the failed action `what`; also raise it if the file is not open.
        """
        if self._connection is None and what not in ("open", "close"):
            raise self._closed_error()
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise DurabilityError(call_failure(self.name, what, error)) from error


_LISTED = ("rank", "name", "text", "sql_name", "columns")


def _sqlite_table_of(name: str, text: str, sql_name: str, columns: str) -> SqliteTable:
    """Return the table of an entry of the catalog.

    Raises
    ------
    Exception: the entry is damaged.
    """
    schema = schema_of_text(name, text)
    named = tuple(columns.split("\n")) if schema.columns else ()
    if type(name) is not str or type(sql_name) is not str or len(named) != len(schema.columns):
        raise ValueError("it does not fit its columns")
    if schema.key is not None:
        _ = schema.key_place  # raises if there is none
    return SqliteTable(schema, sql_name, named)


class SqliteSnapshot(SqliteFile):
    """A read-only `Store` of a SQLite file as of one commit.

    Parameters
    ----------
    path: the path of the file.
    """

    at = 0
    """The version of the snapshot."""

    def __init__(self, path: str) -> None:
        super().__init__(path, sqlite3.connect)
        self._forgotten: Any = None
        self._when: float | None = None
        self._id: Any = None
        self._is_known = False
        """True once the whole file was checked for damage."""

    def open(self, keep: int = 0) -> None:
        """Open the file without locking it; see `Store.open`.

        Raises `DurabilityError` if there is none, or another name of it has a log.
        """
        if not Path(self.name).is_file():
            raise DurabilityError(no_file(self.name))
        other = other_name_with_log(self.name)
        if other is not None:
            raise DurabilityError(has_other_name(self.name, other))
        self._begin_or_close()

    def _begin(self) -> None:
        """Open the file, begin the transaction that holds the snapshot, and note its version.

        Raises `DurabilityError` if the file is damaged, or not one of this library.
        """
        self._connection = self._connect(
            f"{Path(self.name).as_uri()}?mode=ro",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )
        self._run("begin")
        tables = {name for (name,) in self._run("select name from sqlite_master")}
        if "reactive_state" not in tables:
            raise DurabilityError(no_database(self.name))
        if not self._is_known:
            self._check_whole()
        self._check_opened()
        self.at = self.version()
        self._when = self._time_of(self.at)
        self._id = self._run("select value from reactive_state where name = 'id'").fetchone()

    def newer(self) -> SqliteSnapshot:
        """Return a snapshot of the current file."""
        found = SqliteSnapshot(self.name)
        found._is_known = True
        found.open()
        return found

    def has_all_since(self, older: SqliteSnapshot) -> bool:
        """Return True if `read_history` has each commit since `older`, of the same file."""
        if self._id != older._id:
            return False
        if self.at == older.at:
            return self._when == older._when
        return older._when is not None and self._time_of(older.at) == older._when

    def _time_of(self, version: int) -> float | None:
        """Return the time of a commit; None if the history does not have it."""
        query = "select time from reactive_commits where version = ?"
        found = self._run(query, (version,)).fetchone()
        return None if found is None else float(found[0])

    def history(self, since: int) -> Sequence[LoggedCommit]:
        """Return the commits after a version, up to this snapshot; see `Store.history`."""
        if self._connection is not None:
            return super().history(since)
        newer = self.newer()
        try:
            return [logged for logged in newer.history(since) if logged.version <= self.at]
        finally:
            newer.close()

    def write(self, records: Sequence[Record]) -> NoReturn:
        """Refuse, because the file is read-only."""
        raise DurabilityError(is_for_reading(self.name))

    def create(self, schema: Schema, rows: Rows = ()) -> NoReturn:
        """Refuse, because the file is read-only."""
        there = ", ".join(map(repr, self.tables())) or "none"
        raise DurabilityError(
            f"{is_for_reading(self.name)}; it has no table {schema.table!r}; there are: {there}"
        )

    def drop(self, table: str) -> NoReturn:
        """Refuse, because the file is read-only."""
        raise DurabilityError(is_for_reading(self.name))

    def after_fork(self) -> None:
        """Drop all references without closing; see `Store.after_fork`."""
        self._forgotten, self._connection = self._connection, None

    def close(self) -> None:
        """Close the snapshot, which keeps its version; see `Store.close`."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with self._reporting("close"):
                connection.close()

    def _closed_error(self) -> DurabilityError:
        """Return the error for reading rows while no snapshot is open."""
        return DurabilityError(
            f"{self.name} is not read now: a table of a file that is open for reading alone is "
            "made by db.table(), and not inside a transaction\n"
            "  make it before the `with` block, or after it; others are durable=False"
        )


def back_up(engine: Any, path: str | os.PathLike[str]) -> None:
    """Copy the file of a database, including all commits before the call.

    Raises
    ------
    PlanError: the database has no file, or there is one at `path`.
    DurabilityError: the file cannot be read, or the copy cannot be written.
    """
    engine.check_open()
    journal = engine.journal
    if journal is None or not isinstance(journal.store, SqliteFile):
        where = "in memory" if journal is None else f"in {journal.store.name}"
        raise PlanError(
            f"cannot back up a database that is {where}: it has no file\n"
            "  give it a path, Database('shop.db'); of Postgres use pg_dump"
        )
    target = os.path.realpath(os.fspath(path))
    if os.path.lexists(path):
        raise PlanError(
            f"cannot write a backup to {target}: there is something already\n"
            "  give a new path; a backup takes the place of no file"
        )
    journal.flush()
    _copy_file(journal.store.name, target)


def _copy_file(source: str, target: str) -> None:
    """Copy a database to the new file `target`, which appears only once it is complete.

    Raises `DurabilityError` on failure, with no part left behind.
    """
    part = f"{target}-part"
    try:
        mode = Path(source).stat().st_mode & 0o777
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        try:
            _read_into(source, part)
            _sync(part)
            Path(part).rename(target)
            _sync(os.path.dirname(target))  # noqa: PTH120
        except BaseException:
            for end in ("", "-journal", "-wal", "-shm"):
                Path(f"{part}{end}").unlink(missing_ok=True)
            raise
    except (sqlite3.Error, OSError) as error:
        raise DurabilityError(call_failure(target, "write the backup", error)) from error


def _read_into(source: str, part: str) -> None:
    """Copy a database into the file `part`, as a single file with an id of its own."""
    address = f"{Path(source).as_uri()}?mode=ro"
    with (
        closing(sqlite3.connect(address, uri=True)) as old,
        closing(sqlite3.connect(part, isolation_level=None)) as new,
    ):
        old.backup(new)
        new.execute("pragma journal_mode = delete").fetchall()  # makes it a single file
        new.execute("update reactive_state set value = hex(randomblob(8)) where name = 'id'")


def _sync(path: str) -> None:
    """Sync a file or folder to disk."""
    with suppress(PermissionError):  # folders cannot be opened on Windows
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


MADE = (
    "create table if not exists {schema}.state (name text primary key, value text not null)",
    "create table if not exists {schema}.tables (rank bigserial, name text primary key, "
    "text text, place text, columns text[])",
    "create table if not exists {schema}.reactive_commits "
    "(version bigint primary key, time float8)",
    "create table if not exists {schema}.reactive_changes (version bigint, "
    '"table" text, weight int, row text, rowid bigserial)',
    "create index if not exists reactive_changes_of on {schema}.reactive_changes (version)",
)
"""The statements that create the catalog if it is missing."""


def escape_name(name: str) -> str:
    """Return a name as text for Postgres, which has no NUL."""
    return json.dumps(name)


def unescape_name(text: str) -> str:
    """Return the name that `escape_name` has written. Raises `ValueError` for any other text."""
    name = json.loads(text)
    if type(name) is not str:
        raise ValueError(f"{text!r:.100} is no name")
    return name


LISTED = ("name", "text", "place", "columns")


def postgres_table_of(
    room: str, name: str, text: str, place: str, columns: Sequence[str]
) -> PostgresTable:
    """Return the table of an entry of the catalog.

    Raises
    ------
    Exception: the entry is damaged.
    """
    schema = schema_of_text(unescape_name(name), text)
    named = tuple(columns)
    if len(named) != len(schema.columns) or not all(type(each) is str for each in (place, *named)):
        raise ValueError("it does not fit its columns")
    if schema.key is not None:
        _ = schema.key_place  # raises if there is none
    return PostgresTable(schema, room, place, named)


def unescape_commit(logged: LoggedCommit) -> LoggedCommit:
    """Return a commit with the original names of its tables."""
    datetime.fromtimestamp(logged.time, UTC)  # raises for an invalid time
    changes = {unescape_name(name): rows for name, rows in logged.changes.items()}
    return logged._replace(changes=changes)


def read_postgres_rows(name: str, table: PostgresTable, batch: Sequence[tuple[Any, ...]]) -> Rows:
    """Return the rows of a batch, grouped by their number of copies.

    name: the name of the store.
    """
    try:
        return [(rows, weight) for weight, rows in table.read(batch).items()]
    except DAMAGED:
        for row in batch:
            with report_damage(name, table.schema.table, row):
                table.read([row])
        raise


@contextmanager
def report_damage(name: str, table: str, row: object) -> Iterator[None]:
    """Report an error of reading a row of a store as a `DurabilityError` that names it."""
    try:
        yield
    except DAMAGED as error:
        raise DurabilityError(damaged_row(name, table, row)) from error


Run = Callable[..., Any]


LABEL = ""
"""The name of no table, of the line with the label of a commit."""


def record_commit(run: Run, many: Callable[[str, Sequence[Any]], None], record: Record) -> None:
    """Add a commit to the history."""
    run("insert into reactive_commits values (?, ?)", (record.version, record.time))
    lines = [
        (record.version, change.table, weight, json.dumps(tree(values, {})["tuple"]))
        for change in record.changes
        for values, weight in change.weights()
    ]
    if record.said != (None, None):
        lines.append((record.version, LABEL, 0, json.dumps(record.said)))
    many("insert into reactive_changes values (?, ?, ?, ?)", lines)


def trim_history(run: Run, keep: int) -> None:
    """Delete all but the last `keep` commits from the history."""
    last = run(
        "select version from reactive_commits order by version desc limit 1 offset ?", (keep,)
    ).fetchone()
    if last is not None:
        run("delete from reactive_commits where version <= ?", last)
        run("delete from reactive_changes where version <= ?", last)


def read_history(run: Run, since: int) -> list[LoggedCommit]:
    """Return the kept commits after a version, oldest first."""
    commits = run(
        "select version, time from reactive_commits where version > ? order by version", (since,)
    ).fetchall()
    found = {version: LoggedCommit(version, time, {}) for version, time in commits}
    lines = run(
        'select version, "table", weight, row from reactive_changes where version > ? '
        "order by version, rowid",
        (since,),
    )
    for version, table, weight, row in lines:
        if table == LABEL:
            label, turn = json.loads(row)
            found[version] = found[version]._replace(said=(label, turn))
            continue
        changes: Any = found[version].changes
        values = tuple(untree(value, {}) for value in json.loads(row))
        changes.setdefault(table, []).append((values, weight))
    return list(found.values())
