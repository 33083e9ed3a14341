"""A file of SQLite with durable tables, and what is read of it, by a connection that is open.

State:  a connection, what tables there are.
Cost:   that of SQLite.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from reactive.durable import sqlite_history, sqlite_tables
from reactive.durable.refusals import WRITER, changed_by_others, failed
from reactive.durable.schema_text import schema_of_text
from reactive.durable.sqlite_tables import SqliteTable, by_weight
from reactive.durable.store import Logged, Rows, Schema
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

    def version(self) -> int:
        """As `Store.version`."""
        with self._told("read"):
            self._look()
            found = self._run("select value from reactive_state where name = 'version'")
            return int(found.fetchone()[0])

    def tables(self) -> Mapping[str, Schema]:
        """As `Store.tables`."""
        return {name: table.schema for name, table in self._tables.items()}

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
                for weight, rows in by_weight(batch).items():
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
            return sqlite_history.history(self._run, since)

    def _opened(self) -> None:
        """Look at what has been opened.

        Raises
        ------
        DurabilityError: it is of a later format.
        """
        (found,) = self._run("select value from reactive_state where name = 'format'").fetchone()
        if found > FORMAT:
            raise DurabilityError(
                f"{self.name} is of format {found}, and this is a library of format {FORMAT}\n"
                "  update the library: pip install -U reactive-collections"
            )
        self._look()

    def _look(self) -> None:
        """Read which tables there are."""
        found = self._run("select name, text, sql_name, columns from reactive_tables order by rank")
        self._tables = {}
        for name, text, sql_name, columns in found.fetchall():
            schema, named = schema_of_text(name, text), tuple(columns.split("\n"))
            self._tables[name] = SqliteTable(schema, sql_name, named if schema.columns else ())

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
