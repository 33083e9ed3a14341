"""Decode what the plugin `pgoutput` says, version 1 of its protocol: bytes to messages, no more.

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

from struct import Struct
from typing import NamedTuple, TypeAlias

Values: TypeAlias = "list[str | None]"
"""The values of a row by the places of its columns."""


class Column(NamedTuple):
    """A column as a relation's message has it."""

    name: str
    type: int
    modifier: int
    is_key: bool


class Begin(NamedTuple):
    """A transaction begins, that was committed at this position."""

    final: int
    made: float


class Commit(NamedTuple):
    """It ends; all that follows is after `end`. `made` is the time of its commit."""

    lsn: int
    end: int
    made: float


class Relation(NamedTuple):
    """What the columns of a table are, from here on."""

    number: int
    schema: str
    name: str
    identity: str
    columns: tuple[Column, ...]


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


class Other(NamedTuple):
    """What changes no row: an origin, the name of a type, a message."""

    kind: str


Message: TypeAlias = Begin | Commit | Relation | Insert | Update | Delete | Truncate | Other

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
        return Commit(lsn, end, EPOCH + made / 1e6)
    if kind == RELATION:
        return _described(data)
    if kind == TRUNCATE:
        (count,) = _relation(data, 1)
        return Truncate(tuple(_relation(data, 6 + 4 * n)[0] for n in range(count)))
    return Other(chr(kind))


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


def _described(data: bytes) -> Relation:
    (number,) = _relation(data, 1)
    schema, at = _text(data, 5)
    name, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _count(data, at + 1)
    at += 3
    columns: list[Column] = []
    for _ in range(count):
        is_key = bool(data[at] & 1)
        column, at = _text(data, at + 1)
        kind, modifier = _COLUMN.unpack_from(data, at)
        columns.append(Column(column, kind, modifier, is_key))
        at += _COLUMN.size
    return Relation(number, schema, name, identity, tuple(columns))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1
