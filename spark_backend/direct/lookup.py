"""How rows with some keys are found in the files of a state table, by this process.

    which files     the buckets of the keys, by the hash that Spark puts rows into buckets by
    which rows      those that have, in one column of the key, a value that a key has there

Rows with other keys may come along: who asks looks again. So a key that is no field of a row only
has its buckets, all of whose rows come.

State:  none.
Cost:   O(rows in these files), a few nanoseconds each, where a column is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from optimizer.expr import Attribute, Constant, Expr, Function, Item, Lifted, Parameter
from spark_backend.codec.arrow import arrow_type
from spark_backend.codec.fitting import Fits, fitting
from spark_backend.codec.hashing import hash_of
from spark_backend.codec.schema import PLAIN, Plain, Record, Typed

Leaves = tuple[Any, ...]
"""A key as its plain values."""
_COMPARED = (int, str, bool, date, bytes)
"""What Arrow compares as Python does; of floats it does not, for the sake of zeros."""


@dataclass(frozen=True, slots=True)
class Field:
    """A plain column of a table, and which of the leaves of a key it has."""

    place: int
    path: tuple[str, ...]
    of: Plain


class Lookup:
    """Finds rows by a key.

    Parameters
    ----------
    types: of the leaves of the key, as they are hashed.
    fields: the columns of the table that hold leaves of it.
    """

    def __init__(self, types: Sequence[Typed], fields: Iterable[Field]) -> None:
        self._types = tuple(types)
        self._field = next((f for f in fields if f.of.kind in _COMPARED and not f.of.is_wide), None)

    def hashes(self, keys: Iterable[Leaves]) -> set[int] | None:
        """The hashes of keys; None if one has none."""
        found = {hash_of(self._types, key) for key in keys}
        return None if None in found else found  # type: ignore[return-value]

    def values(self, keys: Iterable[Leaves]) -> tuple[tuple[str, ...], pa.Array] | None:
        """A column, and the values that keys have in it; None if rows may have others."""
        field = self._field
        if field is None:
            return None
        holds = fitting(replace(field.of, optional=False))
        asked = {_as(field.of.kind, key[field.place], holds) for key in keys}
        if None in asked:
            return None
        asked.discard(_OTHER)
        return field.path, pa.array(list(asked), arrow_type(field.of))


_OTHER: Any = object()
"""Stands for a value that no value of the column is equal to."""
UNKNOWN: Any = object()
"""Stands for a value that no column is known to have."""
_NUMBERS = frozenset({int, float, bool, Decimal})
_KNOWN = PLAIN | {object}
"""Types of which it is known what equals their values."""


def _as(kind: type, value: Any, holds: Fits) -> Any:
    """The value of a column that is equal to a value; None where that is not known."""
    if holds(value):
        return value
    if type(value) not in _KNOWN:
        return None
    if kind not in _NUMBERS or type(value) not in _NUMBERS:
        return _OTHER
    try:
        made = kind(value)
    except (ValueError, OverflowError):
        return _OTHER
    return made if made == value and holds(made) else _OTHER


def in_column(of: Typed, value: Any) -> Any:
    """The value of a column of a type that is equal to a value; `UNKNOWN` if none is known."""
    if value is None and of.optional:
        return None
    found = _as(of.kind, value, fitting(replace(of, optional=False)))
    return UNKNOWN if found is None or found is _OTHER else found


def fields_of(of: Typed, *column: str) -> list[Field]:
    """All leaves of a column that is a key as a whole, by its path."""
    return [
        Field(place, (*column, *path), kept)
        for place, (path, kept) in enumerate(_paths(of))
        if isinstance(kept, Plain)
    ]


def fields_read(
    keys: Sequence[Function], kept: Typed, count: int, column: str = "row"
) -> list[Field]:
    """The columns that keys are, of rows with so many bindings; only those that are fields."""
    found: list[Field] = []
    place = 0
    for key in keys:
        read = _read(key, kept, count)
        if read is None:
            return found  # the leaves of what follows have no known place
        path, of = read
        for inner, leaf in _paths(of):
            if isinstance(leaf, Plain):
                found.append(Field(place, (column, *path, *inner), leaf))
            place += 1
    return found


def _read(key: Function, kept: Typed, count: int) -> tuple[tuple[str, ...], Typed] | None:
    """The path of what a callable reads of a row, if it does no more."""
    return _path(key.body, kept, count) if isinstance(key, Lifted) else None


def _path(expr: Expr, kept: Typed, count: int) -> tuple[tuple[str, ...], Typed] | None:
    match expr:
        case Parameter(index):
            return ((), kept) if count == 1 else _field(kept, index)
        case Attribute(of, name):
            found = _path(of, kept, count)
            return None if found is None else _below(found, name)
        case Item(of, Constant(int(place))):
            found = _path(of, kept, count)
            return None if found is None else _below(found, place)
        case _:
            return None


def _below(
    found: tuple[tuple[str, ...], Typed], name: str | int
) -> tuple[tuple[str, ...], Typed] | None:
    path, of = found
    below = _field(of, name)
    return None if below is None else ((*path, *below[0]), below[1])


def _field(of: Typed, name: str | int) -> tuple[tuple[str, ...], Typed] | None:
    """A field of a record, by its name or place."""
    if not isinstance(of, Record):
        return None
    if isinstance(name, str):
        if name not in of.names:
            return None
        name = of.names.index(name)
    elif not issubclass(of.kind, tuple) or not 0 <= name < len(of.fields):
        return None
    return (of.names[name],), of.fields[name]


def _paths(of: Typed) -> list[tuple[tuple[str, ...], Typed]]:
    """The leaves of a type, with where they are in it."""
    if not isinstance(of, Record):
        return [((), of)]
    return [
        ((name, *path), leaf)
        for name, field in zip(of.names, of.fields, strict=True)
        for path, leaf in _paths(field)
    ]
