"""Feed of one table of Postgres, decoded from the messages of the plugin `pgoutput`.

A table of Postgres and the table of the database that it feeds.

State: of the columns as the stream describes them where the fields are.

Decode what the plugin `pgoutput` says, version 1 of its protocol: bytes to messages, no more.

    Begin  Relation  Insert  Update  Delete  Truncate  ...  Commit

A transaction comes as a whole and only once it is committed, so what was rolled back never shows.
Values are texts; None is null.

No kept library does this: `pypgoutput` is a prototype of 2022 that wants pydantic, makes an object
of each value, and reads no arrays. `PostgresSource(decode=...)` takes another decoder that gives
these messages.

Cost:   O(bytes).
Source: PostgreSQL, "Logical Replication Message Formats".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

from reactive.api.table import Table
from reactive.borders.sources.batch import Refused
from reactive.borders.sources.postgres.rows import (
    KeyValues,
    Make,
    fields_of,
    key_of_values,
    maker,
    shown,
)
from reactive.borders.sources.postgres.rows import (
    Values as RowValues,
)
from reactive.borders.sources.postgres.schema import (
    FULL,
    Connection,
    PostgresSchema,
    PostgresTypes,
    check_identity,
)
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.engine.runtime.sql_names import quoted
from reactive.errors import SourceError


class TableFeed:
    """What is known of both tables, and how rows of the one become rows of the other."""

    def __init__(self, schema: PostgresSchema, row_type: Any, table: Table[Any]) -> None:
        check_identity(schema)
        self.schema = schema
        self.row_type = row_type
        self.table = table
        self.fields = fields_of(schema, row_type)
        self.is_keyed = table.plan.key is not None
        self._key: Callable[[Any], Any] | None = None
        names = frozenset[str]()
        if self.is_keyed:
            self._key, names = key_of_values(schema, table, self.fields)
        elif not schema.is_full:
            raise SourceError(
                f"table {table.name!r} has no key, and changes of {schema.name!r} tell only "
                f"{', '.join(sorted(schema.identity))} of the row that was\n"
                f"  db.table(..., key=...), or ALTER TABLE {schema.sql} REPLICA IDENTITY FULL"
            )
        self._places: tuple[int, ...] = ()
        self._relation: RelationMessage | None = None
        self._key_parts = [field for field in self.fields if field.name in names]
        missing = names - {field.name for field in self.fields}
        if missing:
            raise SourceError(f"the key of table {table.name!r} reads {missing}, which is no field")
        self._key_places: list[int] = []
        self._row = self.maker(range(len(self.fields)))

    def describe(self, relation: RelationMessage, types: PostgresTypes) -> list[str]:
        """The columns are these from now on; what has changed.

        Raises
        ------
        SourceError: a field has no column any more, or one of another type.
        """
        before, self._relation = self._relation, relation
        if before is not None and before.columns == relation.columns:
            return []
        places = {column.name: place for place, column in enumerate(relation.columns)}
        changes = self._differences(relation, before)
        for field in self.fields:
            place = places.get(field.column.name)
            if place is None:
                raise self._refusal(field.name, "is not there any more", changes)
            kind = relation.columns[place].type
            if kind != field.column.type and types.conversion(kind) != field.column.conversion:
                raise self._refusal(field.name, "has another type", changes)
        self._check_identity(relation)
        self._places = tuple(places[field.column.name] for field in self.fields)
        self._key_places = [places[field.column.name] for field in self._key_parts]
        self._row = self.maker(self._places)
        return changes

    def row(self, values: Sequence[str | None]) -> Any:
        """The row of these texts, or a `Refused`."""
        return self._row(values)

    def key(self, row: Any) -> Any:
        """The key of a row, or of a `Refused`."""
        assert self._key is not None
        return row.key if type(row) is Refused else self._key(row)

    def key_of_old(self, values: Sequence[str | None]) -> Any:
        """The key of the row that was, of which only the identity is told."""
        parts = zip(self._key_parts, self._key_places, strict=True)
        return self._key_of([(part, values[place]) for part, place in parts])

    def key_of_texts(self, texts: Mapping[str, str | None]) -> Any:
        """The key of texts by the names of columns."""
        return self._key_of([(part, texts[part.column.name]) for part in self._key_parts])

    def maker(self, places: Sequence[int], native: Collection[int] = ()) -> Make:
        """What makes a row of the values of columns, or a `Refused`."""
        key = self._key_of if self.is_keyed else None
        return maker(self.schema, self.row_type, self.fields, places, native, key)

    def _key_of(self, values: RowValues) -> Any:
        """The key; of values that are none, a text that stands for it."""
        assert self._key is not None
        given = [(field, value) for field, value in values if field in self._key_parts]
        found = {}
        try:
            for field, value in given:
                call = field.conversion.call
                is_text = call is not None and isinstance(value, str)
                found[field.name] = call(value) if is_text else value  # type: ignore[misc]
            return self._key(KeyValues(found))
        except Exception as error:
            reraise_asynchronous(error)
            return shown(given)

    def with_unchanged(
        self, change: Update, held: Callable[[Any], Any], connection: Connection
    ) -> Any:
        """The row of an update that does not send all values: they are those of the row that is
        held, or else what the table has; or a `Refused`. None if there is no such row any more."""
        if (
            change.old is not None
            and self._relation is not None
            and self._relation.identity == FULL
        ):
            for place in change.unchanged:
                change.new[place] = change.old[place]
            return self.row(change.new)
        unsent = [
            field.name
            for field, place in zip(self.fields, self._places, strict=True)
            if place in change.unchanged
        ]
        if not unsent:
            return self.row(change.new)
        row = held(self.key_of_old(change.new if change.old is None else change.old))
        made = self.row(change.new)
        if row is None or isinstance(made, Refused):
            return self._read_again(change, connection)
        values = {field.name: getattr(made, field.name) for field in self.fields}
        return self.row_type(**values | {name: getattr(row, name) for name in unsent})

    def _read_again(self, change: Update, connection: Connection) -> Any:
        """Ask for the values that were not sent. The others are those that were: what is told may
        be told before anybody can read it."""
        for known in (change.new, change.old):
            found = None if known is None else self._unsent(change, known, connection)
            if found is not None:
                for place, value in zip(change.unchanged, found, strict=True):
                    change.new[place] = value
                return self.row(change.new)
        return None

    def _unsent(self, change: Update, known: Sequence[str | None], connection: Connection) -> Any:
        assert self._relation is not None
        columns = self._relation.columns
        keys = [
            (column.name, value)
            for column, value in zip(columns, known, strict=True)
            if column.name in self.schema.identity
        ]
        wanted = ", ".join(quoted(columns[place].name) for place in change.unchanged)
        where = " and ".join(f"{quoted(name)} = %s" for name, _ in keys)
        found = connection.rows(
            f"select {wanted} from {self.schema.rows_sql} where {where}",
            [value for _, value in keys],
            cursor=connection.cursor(()),
        )
        return found[0] if found else None

    def _differences(self, relation: RelationMessage, before: RelationMessage | None) -> list[str]:
        """What is told of columns that are others than before, or than the catalog has."""
        now = {column.name: column.type for column in relation.columns}
        if before is None:
            was = {column.name: column.type for column in self.schema.columns}
        else:
            was = {column.name: column.type for column in before.columns}
        name = self.schema.name
        return [
            *(f"{name}: column {each!r} was added" for each in now if each not in was),
            *(f"{name}: column {each!r} is gone, or renamed" for each in was if each not in now),
            *(
                f"{name}: column {each!r} has another type"
                for each in now
                if each in was and now[each] != was[each]
            ),
        ]

    def _check_identity(self, relation: RelationMessage) -> None:
        told = {column.name for column in relation.columns if column.is_key}
        needed = {field.column.name for field in self._key_parts}
        if not needed <= told or (not self.is_keyed and relation.identity != FULL):
            raise SourceError(
                f"{self.schema.name!r} has another replica identity now, by which rows of table "
                f"{self.table.name!r} are not told apart\n"
                f"  ALTER TABLE {self.schema.sql} REPLICA IDENTITY FULL, and read the table anew: "
                "PostgresSource(..., resnapshot=True)"
            )

    def _refusal(self, field: str, what: str, changes: list[str]) -> SourceError:
        told = "; ".join(changes)
        return SourceError(
            f"the columns of {self.schema.name!r} were changed: {field!r}, a field of "
            f"{self.row_type.__name__}, {what} ({told})\n"
            "  give the class the fields that the columns are now, and start again; of rows that "
            "did not change since, PostgresSource(..., resnapshot=True) reads the new values"
        )


def fit(rows: list[Any]) -> tuple[list[Any], list[Refused]]:
    """Rows, and what can be made no row of."""
    refused = [row for row in rows if type(row) is Refused]
    return ([row for row in rows if type(row) is not Refused] if refused else rows), refused


Values: TypeAlias = "list[str | None]"
"""The values of a row by the places of its columns."""


class MessageColumn(NamedTuple):
    """A column as a relation's message has it."""

    name: str
    type: int
    modifier: int
    is_key: bool


class Begin(NamedTuple):
    """A transaction begins, that was committed at this position."""

    final: int
    made: float


class CommitMessage(NamedTuple):
    """It ends; all that follows is after `end`. `made` is the time of its commit."""

    lsn: int
    end: int
    made: float


class RelationMessage(NamedTuple):
    """What the columns of a table are, from here on."""

    number: int
    schema: str
    name: str
    identity: str
    columns: tuple[MessageColumn, ...]


class Insert(NamedTuple):
    """A row comes."""

    relation: int
    new: Values


class Update(NamedTuple):
    """A row changes. `old` is there if its key changes, or if the identity is full; `unchanged` are
    the places of large values that did not change, which are not sent."""

    relation: int
    old: Values | None
    new: Values
    unchanged: tuple[int, ...]


class Delete(NamedTuple):
    """A row goes; of `old` all columns are there if the identity is full, else those of the key."""

    relation: int
    old: Values


class Truncate(NamedTuple):
    """All rows of tables go."""

    relations: tuple[int, ...]


class OtherMessage(NamedTuple):
    """What changes no row: an origin, the name of a type, a message."""

    kind: str


Message: TypeAlias = (
    Begin | CommitMessage | RelationMessage | Insert | Update | Delete | Truncate | OtherMessage
)

EPOCH = 946_684_800
"""2000-01-01, from which Postgres counts microseconds, in the seconds of `time.time()`."""
TEXT, NULL, UNCHANGED = b"tnu"
INSERT, UPDATE, DELETE, BEGIN, COMMIT, RELATION, TRUNCATE = b"IUDBCRT"
OLD = b"KO"

_NUMBER, _SHORT = Struct(">I"), Struct(">H")
_BEGIN, _COMMIT, _COLUMN = Struct(">QqI"), Struct(">BQQq"), Struct(">Ii")
_relation, _count, _length = _NUMBER.unpack_from, _SHORT.unpack_from, _NUMBER.unpack_from


def decode(data: bytes) -> Message:
    """What a message says.

    Raises
    ------
    ValueError: it is in another format, such as with values in binary.

    >>> decode(b"I\\0\\0\\0\\x09N\\0\\x02t\\0\\0\\0\\x017n")
    Insert(relation=9, new=['7', None])
    """
    kind = data[0]
    if kind == INSERT:
        (relation,) = _relation(data, 1)
        return Insert(relation, _values(data, 6)[0])
    if kind == UPDATE:
        return _update(data)
    if kind == DELETE:
        (relation,) = _relation(data, 1)
        return Delete(relation, _values(data, 6)[0])
    if kind == BEGIN:
        final, made, _ = _BEGIN.unpack_from(data, 1)
        return Begin(final, EPOCH + made / 1e6)
    if kind == COMMIT:
        _, lsn, end, made = _COMMIT.unpack_from(data, 1)
        return CommitMessage(lsn, end, EPOCH + made / 1e6)
    if kind == RELATION:
        return _described(data)
    if kind == TRUNCATE:
        (count,) = _relation(data, 1)
        return Truncate(tuple(_relation(data, 6 + 4 * n)[0] for n in range(count)))
    return OtherMessage(chr(kind))


def _update(data: bytes) -> Update:
    (relation,) = _relation(data, 1)
    old, at = None, 5
    if data[at] in OLD:
        old, at, _ = _values(data, at + 1)
    new, _, unchanged = _values(data, at + 1)
    return Update(relation, old, new, unchanged)


def _values(data: bytes, at: int) -> tuple[Values, int, tuple[int, ...]]:
    """The values of a row, where they end, and the places of those that are not sent."""
    (count,) = _count(data, at)
    at += 2
    values: Values = []
    unchanged: tuple[int, ...] = ()
    for place in range(count):
        kind = data[at]
        at += 1
        if kind == TEXT:
            start = at + 4
            at = start + _length(data, at)[0]
            values.append(data[start:at].decode())
            continue
        if kind == UNCHANGED:
            unchanged += (place,)
        elif kind != NULL:
            raise ValueError(f"a value in format {chr(kind)!r}, where texts are asked for")
        values.append(None)
    return values, at, unchanged


def _described(data: bytes) -> RelationMessage:
    (number,) = _relation(data, 1)
    schema, at = _text(data, 5)
    name, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _count(data, at + 1)
    at += 3
    columns: list[MessageColumn] = []
    for _ in range(count):
        is_key = bool(data[at] & 1)
        column, at = _text(data, at + 1)
        kind, modifier = _COLUMN.unpack_from(data, at)
        columns.append(MessageColumn(column, kind, modifier, is_key))
        at += _COLUMN.size
    return RelationMessage(number, schema, name, identity, tuple(columns))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1
