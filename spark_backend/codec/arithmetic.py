"""Arithmetic of Python as Spark columns, which hold 64 bits where Python has no limit.

a + b, a - b, a * b     of integers with bounds: the result has bounds, and is a decimal of
                        38 digits if 64 bits may not hold it
a // b, a % b           by a constant that is not zero; Python rounds down, Spark to zero
a / b                   floats; integers up to 2**53, whose quotient is rounded once
floats                  the same IEEE numbers in both
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_backend.codec.schema import WIDEST, Plain, type_name
from spark_backend.codec.values import (
    FLOATS,
    Inexact,
    Value,
    as_type,
    integer_bounds,
    literal,
    require_present,
    spark_type,
)


def negate_value(value: Value) -> Value:
    """Return `-value`."""
    value = _require_number(value)
    if type(value.known) in (int, float):
        return literal(-value.known)
    if value.of.kind is float:
        return Value(-value.column, value.of)
    low, high = integer_bounds(value)
    of = _integer_type(-high, -low)
    number = _as_integer(value, wide=of.is_wide or _is_wide(value))
    return Value((_zero(of) - number).cast(spark_type(of)), of)


def absolute_value(value: Value) -> Value:
    """Return `abs(value)`."""
    value = _require_number(value)
    if value.of.kind is float:
        return Value(F.abs(value.column), value.of)
    low, high = integer_bounds(value)
    least = 0 if low <= 0 <= high else min(abs(low), abs(high))
    of = _integer_type(least, max(abs(low), abs(high)))
    number = _as_integer(value, wide=of.is_wide or _is_wide(value))
    positive = F.when(number < 0, _zero(of) - number).otherwise(number)
    return Value(positive.cast(spark_type(of)), of)


def arithmetic(operator: str, left: Value, right: Value) -> Value:
    """Return `left + right`, `-`, `*`, `/`, `//` or `%`.

    Raises `Inexact` if Spark could return another number than Python, or Python could raise.
    """
    left, right = _require_number(left), _require_number(right)
    if operator == "/":
        return _divide(left, right)
    if float in (left.of.kind, right.of.kind):
        if operator not in _RESULTS:
            raise Inexact(f"{operator} of floats is not Spark's")
        return Value(_apply_operator(operator, _as_double(left), _as_double(right)), Plain(float))
    if operator in _RESULTS:
        of = _integer_type(*_RESULTS[operator](*integer_bounds(left), *integer_bounds(right)))
        wide = of.is_wide or _is_wide(left) or _is_wide(right)
        both = (_as_integer(side, wide=wide) for side in (left, right))
        return Value(_apply_operator(operator, *both).cast(spark_type(of)), of)
    return _divide_by_constant(operator, left, right)


def _sum_bounds(a: int, b: int, c: int, d: int) -> tuple[int, int]:
    return a + c, b + d


def _difference_bounds(a: int, b: int, c: int, d: int) -> tuple[int, int]:
    return a - d, b - c


def _product_bounds(a: int, b: int, c: int, d: int) -> tuple[int, int]:
    """Return the bounds of products of a number from `a` to `b` and one from `c` to `d`."""
    products = (a * c, a * d, b * c, b * d)
    return min(products), max(products)


_RESULTS = {"+": _sum_bounds, "-": _difference_bounds, "*": _product_bounds}
"""Functions from the bounds of the operands to the bounds of the result."""


def _apply_operator(operator: str, left: Column, right: Column) -> Column:
    """Return `left + right`, `left - right` or, for any other operator, `left * right`."""
    if operator == "+":
        return left + right
    return left - right if operator == "-" else left * right


def _require_number(value: Value) -> Value:
    """Return the value. Raises `Inexact` if it is no number, or may be None."""
    if value.of.kind not in (int, float, bool):
        raise Inexact(f"arithmetic of {type_name(value.of)} is not Spark's")
    return require_present(value, "arithmetic")


def _integer_type(low: int, high: int) -> Plain:
    """Return the type of integers with the given bounds. Raises `Inexact` beyond 38 digits."""
    if max(abs(low), abs(high)) > WIDEST:
        raise Inexact("it may be an integer of more than 38 digits")
    return Plain(int, low=low, high=high)


def _as_integer(value: Value, *, wide: bool) -> Column:
    """Return an operand as a column of integers."""
    return as_type(value, Plain(int, low=-WIDEST, high=WIDEST) if wide else Plain(int))


def _zero(of: Plain) -> Column:
    """Return a zero to subtract from, because Spark rounds the negation of a decimal to 34
    digits."""
    return F.lit(0).cast(spark_type(of))


def _is_wide(value: Value) -> bool:
    return isinstance(value.of, Plain) and value.of.is_wide


def _as_double(value: Value) -> Column:
    """Return the nearest float, as Python converts an integer that meets a float.

    Raises `Inexact` for an integer beyond 64 bits.
    """
    if _is_wide(value):
        raise Inexact("an integer beyond 64 bits meets a float")
    number = value.column.cast(T.IntegerType()) if value.of.kind is bool else value.column
    return number.cast(T.DoubleType())


def _divide(left: Value, right: Value) -> Value:
    """Return left / right.

    Raises `Inexact` if the divisor may be 0, or if integers beyond 2**53 would be rounded twice.
    """
    if right.of.kind is float:
        surely = right.known is not None and right.known != 0.0
    else:
        low, high = integer_bounds(right)
        surely = not low <= 0 <= high
    if not surely:
        raise Inexact("/ may be by zero")
    if float not in (left.of.kind, right.of.kind) and not all(
        abs(bound) <= FLOATS for value in (left, right) for bound in integer_bounds(value)
    ):
        raise Inexact("/ of integers beyond 2**53, which Spark would round twice")
    return Value(_as_double(left) / _as_double(right), Plain(float))


def _divide_by_constant(operator: str, left: Value, right: Value) -> Value:
    """Return `//` or `%` of integers by a constant: the result of Spark, corrected downwards.

    Raises `Inexact` if the divisor is no constant or 0, or a side may be beyond 64 bits.
    """
    by = right.known
    if type(by) is not int or by == 0:
        raise Inexact(f"{operator} may be by zero")
    if _is_wide(left) or _is_wide(right):
        raise Inexact(f"{operator} of integers beyond 64 bits")
    if by == -1:
        return negate_value(left) if operator == "//" else literal(0)
    number = _as_integer(left, wide=False)
    rest = number % right.column
    too_high = rest < 0 if by > 0 else rest > 0
    if operator == "%":
        least, most = (0, by - 1) if by > 0 else (by + 1, 0)
        column = F.when(too_high, rest + right.column).otherwise(rest)
        return Value(column, Plain(int, low=least, high=most))
    towards_zero = F.call_function("div", number, right.column)
    ends = sorted(bound // by for bound in integer_bounds(left))
    column = F.when(too_high, towards_zero - 1).otherwise(towards_zero)
    return Value(column, Plain(int, low=ends[0], high=ends[1]))
