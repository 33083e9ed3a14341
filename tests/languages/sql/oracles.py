"""DuckDB, SQLite and Postgres as one thing: run statements, hold rows, answer queries.

A row is a tuple of Python values. DuckDB's lists, structs and maps are tuples here, as in views.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import duckdb
import psycopg2

from tests.languages.sql.postgres_player import Server

Row = tuple[Any, ...]
Engine = Literal["duckdb", "postgres", "sqlite"]


class Refused(Exception):
    """Raised if a database refuses a text, with the database's message."""


class Oracle(Protocol):
    """A database of another maker, in memory."""

    @property
    def name(self) -> Engine:
        """The dialect of its texts."""
        ...

    def run(self, text: str) -> None:
        """A statement. Raises `Refused`."""
        ...

    def ask(self, text: str) -> list[Row]:
        """The rows of a query. Raises `Refused`."""
        ...

    def definitions(self) -> list[tuple[str, str, str]]:
        """Tables and views in the order they were made: kind, name and the text that makes them."""
        ...

    def add(self, table: str, rows: Sequence[Row]) -> None:
        """Put rows into a table."""
        ...

    def remove(self, table: str, rows: Sequence[Row]) -> None:
        """Take one copy of each row out of a table."""
        ...


class Changing(Protocol):
    """A database of another maker whose statements count the rows that they change."""

    @property
    def name(self) -> Engine:
        """The dialect of its texts."""
        ...

    def run(self, text: str) -> None:
        """A statement. Raises `Refused`."""
        ...

    def ask(self, text: str) -> list[Row]:
        """The rows of a query. Raises `Refused`."""
        ...

    def change(self, text: str) -> int:
        """Run a statement; how many rows it changed, until `keep` or `undo`. Raises `Refused`."""
        ...

    def keep(self) -> None:
        """Commit the last statement."""
        ...

    def undo(self) -> None:
        """Roll the last statement back."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class DuckDB:
    """DuckDB with one thread."""

    name: Engine = "duckdb"

    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"threads": 1})

    def run(self, text: str) -> None:
        try:
            self._connection.execute(text)
        except duckdb.Error as error:
            raise Refused(str(error)) from error

    def ask(self, text: str) -> list[Row]:
        try:
            found = self._connection.execute(text)
            kinds = [column[1] for column in found.description or ()]
            return [tuple(map(plain, row, kinds)) for row in found.fetchall()]
        except duckdb.Error as error:
            raise Refused(str(error)) from error

    def change(self, text: str) -> int:
        self.run("begin")
        try:
            rows = self.ask(text)
        except Refused:
            self.run("rollback")
            raise
        columns = [column[0] for column in self._connection.description or ()]
        return int(rows[0][0]) if columns == ["Count"] else len(rows)

    def keep(self) -> None:
        self.run("commit")

    def undo(self) -> None:
        self.run("rollback")

    def close(self) -> None:
        self._connection.close()

    def definitions(self) -> list[tuple[str, str, str]]:
        tables = "select 'table', table_name, sql, table_oid from duckdb_tables()"
        views = "select 'view', view_name, sql, view_oid from duckdb_views() where not internal"
        found = self.ask(f"select * from ({tables} union all {views}) order by 4")
        return [(kind, name, text) for kind, name, text, _ in found]

    def add(self, table: str, rows: Sequence[Row]) -> None:
        insert_rows(self._connection, table, rows)

    def remove(self, table: str, rows: Sequence[Row]) -> None:
        names = [name for name, *_ in self.ask(f"describe {table}")]
        self.run(f"create or replace temp table gone as select * from {table} limit 0")
        self.add("gone", rows)
        columns = ", ".join(names)
        same = " and ".join(f"gone.{name} is not distinct from copies.{name}" for name in names)
        copies = f"select rowid as place, row_number() over (partition by {columns}) as n, *"
        self.run(
            f"delete from {table} where rowid in (select place from ({copies} from {table}) copies"
            f" where n <= (select count(*) from gone where {same}))"
        )


class SQLite:
    """SQLite, whose values have types of their own."""

    name: Engine = "sqlite"

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)

    def run(self, text: str) -> None:
        self.ask(text)

    def ask(self, text: str) -> list[Row]:
        try:
            return self._connection.execute(text).fetchall()
        except sqlite3.Error as error:
            raise Refused(str(error)) from error

    def change(self, text: str) -> int:
        self.run("begin")
        try:
            cursor = self._connection.execute(text)
            cursor.fetchall()
        except sqlite3.Error as error:
            self.run("rollback")
            raise Refused(str(error)) from error
        ((count,),) = self.ask("select changes()")  # the cursor knows it not of WITH
        return int(count)

    def keep(self) -> None:
        self.run("commit")

    def undo(self) -> None:
        self.run("rollback")

    def close(self) -> None:
        self._connection.close()

    def definitions(self) -> list[tuple[str, str, str]]:
        return self.ask("select type, name, sql from sqlite_master where type in ('table', 'view')")

    def add(self, table: str, rows: Sequence[Row]) -> None:
        for row in rows:
            self._connection.execute(f"insert into {table} values ({_marks(row)})", row)

    def remove(self, table: str, rows: Sequence[Row]) -> None:
        names = [row[1] for row in self.ask(f"pragma table_info({table})")]
        test = " and ".join(f"{name} is ?" for name in names)
        one = f"(select min(rowid) from {table} where {test})"
        for row in rows:
            self._connection.execute(f"delete from {table} where rowid = {one}", row)


MADE = re.compile(r"\s*create\s+(table|view)\s+(\w+)", re.IGNORECASE)


class Postgres:
    """A schema of its own in a database of a Postgres server."""

    name: Engine = "postgres"
    _schemas = 0

    def __init__(self, dsn: str) -> None:
        self._server = Server(dsn)
        self._definitions: list[tuple[str, str, str]] = []
        Postgres._schemas += 1
        self.run(f"create schema s{Postgres._schemas}")
        self.run(f"set search_path to s{Postgres._schemas}")

    def run(self, text: str) -> None:
        text = re.sub(r"\bdouble\b(?! precision)", "double precision", text)
        try:
            self._server.cursor.execute(text)
        except psycopg2.Error as error:
            raise Refused(str(error)) from error
        made = MADE.match(text)
        if made is not None:
            self._definitions.append((made[1].lower(), made[2], text))

    def ask(self, text: str) -> list[Row]:
        try:
            return self._server.rows(text)
        except psycopg2.Error as error:
            raise Refused(str(error)) from error

    def definitions(self) -> list[tuple[str, str, str]]:
        return self._definitions

    def add(self, table: str, rows: Sequence[Row]) -> None:
        for row in rows:
            marks = ", ".join(["%s"] * len(row))
            self._server.cursor.execute(f"insert into {table} values ({marks})", row)

    def remove(self, table: str, rows: Sequence[Row]) -> None:
        names = [column.name for column in self._columns(table)]
        test = " and ".join(f"{name} is not distinct from %s" for name in names)
        one = f"(select min(ctid) from {table} where {test})"
        for row in rows:
            self._server.cursor.execute(f"delete from {table} where ctid = {one}", row)

    def change(self, text: str) -> int:
        cursor = self._server.cursor
        cursor.execute("begin")
        try:
            cursor.execute(text)
        except psycopg2.Error as error:
            cursor.execute("rollback")
            raise Refused(str(error)) from error
        return int(cursor.rowcount)

    def keep(self) -> None:
        self._server.cursor.execute("commit")

    def undo(self) -> None:
        self._server.cursor.execute("rollback")

    def _columns(self, table: str) -> Sequence[Any]:
        self._server.cursor.execute(f"select * from {table} limit 0")
        found: Sequence[Any] = self._server.cursor.description
        return found

    def close(self) -> None:
        self._server.close()


def oracle(engine: str) -> Oracle:
    """An empty database."""
    return DuckDB() if engine == "duckdb" else SQLite()


def insert_rows(connection: Any, table: str, rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows in one statement, as DuckDB runs few statements per second."""
    if rows:
        marks = ", ".join(f"({_marks(row)})" for row in rows)
        values = [value for row in rows for value in row]
        connection.execute(f"insert into {table} values {marks}", values)


def _marks(row: Sequence[Any]) -> str:
    return ", ".join("?" * len(row))


def plain(value: Any, kind: Any) -> Any:
    """Return a value of a type of DuckDB with tuples for lists and structs, of pairs for maps."""
    if value is None or kind.id not in ("map", "list", "array", "struct", "tuple"):
        return value
    parts = [part for _, part in kind.children if not isinstance(part, int)]
    if kind.id == "map":
        is_split = isinstance(value.get("key"), list)  # of keys that Python cannot hash
        pairs = zip(value["key"], value["value"], strict=True) if is_split else value.items()
        return tuple((plain(key, parts[0]), plain(inner, parts[1])) for key, inner in pairs)
    if kind.id in ("list", "array"):
        return tuple(plain(each, parts[0]) for each in value)
    fields = value.values() if isinstance(value, dict) else value
    return tuple(map(plain, fields, parts))
