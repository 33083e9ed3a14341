"""Operators of Postgres, by the kinds of their operands.

    int + int           checked to fit the wider of both; Python's unbounded integers are not
    int / numeric       numeric
    numeric + float     float, which may not overflow
    date + integer      date

A text constant gets the type of the other operand; other texts are not numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Call, Operation, constant, tuple_of
from reactive.languages.sql.expressions import zones
from reactive.languages.sql.expressions.casts import apply, cast
from reactive.languages.sql.json import documents
from reactive.languages.sql.postgres import arrays, calls, forms, numbers, numerics, times
from reactive.languages.sql.postgres.calls import Form, form, kind_name
from reactive.languages.sql.postgres.resolution import operands
from reactive.languages.sql.runtime import intervals
from reactive.languages.sql.runtime import times as moments
from reactive.languages.sql.terms.calls import Maker
from reactive.languages.sql.terms.common_types import common_type
from reactive.languages.sql.terms.types import (
    ANY,
    BYTES,
    DATE,
    DECIMAL,
    FLOAT,
    INT,
    INTERVAL,
    JSONB,
    TEXT,
    TIME,
    TIMESTAMP,
    SqlType,
)
from reactive.languages.sql.terms.values import (
    NULL_VALUE,
    TypedValue,
    as_optional,
    callee,
    nullable_value,
    strict,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

NUMBERS = ("int", "decimal", "float")
SYMBOLS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
}
OF_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "/": numbers.whole_quotient,
    "%": numbers.whole_remainder,
}
OF_NUMERICS: dict[str, Callable[..., Any]] = {
    "+": numerics.numeric_sum,
    "-": numerics.numeric_difference,
    "*": numerics.numeric_product,
    "/": numerics.numeric_quotient,
    "%": numerics.numeric_remainder,
}
OF_FLOATS: dict[str, Callable[..., Any]] = {
    "+": numbers.sum_,
    "-": numbers.difference,
    "*": numbers.product,
    "/": numbers.quotient,
}
OF_TIMES: dict[tuple[str, str, str], tuple[Callable[..., Any], SqlType]] = {
    ("date", "+", "int"): (times.day_later, DATE),
    ("date", "-", "int"): (times.day_earlier, DATE),
    ("date", "-", "date"): (moments.days_between, SqlType("int", size=4)),
    ("timestamp", "-", "timestamp"): (moments.time_between, INTERVAL),
    ("timestamp", "-", "date"): (moments.time_between, INTERVAL),
    ("date", "-", "timestamp"): (moments.time_between, INTERVAL),
    ("date", "+", "interval"): (moments.later, TIMESTAMP),
    ("date", "-", "interval"): (moments.earlier, TIMESTAMP),
    ("date", "+", "time"): (times.moment_of, TIMESTAMP),
    ("timestamp", "+", "interval"): (moments.later, TIMESTAMP),
    ("timestamp", "-", "interval"): (moments.earlier, TIMESTAMP),
    ("time", "+", "interval"): (times.clock_later, TIME),
    ("time", "-", "interval"): (times.clock_earlier, TIME),
    ("time", "-", "time"): (times.clock_between, INTERVAL),
    ("interval", "+", "interval"): (intervals.sum_of_intervals, INTERVAL),
    ("interval", "-", "interval"): (intervals.difference_of_intervals, INTERVAL),
    **{("interval", "*", kind): (times.multiple, INTERVAL) for kind in NUMBERS},
    **{("interval", "/", kind): (times.part, INTERVAL) for kind in NUMBERS},
}
OF_DOCUMENTS: dict[str, Callable[..., Any]] = {
    "text": documents.without_key,
    "int": documents.without_element,
    "array": documents.without_keys,
}
"""`-` of a document and a value of a kind."""
SWAPPED = frozenset(
    {("int", "+", "date"), ("interval", "+", "date"), ("interval", "+", "timestamp")}
    | {("time", "+", "date"), ("interval", "+", "time")}
    | {(kind, "*", "interval") for kind in NUMBERS}
)


def translate_operator(node: Any, scope: Scope) -> TypedValue:
    """Return the value of an operator.

    Raises
    ------
    PlanError: Postgres has no such operator for values of these types.
    """
    if isinstance(node, exp.Neg | exp.BitwiseNot):
        return _apply_prefix(node, scope)
    if isinstance(node, exp.DPipe):
        return concatenation(node, scope)
    symbol = SYMBOLS.get(type(node))
    if symbol is None:
        raise scope.error(node, f"postgres has no operator {node.key!r}")
    left, right = operands(symbol, node, (node.left, node.right), scope)
    return apply_to_operands(symbol, left, right, node, scope)


def _apply_prefix(node: Any, scope: Scope) -> TypedValue:
    """Return the value of `-x` or `~x`; refuse types without the operator."""
    symbol = "-" if isinstance(node, exp.Neg) else "~"
    (of,) = operands(symbol, node, (node.this,), scope)
    match of.type.kind:
        case "int" if isinstance(node, exp.BitwiseNot):
            return strict(Operation("~", (of.expr,)), of.type, of)
        case "int":
            return _check_integer_size(Operation("-", (of.expr,)), of.type, of)
        case "any":
            return strict(Operation("-", (of.expr,)), of.type, of)
        case "decimal" | "float" | "interval" if isinstance(node, exp.Neg):
            function: Any = {
                "decimal": numerics.numeric_negative,
                "float": numbers.float_negative,
                "interval": intervals.negative,
            }[of.type.kind]
            return apply(function, of.type, of)
    raise scope.error(node, f"postgres has no operator {symbol} for {kind_name(of)}")


def positive(node: Any, scope: Scope) -> TypedValue:
    """Return the operand of a prefix +, which is a number."""
    return operands("+", node, (node.this,), scope)[0]


def apply_to_operands(
    symbol: str, left: TypedValue, right: TypedValue, node: Any, scope: Scope
) -> TypedValue:
    """Return the value of an operator of two sides; refuse types that do not have it."""
    if "null" in (left.type.kind, right.type.kind):  # the type of the other is not known
        return NULL_VALUE
    of_zones = zones.shift_instants(symbol, left, right, node, scope, apply)
    if of_zones is not None:
        return of_zones
    kinds = (left.type.kind, symbol, right.type.kind)
    if kinds[:2] == ("jsonb", "-"):
        return apply(OF_DOCUMENTS[kinds[2]], JSONB, left, right)
    if kinds in SWAPPED:
        left, right = right, left
        kinds = (left.type.kind, symbol, right.type.kind)
    if kinds in OF_TIMES:
        function, kind = OF_TIMES[kinds]
        return apply(function, kind, left, right)
    if "any" in kinds and {kinds[0], kinds[2]} <= {"any", *NUMBERS}:
        return _apply_untyped(symbol, left, right)
    if kinds[0] in NUMBERS and kinds[2] in NUMBERS:
        made = _of_numbers(symbol, left, right, scope)
        if made is not None:
            return made
    raise scope.error(
        node,
        f"postgres has no operator {symbol} for {kind_name(left)} and {kind_name(right)}",
        "cast one of them",
    )


def _apply_untyped(symbol: str, left: TypedValue, right: TypedValue) -> TypedValue:
    """Apply Python's operator to values whose types are not known."""
    function = {"/": numbers.quotient, "%": numbers.whole_remainder}.get(symbol)
    if function is not None:
        return apply(function, ANY, left, right)
    return strict(Operation(symbol, (left.expr, right.expr)), ANY, left, right)


def _of_numbers(
    symbol: str, left: TypedValue, right: TypedValue, scope: Scope
) -> TypedValue | None:
    """Return the value of an operator of two numbers; None if their type has no such operator."""
    kinds = {left.type.kind, right.type.kind}
    if kinds == {"int"}:
        return _of_integers(symbol, left, right)
    if "float" in kinds:
        function = OF_FLOATS.get(symbol)
        if function is None:
            return None
        made = apply(function, FLOAT, cast(left, FLOAT, scope), cast(right, FLOAT, scope))
        if left.type == right.type and left.type.size == 4:
            return apply(forms.real, left.type, made)
        return made
    function = OF_NUMERICS.get(symbol)
    return None if function is None else apply(function, DECIMAL, left, right)


def _of_integers(symbol: str, left: TypedValue, right: TypedValue) -> TypedValue:
    """Return the value of an operator of integers, which raises if it overflows the larger type."""
    sizes = left.type.size, right.type.size
    size = None if sizes[0] is None or sizes[1] is None else max(sizes)  # type: ignore[type-var]
    kind = SqlType("int", size=size)
    if symbol in OF_INTEGERS:
        made = apply(OF_INTEGERS[symbol], kind, left, right)
        return apply(numbers.RANGES[size], kind, made) if size and symbol == "/" else made
    expr = Operation(symbol, (left.expr, right.expr))
    if symbol in "&|":
        return strict(expr, kind, left, right)
    return _check_integer_size(expr, kind, left, right)


def _check_integer_size(expr: Any, kind: SqlType, *of: TypedValue) -> TypedValue:
    """Return an integer that has to fit its size."""
    if kind.size is not None:
        expr = Call(callee(numbers.RANGES[kind.size]), (expr,))
    return strict(expr, kind, *of)


# `||`.


def concatenation(node: Any, scope: Scope) -> TypedValue:
    """Translate `||` of texts, of bytes, or of arrays and elements."""
    return concatenate_sides(node, node.left, node.right, scope)


def concatenate_sides(node: Any, one: Any, other: Any, scope: Scope) -> TypedValue:
    """Translate `||` of two nodes."""
    left, right = operands("||", node, (one, other), scope)
    kinds = {left.type.kind, right.type.kind}
    if "array" in kinds:
        return _concatenate_with_array(node, left, right, scope)
    if kinds == {"jsonb"}:
        return apply(documents.joined, JSONB, left, right)
    if kinds == {"bytes"}:
        return apply(operator.add, BYTES, left, right)
    left, right = cast(left, TEXT, scope), cast(right, TEXT, scope)
    return strict(Operation("+", (left.expr, right.expr)), TEXT, left, right)


def _concatenate_with_array(
    node: Any, left: TypedValue, right: TypedValue, scope: Scope
) -> TypedValue:
    """Return an array and another, or an element; refuse types that have none in common."""
    kinds = [
        side.type if side.type.kind in ("array", "null") else SqlType("array", items=(side.type,))
        for side in (left, right)
    ]
    kind = common_type("postgres", "choice", *kinds)
    if kind is None:
        names = " and ".join(
            "arrays" if s.type.kind == "array" else kind_name(s) for s in (left, right)
        )
        raise scope.error(node, f"postgres has no operator || for {names}", "cast one of them")
    item = kind.items[0] if kind.items else ANY
    left, right = (
        cast(side, kind, scope)
        if side.type.kind in ("array", "null")
        else TypedValue(tuple_of(as_optional(cast(side, item, scope))), kind)
        for side in (left, right)
    )
    return nullable_value(
        Call(callee(arrays.concatenated), (as_optional(left), as_optional(right))), kind
    )


# Others that are nodes.

POWER = (
    form(numerics.numeric_power, DECIMAL, DECIMAL, DECIMAL),
    form(numbers.power, FLOAT, FLOAT, FLOAT),
)
SHIFTS = {exp.BitwiseLeftShift: numbers.shifted_left, exp.BitwiseRightShift: numbers.shifted_right}


def translate_caret(node: Any, scope: Scope) -> TypedValue:
    """Translate `^`: of a numeric a numeric, of integers a float."""
    values = operands("^", node, (node.this, node.expression), scope)
    of: Form = POWER[0] if values[0].type.kind == "decimal" else POWER[1]
    return calls.apply_form(of, values, scope)


def power_call(node: Any, scope: Scope) -> TypedValue:
    """Translate POWER."""
    return _choose_power(node, list(node.expressions), scope)


def _choose_power(node: Any, nodes: list[Any], scope: Scope) -> TypedValue:
    kinds = [scope.value(each).type.kind for each in nodes]
    of: tuple[Form, ...] = POWER if "decimal" in kinds and "float" not in kinds else POWER[1:]
    return calls.call_form(of, nodes, node, scope, "^")


def translate_shift(node: Any, scope: Scope) -> TypedValue:
    """Translate `<<` and `>>`, within the bits of the left side."""
    symbol = "<<" if isinstance(node, exp.BitwiseLeftShift) else ">>"
    left, right = operands(symbol, node, (node.left, node.right), scope)
    width = TypedValue(constant(left.type.size or 8), INT)
    return apply(SHIFTS[type(node)], left.type, left, right, width)


def exclusive(node: Any, scope: Scope) -> TypedValue:
    """Translate `#`, the exclusive or of bits."""
    left, right = operands("#", node, (node.left, node.right), scope)
    sizes = (left.type.size, right.type.size)
    size = None if None in sizes else max(sizes)  # type: ignore[type-var]
    return apply(operator.xor, SqlType("int", size=size), left, right)


TABLE: dict[str | type[exp.Expr], Maker] = {
    exp.Pow: translate_caret,
    exp.BitwiseLeftShift: translate_shift,
    exp.BitwiseRightShift: translate_shift,
    exp.BitwiseXor: exclusive,
}
