"""Convert rows to Arrow columns and back, exactly.

A record is a struct of its fields; an integer is a decimal without places if its type may exceed 64
bits.

`fitting` makes a fast test of whether columns store a row exactly, as one closure per type. For a
rejected row, `to_arrow` finds the reason.

Cost:   about a microsecond per value, each way; a test about 0.1 us per field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from decimal import Context, Decimal
from functools import partial
from itertools import repeat
from operator import attrgetter
from types import NoneType
from typing import Any

import pyarrow as pa

from reactive.engine.collections.inner_changes import is_nested_class
from reactive.engine.collections.zset import NAN, Pair
from reactive.errors import OffloadError
from spark_backend.codec import whole
from spark_backend.codec.schema import (
    LARGEST,
    LEAST,
    PLACES,
    WIDEST,
    Plain,
    Record,
    Typed,
    Whole,
    fits_decimal,
    is_text,
    type_name,
)
from spark_backend.codec.whole import is_whole

_DIGITS = Context(prec=60)
_TYPES: dict[type, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    bool: pa.bool_(),
    date: pa.date32(),
    datetime: pa.timestamp("us"),
    Decimal: pa.decimal128(38, PLACES),
    NoneType: pa.bool_(),
}


def arrow_type(of: Typed) -> pa.DataType:
    """Return the Arrow type of values of a type."""
    if isinstance(of, Plain):
        return pa.decimal128(38, 0) if of.is_wide else _TYPES[of.kind]
    if isinstance(of, Whole):
        return whole.whole_arrow_type(of, None if of.of is None else arrow_type(of.of))
    return pa.struct([_arrow_field(n, f) for n, f in zip(of.names, of.fields, strict=True)])


def to_arrow(of: Typed, rows: Sequence[Any]) -> pa.Array:
    """Return rows as an array; all must be exactly of the type.

    Raises
    ------
    OffloadError: a row is not of the type, or would be decoded to another value; the text names it.
    """
    try:
        return _to_array(of, rows)
    except _Misfit as misfit:
        row = _shorten(misfit.row)
        raise OffloadError(
            f"cannot keep {row} in columns on Spark: {misfit.path}{misfit.reason}\n"
            f"  rows of this type are {type_name(of)} with the declared types of fields, exactly"
        ) from None


def from_arrow(of: Typed, array: pa.Array) -> list[Any]:
    """Decode the rows of an array; every NaN is the object that rows use."""
    if isinstance(of, Record):
        return _records(of, array)
    if isinstance(of, Whole):
        inside = None if of.of is None else partial(from_arrow, of.of)
        return whole.whole_from_arrow(of, array, inside)
    if of.kind is NoneType:
        return [None] * len(array)
    values: list[Any] = array.to_pylist()
    if of.kind is float:
        return [value if value == value else NAN for value in values]
    if of.is_wide:
        return [None if value is None else int(value) for value in values]
    if of.kind is Decimal:
        return [None if value is None else _strip_zeros(value) for value in values]
    return values


def pairs_of(of: Typed, table: pa.Table) -> list[Pair]:
    """Return the rows with weights of a table with the columns `row` and `weight`."""
    if not table.num_rows:
        return []
    rows = from_arrow(of, table.column("row").combine_chunks())
    return list(zip(rows, table.column("weight").to_pylist(), strict=True))


class _Misfit(Exception):
    """A value that is not of the type: the row that contains it, and the field."""

    def __init__(self, row: Any, path: str, reason: str) -> None:
        super().__init__(reason)
        self.row, self.path, self.reason = row, path, reason


def _arrow_field(name: str, of: Typed) -> pa.Field:
    """Return a field, which may be null in Arrow: the fields of a None record are null."""
    return pa.field(name, arrow_type(of))


def _to_array(of: Typed, values: Sequence[Any]) -> pa.Array:
    """Return values as an Arrow array of the type `of`.

    Raises `_Misfit` for the first value that is not of that type.
    """
    if isinstance(of, Whole):
        return _whole_array(of, values)
    expected = {of.kind, NoneType} if of.optional else {of.kind}
    if not set(map(type, values)) <= expected:
        _raise_misfit(of, values)
    if isinstance(of, Record):
        return _struct_array(of, values)
    if of.kind in (datetime, Decimal):
        _raise_misfit(of, values)
    given = _to_decimals(values) if of.is_wide else values
    try:
        return pa.array(given, arrow_type(of))
    except (OverflowError, UnicodeError, pa.ArrowInvalid):
        _raise_misfit(of, values)
        raise


def _whole_array(of: Whole, values: Sequence[Any]) -> pa.Array:
    """Return whole values as an Arrow array.

    If an element misfits, raises `_Misfit` for the value that contains it.
    """
    try:
        return whole.whole_to_arrow(
            of, values, None if of.of is None else partial(_to_array, of.of)
        )
    except _Misfit as misfit:
        held = (v for v in values if v is not None and any(i is misfit.row for i in v))
        raise _Misfit(next(held), f"inside: {misfit.path}", misfit.reason) from None


def _struct_array(of: Record, values: Sequence[Any]) -> pa.Array:
    """Return records as an Arrow struct array, null for None.

    Raises `_Misfit` for a tuple of another length.
    """
    present = [value for value in values if value is not None]
    if of.kind is tuple and not set(map(len, present)) <= {len(of.fields)}:
        _raise_misfit(of, values)
    made = pa.StructArray.from_arrays(
        [_field_array(of, place, present) for place in range(len(of.fields))],
        fields=list(arrow_type(of)),
    )
    if len(present) == len(values):
        return made
    places = iter(range(len(present)))
    return made.take(pa.array([None if v is None else next(places) for v in values], pa.int64()))


def _field_array(of: Record, place: int, records: list[Any]) -> pa.Array:
    """Return one field of all records as an Arrow array.

    If a value misfits, raises `_Misfit` for its record, with the path of the field.
    """
    read: Callable[[Any], Any] = attrgetter(of.names[place])
    if issubclass(of.kind, tuple):
        read = lambda record: record[place]  # noqa: E731
    values = list(map(read, records))
    try:
        return _to_array(of.fields[place], values)
    except _Misfit as misfit:
        found = next(r for r, v in zip(records, values, strict=True) if v is misfit.row)
        raise _Misfit(found, f"{_field_path(of, place)}{misfit.path}", misfit.reason) from None


def _field_path(of: Record, place: int) -> str:
    return f"[{place}]: " if of.kind is tuple else f"{of.kind.__name__}.{of.names[place]}: "


def _raise_misfit(of: Typed, values: Sequence[Any]) -> None:
    """Raise for the first value that is not of the type, if there is one."""
    for value in values:
        reason = _misfit_reason(of, value)
        if reason is not None:
            raise _Misfit(value, "", reason)


def _misfit_reason(of: Any, value: Any) -> str | None:
    """Return the reason why a value is not of the type, or None."""
    shown = _shorten(value)
    if value is None and of.optional:
        return None
    if type(value) is not of.kind:
        return f"{shown} is of type {type(value).__name__}, not {type_name(of)}"
    if of.kind is tuple and len(value) != len(of.fields):
        return f"{shown} is of length {len(value)}, not {type_name(of)}"
    least, largest = (-WIDEST, WIDEST) if of.kind is int and of.is_wide else (LEAST, LARGEST)
    if of.kind is int and not least <= value <= largest:
        return f"{shown} is beyond {'38 digits' if of.is_wide else '64 bits'}"
    if of.kind is datetime and (value.tzinfo is not None or value.fold):
        return f"{shown} has a time zone or a fold, which no column of datetime keeps"
    if of.kind is Decimal and not fits_decimal(value):
        return f"{shown} has more than {PLACES} digits behind the point, or 20 before it"
    if of.kind is str and not is_text(value):
        return f"{shown} is no text: it has half of a surrogate pair"
    return None


def _to_decimals(values: Iterable[Any]) -> list[Decimal | None]:
    return [None if value is None else Decimal(value) for value in values]


def _strip_zeros(value: Decimal) -> Decimal:
    """Remove the zeros at the end that the column has added."""
    short = _DIGITS.normalize(value)
    return _DIGITS.quantize(short, Decimal(1)) if short.as_tuple().exponent > 0 else short  # type: ignore[operator]


def _records(of: Record, array: pa.StructArray) -> list[Any]:
    """Return the rows of a struct array as tuples or instances of their class; None for null."""
    columns = [from_arrow(f, array.field(place)) for place, f in enumerate(of.fields)]
    rows: list[Any]
    if is_nested_class(of.kind):
        roots = of.kind.roots
        columns[roots:] = [list(map(whole.to_nested, column)) for column in columns[roots:]]
    if of.kind is tuple:
        rows = list(zip(*columns, strict=True))
    elif issubclass(of.kind, tuple):
        rows = list(map(tuple.__new__, repeat(of.kind), zip(*columns, strict=True)))
    else:
        rows = list(map(of.kind, *columns))
    if array.null_count:
        valid = array.is_valid().to_pylist()
        return [row if there else None for row, there in zip(rows, valid, strict=True)]
    return rows


def _shorten(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 200 else f"{shown[:197]}..."


Fits = Callable[[Any], bool]


def fitting(of: Typed) -> Fits:
    """Return a test of whether a value is exactly of a type.

    >>> from spark_backend.codec.schema import kept_as
    >>> fits_row = fitting(kept_as(tuple[int, str | None]))
    >>> fits_row((1, None)), fits_row((True, "a")), fits_row((2**64, "a"))
    (True, False, False)
    """
    match of:
        case Record():
            inside = _record_test(of)
        case Whole():
            inside = _whole_test(of)
        case _:
            inside = _plain_test(of)
    return (lambda value: value is None or inside(value)) if of.optional else inside


def _plain_test(of: Plain) -> Fits:
    """Return the test that a value, not None, has the plain type and the range of its column."""
    kind = of.kind
    if kind is int:
        least, largest = (-WIDEST, WIDEST) if of.is_wide else (LEAST, LARGEST)
        return lambda value: type(value) is int and least <= value <= largest
    if kind is str:
        return lambda value: type(value) is str and is_text(value)
    if kind is datetime:
        return lambda value: type(value) is kind and value.tzinfo is None and not value.fold
    if kind is Decimal:
        return lambda value: type(value) is kind and fits_decimal(value)
    return lambda value: type(value) is kind


def _whole_test(of: Whole) -> Fits:
    """Return the test that a value, not None, is whole and that its elements fit."""
    if of.of is None:
        return lambda value: is_whole(value, of)
    fits_inside = fitting(of.of)
    return lambda value: is_whole(value, of) and all(map(fits_inside, value))


def _record_test(of: Record) -> Fits:
    """Return the test that a value, not None, is of the class of the record and that its fields
    fit."""
    kind, count = of.kind, len(of.fields)
    tests = [fitting(field) for field in of.fields]
    if issubclass(kind, tuple):
        return lambda value: (
            type(value) is kind
            and len(value) == count
            and all(test(part) for test, part in zip(tests, value, strict=True))
        )
    pairs = [(test, attrgetter(name)) for test, name in zip(tests, of.names, strict=True)]
    return lambda value: type(value) is kind and all(test(read(value)) for test, read in pairs)
