"""Operators of Python as Spark columns, with equal results for all values of a type, or refused.

    a < b        of floats: Spark orders NaN above all numbers, Python says False; so NaN is tested
    a + b        of integers: never beyond the range of the column, by the bounds of both; a result
                 that 64 bits may not hold is a decimal of 38 digits
    a == b       None equals None
    a // b, %    rounded down, by a constant that is not zero

An operator that may raise in Python for some value of the type is refused: Spark promises neither
an order nor a single evaluation, so an exception has to be raised in Python.

Sound:  every operator is compared with Python's over odd values of each type (test_columns).

`count_values` and `list_values` convert between bags and list columns that repeat the values of a
bag:

    ["b", "a", "b"]     counted     [("a", 1), ("b", 2)]
    ["a", "b", "b"]     listed      [("a", 1), ("b", 2)]

A bag has no order: lists with the same values are one bag, which is listed in the order of Spark.

Cost:   of a list of n values O(n log n) in, O(n) out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from math import ceil, floor, isfinite
from types import NoneType
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from reactive.engine.collections.bag import Bag
from spark_backend.codec.schema import (
    NOTHING,
    PLACES,
    WIDEST,
    Plain,
    Record,
    Typed,
    Untyped,
    Whole,
    common_type,
    fits_decimal,
    is_text,
    tuple_of,
    type_name,
)

FLOATS = 2**53
"""The largest integer up to that all integers are exact floats."""
MOST_TESTS = 50
"""The most constants that `in` compares one by one."""
_WIDE = T.DecimalType(38, 0)
_TYPES: dict[Any, T.DataType] = {
    int: T.LongType(),
    float: T.DoubleType(),
    str: T.StringType(),
    bytes: T.BinaryType(),
    bool: T.BooleanType(),
    date: T.DateType(),
    datetime: T.TimestampNTZType(),
    Decimal: T.DecimalType(38, PLACES),
    NoneType: T.BooleanType(),
}
_ORDERED = (int, float, bool, str, bytes, date, datetime, Decimal)


class Inexact(Exception):
    """The reason why an expression is no column: Spark would differ from Python for some values."""


@dataclass(frozen=True, slots=True)
class Value:
    """A column, the type of its values, and for a constant its value."""

    column: Column
    of: Typed
    known: Any = None

    @property
    def optional(self) -> bool:
        """True if the value may be None."""
        return self.of.optional


def spark_type(of: Typed) -> T.DataType:
    """Return the Spark type of values of a type."""
    if isinstance(of, Plain):
        return _WIDE if of.is_wide else _TYPES[of.kind]
    if isinstance(of, Whole):
        if of.of is None:
            return T.StringType()
        return T.ArrayType(_counted_type(of.of) if of.is_counted else spark_type(of.of))
    pairs = zip(of.names, of.fields, strict=True)
    return T.StructType([T.StructField(n, spark_type(f)) for n, f in pairs])


def _counted_type(of: Typed) -> T.StructType:
    """Return the struct of a value and its count."""
    fields = [T.StructField("value", spark_type(of)), T.StructField("weight", T.LongType())]
    return T.StructType(fields)


def literal(value: Any) -> Value:
    """Return a constant as a column.

    Raises
    ------
    Inexact: its type has no column, or it is out of range.
    """
    kind = type(value)
    if kind in (Bag, tuple) and not value:
        empty = Whole(kind, NOTHING)
        return Value(F.array().cast(spark_type(empty)), empty, value)
    if value is None:
        return Value(F.lit(None).cast(T.BooleanType()), Plain(NoneType, optional=True))
    if kind is tuple:
        return record_value(tuple(map(literal, value)))
    if kind is int and abs(value) <= WIDEST:
        of = Plain(int, low=value, high=value)
        return Value(F.lit(str(value) if of.is_wide else value).cast(spark_type(of)), of, value)
    if kind is Decimal and fits_decimal(value):
        return Value(F.lit(f"{value:f}").cast(_TYPES[kind]), Plain(kind), value)
    if kind is date or (kind is datetime and value.tzinfo is None and not value.fold):
        return Value(F.lit(value.isoformat()).cast(_TYPES[kind]), Plain(kind), value)
    if kind in (float, bool, bytes) or (kind is str and is_text(value)):
        return Value(F.lit(value), Plain(kind), value)
    raise Inexact(f"the constant {value!r:.60} has no Spark type")


def any_value(of: Typed) -> Value:
    """Return a value of a type, to be used for its type only."""
    return Value(F.lit(None).cast(spark_type(of)), of)


def record_value(items: tuple[Value, ...], of: Record | None = None) -> Value:
    """Return a tuple, or a record of a type, with the given fields."""
    of = of or tuple_of(tuple(item.of for item in items))
    named = zip(of.names, items, strict=True)
    return Value(F.struct(*(item.column.alias(name) for name, item in named)), of)


def as_type(value: Value, of: Typed) -> Column:
    """Convert a column to a wider type, which contains all values of its own."""
    wanted = spark_type(of)
    if value.of.kind is NoneType:
        return F.lit(None).cast(wanted)
    if spark_type(value.of) == wanted:
        return value.column
    if isinstance(value.of, Whole) and isinstance(of, Whole) and of.of is not None:
        return _as_whole(value, of)
    if isinstance(value.of, Record) and isinstance(of, Record):
        parts = [field_of(value, place) for place in range(len(of.fields))]
        typed = (as_type(p, f).alias(n) for p, f, n in zip(parts, of.fields, of.names, strict=True))
        return F.when(value.column.isNotNull(), F.struct(*typed))
    return value.column.cast(wanted)


def _as_whole(value: Value, of: Whole) -> Column:
    """Convert a bag or sequence to a type with wider values."""
    assert isinstance(value.of, Whole) and value.of.of is not None and of.of is not None
    before, after = value.of.of, of.of
    if before == NOTHING:
        return F.when(value.column.isNotNull(), F.array().cast(spark_type(of)))
    if of.kind in (tuple, frozenset):
        return F.transform(value.column, lambda v: as_type(Value(v, before), after))

    def convert_pair(pair: Column) -> Column:
        typed = as_type(Value(pair.getField("value"), before), after)
        return F.struct(typed.alias("value"), pair.getField("weight").alias("weight"))

    return F.transform(value.column, count_values)


def field_of(value: Value, place: int) -> Value:
    """Return the field of a record at `place`."""
    assert isinstance(value.of, Record)
    return Value(value.column.getField(value.of.names[place]), value.of.fields[place])


def require_present(value: Value, what: str) -> Value:
    """Return the value, or raise `Inexact` if it may be None."""
    if value.optional:
        raise Inexact(f"{what} may raise for None")
    return value


def truth(value: Value) -> Column:
    """Return `bool(value)`, never null."""
    if value.of.kind is NoneType:
        return F.lit(False)
    holds = _truth_of_type(value.of, value.column)
    return F.coalesce(holds, F.lit(False)) if value.optional else holds


def is_none(value: Value) -> Column:
    """Return a test for None."""
    return value.column.isNull() if value.optional else F.lit(False)


def equal(left: Value, right: Value) -> Column:
    """Return `left == right`, never null."""
    if NoneType in (left.of.kind, right.of.kind):
        return is_none(right if left.of.kind is NoneType else left)
    left, right = _match_constants(left, right)
    whole = {left.of.kind, right.of.kind} == {int, float} and (left.known, right.known)
    if whole and any(isinstance(known, float) for known in whole):
        return F.lit(False)  # no integer equals it, or `_match_constants` had converted it
    same = _equal_values(*to_comparable(left, right))
    both = [v.column.isNull() for v in (left, right) if v.optional]
    if not both:
        return same
    missing = both[0] & both[1] if len(both) == 2 else F.lit(False)
    return F.when(reduce(lambda a, b: a | b, both), missing).otherwise(same)


def less_than(left: Value, right: Value, *, or_equal: bool) -> Column:
    """Return `left < right`, or `left <= right` if `or_equal`, never null.

    Raises `Inexact` if a side may be None, or Spark orders the values otherwise than Python.
    """
    left, right = _match_constants(
        require_present(left, "an order"), require_present(right, "an order")
    )
    rounded = _compare_rounded(left, right, or_equal=or_equal)
    if rounded is not None:
        return rounded
    a, b, of = to_comparable(left, right)
    if of.kind not in _ORDERED:
        raise Inexact(f"the order of {type_name(of)} is not Spark's")
    found = a <= b if or_equal else a < b
    return found & ~F.isnan(a) & ~F.isnan(b) if of.kind is float else found


def is_one_of(value: Value, choices: tuple[Value, ...]) -> Column:
    """Return `value in choices`, never null.

    Raises `Inexact` for too many choices, or a choice that is NaN.
    """
    kinds = {value.of.kind, *(choice.of.kind for choice in choices)}
    if kinds in ({str}, {int}) and all(c.known is not None for c in choices):
        found = value.column.isin([c.column for c in choices])
        return F.coalesce(found, F.lit(False)) if value.optional else found
    if len(choices) > MOST_TESTS:
        raise Inexact(f"a search among more than {MOST_TESTS} values")
    if any(isinstance(c.known, float) and c.known != c.known for c in choices):
        raise Inexact("a search for NaN is one for the same object")
    return reduce(lambda a, b: a | b, [equal(value, c) for c in choices], F.lit(False))


def choose(test: Column, then: Value, otherwise: Value) -> Value:
    """Return `then if test else otherwise`. Raises `Inexact` if both have no common type."""
    try:
        of = common_type(then.of, otherwise.of)
    except Untyped as untyped:
        raise Inexact(str(untyped)) from None
    return Value(F.when(test, as_type(then, of)).otherwise(as_type(otherwise, of)), of)


def integer_bounds(value: Value) -> tuple[int, int]:
    """Return the least and the largest value of an integer."""
    if value.of.kind is bool:
        return 0, 1
    assert isinstance(value.of, Plain)
    return value.of.low, value.of.high


def _truth_of_type(of: Typed, column: Column) -> Column:
    """Return the condition that a value, not null, is true in Python.

    Raises `Inexact` if a class defines its own truth.
    """
    if of.kind is bool:
        return column
    if of.kind is float:
        return (column + F.lit(0.0)) != F.lit(0.0)
    if of.kind in (int, Decimal):
        return column != F.lit(0).cast(spark_type(of))
    if of.kind in (str, bytes):
        return F.length(column) > 0
    if isinstance(of, Whole):
        if of.of is None:
            raise Inexact(f"the truth of {type_name(of)} is not in its column")
        return F.size(column) > 0
    if isinstance(of, Record) and not issubclass(of.kind, tuple) and _has_truth(of.kind):
        raise Inexact(f"the truth of {type_name(of)} is its own")
    return column.isNotNull()


def _has_truth(kind: Any) -> bool:
    return hasattr(kind, "__bool__") or hasattr(kind, "__len__")


def _equal_values(a: Column, b: Column, of: Typed) -> Column:
    """Return whether values that are not None are equal."""
    if isinstance(of, Record):
        left, right = Value(a, of), Value(b, of)
        fields = [equal(field_of(left, i), field_of(right, i)) for i in range(len(of.fields))]
        return reduce(lambda x, y: x & y, fields)
    if of.kind is float:
        # The sum prevents a pushdown to Parquet files, which distinguish 0.0 from -0.0.
        return ((a + F.lit(0.0)) == b) & ~F.isnan(a)
    return a == b


def to_comparable(left: Value, right: Value) -> tuple[Column, Column, Typed]:
    """Return both as columns of one type that stores their values unchanged.

    Raises `Inexact` if there is no such type, or a record may contain a NaN.
    """
    kinds = {left.of.kind, right.of.kind}
    if kinds in ({int}, {int, bool}):
        (a, b), (c, d) = integer_bounds(left), integer_bounds(right)
        of: Typed = Plain(int, low=min(a, c), high=max(b, d))
        return as_type(left, of), as_type(right, of), of
    if kinds in ({int, float}, {bool, float}):
        return _as_float(left), _as_float(right), Plain(float)
    if len(kinds) > 1:
        raise Inexact(f"{type_name(left.of)} is compared with {type_name(right.of)}")
    if isinstance(left.of, Record) and (_holds_float(left.of) or _holds_float(right.of)):
        raise Inexact("a NaN in a record is compared by identity")
    try:
        of = common_type(left.of, right.of)
    except Untyped as untyped:
        raise Inexact(str(untyped)) from None
    return as_type(left, of), as_type(right, of), of


def _holds_float(of: Typed) -> bool:
    return any(map(_holds_float, of.fields)) if isinstance(of, Record) else of.kind is float


def _as_float(value: Value) -> Column:
    """Return the number as a float, or raise `Inexact` if that is not exact for all values."""
    if value.of.kind is float:
        return value.column
    if not all(-FLOATS <= bound <= FLOATS for bound in integer_bounds(value)):
        raise Inexact("an integer beyond 2**53 is compared with a float, which Spark would round")
    return value.column.cast(
        T.IntegerType() if value.of.kind is bool else spark_type(value.of)
    ).cast(T.DoubleType())


def _match_constants(left: Value, right: Value) -> tuple[Value, Value]:
    """Convert each constant to the type of the other side, if the result is equal."""
    return _convert_constant(left, right.of), _convert_constant(right, left.of)


def _convert_constant(value: Value, other: Typed) -> Value:
    """Return a constant as an equal constant of the type `other`; the value itself if it is no
    constant or there is none."""
    known = value.known
    if type(known) is int and other.kind is float and float(known) == known:
        return literal(float(known))
    if type(known) is float and other.kind is int and isfinite(known) and known == floor(known):
        return literal(floor(known)) if abs(known) <= WIDEST else value
    if type(known) is int and other.kind is Decimal and fits_decimal(Decimal(known)):
        return literal(Decimal(known))
    return value


def _compare_rounded(left: Value, right: Value, *, or_equal: bool) -> Column | None:
    """Return the order of an integer and a float constant: that of the next integer.

    Return None for other operands.
    """
    if left.of.kind is int and type(right.known) is float:
        return _compare_next(
            right.known, right.known > 0, lambda n: less_than(left, n, or_equal=True), floor
        )
    if right.of.kind is int and type(left.known) is float:
        return _compare_next(
            left.known, left.known < 0, lambda n: less_than(n, right, or_equal=True), ceil
        )
    return None


def _compare_next(
    known: float, beyond: bool, test: Callable[[Value], Column], rounded: Callable[[float], int]
) -> Column:
    """Return the test with the next integer; `beyond` is the result if no column reaches it."""
    if known != known:
        return F.lit(False)
    return F.lit(beyond) if abs(known) > WIDEST else test(literal(rounded(known)))


def count_values(values: Column) -> Column:
    """Return the bag of an array of values, in the encoding of `Whole`."""

    def of_sorted(values: Column) -> Column:
        places = F.sequence(F.lit(0), F.size(values) - 1)
        begins = F.filter(
            F.when(F.size(values) > 0, places).otherwise(F.array().cast("array<int>")),
            lambda n: (n == 0) | ~values[n].eqNullSafe(F.get(values, n - 1)),
        )
        return _evaluate_once(begins, lambda begins: _count_runs(values, begins))

    return _evaluate_once(F.sort_array(values), of_sorted)


def list_values(value: Value) -> Column:
    """Return a value with lists in place of bags, at any depth."""
    of = value.of
    if not _has_bags(of):
        return value.column
    if isinstance(of, Record):
        fields = (list_values(field_of(value, place)) for place in range(len(of.fields)))
        named = (field.alias(name) for field, name in zip(fields, of.names, strict=True))
        return F.when(value.column.isNotNull(), F.struct(*named))
    return map_values(value, list_values)


def map_values(value: Value, show: Callable[[Value], Column]) -> Column:
    """Map a function over the values of a bag or sequence, and return a list."""
    assert isinstance(value.of, Whole) and value.of.of is not None
    inside = value.of.of
    if not value.of.is_counted:
        return F.transform(value.column, lambda v: show(Value(v, inside)))

    def copies(pair: Column) -> Column:
        shown = show(Value(pair.getField("value"), inside))
        return F.array_repeat(shown, pair.getField("weight").cast("int"))

    return F.flatten(F.transform(value.column, copies))


def _count_runs(values: Column, begins: Column) -> Column:
    """Return equal values with their counts, given the positions of their first occurrences."""

    def run(begin: Column, place: Column) -> Column:
        end = F.coalesce(F.get(begins, place + 1), F.size(values))
        return F.struct(values[begin].alias("value"), (end - begin).cast("long").alias("weight"))

    return F.transform(begins, run)


def _evaluate_once(column: Column, of: Callable[[Column], Column]) -> Column:
    """Apply a function to a column that Spark evaluates once."""
    made = F.get(F.transform(F.array(column), of), F.lit(0))
    return F.when(column.isNotNull(), made)


def _has_bags(of: Typed) -> bool:
    """Return True if values of a type are or contain bags."""
    if isinstance(of, Record):
        return any(map(_has_bags, of.fields))
    return isinstance(of, Whole) and of.of is not None and (of.kind is Bag or _has_bags(of.of))
