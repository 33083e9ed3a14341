"""A durable table in Postgres: its statements, as text, and its rows as columns.

    _id       a digest of the key, or of all values without one: what a row is found by
    _count    how often it is there
    columns   bigint, float8, text, bytea, as they are declared; others as text with a mark
    _odd      values that are not as declared, or that the column's type has not, with marks

So columns can be read by anybody, and yet each value comes back as what it was: `1` and `1.0`, a
text with a NUL, the sign of `-0.0`.

State:  none.
Cost:   O(columns) per row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

from reactive.borders.durable.store import Column, Schema, Values
from reactive.engine.runtime.sql_names import apart, quoted

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
