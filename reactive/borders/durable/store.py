"""Stores of durable tables: the protocol, the table of a Postgres store, and the store in memory.

The protocol of a store:

    open      lock the store                      tables, rows, version    read its contents
    write     write commits, all or none          create, drop             one table with its rows
    close     release the store                   history                  the last commits

A store knows nothing of Python's classes. A row is a tuple of plain values, one per column: None, a
64-bit int, a float that is not NaN, a str without lone surrogates, or bytes. The store returns each
value unchanged, whatever the declared type of the column: `1` as `1`, `1.0` as `1.0`, `-0.0` as
`-0.0`. (`rows/values.py` encodes all other values as bytes.)

Callers call one method at a time, from any thread.

A durable table in Postgres: its SQL statements, and the conversion of rows to columns.

    _id       a digest of the key, or of all values of a table without a key; identifies the row
    _count    the number of copies of the row
    columns   bigint, float8, text, bytea, as declared; other types as text with a type mark
    _odd      values that differ from the declaration or do not fit the column's type, marked

Any SQL client can read the columns, and each value is read back exactly: `1` and `1.0`, a text with
a NUL, the sign of `-0.0`.

The store in memory: a minimal implementation, for tests and as an example.

State:  a Postgres table none; the store in memory all its rows, also between `close` and `open`.
Cost:   O(columns) per row of a Postgres table.
Source: stepping's store: `get` is `rows`, `set` and `flush` are `write`, `inc` is `version`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeAlias

from reactive.borders.durable.refusals import is_open_here
from reactive.engine.runtime.sql_names import quote_name, unique_name
from reactive.errors import DurabilityError

Plain: TypeAlias = int | float | str | bytes | None
Values: TypeAlias = tuple[Any, ...]
"""A row: a plain value for each column."""
KEPT = '{"kept": '
"""The start of `Schema.about` of a table that holds the state of a view."""
BESIDE = ('{"sink": ', '{"sql": ', KEPT)
Rows: TypeAlias = Iterable[tuple[Sequence[Values], int]]
"""Distinct rows in batches; each batch with the number of copies of each of its rows."""


@dataclass(frozen=True, slots=True)
class Column:
    """A field of rows: its name, its type as text, the encoding of its values (`rows/values.py`).

    >>> Column("total", "float", "plain")
    Column(name='total', type='float', kind='plain')
    """

    name: str
    type: str
    kind: str


@dataclass(frozen=True, slots=True)
class Schema:
    """The description of a table, which the store keeps and returns unchanged.

    table: its name.
    columns: in the order of the values of rows.
    key: the name of the column that identifies a row; its values are never None. Without a key, all
    values together identify a row, which may have several copies.
    about: more text, opaque to the store except for its start: a table whose text starts with an
    item of `BESIDE` is not written by commits and is not in the history.

    >>> Schema("orders", (Column("id", "int", "plain"),), "id").key_place
    0
    """

    table: str
    columns: tuple[Column, ...]
    key: str | None = None
    about: str = ""

    @property
    def is_beside(self) -> bool:
        """True if no commit changes the table: creating or dropping it keeps the history."""
        return self.about.startswith(BESIDE)

    @property
    def key_place(self) -> int:
        """The position of the key among the values of a row."""
        return [column.name for column in self.columns].index(self.key or "")


class Change(NamedTuple):
    """The changes of one commit to one table. No row is in two of the three fields.

    gone: deleted rows, each of which had one copy.
    come: inserted rows, each of which now has one copy.
    counted: rows with their number of copies before and after; only for tables without a key.

    In a table with a key, an inserted row may have the key of a deleted one.
    """

    table: str
    gone: Sequence[Values] = ()
    come: Sequence[Values] = ()
    counted: Sequence[tuple[Values, int, int]] = ()

    def weights(self) -> Iterator[tuple[Values, int]]:
        """Yield each row with the change in its number of copies."""
        yield from ((row, -1) for row in self.gone)
        yield from ((row, 1) for row in self.come)
        yield from ((row, after - before) for row, before, after in self.counted)


class Record(NamedTuple):
    """A commit; or, if no history is kept, several commits merged into one with the last version.

    version: its number; numbers rise, with gaps, and two records may have the same.
    time: in seconds since 1970.
    is_commit: False for a write between two commits, which has the version of the earlier commit
    and is not in the history.
    is_safe: True if `write` must wait until the disk has this record and all earlier ones, whatever
    the other settings of the store.
    said: the label of the commit, and "undo" or "redo" for one that turns an earlier one.
    """

    version: int
    time: float
    changes: Sequence[Change]
    is_commit: bool = True
    is_safe: bool = False
    said: tuple[str | None, str | None] = (None, None)


class LoggedCommit(NamedTuple):
    """A past commit as a store returns it: by table, rows with their weights."""

    version: int
    time: float
    changes: Mapping[str, Sequence[tuple[Values, int]]]
    said: tuple[str | None, str | None] = (None, None)


class Store(Protocol):
    """A place that stores durable tables: a SQLite file, a Postgres schema, or a class of your own.

    `Database(store=...)` accepts one. Table names are arbitrary text and case-sensitive. Failures
    raise `DurabilityError` with the name of the store, the failed action and a remedy. A failed
    `write`, `create` or `drop` changed nothing, unless `version` returns the new version.

    >>> from reactive import Database, Store
    >>> from reactive.borders.durable.store import MemoryStore
    >>> store: Store = MemoryStore()
    >>> with Database(store=store) as db:
    ...     db.table(str, name="words").add("to")
    >>> list(Database(store=store).table(str, name="words"))
    ['to']
    """

    name: str
    """The name in messages: the path of a file, or an address without its password."""

    def open(self, keep: int) -> None:
        """Lock the store, create it if missing, and keep the last `keep` commits for `history`.

        Raises
        ------
        DurabilityError: another database, in this process or another, has locked it; or it is not a
            store of this library, or has a later format.
        """
        ...

    def version(self) -> int:
        """Return the number of the last commit in the store, 0 if there is none.

        Undoes an unfinished write first: callers ask after an error or an interrupt to find out
        whether their commit was written.
        """
        ...

    def tables(self) -> Mapping[str, Schema]:
        """Return the schema of each table, by name."""
        ...

    def rows(self, table: str) -> Rows:
        """Yield the rows of a table in batches. No write happens until all batches are read."""
        ...

    def write(self, records: Sequence[Record]) -> None:
        """Write commits in one transaction of the store. They are durable when this returns."""
        ...

    def create(self, schema: Schema, rows: Rows = ()) -> None:
        """Create a table with the given rows in one transaction, replacing a table of that name."""
        ...

    def drop(self, table: str) -> None:
        """Delete a table and its rows."""
        ...

    def history(self, since: int) -> Sequence[LoggedCommit]:
        """Return the kept commits after version `since`, oldest first.

        Commits before a `create` of one of their tables may be missing.
        """
        ...

    def after_fork(self) -> None:
        """Drop all references to open resources without closing them.

        Called in a child process that was forked while the store was open.
        """
        ...

    def close(self) -> None:
        """Release the store. May be called repeatedly."""
        ...


BATCH = 2000
"""The number of rows read or written together."""
LONGEST = 50
"""The most bytes of a name; Postgres allows 63."""
DIGEST = 16
"""The bytes of a digest: among 10**15 rows, two share one with probability 1 in 10**9."""
OWN = ("_id", "_count", "_odd")


@dataclass(frozen=True)
class PostgresTable:
    """The SQL table that stores the rows of a schema.

    place: the name of the SQL table.
    columns: its columns, one for each column of the schema.
    """

    schema: Schema
    room: str
    place: str
    columns: tuple[str, ...]

    @cached_property
    def _types(self) -> tuple[str, ...]:
        return tuple(map(_sql_type, self.schema.columns))

    @property
    def _table(self) -> str:
        return f"{quote_name(self.room)}.{quote_name(self.place)}"

    @cached_property
    def create(self) -> str:
        """The statement that creates the table."""
        columns = "".join(
            f", {quote_name(name)} {kind}"
            for name, kind in zip(self.columns, self._types, strict=True)
        )
        own = "_id bytea primary key, _count bigint not null, _odd text"
        return f"create table {self._table} ({own}{columns})"

    @cached_property
    def put(self) -> str:
        """The statement that inserts rows, replacing rows that have the same `_id`."""
        names = [*OWN, *map(quote_name, self.columns)]
        sets = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
        return (
            f"insert into {self._table} ({', '.join(names)}) values %s "
            f"on conflict (_id) do update set {sets}"
        )

    @cached_property
    def delete(self) -> str:
        """The statement that deletes rows by `_id`."""
        return f"delete from {self._table} where _id = any(?)"

    @cached_property
    def there(self) -> str:
        """The statement that finds rows by `_id`."""
        return f"select 1 from {self._table} where _id = any(?)"

    @cached_property
    def rows(self) -> str:
        """The statement that reads all rows."""
        names = ", ".join(["_count", "_odd", *map(quote_name, self.columns)])
        return f"select {names} from {self._table}"

    @cached_property
    def drop(self) -> str:
        """The statement that drops the table."""
        return f"drop table if exists {self._table}"

    def id_of(self, row: Values) -> bytes:
        """Return the digest that identifies a row."""
        if self.schema.key is None:
            text = json.dumps([*map(_mark, row)])
        else:
            text = _mark(row[self.schema.key_place])
        return blake2b(text.encode(), digest_size=DIGEST).digest()

    def written(self, row: Values, count: int) -> tuple[Any, ...]:
        """Return the column values that store a row."""
        odd: dict[int, str] = {}
        found: list[Any] = []
        for place, (value, kind) in enumerate(zip(row, self._types, strict=True)):
            if value is None or _FITS[kind](value):
                found.append(repr(value) if type(value) is float else value)
            elif kind == MARKED and "\0" not in (text := _mark(value)):
                found.append(text)
            else:
                found.append(None)
                odd[place] = _mark(value)
        return (self.id_of(row), count, json.dumps(odd) if odd else None, *found)

    def read(self, found: Sequence[tuple[Any, ...]]) -> dict[int, list[Values]]:
        """Decode fetched rows, grouped by their number of copies.

        Raises `ValueError` if a number of copies, or a value, is damaged.
        """
        reads = [_READS[kind] for kind in self._types]
        rows: dict[int, list[Values]] = {}
        for count, odd, *values in found:
            if count < 1:
                raise ValueError(f"{count!r} is not how often a row is there")
            for place, read in enumerate(reads):
                if read is not None and values[place] is not None:
                    values[place] = read(values[place])
            if odd is not None:
                for place, text in json.loads(odd).items():
                    values[int(place)] = _unmark(text)
            rows.setdefault(count, []).append(tuple(values))
        return rows


def place_postgres_table(schema: Schema, room: str, taken: Collection[str]) -> PostgresTable:
    """Choose the SQL names of a new table and its columns.

    >>> schema = Schema("état %", (Column("a?", "int", "plain"),))
    >>> place_postgres_table(schema, "reactive", ["tables"]).create
    'create table "reactive"."état _" (_id bytea primary key, _count bigint not null, _odd text, \
"a_" bigint)'
    """
    columns: list[str] = []
    for column in schema.columns:
        columns.append(unique_name(_safe_name(column.name), [*OWN, *columns]))
    ours = ("state", "tables", "reactive_commits", "reactive_changes")
    return PostgresTable(
        schema, room, unique_name(_safe_name(schema.table), [*ours, *taken]), tuple(columns)
    )


def _safe_name(name: str) -> str:
    """Return a name that Postgres can use: printable, without `%` and `?`, and not too long."""
    plain = "".join(
        letter if letter.isprintable() and letter not in "%?" else "_" for letter in name
    )
    while len(plain.encode()) > LONGEST:
        plain = plain[:-1]
    return plain or "value"


MARKED = "text /* marked */"
_DECLARED = {"int": "bigint", "float": "float8", "str": "text", "bytes": "bytea", "bool": "bigint"}


def _sql_type(column: Column) -> str:
    """Return the SQL type of a field's column: that of its declared type, ignoring None."""
    parts = {part.strip() for part in column.type.split("|")} - {"None"}
    only = parts.pop() if len(parts) == 1 else ""
    return _DECLARED.get(only, MARKED)


_FITS: Mapping[str, Callable[[Any], bool]] = {
    "bigint": lambda value: type(value) is int,
    "float8": lambda value: type(value) is float,
    "text": lambda value: type(value) is str and "\0" not in value,
    "bytea": lambda value: type(value) is bytes,
    MARKED: lambda value: False,
}


def _mark(value: Any) -> str:
    """Encode a plain value as text that begins with a mark of its type."""
    if type(value) is bytes:
        return f"b{value.hex()}"
    kind = type(value)
    return "n" if value is None else f"{'s' if kind is str else kind.__name__[0]}{value}"


def _unmark(text: str) -> Any:
    """Decode the text of `_mark`.

    >>> [_unmark(_mark(value)) for value in (1, 1.0, -0.0, "1", b"1", "")]
    [1, 1.0, -0.0, '1', b'1', '']
    """
    mark, rest = text[0], text[1:]
    if mark == "s":
        return rest
    calls: dict[str, Callable[[str], Any]] = {"i": int, "f": float, "b": bytes.fromhex}
    return calls[mark](rest)


_READS: Mapping[str, Callable[[Any], Any] | None] = {
    "bigint": None,
    "float8": None,
    "text": None,
    "bytea": bytes,
    MARKED: _unmark,
}


@dataclass
class MemoryStore:
    """A `Store` that lasts as long as the object.

    >>> store = MemoryStore()
    >>> store.open(keep=0)
    >>> store.create(Schema("words", ()))
    >>> store.version(), [*store.tables()]
    (0, ['words'])
    """

    name: str = "a store in memory"
    _is_open: bool = False
    _keep: int = 0
    _version: int = 0
    _schemas: dict[str, Schema] = field(default_factory=dict)
    _rows: dict[str, dict[Values, int]] = field(default_factory=dict)
    _logged: list[LoggedCommit] = field(default_factory=list)

    def open(self, keep: int) -> None:
        """Lock the store; see `Store.open`."""
        if self._is_open:
            raise DurabilityError(is_open_here(self.name))
        self._is_open, self._keep = True, keep

    def version(self) -> int:
        """Return the last version; see `Store.version`."""
        return self._version

    def tables(self) -> Mapping[str, Schema]:
        """Return the schemas; see `Store.tables`."""
        return dict(self._schemas)

    def rows(self, table: str) -> Rows:
        """Return the rows of a table; see `Store.rows`."""
        return [([row], weight) for row, weight in self._rows[table].items()]

    def write(self, records: Sequence[Record]) -> None:
        """Write commits; see `Store.write`."""
        for record in records:
            changes = {change.table: [*change.weights()] for change in record.changes}
            for table, pairs in changes.items():
                rows = self._rows[table]
                for row, weight in sorted(pairs, key=lambda pair: pair[1]):
                    rows[row] = rows.pop(row, 0) + weight
                    if not rows[row]:
                        del rows[row]
            self._version = record.version
            if not record.is_commit:
                continue
            self._logged = [*self._logged, LoggedCommit(record.version, record.time, changes)]
            self._logged = self._logged[-self._keep :] if self._keep else []

    def create(self, schema: Schema, rows: Rows = ()) -> None:
        """Create a table with rows; see `Store.create`."""
        found = {row: weight for batch, weight in rows for row in batch}
        self._schemas[schema.table], self._rows[schema.table] = schema, found
        if not schema.is_beside:
            self._logged = []

    def drop(self, table: str) -> None:
        """Delete a table; see `Store.drop`."""
        found = self._schemas.pop(table, None)
        self._rows.pop(table, None)
        if found is not None and not found.is_beside:
            self._logged = []

    def history(self, since: int) -> Sequence[LoggedCommit]:
        """Return the kept commits; see `Store.history`."""
        return [logged for logged in self._logged if logged.version > since]

    def after_fork(self) -> None:
        """Do nothing: there are no open resources."""

    def close(self) -> None:
        """Release the store, which keeps its rows; see `Store.close`."""
        self._is_open = False


# Schemas as text, for stores that write them as text.


def text_of_schema(schema: Schema) -> str:
    """Serialize a schema without its name.

    >>> text_of_schema(Schema("words", (Column("value", "str", "plain"),)))
    '{"columns": [["value", "str", "plain"]], "key": null, "about": ""}'
    """
    columns = [astuple(column) for column in schema.columns]
    return json.dumps({"columns": columns, "key": schema.key, "about": schema.about})


def schema_of_text(table: str, text: str) -> Schema:
    """Deserialize the schema of a table.

    >>> schema_of_text("words", '{"columns": [], "key": null, "about": ""}')
    Schema(table='words', columns=(), key=None, about='')
    """
    found = json.loads(text)
    columns = tuple(Column(*column) for column in found["columns"])
    return Schema(table, columns, found["key"], found["about"])
