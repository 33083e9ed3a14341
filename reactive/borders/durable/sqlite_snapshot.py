"""A file of SQLite as it was at one moment, while another process may write to it, or none does.

In WAL mode who reads has the last commit of when it began, and keeps nobody from writing. But the
log is not begun anew, and grows, while somebody reads: so a snapshot is open only while it is read.
Then it is at rest, and tells what it was of.

State:  a connection with a transaction that reads, if it is open.
Cost:   of `newer` some 200 us.
Source: sqlite.org/isolation.html, sqlite.org/wal.html ("Read-Only Databases").
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from reactive.borders.durable.file_lock import other_name_with_log
from reactive.borders.durable.refusals import has_other_name, is_for_reading, no_database, no_file
from reactive.borders.durable.sqlite_file import SqliteFile
from reactive.borders.durable.store import Logged, Record, Rows, Schema
from reactive.errors import DurabilityError


class SqliteSnapshot(SqliteFile):
    """A `Store` that is read alone.

    Parameters
    ----------
    path: of the file.
    """

    at = 0
    """The version that it has."""

    def __init__(self, path: str) -> None:
        super().__init__(path, sqlite3.connect)
        self._forgotten: Any = None
        self._when: float | None = None
        self._id: Any = None
        self._is_known = False
        """True once the file was looked at as a whole."""

    def open(self, keep: int = 0) -> None:
        """As `Store.open`, but others may have it."""
        if not Path(self.name).is_file():
            raise DurabilityError(no_file(self.name))
        other = other_name_with_log(self.name)
        if other is not None:
            raise DurabilityError(has_other_name(self.name, other))
        self._begin_or_close()

    def _begin(self) -> None:
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
        self._opened()
        self.at = self.version()
        self._when = self._time_of(self.at)
        self._id = self._run("select value from reactive_state where name = 'id'").fetchone()

    def newer(self) -> SqliteSnapshot:
        """The file as it is now."""
        found = SqliteSnapshot(self.name)
        found._is_known = True
        found.open()
        return found

    def has_all_since(self, older: SqliteSnapshot) -> bool:
        """Whether `history` has each commit since that one, which was of the same file."""
        if self._id != older._id:
            return False
        if self.at == older.at:
            return self._when == older._when
        return older._when is not None and self._time_of(older.at) == older._when

    def _time_of(self, version: int) -> float | None:
        """When a commit was, if it is kept."""
        query = "select time from reactive_commits where version = ?"
        found = self._run(query, (version,)).fetchone()
        return None if found is None else float(found[0])

    def history(self, since: int) -> Sequence[Logged]:
        """As `Store.history`, up to this moment."""
        if self._connection is not None:
            return super().history(since)
        newer = self.newer()
        try:
            return [logged for logged in newer.history(since) if logged.version <= self.at]
        finally:
            newer.close()

    def write(self, records: Sequence[Record]) -> NoReturn:
        """It is not written to."""
        raise DurabilityError(is_for_reading(self.name))

    def create(self, schema: Schema, rows: Rows = ()) -> NoReturn:
        """It is not written to."""
        there = ", ".join(map(repr, self.tables())) or "none"
        raise DurabilityError(
            f"{is_for_reading(self.name)}; it has no table {schema.table!r}; there are: {there}"
        )

    def drop(self, table: str) -> NoReturn:
        """It is not written to."""
        raise DurabilityError(is_for_reading(self.name))

    def after_fork(self) -> None:
        """As `Store.after_fork`."""
        self._forgotten, self._connection = self._connection, None

    def close(self) -> None:
        """As `Store.close`; and be at rest."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with self._told("close"):
                connection.close()

    def _closed(self) -> DurabilityError:
        return DurabilityError(
            f"{self.name} is not read now: a table of a file that is open for reading alone is "
            "made by db.table(), and not inside a transaction\n"
            "  make it before the `with` block, or after it; others are durable=False"
        )
