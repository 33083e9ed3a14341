"""A durable table in SQLite: its statements, as text.

    with a key       primary key, without rowid: a row is found by its key
    without one      a column more, of how often a row is there; found by all columns together

Columns have no type, as SQLite would turn 1 into 1.0 by one. The index of all columns is made when
the first row goes: who only adds does not need it.

State:  none.
Cost:   O(1) statements per change, each O(log rows).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from reactive.borders.durable.store import Change, Schema, Values
from reactive.engine.runtime.sql_names import apart, apart_of, quoted

Runs: TypeAlias = tuple[str, Sequence[Sequence[Any]]]
"""A statement, with the values of each time that it is to run."""
BATCH = 2000
"""Rows that are read together."""
TOGETHER = 50
"""Rows that one statement inserts or deletes, in two thirds of the time that as many take."""
MOST_VALUES = 999
"""Of a statement, in any version of SQLite."""


@dataclass(frozen=True)
class SqliteTable:
    """Where the rows of a schema are in the file.

    name: of the SQL table.
    columns: of it, one for each of the schema.
    """

    schema: Schema
    name: str
    columns: tuple[str, ...]

    @cached_property
    def is_keyed(self) -> bool:
        """Whether rows are found by a column."""
        return self.schema.key is not None

    @cached_property
    def weight(self) -> str:
        """The column of how often a row is there."""
        return apart("weight", self.columns)

    @cached_property
    def create(self) -> str:
        """Makes it."""
        columns = ", ".join(map(quoted, self.columns))
        if self.is_keyed:
            return (
                f"create table {self._table} ({columns}, primary key ({self._key})) without rowid"
            )
        separator = ", " if columns else ""
        return f"create table {self._table} ({columns}{separator}{quoted(self.weight)})"

    @cached_property
    def index(self) -> str:
        """Makes the index of all columns, if it is not there and there are any."""
        name = quoted(f"reactive_rows_of_{self.name}")
        columns = ", ".join(map(quoted, self.columns))
        return f"create index if not exists {name} on {self._table} ({columns})"

    @cached_property
    def put(self) -> str:
        """Inserts a row: in the place of the one with its key; without a key, once."""
        if self.is_keyed:
            return f"insert or replace into {self._table} values ({self._marks})"
        return f"insert into {self._table} values ({self._marks}{', ' if self._marks else ''}1)"

    @cached_property
    def together(self) -> int:
        """How many rows `put_together` inserts."""
        return min(TOGETHER, MOST_VALUES // len(self.columns)) if self.columns else 1

    @cached_property
    def put_together(self) -> str:
        """Inserts rows as `put` does, one after the other."""
        head, values, row = self.put.rpartition("values ")
        return head + values + ", ".join([row] * self.together)

    @cached_property
    def put_often(self) -> str:
        """Inserts a row with how often it is there."""
        return f"insert into {self._table} values ({self._marks}{', ' if self._marks else ''}?)"

    @cached_property
    def put_at_once(self) -> Sequence[str]:
        """Makes a view, of this connection, that takes a row with the version of its commit: so a
        commit of one row is one statement, in a third of the time that a transaction takes."""
        columns = [f"v{place}" for place in range(len(self.columns))]
        named = ", ".join(f"null as {column}" for column in (*columns, "version"))
        values = [f"new.{column}" for column in columns] + ([] if self.is_keyed else ["1"])
        verb = "insert or replace" if self.is_keyed else "insert"
        return (
            self.drop_at_once,
            f"create temp view {self._view} as select {named}",
            f"create temp trigger {quoted(f'reactive_into_{self.name}')} instead of insert "
            f"on {self._view} begin {verb} into {self._table} values ({', '.join(values)}); "
            "update reactive_state set value = new.version where name = 'version'; end",
        )

    @cached_property
    def put_with_version(self) -> str:
        """Inserts a row by that view."""
        marks = ", ".join("?" * (len(self.columns) + 1))
        return f"insert into {self._view} values ({marks})"

    @property
    def drop_at_once(self) -> str:
        """Drops that view."""
        return f"drop view if exists temp.{self._view}"

    def insertions(self, rows: Sequence[Values]) -> Iterator[Runs]:
        """Inserts rows as `put` does, one after the other."""
        whole = 0
        if (size := self.together) > 1:
            whole = len(rows) - len(rows) % size
            blocks = [_strung(rows[at : at + size]) for at in range(0, whole, size)]
            yield self.put_together, blocks
        yield self.put, rows[whole:]

    def deletions(self, keys: Sequence[Any]) -> Iterator[Runs]:
        """Deletes the rows with these keys."""
        whole = len(keys) - len(keys) % TOGETHER
        if whole:
            blocks = [keys[at : at + TOGETHER] for at in range(0, whole, TOGETHER)]
            yield self.delete_together, blocks
        if whole < len(keys):
            yield self.delete, [(key,) for key in keys[whole:]]

    def leaving(self, change: Change) -> Sequence[Any]:
        """The keys of rows that go, and that no row takes which comes."""
        place = self.key_place
        if len(change.gone) == len(change.come) == 1:
            key = change.gone[0][place]
            return [] if key == change.come[0][place] else [key]
        gone = dict.fromkeys([row[place] for row in change.gone])
        for row in change.come:
            gone.pop(row[place], None)
        return [*gone]

    @cached_property
    def key_place(self) -> int:
        """Where the key is among the values."""
        return self.schema.key_place

    @cached_property
    def delete(self) -> str:
        """Deletes a row, which is found by its key or by all columns."""
        where = f"{self._key} = ?" if self.is_keyed else self._same
        return f"delete from {self._table} where {where}"

    @cached_property
    def delete_together(self) -> str:
        """Deletes rows, each found by its key."""
        return f"delete from {self._table} where {self._key} in ({', '.join('?' * TOGETHER)})"

    @cached_property
    def count(self) -> str:
        """Says how often a row is there."""
        return f"update {self._table} set {quoted(self.weight)} = ? where {self._same}"

    @cached_property
    def rows(self) -> str:
        """Reads the rows; without a key, those that are there once."""
        once = "" if self.is_keyed else f" where {quoted(self.weight)} = 1"
        return f"select {self._selected} from {self._table}{once}"

    @cached_property
    def rows_often(self) -> str:
        """Reads the other ones, each with how often, last."""
        weight = quoted(self.weight)
        return f"select {self._selected}, {weight} from {self._table} where {weight} is not 1"

    @property
    def there(self) -> str:
        """Tells the columns that it has."""
        return f"pragma table_info({self._table})"

    @property
    def drop(self) -> str:
        """Drops it."""
        return f"drop table if exists {self._table}"

    @property
    def _table(self) -> str:
        return quoted(self.name)

    @property
    def _view(self) -> str:
        return quoted(f"reactive_row_of_{self.name}")

    @property
    def _key(self) -> str:
        return quoted(self.columns[self.schema.key_place])

    @property
    def _marks(self) -> str:
        return ", ".join("?" * len(self.columns))

    @property
    def _selected(self) -> str:
        return ", ".join(map(quoted, self.columns)) or "null"

    @property
    def _same(self) -> str:
        return " and ".join(f"{quoted(column)} is ?" for column in self.columns) or "1"


def placed(schema: Schema, taken: Container[str]) -> SqliteTable:
    """Return where a new table goes, apart from names in small letters."""
    columns: list[str] = []
    for column in schema.columns:
        columns.append(apart(_plain(column.name) or "value", columns))
    return SqliteTable(schema, _named(schema.table, taken), tuple(columns))


def _strung(rows: Sequence[Values]) -> list[Any]:
    """The values of rows, one after the other."""
    found: list[Any] = []
    for row in rows:
        found += row  # in two thirds of the time of `chain`
    return found


def _named(table: str, taken: Container[str]) -> str:
    name = _plain(table) or "table"
    is_ours = name.lower().startswith(("sqlite_", "reactive_"))
    return apart_of(f"table {name}" if is_ours else name, taken)


def _plain(name: str) -> str:
    return "".join(letter if letter.isprintable() else "_" for letter in name)


def by_weight(rows: Sequence[Values]) -> dict[int, list[Values]]:
    """Rows whose last value is how often they are there, by that."""
    found: dict[int, list[Values]] = {}
    for row in rows:
        if type(row[-1]) is not int or row[-1] < 1:
            raise ValueError(f"{row!r:.100} says how often it is there by no number")
        found.setdefault(row[-1], []).append(row[:-1])
    return found
