"""Stores of durable tables: the protocol, the store in memory, and the tables of a store in
Postgres.

What a store of durable tables does: the protocol, and the data that goes through it.

    open      take it, alone                     tables, rows, version    what it has
    write     commits, all of them or none       create, drop             one table, with its rows
    close     let it go                          history                  the last commits

A store knows nothing of Python's classes. A row is a tuple of plain values, one per column, each of
them None, an int of 64 bits, a float that is no NaN, a str without lone surrogates, or bytes; and
is given back as it came, `1` as `1` and `1.0` as `1.0`, `-0.0` as `-0.0`, whatever the column is
said to hold. (What else rows hold has been made bytes of before: `rows/values.py`.)

Whoever uses it calls one method at a time, from any thread.

Source: stepping's store: `get` is `rows`, `set` and `flush` are `write`, `inc` is `version`.

A durable table in Postgres: its statements, as text, and its rows as columns.

    _id       a digest of the key, or of all values without one: what a row is found by
    _count    how often it is there
    columns   bigint, float8, text, bytea, as they are declared; others as text with a mark
    _odd      values that are not as declared, or that the column's type has not, with marks

So columns can be read by anybody, and yet each value comes back as what it was: `1` and `1.0`, a
text with a NUL, the sign of `-0.0`.

State:  none.
Cost:   O(columns) per row.

A store in memory: what the others have to do, in few lines; for tests, and as an example.

State:  everything that is stored, also between `close` and `open`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeAlias

from reactive.borders.durable.refusals import is_open_here
from reactive.engine.runtime.sql_names import apart, quoted
from reactive.errors import DurabilityError

Plain: TypeAlias = int | float | str | bytes | None
Values: TypeAlias = tuple[Any, ...]
"""A row: a plain value for each column."""
KEPT = '{"kept": '
"""The beginning of `Schema.about` of a table that holds the state of a view."""
BESIDE = ('{"sink": ', KEPT)
Rows: TypeAlias = Iterable[tuple[Sequence[Values], int]]
"""Different rows in batches, with how often each row of a batch is there."""


@dataclass(frozen=True, slots=True)
class Column:
    """A field of rows: name, type as text, and how its values are written (`rows/values.py`).

    >>> Column("total", "float", "plain")
    Column(name='total', type='float', kind='plain')
    """

    name: str
    type: str
    kind: str


@dataclass(frozen=True, slots=True)
class Schema:
    """What a store notes of a table, and gives back as it was.

    table: its name.
    columns: in the order of the values of rows.
    key: the name of the column by which rows are told apart, of which no value is None; without
         one, they are told apart by all values together, and may be there several times.
    about: more, as text that is nothing to the store, but that one of `BESIDE` is before what is
        written beside the commits, and is not in the history.

    >>> Schema("orders", (Column("id", "int", "plain"),), "id").key_place
    0
    """

    table: str
    columns: tuple[Column, ...]
    key: str | None = None
    about: str = ""

    @property
    def is_beside(self) -> bool:
        """True if no commit changes the table, so that making or dropping it keeps the history."""
        return self.about.startswith(BESIDE)

    @property
    def key_place(self) -> int:
        """Where the key is among the values of a row."""
        return [column.name for column in self.columns].index(self.key or "")


class Change(NamedTuple):
    """What a commit changes of one table. No row is in two of these.

    gone: rows that were there once, and are no more.
    come: rows that were not there, and are now, once.
    counted: rows with how often they were there, and are: of tables without a key only.

    In a table with a key, a row that comes may have the key of one that goes.
    """

    table: str
    gone: Sequence[Values] = ()
    come: Sequence[Values] = ()
    counted: Sequence[tuple[Values, int, int]] = ()

    def weights(self) -> Iterator[tuple[Values, int]]:
        """Each row with how much more often it is there than before."""
        yield from ((row, -1) for row in self.gone)
        yield from ((row, 1) for row in self.come)
        yield from ((row, after - before) for row, before, after in self.counted)


class Record(NamedTuple):
    """A commit; or what several come to that are written together, as the last one of them, if no
    history is kept.

    version: its number; they rise, but not one by one, and two may have the same.
    time: when it was, in seconds since 1970.
    is_commit: False of what is written between two commits, with the version of the first one: it
        has no place in the history.
    is_safe: whether it waits for the disk, with all that was written before, whatever the store
        does otherwise.
    """

    version: int
    time: float
    changes: Sequence[Change]
    is_commit: bool = True
    is_safe: bool = False


class Logged(NamedTuple):
    """A commit of the past, as a store tells it: rows of tables, with their weights."""

    version: int
    time: float
    changes: Mapping[str, Sequence[tuple[Values, int]]]


class Store(Protocol):
    """Where durable tables are: a file of SQLite, a schema of Postgres, or what you write.

    `Database(store=...)` takes one. Names are any text; two that differ in case are two. What goes
    wrong is raised as `DurabilityError`, with what the store is called, what failed, and what to
    do. What `write`, `create` or `drop` raised of has not happened, unless `version` says that it
    has.

    >>> from reactive import Database, Store
    >>> from reactive.borders.durable.store import MemoryStore
    >>> store: Store = MemoryStore()
    >>> with Database(store=store) as db:
    ...     db.table(str, name="words").add("to")
    >>> list(Database(store=store).table(str, name="words"))
    ['to']
    """

    name: str
    """For messages: the path of a file, or an address without its password."""

    def open(self, keep: int) -> None:
        """Take it, making it if there is none, and keep the last `keep` commits for `history`.

        Raises
        ------
        DurabilityError: another process, or another database of this one, has it; or it is none of
            ours, or of a later format.
        """
        ...

    def version(self) -> int:
        """The number of the last commit that it has, 0 if none. What was half done is undone first:
        this is asked after an error, or an interrupt, to know what stands."""
        ...

    def tables(self) -> Mapping[str, Schema]:
        """The tables that it has, by name."""
        ...

    def rows(self, table: str) -> Rows:
        """The rows of a table, in batches. The store is not written to before the last."""
        ...

    def write(self, records: Sequence[Record]) -> None:
        """Write commits, in one transaction of the store. When this returns, they stand."""
        ...

    def create(self, schema: Schema, rows: Rows = ()) -> None:
        """Have a table, with these rows, in the place of the one that has its name if there is
        one; in one transaction of the store."""
        ...

    def drop(self, table: str) -> None:
        """Have a table no more, nor its rows."""
        ...

    def history(self, since: int) -> Sequence[Logged]:
        """The commits after a version, of those that are kept, the first one first. Those before a
        `create` of one of their tables may be forgotten."""
        ...

    def after_fork(self) -> None:
        """This is a child of the process that has it: touch nothing, and forget what is open
        without closing it."""
        ...

    def close(self) -> None:
        """Let it go. May be called again."""
        ...


BATCH = 2000
"""Rows that are read or written together."""
LONGEST = 50
"""Letters of a name; Postgres has 63 bytes."""
DIGEST = 16
"""Bytes of a digest: two of 10**15 rows have one with a chance of 1 in 10**9."""
OWN = ("_id", "_count", "_odd")


@dataclass(frozen=True)
class PostgresTable:
    """Where the rows of a schema are.

    place: the name of the SQL table.
    columns: of it, one for each of the schema.
    """

    schema: Schema
    room: str
    place: str
    columns: tuple[str, ...]

    @cached_property
    def _types(self) -> tuple[str, ...]:
        return tuple(map(_type, self.schema.columns))

    @property
    def _table(self) -> str:
        return f"{quoted(self.room)}.{quoted(self.place)}"

    @cached_property
    def create(self) -> str:
        """Makes it."""
        columns = "".join(
            f", {quoted(name)} {kind}" for name, kind in zip(self.columns, self._types, strict=True)
        )
        own = "_id bytea primary key, _count bigint not null, _odd text"
        return f"create table {self._table} ({own}{columns})"

    @cached_property
    def put(self) -> str:
        """Inserts rows, each in the place of the one with its `_id`."""
        names = [*OWN, *map(quoted, self.columns)]
        sets = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
        return (
            f"insert into {self._table} ({', '.join(names)}) values %s "
            f"on conflict (_id) do update set {sets}"
        )

    @cached_property
    def delete(self) -> str:
        """Deletes rows by their `_id`."""
        return f"delete from {self._table} where _id = any(?)"

    @cached_property
    def there(self) -> str:
        """Finds rows by their `_id`."""
        return f"select 1 from {self._table} where _id = any(?)"

    @cached_property
    def rows(self) -> str:
        """Reads the rows."""
        names = ", ".join(["_count", "_odd", *map(quoted, self.columns)])
        return f"select {names} from {self._table}"

    @cached_property
    def drop(self) -> str:
        """Drops it."""
        return f"drop table if exists {self._table}"

    def id_of(self, row: Values) -> bytes:
        """What a row is found by."""
        if self.schema.key is None:
            text = json.dumps([*map(_marked, row)])
        else:
            text = _marked(row[self.schema.key_place])
        return blake2b(text.encode(), digest_size=DIGEST).digest()

    def written(self, row: Values, count: int) -> tuple[Any, ...]:
        """The columns of a row."""
        odd: dict[int, str] = {}
        found: list[Any] = []
        for place, (value, kind) in enumerate(zip(row, self._types, strict=True)):
            if value is None or _FITS[kind](value):
                found.append(repr(value) if type(value) is float else value)
            elif kind == MARKED and "\0" not in (text := _marked(value)):
                found.append(text)
            else:
                found.append(None)
                odd[place] = _marked(value)
        return (self.id_of(row), count, json.dumps(odd) if odd else None, *found)

    def read(self, found: Sequence[tuple[Any, ...]]) -> dict[int, list[Values]]:
        """Rows by how often they are there."""
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
                    values[int(place)] = _unmarked(text)
            rows.setdefault(count, []).append(tuple(values))
        return rows


def placed(schema: Schema, room: str, taken: Collection[str]) -> PostgresTable:
    """Where a new table goes.

    >>> placed(Schema("état %", (Column("a?", "int", "plain"),)), "reactive", ["tables"]).create
    'create table "reactive"."état _" (_id bytea primary key, _count bigint not null, _odd text, \
"a_" bigint)'
    """
    columns: list[str] = []
    for column in schema.columns:
        columns.append(apart(_named(column.name), [*OWN, *columns]))
    ours = ("state", "tables", "reactive_commits", "reactive_changes")
    return PostgresTable(schema, room, apart(_named(schema.table), [*ours, *taken]), tuple(columns))


def _named(name: str) -> str:
    plain = "".join(
        letter if letter.isprintable() and letter not in "%?" else "_" for letter in name
    )
    while len(plain.encode()) > LONGEST:
        plain = plain[:-1]
    return plain or "value"


MARKED = "text /* marked */"
_DECLARED = {"int": "bigint", "float": "float8", "str": "text", "bytes": "bytea", "bool": "bigint"}


def _type(column: Column) -> str:
    """The type of the column of a field: what it is declared to hold, besides None."""
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


def _marked(value: Any) -> str:
    """A plain value as text that says its class."""
    if type(value) is bytes:
        return f"b{value.hex()}"
    kind = type(value)
    return "n" if value is None else f"{'s' if kind is str else kind.__name__[0]}{value}"


def _unmarked(text: str) -> Any:
    """The value of such a text.

    >>> [_unmarked(_marked(value)) for value in (1, 1.0, -0.0, "1", b"1", "")]
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
    MARKED: _unmarked,
}


@dataclass
class MemoryStore:
    """A `Store` that lasts as long as it is held.

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
    _logged: list[Logged] = field(default_factory=list)

    def open(self, keep: int) -> None:
        """As `Store.open`."""
        if self._is_open:
            raise DurabilityError(is_open_here(self.name))
        self._is_open, self._keep = True, keep

    def version(self) -> int:
        """As `Store.version`."""
        return self._version

    def tables(self) -> Mapping[str, Schema]:
        """As `Store.tables`."""
        return dict(self._schemas)

    def rows(self, table: str) -> Rows:
        """As `Store.rows`."""
        return [([row], weight) for row, weight in self._rows[table].items()]

    def write(self, records: Sequence[Record]) -> None:
        """As `Store.write`."""
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
            self._logged = [*self._logged, Logged(record.version, record.time, changes)]
            self._logged = self._logged[-self._keep :] if self._keep else []

    def create(self, schema: Schema, rows: Rows = ()) -> None:
        """As `Store.create`."""
        found = {row: weight for batch, weight in rows for row in batch}
        self._schemas[schema.table], self._rows[schema.table] = schema, found
        if not schema.is_beside:
            self._logged = []

    def drop(self, table: str) -> None:
        """As `Store.drop`."""
        found = self._schemas.pop(table, None)
        self._rows.pop(table, None)
        if found is not None and not found.is_beside:
            self._logged = []

    def history(self, since: int) -> Sequence[Logged]:
        """As `Store.history`."""
        return [logged for logged in self._logged if logged.version > since]

    def after_fork(self) -> None:
        """As `Store.after_fork`."""

    def close(self) -> None:
        """As `Store.close`."""
        self._is_open = False


# A schema as text, for stores that keep it so.


def text_of_schema(schema: Schema) -> str:
    """All of a schema but its name.

    >>> text_of_schema(Schema("words", (Column("value", "str", "plain"),)))
    '{"columns": [["value", "str", "plain"]], "key": null, "about": ""}'
    """
    columns = [astuple(column) for column in schema.columns]
    return json.dumps({"columns": columns, "key": schema.key, "about": schema.about})


def schema_of_text(table: str, text: str) -> Schema:
    """The schema of a table.

    >>> schema_of_text("words", '{"columns": [], "key": null, "about": ""}')
    Schema(table='words', columns=(), key=None, about='')
    """
    found = json.loads(text)
    columns = tuple(Column(*column) for column in found["columns"])
    return Schema(table, columns, found["key"], found["about"])
