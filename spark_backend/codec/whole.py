"""Values of any length: bags and sequences as arrays, long decimals as text.

    Bag({"b": 1, None: 2})     [(None, 2), ("b", 1)]      in the sort order of Spark
    ("b", "a")                 ["b", "a"]
    frozenset({"b", "a"})      ["a", "b"]
    Decimal("1.50")            "1.5"                      without zeros at the end
    Color.RED                  "RED"
    time(9, 30)                "09:30:00"
    timedelta(seconds=1)       "1000000"                  microseconds
    a zoned datetime           "2024-03-31T01:30:00.000000"   its instant, in UTC

Sound:  values are equal if and only if they are equal in the column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from optimizer.kinds.instants import instant
from optimizer.kinds.kind import is_uuid
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.long_tuple import FEW, LongTuple
from reactive.engine.collections.zset import repeat_by_weight
from reactive.errors import OffloadError
from spark_backend.codec.schema import Digits, Instant, Record, Typed, Whole, type_name

_MICROSECOND = timedelta(microseconds=1)
EXACTLY = Context(prec=10_000)
"""A context with more digits than any sum of decimals."""


def whole_arrow_type(of: Whole, value: pa.DataType | None) -> pa.DataType:
    """Return the Arrow type; `value` is that of the values of a bag or sequence."""
    if value is None:
        return pa.string()
    if not of.is_counted:
        return pa.list_(value)
    return pa.list_(pa.struct([pa.field("value", value), pa.field("weight", pa.int64())]))


def whole_to_arrow(
    of: Whole, rows: Sequence[Any], values: Callable[[list[Any]], pa.Array] | None
) -> pa.Array:
    """Return bags, sequences or texts as an array; `values` converts the values inside.

    Raises
    ------
    OffloadError: a row is not of the kind.
    """
    kind: Any = of.kind
    for row in rows:
        if not (is_whole(row, of) or (row is None and of.optional)):
            raise OffloadError(_whole_misfit(of, row))
    if values is None:
        text = text_writer(of)
        return pa.array([None if row is None else text(row) for row in rows], pa.string())
    assert of.of is not None
    if kind is tuple:
        return _list_array(rows, lambda row: row, values)
    inside = of.of

    if kind is frozenset:
        item = of.of
        return _list_array(
            rows, lambda row: sorted(row, key=lambda v: _spark_sort_key(item, v)), values
        )

    def pairs(row: Any) -> list[Any]:
        return sorted(row.items(), key=lambda pair: _spark_sort_key(inside, pair[0]))

    if of.is_listed:
        return _list_array(rows, lambda row: list(repeat_by_weight(pairs(row))), values)
    return _list_array(rows, pairs, lambda found: _weighted_array(found, values))


def is_whole(value: Any, of: Whole) -> bool:
    """Return True if a value is exactly of the kind, whatever it contains.

    A long sequence of a nest is a sequence. The instant of a datetime must be one in UTC.
    """
    kind = type(value)
    if of.kind is Digits:
        return kind is Decimal
    if of.kind is Instant:
        return kind is datetime and value.tzinfo is not None and _text_of_instant(value) is not None
    if kind is time is of.kind:
        return value.tzinfo is None and not value.fold
    return kind is of.kind or (of.kind is tuple and kind is LongTuple)


def _whole_misfit(of: Whole, value: Any) -> str:
    """Return the reason why a value is not of the kind."""
    if type(value) is time is of.kind:
        return f"{value!r} has a time zone or a fold, which no column keeps"
    if of.kind is Instant and type(value) is datetime:
        reason = "has no time zone" if value.tzinfo is None else "is beyond the years of UTC"
        return f"{value!r} {reason}"
    return f"{value!r:.200} is of type {type(value).__name__}, not {type_name(of)}"


def text_writer(of: Whole) -> Callable[[Any], str | None]:
    """Return the function that writes a value of a kind that is stored as text."""
    if of.kind is Digits:
        return text_of
    if of.kind is Instant:
        return _text_of_instant
    if of.kind is timedelta:
        return lambda value: str(value // _MICROSECOND)
    if of.kind is time:
        return time.isoformat
    return str if is_uuid(of.kind) else lambda member: str(member.name)


def text_reader(of: Whole) -> Callable[[str], Any]:
    """Return the function that reads a value of a kind that is stored as text."""
    if of.kind is Digits:
        return Decimal
    if of.kind is Instant:
        zone = of.zone or UTC
        return lambda text: instant(datetime.fromisoformat(text + "+00:00").astimezone(zone))
    if of.kind is timedelta:
        return lambda text: timedelta(microseconds=int(text))
    if of.kind is time:
        return time.fromisoformat
    kind: Any = of.kind
    return kind if is_uuid(kind) else lambda name: kind[name]


def _text_of_instant(value: datetime) -> str | None:
    """Return the instant in UTC; None if it is before the year 1 there, or after 9999."""
    try:
        found = value.astimezone(UTC)
    except OverflowError:
        return None
    return found.replace(tzinfo=None).isoformat(timespec="microseconds")


def whole_from_arrow(
    of: Whole, array: pa.Array, values: Callable[[pa.Array], list[Any]] | None
) -> list[Any]:
    """Decode bags, sequences or texts; `values` decodes the values inside."""
    if values is None:
        value = text_reader(of)
        return [None if text is None else value(text) for text in array.to_pylist()]
    there = array.is_valid().to_pylist()
    inside = array.flatten()
    found: list[Any]
    make: Callable[[list[Any]], Any]
    if not of.is_counted:
        found, make = values(inside), to_nested if of.is_inner else of.kind
    else:
        weights = inside.field("weight").to_pylist()
        found = list(zip(values(inside.field("value")), weights, strict=True))
        make = lambda pairs: Bag(dict(pairs))  # noqa: E731
    rows: list[Any] = []
    start = 0
    for length in array.value_lengths().to_pylist():
        end = start + (length or 0)
        rows.append(make(found[start:end]) if there[len(rows)] else None)
        start = end
    return rows


def to_nested(values: Any) -> Any:
    """Return a value inside a nested row as a nest stores it: many rows are a long tuple."""
    if type(values) is list:
        values = tuple(values)
    return LongTuple(values) if type(values) is tuple and len(values) > FEW else values


def text_of(value: Decimal) -> str:
    """Return a finite decimal as text, which is the same for equal decimals.

    >>> text_of(Decimal("1.50")), text_of(Decimal("-0.0")), text_of(Decimal("1E+3"))
    ('1.5', '0', '1E+3')
    """
    return str(EXACTLY.normalize(value)) if value else "0"


def _list_array(
    rows: Sequence[Any], items: Callable[[Any], Sequence[Any]], array: Callable[[Any], pa.Array]
) -> pa.Array:
    """Return an array of arrays: `items` returns the items of a row, `array` converts all items."""
    every: list[Any] = []
    ends: list[int | None] = []
    for row in rows:
        ends.append(None if row is None else len(every))
        every += () if row is None else items(row)
    offsets = pa.array([*ends, len(every)], pa.int32())
    return pa.ListArray.from_arrays(offsets, array(every))


def _weighted_array(pairs: list[Any], values: Callable[[list[Any]], pa.Array]) -> pa.Array:
    """Return pairs of a value and a weight as a struct array; `values` converts the values."""
    weights = pa.array([weight for _, weight in pairs], pa.int64())
    made = values([value for value, _ in pairs])
    return pa.StructArray.from_arrays([made, weights], names=["value", "weight"])


def _spark_sort_key(of: Typed, value: Any) -> tuple[Any, ...]:
    """Return the sort key of a value in the order of Spark: None first, NaN last."""
    if value is None:
        return (0,)
    if isinstance(of, Record):
        is_tuple = issubclass(of.kind, tuple)
        parts = value if is_tuple else [getattr(value, name) for name in of.names]
        return (1, *(_spark_sort_key(f, part) for f, part in zip(of.fields, parts, strict=True)))
    if isinstance(of, Whole):
        if of.of is None:
            return (1, text_writer(of)(value))
        inside = of.of
        if of.kind is tuple:
            return (1, tuple(_spark_sort_key(inside, v) for v in value))
        if of.kind is frozenset:
            return (1, tuple(sorted(_spark_sort_key(inside, v) for v in value)))
        return (1, tuple(sorted((_spark_sort_key(inside, v), n) for v, n in value.items())))
    return (1, value) if value == value else (2,)
