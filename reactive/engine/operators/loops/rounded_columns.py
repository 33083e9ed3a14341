"""Columns of floats with bounds of their rounding errors, and the rows that are surely the least.

    (x - cx) ** 2       values and errors:  |value - what Python computes| <= error

numpy squares by one multiplication, Python by `pow`, and the two differ in one of 1,000 results.
So columns decide only where the bounds of the values do not overlap; Python decides the rest.

Needs:  numpy; finite floats, and integers below 53 bits; `+`, `-`, `*`, `abs` and squares, of
        which none raises then.
Cost:   O(values), some nanoseconds per operation and value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from optimizer.expr import Call, Constant, Expr, Local, Operation
from reactive.engine.operators.loops.columns import EXACT

ROUNDING = 2.0**-51
"""Bound of the relative rounding error of an operation, four times that of Python's."""
SMALLEST = 2.0**-1000
"""Bound of the error of a product that is too small for a normal float."""
Rounded = tuple[Any, Any]
"""Values, and the bounds of their errors; None if they are exact."""


def is_rounded(expr: Expr) -> bool:
    """Return True if `round_column` can compute an expression of local variables."""
    match expr:
        case Local():
            return True
        case Constant(value):
            return type(value) in (int, float) and abs(value) < EXACT
        case Operation("**", (operand, Constant(exponent))):
            return type(exponent) in (int, float) and exponent == 2 and is_rounded(operand)
        case Operation("+" | "-" | "*", operands):
            return all(map(is_rounded, operands))
        case Call(Constant(function), (operand,), ()):
            return function is abs and is_rounded(operand)
    return False


def round_column(expr: Expr, values: Mapping[str, Any]) -> Rounded:
    """Return the values of an expression over arrays, and the bounds of their errors."""
    match expr:
        case Local(name):
            return values[name], None
        case Constant(value):
            return float(value), None
        case Operation("**", (operand, _)):
            found = round_column(operand, values)
            return _product(found, found)
        case Operation("*", (left, right)):
            return _product(round_column(left, values), round_column(right, values))
        case Operation("+" | "-" as operator, (left, right)):
            (one, error), (other, more) = round_column(left, values), round_column(right, values)
            value = one + other if operator == "+" else one - other
            return value, _total((error, more, ROUNDING * abs(value)))
        case Operation(operator, (operand,)):
            value, error = round_column(operand, values)
            return (-value if operator == "-" else value), error
        case Call(_, (operand,)):
            value, error = round_column(operand, values)
            return abs(value), error
    raise TypeError(f"{type(expr).__name__} has no column")


def _product(left: Rounded, right: Rounded) -> Rounded:
    """Return the product of two columns."""
    (one, error), (other, more) = left, right
    value = one * other
    found = [ROUNDING * abs(value) + SMALLEST]
    found += [] if error is None else [error * abs(other)]
    found += [] if more is None else [more * abs(one)]
    found += [] if error is None or more is None else [error * more]
    return value, _total(found)


def _total(errors: Iterable[Any]) -> Any:
    """Return the sum of the errors that are not None."""
    first, *more = (error for error in errors if error is not None)
    for error in more:
        first = first + error
    return first


def number_array(numpy: Any, column: Sequence[Any]) -> Any:
    """Return an array of floats that equal the values of a column; None if there is none."""
    kinds = set(map(type, column))
    if not kinds <= {int, float}:
        return None
    if int in kinds and max(map(abs, column)) >= EXACT:
        return None
    return numpy.fromiter(column, numpy.float64, len(column))


def find_least(
    numpy: Any, rounded: Rounded, shape: tuple[int, int], *, is_most: bool
) -> tuple[Any, Any] | None:
    """Return the place of the least value of each column of a matrix, and a mask of those that are
    certain: the bounds of no other value overlap; None if a value is not finite.

    With `is_most`, the place of the greatest value.
    """
    values = numpy.broadcast_to(rounded[0], shape)
    errors = None if rounded[1] is None else numpy.broadcast_to(rounded[1], shape)
    if not numpy.isfinite(values).all():
        return None
    values = -values if is_most else values
    places, every = values.argmin(axis=0), numpy.arange(values.shape[1])
    least = values if errors is None else values - errors
    most = values[places, every] if errors is None else (values + errors)[places, every]
    least = numpy.array(least)
    least[places, every] = numpy.inf
    return places, most < least.min(axis=0)
