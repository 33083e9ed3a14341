"""Values of any length: bags and sequences as arrays, long decimals as text.

    Bag({"b": 1, None: 2})     [(None, 2), ("b", 1)]      in the order that Spark sorts them in
    ("b", "a")                 ["b", "a"]
    Decimal("1.50")            "1.5"                      without zeros at the end

Sound:  equal values are equal in the column, and only those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from reactive.collections.bag import Bag
from reactive.collections.long_tuple import FEW, LongTuple
from reactive.collections.zset import repeat
from reactive.errors import OffloadError
from spark_backend.codec.schema import Record, Typed, Whole, type_name

EXACTLY = Context(prec=10_000)
"""Sums of decimals have no more digits."""


def arrow_type(of: Whole, value: pa.DataType | None) -> pa.DataType:
    """The Arrow type; `value` is that of the values of a bag or sequence."""
    if value is None:
        return pa.string()
    if of.kind is tuple or of.is_listed:
        return pa.list_(value)
    return pa.list_(pa.struct([pa.field("value", value), pa.field("weight", pa.int64())]))


def to_arrow(
    of: Whole, rows: Sequence[Any], values: Callable[[list[Any]], pa.Array] | None
) -> pa.Array:
    """Bags, sequences or decimals as an array; `values` makes that of the values in them.

    Raises
    ------
    OffloadError: a row is no such value.
    """
    kind: Any = Decimal if values is None else of.kind
    for row in rows:
        if not (is_whole(row, kind) or (row is None and of.optional)):
            raise OffloadError(f"{row!r:.200} is of type {type(row).__name__}, not {type_name(of)}")
    if values is None:
        return pa.array([None if row is None else text_of(row) for row in rows], pa.string())
    assert of.of is not None
    if kind is tuple:
        return _listed(rows, lambda row: row, values)
    inside = of.of

    def pairs(row: Any) -> list[Any]:
        return sorted(row.items(), key=lambda pair: _place(inside, pair[0]))

    if of.is_listed:
        return _listed(rows, lambda row: list(repeat(pairs(row))), values)
    return _listed(rows, pairs, lambda found: _weighted(found, values))


def is_whole(value: Any, kind: Any) -> bool:
    """Whether a value is a bag, or a sequence, as a long one of a nest is, too."""
    return type(value) is kind or (kind is tuple and type(value) is LongTuple)


def from_arrow(
    of: Whole, array: pa.Array, values: Callable[[pa.Array], list[Any]] | None
) -> list[Any]:
    """The bags, sequences or decimals again; `values` reads the values in them."""
    if values is None:
        return [None if text is None else Decimal(text) for text in array.to_pylist()]
    there = array.is_valid().to_pylist()
    inside = array.flatten()
    found: list[Any]
    make: Callable[[list[Any]], Any]
    if of.kind is tuple or of.is_listed:
        found, make = values(inside), in_nest if of.is_inner else of.kind
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


def in_nest(values: Any) -> Any:
    """What is inside of a nested row, as a nest gives it: of many rows, a long tuple."""
    if type(values) is list:
        values = tuple(values)
    return LongTuple(values) if type(values) is tuple and len(values) > FEW else values


def text_of(value: Decimal) -> str:
    """A finite decimal as text; equal ones have the same.

    >>> text_of(Decimal("1.50")), text_of(Decimal("-0.0")), text_of(Decimal("1E+3"))
    ('1.5', '0', '1E+3')
    """
    return str(EXACTLY.normalize(value)) if value else "0"


def _listed(
    rows: Sequence[Any], items: Callable[[Any], Sequence[Any]], array: Callable[[Any], pa.Array]
) -> pa.Array:
    """An array of arrays: `items` are those of a row, `array` is that of all of them."""
    every: list[Any] = []
    ends: list[int | None] = []
    for row in rows:
        ends.append(None if row is None else len(every))
        every += () if row is None else items(row)
    offsets = pa.array([*ends, len(every)], pa.int32())
    return pa.ListArray.from_arrays(offsets, array(every))


def _weighted(pairs: list[Any], values: Callable[[list[Any]], pa.Array]) -> pa.Array:
    weights = pa.array([weight for _, weight in pairs], pa.int64())
    made = values([value for value, _ in pairs])
    return pa.StructArray.from_arrays([made, weights], names=["value", "weight"])


def _place(of: Typed, value: Any) -> tuple[Any, ...]:
    """What Spark sorts a value by: None first, NaN last."""
    if value is None:
        return (0,)
    if isinstance(of, Record):
        is_tuple = issubclass(of.kind, tuple)
        parts = value if is_tuple else [getattr(value, name) for name in of.names]
        return (1, *(_place(f, part) for f, part in zip(of.fields, parts, strict=True)))
    if isinstance(of, Whole):
        if of.of is None:
            return (1, text_of(value))
        inside = of.of
        if of.kind is tuple:
            return (1, tuple(_place(inside, v) for v in value))
        return (1, tuple(sorted((_place(inside, v), n) for v, n in value.items())))
    return (1, value) if value == value else (2,)
