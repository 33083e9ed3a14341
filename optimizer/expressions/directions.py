"""Directions of conditions: how the truth of a condition depends on one number.

    total * 4 < limit        falls: true for small totals, and false from some total on
    limit <= total - 3       rises

Sound:  each operation is monotone: floats round the exact result, and factors are constants. The
        numbers are so small that no operation overflows.
"""

from __future__ import annotations

import math
from typing import Any

from optimizer.expr import (
    FALSE,
    NONE,
    TRUE,
    Again,
    And,
    Attempt,
    Call,
    Constant,
    Expr,
    Guard,
    Operation,
    Or,
    walk,
)
from optimizer.expressions.knowledge import RISES, SKIPS_NONE
from optimizer.expressions.operand_checks import orders_in

ROUNDING = (float, int, math.floor, math.ceil)


def direction_of(test: Expr, number: Expr) -> int | None:
    """Return 1 if a condition gets true as a number grows, -1 if it gets false, and 0 if it does
    not depend on the number; None if it is not known to be monotone."""
    if not _reads(test, number):
        return 0
    match test:
        case And(tests) | Or(tests):
            return _common([direction_of(each, number) for each in tests])
        case Attempt(of, otherwise) if otherwise in (FALSE, TRUE):
            return direction_of(of, number)
        case Again(of) | Guard(of, ()):
            return direction_of(of, number)
        case Operation("not", (of,)) if not any(orders_in(test)):
            found = direction_of(of, number)
            return None if found is None else -found
        case Operation("is not", (of, other)) if other == NONE and _slope(of, number) is not None:
            return 0
        case _:
            return _common([_of_order(*order, number) for order in orders_in(test)])


def _of_order(less: Expr, greater: Expr, closed: bool, number: Expr) -> int | None:
    slopes = _slope(less, number), _slope(greater, number)
    if None in slopes:
        return None
    return _common([0 if slopes[0] is None else -slopes[0], slopes[1]])


def _slope(expr: Expr, number: Expr) -> int | None:
    """Return 1 for an expression that grows with a number, -1 for one that falls, 0 for one that
    does not read it; None if it is not known to be monotone."""
    if expr == number:
        return 1
    if not _reads(expr, number):
        return 0
    match expr:
        case Again(of):
            return _slope(of, number)
        case Operation("-", (of,)):
            return _turned(_slope(of, number))
        case Operation("+", (a, b)):
            return _common([_slope(a, number), _slope(b, number)])
        case Operation("-", (a, b)):
            return _common([_slope(a, number), _turned(_slope(b, number))])
        case Operation("*", (Constant() as factor, of)) | Operation(
            "*" | "/", (of, Constant() as factor)
        ):
            return _scaled(_slope(of, number), factor)
        case Call(Constant(function), arguments, ()):
            return _slope_of_call(function, arguments, number)
        case _:
            return None


def _slope_of_call(function: Any, arguments: tuple[Expr, ...], number: Expr) -> int | None:
    """Return the slope of a call of a function that rounds, or is marked as rising."""
    if getattr(function, SKIPS_NONE, False) and arguments:
        called, *rest = arguments
        function, arguments = getattr(called, "value", None), tuple(rest)
    rises = any(function is each for each in ROUNDING) or getattr(function, RISES, False)
    is_of_first = rises and not any(_reads(each, number) for each in arguments[1:])
    return _slope(arguments[0], number) if is_of_first and arguments else None


def _scaled(slope: int | None, factor: Constant) -> int | None:
    value = factor.value
    if slope is None or isinstance(value, complex) or not hasattr(value, "__abs__"):
        return None
    if not 2.0**-60 < abs(value) < 2.0**60:
        return None
    return slope if value > 0 else -slope


def _common(slopes: list[int | None]) -> int | None:
    """Return the direction that all parts have, but for those without one; None if they differ."""
    if not slopes or None in slopes:
        return None
    found = {slope for slope in slopes if slope}
    return found.pop() if len(found) == 1 else None if found else 0


def _turned(slope: int | None) -> int | None:
    return None if slope is None else -slope


def _reads(expr: Expr, number: Expr) -> bool:
    return any(part == number for part in walk(expr))
