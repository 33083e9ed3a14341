"""Fold dates and spans of time that are made of constants.

timedelta(minutes=5)        a constant of 300 seconds
timedelta(minutes=5) / 2    a constant of 150 seconds
date(2024, 1, m)            unchanged: `m` is a value of a row
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

from optimizer.expr import Constant, Expr, constant

NUMBERS = (int, float, bool)
MOMENTS = (date, datetime, timedelta)
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
}


def fold_moment(
    expr: Expr, kind: Any, arguments: tuple[Expr, ...], options: tuple[tuple[str, Expr], ...]
) -> Expr:
    """Return a call of a class of moments as a constant; `expr` if it raises, or its arguments are
    no constant numbers."""
    every = (*arguments, *[value for _, value in options])
    given = [e.value for e in every if isinstance(e, Constant) and e.kind in NUMBERS]
    if len(given) < len(every):
        return expr
    count = len(arguments)
    named = {name: value for (name, _), value in zip(options, given[count:], strict=True)}
    try:
        return constant(kind(*given[:count], **named))
    except Exception:  # it will raise where it is written
        return expr


def fold_arithmetic(expr: Expr, symbol: str, operands: tuple[Expr, ...]) -> Expr:
    """Return arithmetic of moments as a constant; `expr` if it raises, or has other operands."""
    given = [
        e.value for e in operands if isinstance(e, Constant) and e.kind in (*NUMBERS, *MOMENTS)
    ]
    if len(given) != 2:
        return expr
    try:
        found = BINARY[symbol](*given)
    except Exception:  # it will raise where it is written
        return expr
    return constant(found) if type(found) in (*NUMBERS, *MOMENTS) else expr
