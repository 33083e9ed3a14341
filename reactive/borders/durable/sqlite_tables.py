"""Durable tables in SQLite: the statements that write rows, and the stored states of views.

`SqliteTable` is the SQL table that stores the rows of a durable table:

    with a key       primary key, without rowid: the key identifies a row
    without one      an extra column with the number of copies; all columns identify a row

Columns have no declared type, because a type would make SQLite turn 1 into 1.0. The index of all
columns is created when the first row is deleted: a table that only grows does not need it.

The states of a view are two tables in the store of a durable database:

    kept NAME        the header, as JSON: query, version, tables; each part and its cost
    kept-0 NAME      the bytes of the states of operators (`rows/packed.py`), in pieces; or kept-1,
                     for the next generation

The bytes are written in small transactions, between which others commit, and the header last. So
the stored state is always a whole one, the new or the old, and never that of a commit that the
store does not have. No commit changes these tables. A hash detects bytes that differ from what was
written.

State:  the statements none; a stored view its bytes, until the view is made.
Cost:   O(1) statements per change, each O(log rows); a stored view takes one read of its table, and
        per requested state its hash and O(rows).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from reactive.borders.durable.rows.packed import Packer, Unpacker, Unreadable
from reactive.borders.durable.store import KEPT, Change, Column, Schema, Store, Values
from reactive.engine.runtime.sql_names import quote_name, unique_name, unique_name_among
from reactive.errors import DurabilityError

Runs: TypeAlias = tuple[str, Sequence[Sequence[Any]]]
"""A statement, with the values of each of its executions."""
BATCH = 2000
"""The number of rows read together."""
TOGETHER = 50
"""The rows that one statement inserts or deletes; two thirds of the time of single statements."""
MOST_VALUES = 999
"""The most values of one statement, in any version of SQLite."""


@dataclass(frozen=True)
class SqliteTable:
    """The SQL table that stores the rows of a schema.

    name: the name of the SQL table.
    columns: its columns, one for each column of the schema.
    """

    schema: Schema
    name: str
    columns: tuple[str, ...]

    @cached_property
    def is_keyed(self) -> bool:
        """True if a key identifies a row."""
        return self.schema.key is not None

    @cached_property
    def weight(self) -> str:
        """The name of the column with the number of copies of a row."""
        return unique_name("weight", self.columns)

    @cached_property
    def create(self) -> str:
        """The statement that creates the table."""
        columns = ", ".join(map(quote_name, self.columns))
        if self.is_keyed:
            return (
                f"create table {self._table} ({columns}, primary key ({self._key})) without rowid"
            )
        separator = ", " if columns else ""
        return f"create table {self._table} ({columns}{separator}{quote_name(self.weight)})"

    @cached_property
    def index(self) -> str:
        """The statement that creates the index of all columns if it is missing."""
        name = quote_name(f"reactive_rows_of_{self.name}")
        columns = ", ".join(map(quote_name, self.columns))
        return f"create index if not exists {name} on {self._table} ({columns})"

    @cached_property
    def put(self) -> str:
        """The statement that inserts a row: one copy, or in place of the row with the same key."""
        if self.is_keyed:
            return f"insert or replace into {self._table} values ({self._marks})"
        return f"insert into {self._table} values ({self._marks}{', ' if self._marks else ''}1)"

    @cached_property
    def together(self) -> int:
        """The number of rows that `put_together` inserts."""
        return min(TOGETHER, MOST_VALUES // len(self.columns)) if self.columns else 1

    @cached_property
    def put_together(self) -> str:
        """The statement that inserts several rows as `put` does, in their order."""
        head, values, row = self.put.rpartition("values ")
        return head + values + ", ".join([row] * self.together)

    @cached_property
    def put_often(self) -> str:
        """The statement that inserts a row with its number of copies."""
        return f"insert into {self._table} values ({self._marks}{', ' if self._marks else ''}?)"

    @cached_property
    def put_at_once(self) -> Sequence[str]:
        """Return the statements that create a temporary view for one-row commits.

        The view accepts a row and the version of its commit.

        With it, a commit of one row is one statement, in a third of the time of a transaction.
        """
        columns = [f"v{place}" for place in range(len(self.columns))]
        named = ", ".join(f"null as {column}" for column in (*columns, "version"))
        values = [f"new.{column}" for column in columns] + ([] if self.is_keyed else ["1"])
        verb = "insert or replace" if self.is_keyed else "insert"
        return (
            self.drop_at_once,
            f"create temp view {self._view} as select {named}",
            f"create temp trigger {quote_name(f'reactive_into_{self.name}')} instead of insert "
            f"on {self._view} begin {verb} into {self._table} values ({', '.join(values)}); "
            "update reactive_state set value = new.version where name = 'version'; end",
        )

    @cached_property
    def put_with_version(self) -> str:
        """The statement that inserts a row through that view."""
        marks = ", ".join("?" * (len(self.columns) + 1))
        return f"insert into {self._view} values ({marks})"

    @property
    def drop_at_once(self) -> str:
        """The statement that drops that view."""
        return f"drop view if exists temp.{self._view}"

    def insertions(self, rows: Sequence[Values]) -> Iterator[Runs]:
        """Yield the statements that insert rows as `put` does, in their order."""
        whole = 0
        if (size := self.together) > 1:
            whole = len(rows) - len(rows) % size
            blocks = [_flatten_rows(rows[at : at + size]) for at in range(0, whole, size)]
            yield self.put_together, blocks
        yield self.put, rows[whole:]

    def deletions(self, keys: Sequence[Any]) -> Iterator[Runs]:
        """Yield the statements that delete the rows with the given keys."""
        whole = len(keys) - len(keys) % TOGETHER
        if whole:
            blocks = [keys[at : at + TOGETHER] for at in range(0, whole, TOGETHER)]
            yield self.delete_together, blocks
        if whole < len(keys):
            yield self.delete, [(key,) for key in keys[whole:]]

    def leaving(self, change: Change) -> Sequence[Any]:
        """Return the keys of deleted rows that no inserted row of the change has."""
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
        """The position of the key among the values."""
        return self.schema.key_place

    @cached_property
    def delete(self) -> str:
        """The statement that deletes a row, identified by its key or by all columns."""
        where = f"{self._key} = ?" if self.is_keyed else self._same
        return f"delete from {self._table} where {where}"

    @cached_property
    def delete_together(self) -> str:
        """The statement that deletes several rows, each identified by its key."""
        return f"delete from {self._table} where {self._key} in ({', '.join('?' * TOGETHER)})"

    @cached_property
    def count(self) -> str:
        """The statement that sets the number of copies of a row."""
        return f"update {self._table} set {quote_name(self.weight)} = ? where {self._same}"

    @cached_property
    def rows(self) -> str:
        """The statement that reads the rows; without a key, the rows with a single copy."""
        once = "" if self.is_keyed else f" where {quote_name(self.weight)} = 1"
        return f"select {self._column_list} from {self._table}{once}"

    @cached_property
    def rows_often(self) -> str:
        """The statement that reads the rows with several copies, the number as the last value."""
        weight = quote_name(self.weight)
        return f"select {self._column_list}, {weight} from {self._table} where {weight} is not 1"

    @property
    def there(self) -> str:
        """The statement that lists the columns of the table."""
        return f"pragma table_info({self._table})"

    @property
    def drop(self) -> str:
        """The statement that drops the table."""
        return f"drop table if exists {self._table}"

    @property
    def _table(self) -> str:
        return quote_name(self.name)

    @property
    def _view(self) -> str:
        return quote_name(f"reactive_row_of_{self.name}")

    @property
    def _key(self) -> str:
        return quote_name(self.columns[self.schema.key_place])

    @property
    def _marks(self) -> str:
        return ", ".join("?" * len(self.columns))

    @property
    def _column_list(self) -> str:
        return ", ".join(map(quote_name, self.columns)) or "null"

    @property
    def _same(self) -> str:
        return " and ".join(f"{quote_name(column)} is ?" for column in self.columns) or "1"


def place_sqlite_table(schema: Schema, taken: Container[str]) -> SqliteTable:
    """Choose the SQL names of a new table and its columns; `taken` holds lower-case names."""
    columns: list[str] = []
    for column in schema.columns:
        columns.append(unique_name(_printable(column.name) or "value", columns))
    return SqliteTable(schema, _choose_table_name(schema.table, taken), tuple(columns))


def _flatten_rows(rows: Sequence[Values]) -> list[Any]:
    """Return the values of rows in one list."""
    found: list[Any] = []
    for row in rows:
        found += row  # takes two thirds of the time of `chain`
    return found


def _choose_table_name(table: str, taken: Container[str]) -> str:
    """Return a free SQL name for a table; names that SQLite or this library uses get a prefix."""
    name = _printable(table) or "table"
    is_ours = name.lower().startswith(("sqlite_", "reactive_"))
    return unique_name_among(f"table {name}" if is_ours else name, taken)


def _printable(name: str) -> str:
    return "".join(letter if letter.isprintable() else "_" for letter in name)


def group_by_weight(rows: Sequence[Values]) -> dict[int, list[Values]]:
    """Group rows, whose last value is their number of copies, by that number.

    Raises `ValueError` if that is not a positive integer.
    """
    found: dict[int, list[Values]] = {}
    for row in rows:
        if type(row[-1]) is not int or row[-1] < 1:
            raise ValueError(f"{row!r:.100} says how often it is there by no number")
        found.setdefault(row[-1], []).append(row[:-1])
    return found


State: TypeAlias = Mapping[str, Any]
"""The state of an operator: lists are columns of values, other values are plain."""
FORMAT = 2
"""The number of the format of the table and of the states."""
PIECE = 1 << 17
"""The most bytes in a row of the table."""
COLUMNS = (Column("part", "int", "plain"), Column("data", "bytes", "plain"))


@dataclass(frozen=True, slots=True)
class Cost:
    """The seconds that an operator takes to be computed and to be read; None if not measured."""

    computing: float | None = None
    reading: float | None = None

    @property
    def pays(self) -> bool:
        """True if the state of the operator is worth storing and reading."""
        return self.computing is None or self.reading is None or self.reading <= self.computing


@dataclass(frozen=True, slots=True)
class Header:
    """The facts about a stored view.

    query: the fingerprint of the query, the library and Python.
    version: the version of the last commit that the states include.
    generation: 0 or 1, the number of the table that has the bytes.
    tables: by name, the schema and the number of rows.
    costs: the cost of each operator, by its name.
    parts: the operators that are stored: their names, with the number of bytes and the hash.
    """

    query: str
    version: int
    generation: int
    tables: Mapping[str, Sequence[Any]]
    costs: Mapping[str, Cost] = field(default_factory=dict)
    parts: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The total bytes of all states."""
        return sum(size for size, _ in self.parts.values())

    def text(self) -> bytes:
        """Serialize the header."""
        costs = {name: [cost.computing, cost.reading] for name, cost in self.costs.items()}
        found = {**asdict(self), "costs": costs, "format": FORMAT}
        return json.dumps(found).encode()


class StoredStates:
    """The states of a view as they are in the store.

    Raises `Unreadable` for data that this library has not written.
    """

    def __init__(self, store: Store, view: str) -> None:
        self.header = _header_of(_read_pieces(store, state_table_name(view)).get(0))
        pieces = _read_pieces(store, state_table_name(view, self.header.generation))
        body = b"".join(pieces[part] for part in sorted(pieces))
        self._parts: dict[str, tuple[bytes, str]] = {}
        start = 0
        for name, (size, digest) in self.header.parts.items():
            self._parts[name] = body[start : start + size], digest
            start += size

    def state(self, name: str) -> State | None:
        """Return the state of an operator; None if none is stored.

        Raises
        ------
        Unreadable: its bytes are damaged.
        Unstorable: a value has a class that this process cannot import.
        """
        if name not in self._parts:
            return None
        data, digest = self._parts[name]
        if _digest(data) != digest:
            raise Unreadable("its bytes are not those that were written")
        return unpack_state(data)


def state_table_name(view: str, generation: int | None = None) -> str:
    """Return the name of a table of a view: of its header, or of the bytes of a generation."""
    return f"kept {view}" if generation is None else f"kept-{generation} {view}"


def is_name_taken(store: Store, name: str) -> bool:
    """Return True if the store has a table of this name that is of no view."""
    found = store.tables().get(name)
    return found is not None and not found.about.startswith(KEPT)


def begin_generation(store: Store, view: str, generation: int) -> None:
    """Make an empty table for the bytes of a generation.

    Raises
    ------
    DurabilityError: a table of the user has the name of that of a view.
    """
    for name in (state_table_name(view), state_table_name(view, 0), state_table_name(view, 1)):
        if is_name_taken(store, name):
            raise DurabilityError(
                f"{store.name} has a table {name!r} of another kind\n"
                "  give the table or the view another name"
            )
    store.create(_state_schema(state_table_name(view, generation), view))


def state_changes(view: str, generation: int, packed: Mapping[str, bytes]) -> Iterator[Change]:
    """Yield the changes that write states, one small change after the other."""
    body, name = b"".join(packed.values()), state_table_name(view, generation)
    for part, start in enumerate(range(0, len(body), PIECE)):
        yield Change(name, (), [(part, body[start : start + PIECE])])


def finish_generation(store: Store, view: str, header: Header) -> None:
    """Make a generation the state of a view, and drop the other generation."""
    store.create(_state_schema(state_table_name(view), view), [([(0, header.text())], 1)])
    store.drop(state_table_name(view, 1 - header.generation))


def part_entries(packed: Mapping[str, bytes]) -> dict[str, Sequence[Any]]:
    """Return the entries of a header about states."""
    return {name: (len(data), _digest(data)) for name, data in packed.items()}


def pack_state(state: State) -> tuple[bytes, float]:
    """Return the bytes of a state, and the seconds that packing took, without other threads.

    Raises
    ------
    Unstorable: a value cannot be restored from bytes.
    """
    packer = Packer(rests=True)
    packer.plain([(name, isinstance(value, list)) for name, value in state.items()])
    for value in state.values():
        (packer.column if isinstance(value, list) else packer.plain)(value)
    return packer.bytes(), packer.seconds


def unpack_state(data: bytes) -> State:
    """Restore a state from its bytes.

    Raises
    ------
    Unreadable: the bytes are not a packed state.
    """
    unpacker = Unpacker(data)
    names = unpacker.plain()
    return {name: unpacker.column() if is_column else unpacker.plain() for name, is_column in names}


def _state_schema(name: str, view: str) -> Schema:
    return Schema(name, COLUMNS, "part", KEPT + json.dumps(view) + "}")


def _read_pieces(store: Store, name: str) -> dict[int, bytes]:
    """Return the bytes in a table of a view by part. Raises `Unreadable` if it is missing."""
    if name not in store.tables():
        raise Unreadable("a part of it is missing")
    return {part: data for rows, _ in store.rows(name) for part, data in rows}


def _header_of(text: Any) -> Header:
    """Return the header of a kept view from its text.

    Raises `Unreadable` if damaged, or of another format.
    """
    try:
        found = json.loads(text)
        if found.pop("format") != FORMAT:
            raise Unreadable("it was written by another version")
        costs = {name: Cost(*seconds) for name, seconds in found.pop("costs").items()}
        header = Header(**found, costs=costs)
        if header.generation not in (0, 1):
            raise Unreadable("its header is damaged")
        for size, digest in header.parts.values():
            if type(size) is not int or type(digest) is not str:
                raise Unreadable("its header is damaged")
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise Unreadable("its header is damaged") from error
    return header


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
