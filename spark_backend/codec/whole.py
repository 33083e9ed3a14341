"""Values that columns keep and do not look into: multisets as arrays, long decimals as text.

    Bag({"b": 1, None: 2})     [(None, 2), ("b", 1)]      in the order that Spark sorts them in
    Decimal("1.50")                 "1.5"                      without zeros at the end

Sound:  equal values are equal in the column, and only those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from reactive.collections.bag import Bag
from reactive.errors import OffloadError
from spark_backend.codec.schema import Record, Typed, Whole, type_name

EXACTLY = Context(prec=10_000)
"""Sums of decimals have no more digits."""


def arrow_type(of: Whole, value: pa.DataType | None) -> pa.DataType:
    """The Arrow type; `value` is that of the values of a multiset."""
    if value is None:
        return pa.string()
    return pa.list_(pa.struct([pa.field("value", value), pa.field("weight", pa.int64())]))


def to_arrow(
    of: Whole, rows: Sequence[Any], values: Callable[[list[Any]], pa.Array] | None
) -> pa.Array:
    """Multisets or decimals as an array; `values` makes that of the values of multisets.

    Raises
    ------
    OffloadError: a row is no such value.
    """
    kind: Any = Decimal if values is None else Bag
    for row in rows:
        if not (type(row) is kind or (row is None and of.optional)):
            raise OffloadError(f"{row!r:.200} is of type {type(row).__name__}, not {type_name(of)}")
    if values is None:
        return pa.array([None if row is None else text_of(row) for row in rows], pa.string())
    assert of.of is not None
    return _arrays(of.of, rows, values)


def from_arrow(array: pa.Array, values: Callable[[pa.Array], list[Any]] | None) -> list[Any]:
    """The multisets or decimals again; `values` reads the values of multisets."""
    if values is None:
        return [None if text is None else Decimal(text) for text in array.to_pylist()]
    there = array.is_valid().to_pylist()
    inside = array.flatten()
    found = values(inside.field("value"))
    weights = inside.field("weight").to_pylist()
    rows: list[Any] = []
    start = 0
    for length in array.value_lengths().to_pylist():
        end = start + (length or 0)
        pairs = zip(found[start:end], weights[start:end], strict=True)
        rows.append(Bag(dict(pairs)) if there[len(rows)] else None)
        start = end
    return rows


def text_of(value: Decimal) -> str:
    """A finite decimal as text; equal ones have the same.

    >>> text_of(Decimal("1.50")), text_of(Decimal("-0.0")), text_of(Decimal("1E+3"))
    ('1.5', '0', '1E+3')
    """
    return str(EXACTLY.normalize(value)) if value else "0"


def _arrays(of: Typed, rows: Sequence[Any], values: Callable[[list[Any]], pa.Array]) -> pa.Array:
    pairs: list[tuple[Any, int]] = []
    ends: list[int | None] = []
    for row in rows:
        ends.append(None if row is None else len(pairs))
        pairs += [] if row is None else sorted(row.items(), key=lambda pair: _place(of, pair[0]))
    weights = pa.array([weight for _, weight in pairs], pa.int64())
    inside = pa.StructArray.from_arrays(
        [values([value for value, _ in pairs]), weights], names=["value", "weight"]
    )
    offsets = pa.array([*ends, len(pairs)], pa.int32())
    return pa.ListArray.from_arrays(offsets, inside)


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
        return (1, tuple(sorted((_place(inside, v), n) for v, n in value.items())))
    return (1, value) if value == value else (2,)
