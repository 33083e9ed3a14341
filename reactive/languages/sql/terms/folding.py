"""Constant parts of expressions, evaluated when a query is made.

    ship < later(datetime.date(1994, 1, 1), Interval(days=360))
    ship < datetime.datetime(1995, 1, 1, 0, 0)

Types and messages are decided before, by what is written. A part that raises stays, and raises for
each row.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal, Rounded, getcontext
from typing import Any
from uuid import UUID

from optimizer.expr import Call, Constant, Expr, Operation, constant, transform
from optimizer.expressions.knowledge import Bounded
from optimizer.expressions.simplification import fold_node
from reactive.languages.sql.runtime.intervals import Interval
from reactive.languages.sql.terms.values import literal_value

PACKAGE = "reactive.languages.sql."
SHORT = frozenset({"times", "moments", "intervals", "casts", "arrays"})
"""Modules of functions of dates, times and conversions, whose results are short."""
LONG = frozenset({"series", "numbers"})
"""Functions of such modules whose results may be long."""
OTHERS = frozenset({"int2", "int4", "int8", "numeric_sum", "numeric_difference", "numeric_product"})
"""Functions of other modules whose results are short."""
VALUES = frozenset(
    {int, float, bool, str, bytes, type(None), Decimal, UUID, Interval}
    | {dt.date, dt.datetime, dt.time, dt.timedelta}
)
"""Classes of results that may stand in a plan."""
LONGEST = 1_000
"""The most letters of such a result."""


def with_folded_constants(expr: Expr) -> Expr:
    """Return an expression with its constant parts evaluated; itself if it has none."""
    return transform(expr, _fold)


def _fold(expr: Expr) -> Expr:
    """Return the value of a call or an operation of constants as a constant; else `expr`."""
    if isinstance(expr, Call):
        return _folded_call(expr)
    if isinstance(expr, Operation) and _are_constants(expr.operands):
        return _folded_operation(expr)
    return expr


def _are_constants(exprs: Sequence[Expr]) -> bool:
    return all(each.__class__ is Constant for each in exprs)


def _folded_call(call: Call) -> Expr:
    """Return the value of a call of a function of dates as a constant; else the call."""
    if call.keywords or not _are_constants((call.function, *call.arguments)):
        return call
    values = [each.value for each in call.arguments]  # type: ignore[attr-defined]
    function = call.function.value  # type: ignore[attr-defined]
    if not _is_short(function) or not all(_is_value(v) or _is_short(v) for v in values):
        return call
    try:
        made = function(*values)
    except Exception:  # it will raise for each row
        return call
    return literal_value(made).expr if _is_value(made) else call


def _folded_operation(operation: Operation) -> Expr:
    """Return the value of an operation of constants; the operation if that is not exact."""
    values = [each.value for each in operation.operands]  # type: ignore[attr-defined]
    if len(values) == 2 and operation.operator in "+-*" and set(map(type, values)) == {Decimal}:
        made = _exact(operation.operator, *values)
        return operation if made is None else constant(made)
    return fold_node(operation)


def _exact(symbol: str, one: Decimal, other: Decimal) -> Decimal | None:
    """Return the sum, difference or product of decimals; None if it is rounded or not finite."""
    context = getcontext().copy()
    context.clear_flags()
    by = {"+": context.add, "-": context.subtract, "*": context.multiply}
    try:
        made = by[symbol](one, other)
    except ArithmeticError:
        return None
    return None if context.flags[Rounded] or not made.is_finite() else made


def _is_short(function: Any) -> bool:
    """Return True for a function of this package, of dates or numbers, with short results."""
    if isinstance(function, Bounded):
        return True
    of = function if hasattr(function, "__name__") else type(function)
    module = str(getattr(of, "__module__", ""))
    if not module.startswith(PACKAGE):
        return False
    is_of_dates = module.rpartition(".")[2] in SHORT and of.__name__ not in LONG
    return is_of_dates or of.__name__ in OTHERS


def _is_value(value: Any) -> bool:
    """Return True for an immutable value that is equal to itself and not long."""
    kind = type(value)
    if kind not in VALUES or value != value:
        return False
    if kind is int:
        return bool(value.bit_length() <= 64)
    return kind not in (str, bytes) or len(value) <= LONGEST
