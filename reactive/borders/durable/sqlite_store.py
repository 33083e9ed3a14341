"""The store in one SQLite file, in WAL mode.

    reactive_state      the format, the version of the last commit, and a unique id of the file
    reactive_tables     the schema of each table, and the SQL table with its rows
    one table each      the rows, readable by other programs while the file is open
    reactive_commits,
    reactive_changes    the last commits, if any are kept

Each `write` is one transaction of SQLite that includes the version. In WAL mode a transaction is
present as a whole or not at all, however the process ends, and wherever the log is cut off. With
`synchronous="full"` the commit is on disk when `write` returns; with "normal", which does not wait
for the disk, a power failure may lose the last commits, but never a part of one.

A lock file beside the database file excludes a second writer; readers are admitted. If one of the
files is deleted or replaced while open, the next check reports it: `OpenFiles` compares the files
at their paths with the opened ones. A deleted or replaced file can still be written, and what is
written is lost when it is closed; only this comparison reveals that.

State:  a connection, the lock, the list of tables; which file was at each path when it was opened.
Cost:   a commit of one row 20 us, nine tenths of it SQLite's; a check of one file 2 us, so files
        are checked every `EVERY` seconds.
Source: sqlite.org/wal.html.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from reactive.borders.durable import sqlite_file
from reactive.borders.durable.file_lock import FileLock, InodeLock, other_name_with_log
from reactive.borders.durable.refusals import (
    MissingFileError,
    call_failure,
    file_replaced,
    has_other_name,
    is_open_elsewhere,
    is_open_here,
    is_unsure,
    no_database,
    unsure_commit,
)
from reactive.borders.durable.sqlite_file import FORMAT, SqliteFile
from reactive.borders.durable.sqlite_tables import SqliteTable, place_sqlite_table
from reactive.borders.durable.store import Change, Record, Rows, Schema, Values, text_of_schema
from reactive.errors import DurabilityError

PATIENCE_MS = 5000
"""The milliseconds that a write waits for another program, such as a backup, to unlock the file."""
PAGE = 2048
"""The bytes of a page in a new file.

A commit writes at least two pages: with 4096, it takes a sixth longer, and half as long again with
rows of a thousand bytes; with 1024, rows of two hundred do.
"""
CHECKPOINT = 8000
"""The pages of the log that make SQLite move it into the file; 16 MB."""


class SqliteStore(SqliteFile):
    """A SQLite file as a `Store`.

    Parameters
    ----------
    path: the path of the file. Beside it are its log (`-wal`), the index of the log (`-shm`), and a
    lock file (`-lock`).
    synchronous: "normal", or "full" to wait for the disk at each commit.

    >>> import tempfile
    >>> store = SqliteStore(tempfile.mkdtemp() + "/shop.db")
    >>> store.open(keep=0)
    >>> store.version(), dict(store.tables())
    (0, {})
    >>> store.close()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Literal["normal", "full"] = "normal",
        connect: Callable[..., Any] = sqlite3.connect,
    ) -> None:
        super().__init__(path, connect)
        self._synchronous = synchronous
        self._keep = 0
        self._has_past = False
        """True if the history may hold commits that the next write must delete."""
        self._lock: FileLock | None = None
        self._inode: InodeLock | None = None
        self._forgotten: Any = None
        self._is_unsure = False
        """True if the log may contain a commit that was refused."""
        self._files = OpenFiles()
        self._has_written = False
        """True if something was written since the last check of the files."""
        self._indexed: set[str] = set()
        """The SQL tables that have an index of all columns."""
        self._at_once: dict[str, str] = {}
        """The statement that writes a row together with the version, by table."""

    # Opening and closing.

    def open(self, keep: int) -> None:
        """Lock and open the file, creating it if missing.

        Raises `DurabilityError` if it is open already.
        """
        with self._reporting("open"):
            if Path(self.name).is_dir():
                raise IsADirectoryError("it is a directory")
            self._lock = FileLock(f"{self.name}-lock")
        if not self._lock.taken:
            told = is_open_here if self._lock.is_here else is_open_elsewhere
            raise DurabilityError(told(self.name))
        self._keep, self._is_unsure = keep, False
        self._begin_or_close()

    def _begin(self) -> None:
        """Connect and configure SQLite; create the tables of a new file, or check the file.

        Raises `DurabilityError` if the file is damaged, in use, or not one of this library.
        """
        if Path(self.name).exists():
            self._take_inode()
        self._connection = self._connect(
            self.name, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        self._run(f"pragma busy_timeout = {PATIENCE_MS}")
        if self._inode is None:  # there was no file
            self._take_inode()
        tables = {name for (name,) in self._run("select name from sqlite_master")}
        if tables and "reactive_state" not in tables:
            raise DurabilityError(no_database(self.name))
        self._run(f"pragma page_size = {PAGE}")
        self._run("pragma journal_mode = wal")
        self._run(f"pragma synchronous = {self._synchronous}")
        self._run("pragma temp_store = memory")
        self._run(f"pragma wal_autocheckpoint = {CHECKPOINT}")
        if not tables:
            self._in_transaction(self._make)
        else:
            self._check_whole()
        self._check_opened()
        if not self._keep:
            kept = self._run("select exists (select 1 from reactive_commits)").fetchone()
            self._has_past = bool(kept[0])
        self._files = OpenFiles(self.name, f"{self.name}-wal", f"{self.name}-lock")

    def _take_inode(self) -> None:
        """Lock the inode of the file, which has one whatever the path.

        Raises
        ------
        DurabilityError: the file is open already, through another path or with its lock file
        deleted.
        """
        if self._connection is not None:
            self._run("select 1 from sqlite_master").fetchall()  # which makes the file
        other = other_name_with_log(self.name)
        if other is not None:
            raise DurabilityError(has_other_name(self.name, other))
        self._inode = InodeLock(self.name)
        if not self._inode.taken:
            told = is_open_here if self._inode.is_here else is_open_elsewhere
            raise DurabilityError(told(self.name))

    def _make(self) -> None:
        """Create the tables of an empty file: version 0, and a random id."""
        for statement in _MADE:
            self._run(statement)
        state = "('format', ?), ('version', 0), ('id', hex(randomblob(8)))"
        self._run(f"insert into reactive_state values {state}", (FORMAT,))

    def close(self) -> None:
        """Roll back, and close the file and its locks.

        Raises `DurabilityError` if the file was replaced since the last write, after
        closing all.
        """
        connection, self._connection = self._connection, None
        lock, self._lock = self._lock, None
        inode, self._inode = self._inode, None
        try:
            if connection is not None:
                with self._reporting("close"):
                    if connection.in_transaction:
                        connection.execute("rollback")
                    if self._has_written:
                        self._check_files()
        finally:
            try:
                if connection is not None:
                    with self._reporting("close"):
                        connection.close()
            finally:
                if inode is not None:
                    inode.close()
                if lock is not None:
                    lock.close()

    def after_fork(self) -> None:
        """Release the locks in a forked child, and keep the connection open but unused."""
        self._forgotten = self._connection  # closing the connection would affect the parent
        self._connection = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        self._inode = None

    def version(self) -> int:
        """Return the last commit's number, after a rollback.

        Raises `DurabilityError` if it is in doubt.
        """
        if self._is_unsure:
            raise DurabilityError(unsure_commit(self.name))
        with self._reporting("read"):
            self._roll_back()
            return super().version()

    # Writing.

    def write(self, records: Sequence[Record]) -> None:
        """Write commits in one transaction, or a single inserted row by one statement.

        Raises `DurabilityError` if it fails, or if a file was found to be replaced.
        """
        connection = self._connection
        if connection is None:
            raise self._closed_error()
        try:
            if connection.in_transaction:
                self._roll_back()
            if len(records) > 1 or monotonic() > self._files.due:
                self._check_files()
            self._has_written = True
            is_safe = records[-1].is_safe
            is_plain = len(records) == 1 and not (self._keep or self._has_past or is_safe)
            at_once = self._put_at_once(records[0]) if is_plain else None
            if is_safe:
                self._write_safely(records)
            elif at_once is None:
                self._in_transaction(self._write, records)
                self._has_past = False
            else:
                record = records[0]
                connection.execute(at_once, (*record.changes[0].come[0], record.version))
        except (sqlite3.Error, OSError) as error:
            self._is_unsure = is_unsure(error)
            raise DurabilityError(call_failure(self.name, "write", error)) from error

    def _check_files(self) -> None:
        """Raise if a file was deleted or replaced, so that writes to it would be lost."""
        missing = self._files.missing()
        self._has_written = False
        if missing is not None:
            raise MissingFileError(file_replaced(self.name, missing))

    def _write_safely(self, records: Sequence[Record]) -> None:
        """Write with `synchronous = full`, which waits for the disk."""
        try:
            self._run("pragma synchronous = full")
            self._in_transaction(self._write, records)
        finally:
            self._run(f"pragma synchronous = {self._synchronous}")

    def _put_at_once(self, record: Record) -> str | None:
        """Return the single statement that writes a commit of one inserted row; None for others."""
        if len(record.changes) != 1:
            return None
        name, gone, come, counted = change = record.changes[0]
        table = self._tables[name]
        if len(come) != 1 or counted or (gone and (not table.is_keyed or table.leaving(change))):
            return None
        if name not in self._at_once:
            for statement in table.put_at_once:
                self._run(statement)
            self._at_once[name] = table.put_with_version
        return self._at_once[name]

    def _write(self, records: Sequence[Record]) -> None:
        """Run the statements of `write`; rows to insert are collected and inserted together."""
        waiting: dict[str, list[Values]] = {}
        for record in records:
            for change in record.changes:
                table = self._tables[change.table]
                come = waiting.setdefault(change.table, [])
                if table.is_keyed:
                    self._remove(table, change, come)
                elif change.gone or change.counted:
                    self._put(table, come)
                    come.clear()
                    self._count(table, change)
                come += change.come
            if self._keep and record.is_commit:
                sqlite_file.record_commit(self._run, self._many, record)
        for name, come in waiting.items():
            self._put(self._tables[name], come)
        if self._keep or self._has_past:
            sqlite_file.trim_history(self._run, self._keep)
        self._run(_VERSION, (records[-1].version,))
        if records[-1].is_safe and not records[-1].changes:  # SQLite syncs only changes
            self._run(_WRITTEN, (records[-1].time,))

    def _remove(self, table: SqliteTable, change: Change, waiting: list[Values]) -> None:
        """Delete the rows that `change` does not replace; if there are any, insert `waiting` first.

        `waiting` is emptied then. Raises if a row to delete is not there.
        """
        if change.gone and (gone := table.leaving(change)):
            self._put(table, waiting)
            waiting.clear()
            changed = 0
            for statement, rows in table.deletions(gone):
                changed += self._connection.executemany(statement, rows).rowcount
            if changed != len(gone):
                raise self._differs(table, f"{changed} of {len(gone)} rows", gone)

    def _count(self, table: SqliteTable, change: Change) -> None:
        """Delete the removed rows of a table without a key, and set the counts of others."""
        self._index(table)
        for row in change.gone:
            self._one(table, table.delete, row)
        for row, before, after in change.counted:
            if not before:
                self._run(table.put_often, (*row, after))
            elif not after:
                self._one(table, table.delete, row)
            else:
                self._one(table, table.count, (after, *row))

    def _put(self, table: SqliteTable, rows: Sequence[Values]) -> None:
        """Insert rows, replacing rows with the same keys."""
        for statement, values in table.insertions(rows):
            self._many(statement, values)

    def _many(self, statement: str, rows: Sequence[Any]) -> None:
        """Run a statement for each of `rows`; none if there are no rows."""
        if len(rows) == 1:
            self._run(statement, rows[0])
        elif rows:
            self._connection.executemany(statement, rows)

    def _one(self, table: SqliteTable, statement: str, values: Sequence[Any]) -> None:
        """Run a statement that must change one row. Raises `DurabilityError` if it does not."""
        changed = self._run(statement, values).rowcount
        if changed != 1:
            raise self._differs(table, f"{changed} of a row", tuple(values))

    def _differs(self, table: SqliteTable, found: str, rows: Sequence[Any]) -> DurabilityError:
        """Return the error for rows in the file that are not as this database has written them."""
        return DurabilityError(
            f"{self.name}: table {table.schema.table!r} has {found} that should be there: "
            f"{rows!r:.200}\n"
            "  somebody else has written to the file; open it anew, and compare the table"
        )

    def _index(self, table: SqliteTable) -> None:
        """Create the index of all columns of a table, once; a table without columns has none."""
        if table.name not in self._indexed and table.columns:
            self._run(table.index)
            self._indexed.add(table.name)

    def create(self, schema: Schema, rows: Rows = ()) -> None:
        """Create a table with rows, replacing one of the same name. See `Store.create`."""
        with self._reporting("write"):
            self._check_files()
            old = self._tables.get(schema.table)
            own = set() if old is None else {old.name.lower()}
            new = place_sqlite_table(schema, self._places - own if own else self._places)
            self._indexed.discard(new.name)
            self._in_transaction(self._create, new, old, rows)
            if old is not None:
                self._take_out(old)
            self._add(new)
            self._last_rank += 1

    def _create(self, new: SqliteTable, old: SqliteTable | None, rows: Rows) -> None:
        """Run the statements of `create`, after those that drop `old`. The caller commits."""
        if old is not None:
            self._drop(old)
        self._run(new.create)
        schema, named = new.schema, "\n".join(new.columns)
        rank = self._last_rank + 1
        values = (rank, schema.table, text_of_schema(schema), new.name, named)
        self._run("insert into reactive_tables values (?, ?, ?, ?, ?)", values)
        for batch, weight in rows:
            if new.is_keyed:
                self._put(new, batch)
            else:
                self._many(new.put_often, [(*row, weight) for row in batch])

    def drop(self, table: str) -> None:
        """Delete a table and its rows; do nothing if there is none of this name."""
        with self._reporting("write"):
            self._check_files()
            found = self._tables.get(table)
            if found is not None:
                self._in_transaction(self._drop, found)
                self._indexed.discard(found.name)
                self._take_out(found)

    def _drop(self, table: SqliteTable) -> None:
        """Delete a table, its catalog entry, and the history if commits write to the table."""
        if self._at_once.pop(table.schema.table, None) is not None:
            self._run(table.drop_at_once)
        self._run(table.drop)
        self._run("delete from reactive_tables where name = ?", (table.schema.table,))
        if not table.schema.is_beside:
            sqlite_file.trim_history(self._run, 0)

    def _in_transaction(self, act: Callable[..., object], *arguments: Any) -> None:
        """Run `act` in one transaction."""
        run = self._connection.execute
        self._roll_back()  # what an asynchronous exception left unfinished
        try:
            run("begin immediate")
            act(*arguments)
            run("commit")
        except BaseException:
            self._indexed.clear()
            self._at_once.clear()
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        """Roll back the open transaction, if there is one."""
        if self._connection is not None and self._connection.in_transaction:
            self._run("rollback")


_VERSION = "update reactive_state set value = ? where name = 'version'"
_WRITTEN = (
    "insert into reactive_state values ('written', ?) "
    "on conflict do update set value = excluded.value"
)
_MADE = (
    "create table reactive_state (name text primary key, value) without rowid",
    "create table reactive_tables (rank integer, name text primary key, text, sql_name, columns)",
    "create table reactive_commits (version integer primary key, time)",
    'create table reactive_changes (version, "table", weight, row)',
    "create index reactive_changes_of on reactive_changes (version)",
)


EVERY = 0.1
"""The seconds between two checks."""


class OpenFiles:
    """The identities of opened files. A file that did not exist at the start is never checked.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/a"
    >>> open(path, "w").close()
    >>> files = OpenFiles(path, path + "-b")
    >>> files.missing() is None
    True
    >>> Path(path).unlink()
    >>> files.missing() == path
    True
    """

    def __init__(self, *paths: str) -> None:
        found = {path: _file_identity(path) for path in paths}
        self._known = {path: known for path, known in found.items() if known is not None}
        self.due = monotonic() + EVERY
        """The time of the next check."""

    def missing(self) -> str | None:
        """Return the path of a file that was deleted or replaced.

        If there is none, return None, and set the time of the next check.
        """
        for path, known in self._known.items():
            if _file_identity(path) != known:
                return path
        self.due = monotonic() + EVERY
        return None


def _file_identity(path: str) -> tuple[int, int] | None:
    """Return the device and inode, unique while the file is open; None if there is no file."""
    try:
        found = Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino
