"""The feed of one Postgres table, and the decoder for messages of the plugin `pgoutput`.

`TableFeed` converts the rows of a Postgres table to rows of the table that it feeds.

`decode` converts bytes of protocol version 1 of `pgoutput` to messages:

    Begin  Relation  Insert  Update  Delete  Truncate  ...  Commit

A transaction is sent as a whole after its commit, so rolled-back changes never appear. Values are
texts; None is null.

No maintained library does this: `pypgoutput` is a prototype of 2022 that needs pydantic, makes an
object of each value, and does not read arrays. `PostgresSource(decode=...)` takes another decoder
that returns these messages.

State:  the positions of the fields among the columns, as the stream describes them.
Cost:   O(bytes).
Source: PostgreSQL, "Logical Replication Message Formats".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

from optimizer.expr import Attribute, Parameter
from optimizer.plans.properties import shapes
from optimizer.subqueries.keyed_rows import as_expression
from reactive.api.table import Table
from reactive.borders.sources.batch import Refused, is_stream
from reactive.borders.sources.postgres.rows import (
    KeyValues,
    Make,
    column_fields,
    key_of_values,
    row_function,
    show_values,
)
from reactive.borders.sources.postgres.rows import Values as RowValues
from reactive.borders.sources.postgres.schema import (
    FULL,
    Connection,
    PostgresSchema,
    PostgresTypes,
    check_identity,
)
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.engine.runtime.sql_names import quote_name
from reactive.errors import SourceError, TableError


class TableFeed:
    """The conversion of rows of a Postgres table to rows of a table of the database."""

    def __init__(self, schema: PostgresSchema, row_type: Any, table: Table[Any]) -> None:
        check_identity(schema)
        self.schema = schema
        self.row_type = row_type
        self.table = table
        self.fields = column_fields(schema, row_type)
        self.is_keyed = table.plan.key is not None
        self.is_stream = is_stream(table)
        self._key: Callable[[Any], Any] | None = None
        names = frozenset[str]()
        if self.is_keyed:
            self._key, names = key_of_values(schema, table, self.fields)
        elif not schema.is_full and not self.is_stream:
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
        """Set the columns of later messages; return what has changed, a text for each change.

        Raises
        ------
        SourceError: a field has no column any longer, or one of another type.
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
        """Return the row of the given texts, or a `Refused`."""
        return self._row(values)

    def order_sql(self) -> str:
        """Return the ORDER BY of a snapshot: of a stream by time, if that is a column."""
        time = self.table.plan.time
        if time is None:
            return ""
        match as_expression(time, shapes(self.table.plan)).body:
            case Attribute(Parameter(0), name):
                found = [field for field in self.fields if field.name == name]
                return f" order by {quote_name(found[0].column.name)}" if found else ""
        return ""

    def refused(self, what: str, values: Sequence[str | None] | None) -> Refused:
        """Return the refusal of a change of rows of a stream.

        what: the change, such as "updated". values: those of the old row; None for all rows.
        """
        shown, schema = "all rows", self.schema
        if values is not None:
            fields = zip(self.fields, self._places, strict=True)
            own = [each for each in fields if each[0].column.name in schema.identity]
            shown = show_values([(field, values[place]) for field, place in own])
        error = TableError(
            f"stream {self.table.name!r} takes inserted rows only: Postgres has {what} {shown} of "
            f"{schema.name!r}\n"
            '  start(on_error="drop") leaves such changes out; db.table has rows that change'
        )
        return Refused(f"{what} {shown}", error)

    def key(self, row: Any) -> Any:
        """Return the key of a row, or of a `Refused`."""
        assert self._key is not None
        return row.key if type(row) is Refused else self._key(row)

    def key_of_old(self, values: Sequence[str | None]) -> Any:
        """Return the key of an old row, sent with its identity columns only."""
        parts = zip(self._key_parts, self._key_places, strict=True)
        return self._key_of([(part, values[place]) for part, place in parts])

    def key_of_texts(self, texts: Mapping[str, str | None]) -> Any:
        """Return the key of a row whose values are given as texts, by column name."""
        return self._key_of([(part, texts[part.column.name]) for part in self._key_parts])

    def maker(self, places: Sequence[int], native: Collection[int] = ()) -> Make:
        """Return a function that makes a row, or a `Refused`, from the values of columns."""
        key = self._key_of if self.is_keyed else None
        return row_function(self.schema, self.row_type, self.fields, places, native, key)

    def _key_of(self, values: RowValues) -> Any:
        """Return the key of values; if they cannot be converted, a text in its place."""
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
            return show_values(given)

    def with_unchanged(
        self, change: Update, held: Callable[[Any], Any], connection: Connection
    ) -> Any:
        """Return the row of an update that omits unchanged values, or a `Refused`.

        The omitted values are taken from the old row if the message has all of it, else from the
        row `held(key)` of this process, else from a query. Return None if the row no longer exists.
        """
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
        """Query the values that were not sent, and set them in `change.new`; return the row.

        Return None if no row has the new or the old identity.

        The change may arrive before the query can see it.
        """
        for known in (change.new, change.old):
            found = None if known is None else self._unsent(change, known, connection)
            if found is not None:
                for place, value in zip(change.unchanged, found, strict=True):
                    change.new[place] = value
                return self.row(change.new)
        return None

    def _unsent(self, change: Update, known: Sequence[str | None], connection: Connection) -> Any:
        """Query the values that an update did not send; None if no row has the identity `known`."""
        assert self._relation is not None
        columns = self._relation.columns
        keys = [
            (column.name, value)
            for column, value in zip(columns, known, strict=True)
            if column.name in self.schema.identity
        ]
        wanted = ", ".join(quote_name(columns[place].name) for place in change.unchanged)
        where = " and ".join(f"{quote_name(name)} = %s" for name, _ in keys)
        found = connection.rows(
            f"select {wanted} from {self.schema.rows_sql} where {where}",
            [value for _, value in keys],
            cursor=connection.cursor(()),
        )
        return found[0] if found else None

    def _differences(self, relation: RelationMessage, before: RelationMessage | None) -> list[str]:
        """Describe each column that differs from the description `before`.

        If that is None, describe the columns that differ from the catalog.
        """
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
        """Raise `SourceError` if the replica identity does not tell rows apart any longer."""
        told = {column.name for column in relation.columns if column.is_key}
        needed = {field.column.name for field in self._key_parts}
        needs_all = not self.is_keyed and not self.is_stream
        if not needed <= told or (needs_all and relation.identity != FULL):
            raise SourceError(
                f"{self.schema.name!r} has another replica identity now, by which rows of table "
                f"{self.table.name!r} are not told apart\n"
                f"  ALTER TABLE {self.schema.sql} REPLICA IDENTITY FULL, and read the table anew: "
                "PostgresSource(..., resnapshot=True)"
            )

    def _refusal(self, field: str, what: str, changes: list[str]) -> SourceError:
        """Return the error for a changed column that a field of the class needs.

        Parameters
        ----------
        field: the name of the field.
        what: the predicate of the sentence about it, such as "has another type".
        changes: the changes of all columns, a text for each.
        """
        told = "; ".join(changes)
        return SourceError(
            f"the columns of {self.schema.name!r} were changed: {field!r}, a field of "
            f"{self.row_type.__name__}, {what} ({told})\n"
            "  give the class the fields that the columns are now, and start again; of rows that "
            "did not change since, PostgresSource(..., resnapshot=True) reads the new values"
        )


def split_refused(rows: list[Any]) -> tuple[list[Any], list[Refused]]:
    """Return the rows, and apart from them the values that cannot be converted to rows."""
    refused = [row for row in rows if type(row) is Refused]
    return ([row for row in rows if type(row) is not Refused] if refused else rows), refused


Values: TypeAlias = "list[str | None]"
"""The values of a row by the positions of its columns."""


class MessageColumn(NamedTuple):
    """A column in the message of a relation."""

    name: str
    type: int
    modifier: int
    is_key: bool


class Begin(NamedTuple):
    """The start of a transaction; `final` is the position of its commit."""

    final: int
    made: float


class CommitMessage(NamedTuple):
    """The end of a transaction; later changes are after `end`. `made` is the time of its commit."""

    lsn: int
    end: int
    made: float


class RelationMessage(NamedTuple):
    """The columns of a table in the following messages."""

    number: int
    schema: str
    name: str
    identity: str
    columns: tuple[MessageColumn, ...]


class Insert(NamedTuple):
    """An inserted row."""

    relation: int
    new: Values


class Update(NamedTuple):
    """An updated row.

    `old` is sent if its key changes, or if the identity is full. `unchanged` are the positions of
    large values that did not change, and are not sent.
    """

    relation: int
    old: Values | None
    new: Values
    unchanged: tuple[int, ...]


class Delete(NamedTuple):
    """A deleted row. `old` has all columns if the identity is full, else the key columns."""

    relation: int
    old: Values


class Truncate(NamedTuple):
    """The deletion of all rows of some tables."""

    relations: tuple[int, ...]


class OtherMessage(NamedTuple):
    """A message that changes no row: an origin, the name of a type, a message of a user."""

    kind: str


Message: TypeAlias = (
    Begin | CommitMessage | RelationMessage | Insert | Update | Delete | Truncate | OtherMessage
)

EPOCH = 946_684_800
"""2000-01-01, the epoch of Postgres timestamps, in the seconds of `time.time()`."""
TEXT, NULL, UNCHANGED = b"tnu"
INSERT, UPDATE, DELETE, BEGIN, COMMIT, RELATION, TRUNCATE = b"IUDBCRT"
OLD = b"KO"

_NUMBER, _SHORT = Struct(">I"), Struct(">H")
_BEGIN, _COMMIT, _COLUMN = Struct(">QqI"), Struct(">BQQq"), Struct(">Ii")
_relation, _count, _length = _NUMBER.unpack_from, _SHORT.unpack_from, _NUMBER.unpack_from


def decode(data: bytes) -> Message:
    """Decode a message.

    Raises
    ------
    ValueError: the format is another one, for example with binary values.

    >>> decode(b"I\\0\\0\\0\\x09N\\0\\x02t\\0\\0\\0\\x017n")
    Insert(relation=9, new=['7', None])
    """
    kind = data[0]
    if kind == INSERT:
        (relation,) = _relation(data, 1)
        return Insert(relation, _read_values(data, 6)[0])
    if kind == UPDATE:
        return _update(data)
    if kind == DELETE:
        (relation,) = _relation(data, 1)
        return Delete(relation, _read_values(data, 6)[0])
    if kind == BEGIN:
        final, made, _ = _BEGIN.unpack_from(data, 1)
        return Begin(final, EPOCH + made / 1e6)
    if kind == COMMIT:
        _, lsn, end, made = _COMMIT.unpack_from(data, 1)
        return CommitMessage(lsn, end, EPOCH + made / 1e6)
    if kind == RELATION:
        return _relation_message(data)
    if kind == TRUNCATE:
        (count,) = _relation(data, 1)
        return Truncate(tuple(_relation(data, 6 + 4 * n)[0] for n in range(count)))
    return OtherMessage(chr(kind))


def _update(data: bytes) -> Update:
    """Decode an update; its old values are None if the server did not send them."""
    (relation,) = _relation(data, 1)
    old, at = None, 5
    if data[at] in OLD:
        old, at, _ = _read_values(data, at + 1)
    new, _, unchanged = _read_values(data, at + 1)
    return Update(relation, old, new, unchanged)


def _read_values(data: bytes, at: int) -> tuple[Values, int, tuple[int, ...]]:
    """Return the values of a row, their end, and the positions of values that are not sent.

    Raises `ValueError` if one is not sent as text.
    """
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


def _relation_message(data: bytes) -> RelationMessage:
    """Decode the description of a table and its columns."""
    (number,) = _relation(data, 1)
    schema, at = _read_text(data, 5)
    name, at = _read_text(data, at)
    identity = chr(data[at])
    (count,) = _count(data, at + 1)
    at += 3
    columns: list[MessageColumn] = []
    for _ in range(count):
        is_key = bool(data[at] & 1)
        column, at = _read_text(data, at + 1)
        kind, modifier = _COLUMN.unpack_from(data, at)
        columns.append(MessageColumn(column, kind, modifier, is_key))
        at += _COLUMN.size
    return RelationMessage(number, schema, name, identity, tuple(columns))


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    """Return the text up to the next NUL byte, and the position behind that."""
    end = data.index(0, at)
    return data[at:end].decode(), end + 1
