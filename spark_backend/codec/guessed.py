"""The types of columns for rows of which nothing is declared: those that the rows look like.

Cost:   O(rows that are looked at).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from functools import reduce
from itertools import islice
from types import NoneType
from typing import Any

from optimizer.expressions.naming import Level, RowsOf, row_inside
from optimizer.kinds.kind import places_of
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.nested_rows import is_nested_class
from reactive.engine.collections.zset import Pair, Row
from reactive.errors import OffloadError
from spark_backend.codec.schema import (
    NOTHING,
    Instant,
    Kept,
    Pickled,
    Plain,
    Record,
    Typed,
    Untyped,
    Whole,
    in_common,
    kept_as,
    of_either,
    record_of,
    tuple_of,
    typed,
)

SAMPLE = 1_000
"""Rows that are looked at to find the types of columns."""


def typed_as(rows: Iterable[Pair], row_type: Any, *, sample: int | None = SAMPLE) -> Typed:
    """The types of columns for rows: those of a row type, or what the first rows are.

    Parameters
    ----------
    sample: how many rows are looked at; None for all.

    Raises
    ------
    OffloadError: no columns hold them.
    """
    try:
        if row_type is not None:
            return _declared(kept_as(row_type))
        found = {_type_of(row): None for row, _ in islice(rows, sample)}
        return reduce(in_common, found) if found else Plain(str, optional=True)
    except Untyped as untyped:
        raise OffloadError(
            f"the rows fit no columns: {untyped}\n"
            "  select what does, or say of what type they are: row_type=RowType"
        ) from None


def _declared(kept: Kept) -> Typed:
    if isinstance(kept, Pickled):
        raise Untyped(kept.reason)
    return kept


def with_known(found: Typed, known: Typed) -> Typed:
    """A type in which what has been nothing but None is what is known of it."""
    if found.kind is NoneType:
        return replace(known, optional=True)
    if isinstance(found, Whole) and isinstance(known, Whole) and found.of and known.of:
        return replace(found, of=with_known(found.of, known.of))
    if not isinstance(found, Record) or not isinstance(known, Record):
        return found
    if len(found.fields) != len(known.fields):
        return found
    both = zip(found.fields, known.fields, strict=True)
    return replace(found, fields=tuple(with_known(a, b) for a, b in both))


def expected(annotation: Any) -> Typed:
    """What is known of values by an annotation; of what it does not say, that there is None.

    >>> [field.kind.__name__ for field in expected(tuple[int, Any]).fields]
    ['int', 'NoneType']
    """
    if isinstance(annotation, Level):
        inside = expected(row_inside(annotation))
        if isinstance(inside, Record) and annotation.kind is not None:
            inside = replace(inside, kind=annotation.kind)
        return Whole(tuple if annotation.is_sequence else Bag, inside)
    if isinstance(annotation, RowsOf):
        parts = (*annotation.types, *annotation.levels)
        return Record(tuple, annotation.names, tuple(map(expected, parts)))
    items = places_of(annotation)
    if items is not None:
        return tuple_of(tuple(map(expected, items)))
    try:
        return typed(annotation)
    except Untyped:
        return Plain(NoneType, optional=True)


def _type_of(row: Row) -> Typed:
    """What a value is kept as; of a tuple, what its parts are."""
    kind = type(row)
    if row is None:
        return Plain(NoneType, optional=True)
    if kind in (Bag, frozenset):
        return _list_of(row)
    if kind is datetime and row.tzinfo is not None:
        return Whole(Instant, zone=row.tzinfo)
    if kind is tuple and row:
        return tuple_of(tuple(map(_type_of, row)))
    if is_nested_class(kind):
        return _of_nested(row)
    declared = kept_as(kind)
    if not hasattr(kind, "_fields"):
        return _declared(declared)
    if not isinstance(declared, Record):
        return record_of(kind, tuple(map(_type_of, row)))
    both = zip(declared.fields, row, strict=True)
    found = tuple(of if isinstance(of, Whole) else _type_of(value) for of, value in both)
    return with_known(record_of(kind, found), declared)


def _list_of(values: Any) -> Whole:
    """A bag or a sequence, of what its values are."""
    found: Typed | None = NOTHING
    for of in dict.fromkeys(map(_type_of, values)):
        found = of_either(found, of)
    return Whole(type(values) if type(values) in (Bag, frozenset) else tuple, found)


def _of_nested(row: Any) -> Typed:
    """A row with others inside, which are a bag each, or a sequence."""
    first, inside = row[: row.roots], row[row.roots :]
    return record_of(type(row), (*map(_type_of, first), *map(_list_of, inside)))
