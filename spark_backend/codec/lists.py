"""Bags as list columns, whose values stand as often as they are there, and back.

    ["b", "a", "b"]     counted     [("a", 1), ("b", 2)]
    ["a", "b", "b"]     listed      [("a", 1), ("b", 2)]

A bag has no order: lists that have the same values are one bag, and its list is in Spark's order.

Cost:   of a list of n values O(n log n) in, O(n) out.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from reactive.engine.collections.bag import Bag
from spark_backend.codec.schema import Record, Typed, Whole
from spark_backend.codec.values import Value, field_of


def counted(values: Column) -> Column:
    """The bag of an array of values, as `Whole` has it."""

    def of_sorted(values: Column) -> Column:
        places = F.sequence(F.lit(0), F.size(values) - 1)
        begins = F.filter(
            F.when(F.size(values) > 0, places).otherwise(F.array().cast("array<int>")),
            lambda n: (n == 0) | ~values[n].eqNullSafe(F.get(values, n - 1)),
        )
        return _once(begins, lambda begins: _runs(values, begins))

    return _once(F.sort_array(values), of_sorted)


def listed(value: Value) -> Column:
    """A value as it is outside: with lists in the place of bags, wherever they are."""
    of = value.of
    if not _has_bags(of):
        return value.column
    if isinstance(of, Record):
        fields = (listed(field_of(value, place)) for place in range(len(of.fields)))
        named = (field.alias(name) for field, name in zip(fields, of.names, strict=True))
        return F.when(value.column.isNotNull(), F.struct(*named))
    return each(value, listed)


def each(value: Value, show: Callable[[Value], Column]) -> Column:
    """What a function makes of each value of a bag or sequence, as a list."""
    assert isinstance(value.of, Whole) and value.of.of is not None
    inside = value.of.of
    if not value.of.is_counted:
        return F.transform(value.column, lambda v: show(Value(v, inside)))

    def copies(pair: Column) -> Column:
        shown = show(Value(pair.getField("value"), inside))
        return F.array_repeat(shown, pair.getField("weight").cast("int"))

    return F.flatten(F.transform(value.column, copies))


def _runs(values: Column, begins: Column) -> Column:
    """Where equal values begin, as the values with how many there are."""

    def run(begin: Column, place: Column) -> Column:
        end = F.coalesce(F.get(begins, place + 1), F.size(values))
        return F.struct(values[begin].alias("value"), (end - begin).cast("long").alias("weight"))

    return F.transform(begins, run)


def _once(column: Column, of: Callable[[Column], Column]) -> Column:
    """What a function makes of a column, which Spark evaluates once."""
    made = F.get(F.transform(F.array(column), of), F.lit(0))
    return F.when(column.isNotNull(), made)


def _has_bags(of: Typed) -> bool:
    if isinstance(of, Record):
        return any(map(_has_bags, of.fields))
    return isinstance(of, Whole) and of.of is not None and (of.kind is Bag or _has_bags(of.of))
