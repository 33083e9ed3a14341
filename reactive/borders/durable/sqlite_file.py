"""A file of SQLite with durable tables, and what is read of it, by a connection that is open.

State:  a connection, what tables there are.
Cost:   that of SQLite.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from reactive.borders.durable import sqlite_history, sqlite_tables
from reactive.borders.durable.refusals import (
    DAMAGED,
    WRITER,
    changed_by_others,
    damaged,
    failed,
    later_format,
    not_whole,
)
from reactive.borders.durable.schema_text import schema_of_text
from reactive.borders.durable.sqlite_tables import SqliteTable, by_weight
from reactive.borders.durable.store import Logged, Rows, Schema
from reactive.errors import DurabilityError

FORMAT = 1
"""Of the file; a later one is refused."""


class SqliteFile:
    """Reads a file; who derives from it opens it."""

    def __init__(self, path: str | os.PathLike[str], connect: Callable[..., Any]) -> None:
        self.name = os.path.realpath(os.fspath(path))
        self._connect = connect
        self._connection: Any = None
        self._tables: dict[str, SqliteTable] = {}
        self._schemas: dict[str, Schema] = {}
        self._places: set[str] = set()
        """The names of their SQL tables, in small letters."""
        self._last_rank = 0

    def version(self) -> int:
        """As `Store.version`."""
        with self._told("read"):
            self._look()
            return self._stated("version")

    def tables(self) -> Mapping[str, Schema]:
        """As `Store.tables`."""
        return self._schemas

    def rows(self, table: str) -> Rows:
        """As `Store.rows`."""
        found = self._tables[table]
        self._check_columns(found)
        cursor = self._reading(found.rows)
        while batch := self._fetched(cursor):
            yield batch if found.columns else [()] * len(batch), 1
        if not found.is_keyed:
            cursor = self._reading(found.rows_often)
            while batch := self._fetched(cursor):
                try:
                    weights = by_weight(batch)
                except ValueError as error:
                    raise DurabilityError(damaged(self.name, table, str(error))) from error
                for weight, rows in weights.items():
                    yield rows if found.columns else [()] * len(rows), weight

    def _check_columns(self, table: SqliteTable) -> None:
        """Raise if it is not as it was made: SQLite reads a column that is gone as its name."""
        there = [name for _, name, *_ in self._reading(table.there)]
        if there != [*table.columns, *([] if table.is_keyed else [table.weight])]:
            raise DurabilityError(changed_by_others(self.name, table.schema.table, table.name))

    def _reading(self, statement: str) -> Any:
        with self._told("read"):
            return self._run(statement)

    def _fetched(self, cursor: Any) -> list[tuple[Any, ...]]:
        with self._told("read"):
            found: list[tuple[Any, ...]] = cursor.fetchmany(sqlite_tables.BATCH)
            return found

    def history(self, since: int) -> Sequence[Logged]:
        """As `Store.history`."""
        with self._told("read"):
            try:
                found = sqlite_history.history(self._run, since)
                for logged in found:
                    datetime.fromtimestamp(logged.time, UTC)
                return found
            except DAMAGED as error:
                kept = f"a commit after {since}"
                raise DurabilityError(damaged(self.name, "reactive_changes", kept)) from error

    def _opened(self) -> None:
        """Look at what has been opened.

        Raises
        ------
        DurabilityError: it is of a later format.
        """
        found = self._stated("format")
        if found > FORMAT:
            raise DurabilityError(later_format(self.name, found, FORMAT))
        self._look()

    def _stated(self, name: str) -> int:
        """Return a number of the state."""
        found = self._run("select value from reactive_state where name = ?", (name,)).fetchone()
        if found is None or type(found[0]) is not int:
            raise DurabilityError(damaged(self.name, "reactive_state", {name: found}))
        return int(found[0])

    def _check_whole(self) -> None:
        """Raise if pages of the file are missing, or are not what the others say."""
        (found,) = self._run("pragma quick_check(1)").fetchone()
        if found != "ok":
            raise DurabilityError(not_whole(self.name, found))

    def _look(self) -> None:
        """Read which tables there are."""
        found = self._run(f"select {', '.join(_LISTED)} from reactive_tables order by rank")
        self._tables, self._schemas, self._places = {}, {}, set()
        for rank, *entry in found.fetchall():
            try:
                self._add(_table_of(*entry))
                self._last_rank = int(rank)
            except DAMAGED as error:
                told = dict(sorted(zip(_LISTED[1:], entry, strict=True)))
                raise DurabilityError(damaged(self.name, "reactive_tables", told)) from error

    def _add(self, table: SqliteTable) -> None:
        """There is a table."""
        self._tables[table.schema.table] = table
        self._schemas[table.schema.table] = table.schema
        self._places.add(table.name.lower())

    def _take_out(self, table: SqliteTable) -> None:
        """There is a table no more."""
        del self._tables[table.schema.table], self._schemas[table.schema.table]
        self._places.discard(table.name.lower())

    # Opening.

    def _begin(self) -> None:
        """Make the connection, and look at what is there."""
        raise NotImplementedError

    def close(self) -> None:
        """As `Store.close`."""
        raise NotImplementedError

    def _begin_or_close(self) -> None:
        """Begin; what has been opened of a file that cannot be is closed."""
        try:
            with self._told("open"):
                self._begin()
        except BaseException:
            self.close()
            raise

    # Calls of SQLite.

    def _closed(self) -> DurabilityError:
        return DurabilityError(f"{self.name} is not open\n  {WRITER}")

    def _run(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(statement, values)

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Tell what goes wrong as ours."""
        if self._connection is None and what not in ("open", "close"):
            raise self._closed()
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise DurabilityError(failed(self.name, what, error)) from error


_LISTED = ("rank", "name", "text", "sql_name", "columns")


def _table_of(name: str, text: str, sql_name: str, columns: str) -> SqliteTable:
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
        _ = schema.key_place  # which raises where there is none
    return SqliteTable(schema, sql_name, named)
