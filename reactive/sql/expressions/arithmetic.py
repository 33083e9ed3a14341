"""Operators on numbers, times, texts and arrays, by the kinds of their operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Operation
from reactive.sql.expressions import zones
from reactive.sql.expressions.casts import applied, cast, equal_types, fitted
from reactive.sql.runtime import arrays, numbers, times
from reactive.sql.terms.types import (
    DATE,
    FLOAT,
    INT,
    INTERVAL,
    NUMBERS,
    TEXT,
    TIMESTAMP,
    SqlType,
    common,
    sql_name,
)
from reactive.sql.terms.values import NULL_VALUE, Value, is_null, literal, strict

if TYPE_CHECKING:
    from reactive.sql.terms.scope import Scope

SYMBOLS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
}
OF_TIMES: dict[tuple[str, str, str], tuple[Callable[..., Any], SqlType]] = {
    ("+", "date", "int"): (times.days_later, DATE),
    ("-", "date", "int"): (times.days_earlier, DATE),
    ("-", "date", "date"): (times.days_between, INT),
    ("-", "timestamp", "timestamp"): (times.time_between, INTERVAL),
    ("-", "timestamp", "date"): (times.time_between, INTERVAL),
    ("-", "date", "timestamp"): (times.time_between, INTERVAL),
    ("+", "date", "interval"): (times.later, TIMESTAMP),
    ("-", "date", "interval"): (times.earlier, TIMESTAMP),
    ("+", "timestamp", "interval"): (times.later, TIMESTAMP),
    ("-", "timestamp", "interval"): (times.earlier, TIMESTAMP),
    ("+", "interval", "interval"): (times.sum_of_intervals, INTERVAL),
    ("-", "interval", "interval"): (times.difference_of_intervals, INTERVAL),
    ("*", "interval", "int"): (times.multiple, INTERVAL),
    ("*", "interval", "float"): (times.multiple, INTERVAL),
    ("*", "interval", "decimal"): (times.multiple, INTERVAL),
}
SWAPPED = frozenset(
    {("+", "int", "date"), ("+", "interval", "date"), ("+", "interval", "timestamp")}
    | {("*", kind, "interval") for kind in NUMBERS}
)


def is_operator(node: exp.Expr) -> bool:
    """Whether `operation` knows a node."""
    return type(node) in SYMBOLS or isinstance(
        node, exp.Div | exp.IntDiv | exp.Mod | exp.Neg | exp.DPipe | exp.BitwiseNot
    )


def operation(node: Any, scope: Scope) -> Value:
    """The value of an operator.

    Raises
    ------
    PlanError: there is no such operator for values of these types.
    """
    if isinstance(node, exp.Neg | exp.BitwiseNot):
        return _unary(node, scope)
    left, right = scope.value(node.left), scope.value(node.right)
    if is_null(left) or is_null(right):
        return NULL_VALUE
    if isinstance(node, exp.DPipe):
        return _concatenated(left, right, node, scope)
    if isinstance(node, exp.Div | exp.IntDiv | exp.Mod):
        number = _as_number(scope)
        return _divided(node, number(left), number(right), scope)
    return combined(SYMBOLS[type(node)], left, right, node, scope)


def _unary(node: Any, scope: Scope) -> Value:
    of = scope.value(node.this)
    if isinstance(node, exp.BitwiseNot):
        return strict(Operation("~", (of.expr,)), of.type, of)
    if of.type.kind == "interval":
        return applied(times.negative, INTERVAL, of)
    of = _as_number(scope)(of)
    return strict(Operation("-", (of.expr,)), of.type, of)


def combined(symbol: str, left: Value, right: Value, node: exp.Expr, scope: Scope) -> Value:
    """The value of `+`, `-`, `*`, `&` or `|`."""
    of_zones = zones.combined(symbol, left, right, node, scope, applied)
    if of_zones is not None:
        return of_zones
    kinds = (symbol, left.type.kind, right.type.kind)
    if kinds in SWAPPED:
        left, right = right, left
        kinds = (symbol, left.type.kind, right.type.kind)
    if kinds in OF_TIMES:
        function, kind = OF_TIMES[kinds]
        return applied(function, kind, left, right)
    left, right = map(_as_number(scope), (left, right))
    if not {left.type.kind, right.type.kind} <= NUMBERS | {"bool", "any"}:
        names = f"{sql_name(left.type)} and {sql_name(right.type)}"
        raise scope.error(node, f"there is no {symbol} for {names}", "cast one of them")
    kind = common(left.type, right.type)
    left, right = fitted(left, kind, scope), fitted(right, kind, scope)
    if kind.kind == "decimal":
        kind = _decimal(symbol, left.type, right.type, kind)
    return strict(Operation(symbol, (left.expr, right.expr)), kind, left, right)


def _decimal(symbol: str, left: SqlType, right: SqlType, kind: SqlType) -> SqlType:
    """The digits of a product are those of both factors."""
    if symbol != "*" or kind.scale is None:
        return kind
    scale = (left.scale or 0) + (right.scale or 0)
    return SqlType("decimal", 38, scale)


def _as_number(scope: Scope) -> Callable[[Value], Value]:
    """A text as the number that it says, by dialect."""

    def made(value: Value) -> Value:
        if value.type.kind != "text":
            return value
        return cast(value, FLOAT if "." in str(value.expr) else INT, scope)

    return made


def _divided(node: Any, left: Value, right: Value, scope: Scope) -> Value:
    whole_numbers = left.type.kind == right.type.kind == "int"
    if isinstance(node, exp.Mod):
        return _remainder(left, right, scope)
    if left.type.kind == "interval":
        by = cast(right, FLOAT, scope)
        inverse = applied(numbers.checked_quotient, FLOAT, literal(1.0), by)
        return applied(times.multiple, INTERVAL, left, inverse)
    if whole_numbers and (isinstance(node, exp.IntDiv) or (scope.dialect.integer_division)):
        return applied(numbers.whole_quotient, common(left.type, right.type), left, right)
    if scope.dialect.zero_division == "error":
        if "float" not in (left.type.kind, right.type.kind):
            exact = SqlType("decimal")
            sides = (cast(side, exact, scope) for side in (left, right))
            return applied(numbers.decimal_quotient, exact, *sides)
        return applied(numbers.checked_quotient, FLOAT, left, right)
    return applied(numbers.quotient, FLOAT, left, right)


def _remainder(left: Value, right: Value, scope: Scope) -> Value:
    kind = common(left.type, right.type)
    left, right = fitted(left, kind, scope), fitted(right, kind, scope)
    return applied(numbers.remainder, kind, left, right)


def _concatenated(left: Value, right: Value, node: Any, scope: Scope) -> Value:
    """`||` of texts, or of arrays."""
    kinds = (left.type.kind, right.type.kind)
    if "array" in kinds:
        kind = left.type if kinds[0] == "array" else right.type
        if set(kinds) == {"array"}:
            (left, right), kind = equal_types((left, right), scope, node)
        return applied(arrays.concatenated, kind, left, right)
    left, right = cast(left, TEXT, scope), cast(right, TEXT, scope)
    return strict(Operation("+", (left.expr, right.expr)), TEXT, left, right)
