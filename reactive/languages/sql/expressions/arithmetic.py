"""Operators on numbers, times, texts and arrays, by the kinds of their operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Call, Constant, Expr, Operation, constant
from optimizer.expressions.knowledge import Bounded
from reactive.languages.sql.expressions import zones
from reactive.languages.sql.expressions.casts import apply, cast, convert_to_compare, equal_types
from reactive.languages.sql.expressions.zones import is_constant
from reactive.languages.sql.runtime import arrays, casts, intervals, numbers, times
from reactive.languages.sql.terms.types import (
    DATE,
    DIGITS_OF_SIZE,
    FLOAT,
    INT,
    INTERVAL,
    NUMBERS,
    TEXT,
    TIME,
    TIMESTAMP,
    UNSIGNED,
    SqlType,
    common,
    range_of,
    sql_name,
)
from reactive.languages.sql.terms.values import (
    NULL_VALUE,
    TypedValue,
    callee,
    is_null,
    literal_value,
    strict,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

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
    ("+", "time", "interval"): (times.time_later, TIME),
    ("-", "time", "interval"): (times.time_earlier, TIME),
    ("+", "date", "time"): (times.at_time, TIMESTAMP),
    ("+", "interval", "interval"): (intervals.sum_of_intervals, INTERVAL),
    ("-", "interval", "interval"): (intervals.difference_of_intervals, INTERVAL),
    ("*", "interval", "int"): (intervals.multiple_with_days, INTERVAL),
    ("*", "interval", "float"): (intervals.multiple_with_days, INTERVAL),
    ("*", "interval", "decimal"): (intervals.multiple_with_days, INTERVAL),
}
SWAPPED = frozenset(
    {("+", "int", "date"), ("+", "interval", "date"), ("+", "interval", "timestamp")}
    | {("+", "interval", "time"), ("+", "time", "date")}
    | {("*", kind, "interval") for kind in NUMBERS}
)


def is_arithmetic(node: exp.Expr) -> bool:
    """Return True if `translate_arithmetic` translates a node."""
    return type(node) in SYMBOLS or isinstance(
        node, exp.Div | exp.IntDiv | exp.Mod | exp.Neg | exp.DPipe | exp.BitwiseNot
    )


def translate_arithmetic(node: Any, scope: Scope) -> TypedValue:
    """Return the value of an operator.

    Raises
    ------
    PlanError: there is no such operator for values of these types.
    """
    if isinstance(node, exp.Neg | exp.BitwiseNot):
        return _translate_prefix(node, scope)
    left, right = scope.value(node.left), scope.value(node.right)
    if is_null(left) or is_null(right):
        if "null" in (left.type.kind, right.type.kind):
            return NULL_VALUE
        of = _of_two(node, left, right, scope)  # to have its type, or to be refused
        return TypedValue(NULL_VALUE.expr, of.type, NULL_VALUE.nulls)
    return _of_two(node, left, right, scope)


def _of_two(node: Any, left: TypedValue, right: TypedValue, scope: Scope) -> TypedValue:
    """Return the value of an operator between two values, such as `||`, `/` or `+`."""
    is_list = isinstance(node, exp.Add) and left.type.kind == right.type.kind == "array"
    if isinstance(node, exp.DPipe) or is_list:
        return _concatenate_values(left, right, node, scope)
    if isinstance(node, exp.Div | exp.IntDiv | exp.Mod):
        return _divide(node, *_read_beside(left, right, node, scope), scope)
    return calculate(SYMBOLS[type(node)], left, right, node, scope)


def _translate_prefix(node: Any, scope: Scope) -> TypedValue:
    """Return the value of `-x` or `~x`; refuse `-` of a text."""
    of = scope.value(node.this)
    if isinstance(node, exp.BitwiseNot):
        if of.type.names == UNSIGNED:
            _, most = range_of(of.type)
            return strict(Operation("-", (constant(most), of.expr)), of.type, of)
        return strict(Operation("~", (of.expr,)), of.type, of)
    if of.type.kind == "interval":
        return apply(intervals.negative, INTERVAL, of)
    if of.type.kind == "text":
        raise scope.error(
            node, f"{scope.dialect.name} has no - for {sql_name(of.type)}", "cast the text"
        )
    if of.type.kind == "decimal" and (of.type.precision or 0) > MOST_DIGITS:
        return apply(numbers.negative, of.type, of)
    made = strict(Operation("-", (of.expr,)), of.type, of)
    if scope.dialect.name != "duckdb" or of.type.kind != "int":
        return made
    if isinstance(of.expr, Constant) and of.type.names != UNSIGNED:
        return _negative(of)
    return check_range(made)


def _negative(of: TypedValue) -> TypedValue:
    """Return a constant integer with the other sign, of a type that has it."""
    given, size = of.expr.value, of.type.size  # type: ignore[attr-defined]
    if given is None or size is None:
        return of if given is None else replace(of, expr=Operation("-", (of.expr,)))
    value = -given
    kinds = (SqlType("int", size=each) for each in (1, 2, 4, 8, 16) if each >= size)
    kind = next((k for k in kinds if range_of(k)[0] <= value <= range_of(k)[1]), INT)
    return TypedValue(constant(value), kind)


def calculate(
    symbol: str, left: TypedValue, right: TypedValue, node: exp.Expr, scope: Scope
) -> TypedValue:
    """Return the value of `+`, `-`, `*`, `&` or `|`; refuse types that do not have it."""
    of_zones = zones.shift_instants(symbol, left, right, node, scope, apply)
    if of_zones is not None:
        return of_zones
    kinds = (symbol, left.type.kind, right.type.kind)
    if kinds in SWAPPED:
        left, right = right, left
        kinds = (symbol, left.type.kind, right.type.kind)
    if kinds in OF_TIMES:
        function, kind = OF_TIMES[kinds]
        return apply(function, kind, left, right)
    if type(node) in SYMBOLS:
        left, right = _read_beside(left, right, node, scope)
    if not {left.type.kind, right.type.kind} <= NUMBERS | {"bool", "any"}:
        names = f"{sql_name(left.type)} and {sql_name(right.type)}"
        raise scope.error(node, f"there is no {symbol} for {names}", "cast one of them")
    if scope.dialect.name == "duckdb":
        return _of_duckdb(symbol, left, right, node, scope)
    kind = common(left.type, right.type)
    left, right = convert_to_compare(left, kind, scope), convert_to_compare(right, kind, scope)
    if kind.kind == "decimal":
        kind = _decimal(symbol, left.type, right.type, kind)
    return strict(Operation(symbol, (left.expr, right.expr)), kind, left, right)


def _of_duckdb(
    symbol: str, left: TypedValue, right: TypedValue, node: Any, scope: Scope
) -> TypedValue:
    """Return the result of an operator, checked against the type that DuckDB has for it."""
    kinds = {left.type.kind, right.type.kind}
    if kinds == {"int"}:
        kind = integer_of(left, right, node)
        left, right = _shallow(left), _shallow(right)
        made = strict(Operation(symbol, (left.expr, right.expr)), kind, left, right)
        is_safe = kind.size is None or symbol in "&|"
        return made if is_safe else check_range(made)
    if is_real(left.type, right.type):
        sides = [cast(side, REAL, scope) for side in (left, right)]
        made = strict(Operation(symbol, tuple(side.expr for side in sides)), REAL, *sides)
        return apply(casts.to_real_or_infinity, REAL, made)
    kind = common(left.type, right.type)
    if symbol != "*" or kind.kind != "decimal":  # an integer is not made a decimal to be a factor
        left, right = convert_to_compare(left, kind, scope), convert_to_compare(right, kind, scope)
    if kind.kind == "decimal" and kind.scale is not None:
        digits = [decimal_digits(side.type) for side in (left, right)]
        kind = _decimal_of_duckdb(symbol, *digits)
        is_short = symbol == "*" and (kind.precision or 0) < sum(map(sum, digits))
        if is_short or (kind.precision or 0) > MOST_DIGITS:
            return apply(
                numbers.Exact(symbol, kind.precision or 38, kind.scale or 0), kind, left, right
            )
        if symbol == "*":  # zero has no sign
            product = Operation(symbol, (left.expr, right.expr))
            return strict(Operation("+", (product, constant(0))), kind, left, right)
    return strict(Operation(symbol, (left.expr, right.expr)), kind, left, right)


REAL = SqlType("float", size=4)
MOST_DIGITS = 28
"""Digits that Python's own arithmetic of decimals keeps."""
MOST_CHECKS = 12
"""Checks of integers within one another: of a longer sum each twelfth is checked."""


def is_real(left: SqlType, right: SqlType) -> bool:
    """Return True if a result of two numbers has four bytes in DuckDB: no DOUBLE is among them."""
    floats = [each for each in (left, right) if each.kind == "float"]
    return bool(floats) and all(each.size == 4 for each in floats) and _are_numbers(left, right)


def _are_numbers(*kinds: SqlType) -> bool:
    return all(kind.kind in NUMBERS for kind in kinds)


def integer_of(left: TypedValue, right: TypedValue, node: Any) -> SqlType:
    """Return the type of a result of two integers; without a size if that of one is not known.

    A number that is written is of the type of the other operand, if it is in its range.
    """
    kinds = [left.type, right.type]
    parts: tuple[Any, Any] = (None, None)
    if isinstance(node, exp.Binary):
        parts = (node.this, node.expression)
    for place, side in enumerate((left, right)):
        part = parts[place].this if isinstance(parts[place], exp.Neg) else parts[place]
        is_free = side.type.size is None or isinstance(part, exp.Literal)
        if is_free and isinstance(side.expr, Constant):
            other = kinds[1 - place]
            options = [other] if other.size is not None else []
            options += [SqlType("int", size=size) for size in (4, 8, 16)]
            number = int(side.expr.value)
            inside = (each for each in options if range_of(each)[0] <= number <= range_of(each)[1])
            kinds[place] = next(inside, INT)
    one, two = kinds
    if one.size is None or two.size is None:
        return INT
    if (one.names == UNSIGNED) is (two.names == UNSIGNED):
        return one if one.size >= two.size else two
    unsigned, signed = (one, two) if one.names == UNSIGNED else (two, one)
    assert unsigned.size is not None and signed.size is not None
    if signed.size > unsigned.size:
        return signed
    return SqlType("int", size=16 if unsigned.size >= 8 else 8)


def _shallow(value: TypedValue) -> TypedValue:
    """Return a value without the checks inside of it if they are nested too deeply."""
    levels, expr = 0, value.expr
    while levels < MOST_CHECKS:
        match expr:
            case Call(Constant(Bounded()), (Operation(_, (left, *more)),)):
                is_first = isinstance(left, Call) or not more
                levels, expr = levels + 1, left if is_first else more[0]
            case _:
                return value
    return replace(value, expr=_remove_range_check(value.expr))


def _remove_range_check(expr: Expr) -> Expr:
    """Return a checked operation without range checks, also in its operands; else `expr`."""
    match expr:
        case Call(Constant(Bounded()), (Operation(symbol, operands),)):
            return Operation(symbol, tuple(map(_remove_range_check, operands)))
        case _:
            return expr


def check_range(value: TypedValue) -> TypedValue:
    """Return an integer that raises out of the range of its type; as is if that has no size."""
    if value.type.size is None:
        return value
    low, high = range_of(value.type)
    check = callee(Bounded(low, high, sql_name(value.type)))
    return strict(Call(check, (value.expr,)), value.type, value)


def decimal_digits(kind: SqlType) -> tuple[int, int]:
    """Return the digits before and behind the point of a number that is not a float."""
    if kind.kind == "decimal":
        scale = kind.scale or 0
        return (kind.precision or 38) - scale, scale
    return DIGITS_OF_SIZE.get(kind.size or 8, 19), 0


def _decimal_of_duckdb(symbol: str, one: tuple[int, int], two: tuple[int, int]) -> SqlType:
    """Return DuckDB's type of `*`, or of `+` and `-`; a side is (whole digits, scale)."""
    (whole, scale), (other, scale_of_other) = one, two
    if symbol == "*":
        digits, places = whole + scale + other + scale_of_other, scale + scale_of_other
        most = 18 if max(whole + scale, other + scale_of_other) <= 18 else 38
        return SqlType("decimal", max(min(most, digits), places), places)
    places = max(scale, scale_of_other)
    return SqlType("decimal", min(38, max(whole, other) + places + 1), places)


def _decimal(symbol: str, left: SqlType, right: SqlType, kind: SqlType) -> SqlType:
    """Return the type of a product of decimals, with the digits of both factors; else `kind`."""
    if symbol != "*" or kind.scale is None:
        return kind
    scale = (left.scale or 0) + (right.scale or 0)
    return SqlType("decimal", 38, scale)


def _read_beside(
    left: TypedValue, right: TypedValue, node: Any, scope: Scope
) -> tuple[TypedValue, TypedValue]:
    """Return operands, with a text literal converted to the type of the other operand.

    Raises
    ------
    PlanError: one is a text, and DuckDB does not convert it.
    """
    if "text" not in (left.type.kind, right.type.kind):
        return left, right
    other = right.type if left.type.kind == "text" else left.type
    text = left if left.type.kind == "text" else right
    if isinstance(node, READ_TEXTS) and is_constant(text) and other.kind in NUMBERS:
        return tuple(cast(v, other, scope) if v is text else v for v in (left, right))  # type: ignore[return-value]
    names = f"{sql_name(left.type)} and {sql_name(right.type)}"
    raise scope.error(
        node, f"{scope.dialect.name} has no {_symbol(node)} for {names}", "cast the text"
    )


READ_TEXTS = (exp.Mod, exp.IntDiv, exp.BitwiseAnd, exp.BitwiseOr)
"""Operators that have DuckDB read a text that is written beside a number; of others it cannot tell
which type it should have."""


def _symbol(node: Any) -> str:
    return {exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%"}.get(type(node)) or SYMBOLS[type(node)]


def _divide(node: Any, left: TypedValue, right: TypedValue, scope: Scope) -> TypedValue:
    """Return the value of `/`, `//` or `%` by the dialect's rules for types and zero divisors."""
    whole_numbers = left.type.kind == right.type.kind == "int"
    if isinstance(node, exp.Mod):
        return _remainder(left, right, scope)
    if left.type.kind == "interval":
        by = cast(right, FLOAT, scope)
        inverse = apply(numbers.checked_quotient, FLOAT, literal_value(1.0), by)
        return apply(intervals.multiple_with_days, INTERVAL, left, inverse)
    if whole_numbers and (isinstance(node, exp.IntDiv) or (scope.dialect.integer_division)):
        if scope.dialect.name != "duckdb":
            return apply(numbers.whole_quotient, common(left.type, right.type), left, right)
        kind = integer_of(left, right, node)
        return check_range(apply(numbers.whole_quotient, kind, left, right))
    if isinstance(node, exp.IntDiv):  # of DuckDB: it cuts off nothing, but is an error of a zero
        made = apply(numbers.checked_quotient, FLOAT, left, right)
        real = is_real(left.type, right.type)
        return apply(casts.to_real_or_infinity, REAL, made) if real else made
    if scope.dialect.zero_division == "error":
        if "float" not in (left.type.kind, right.type.kind):
            exact = SqlType("decimal")
            sides = [cast(side, exact, scope) for side in (left, right)]
            return apply(numbers.decimal_quotient, exact, *sides)
        return apply(numbers.checked_quotient, FLOAT, left, right)
    if scope.dialect.name == "duckdb" and is_real(left.type, right.type):
        sides = [cast(side, REAL, scope) for side in (left, right)]
        made = apply(numbers.quotient, FLOAT, *sides)
        return apply(casts.to_real_or_infinity, REAL, made)
    return apply(numbers.quotient, FLOAT, left, right)


def _remainder(left: TypedValue, right: TypedValue, scope: Scope) -> TypedValue:
    """Return the value of `%`, which DuckDB computes in floats for HUGEINT beside DECIMAL."""
    kind = common(left.type, right.type)
    if scope.dialect.name == "duckdb" and is_real(left.type, right.type):
        left, right = cast(left, REAL, scope), cast(right, REAL, scope)
        return apply(casts.to_real_or_infinity, REAL, apply(numbers.remainder, REAL, left, right))
    is_huge = kind.kind == "decimal" and 16 in (left.type.size, right.type.size)
    if scope.dialect.name == "duckdb" and is_huge:  # DuckDB has none of HUGEINT and decimals
        left, right = cast(left, FLOAT, scope), cast(right, FLOAT, scope)
        return apply(math.fmod, FLOAT, left, right)
    left, right = convert_to_compare(left, kind, scope), convert_to_compare(right, kind, scope)
    return apply(numbers.remainder, kind, left, right)


def _concatenate_values(left: TypedValue, right: TypedValue, node: Any, scope: Scope) -> TypedValue:
    """Return `||` of texts, bytes or arrays; refuse an array beside another value."""
    kinds = (left.type.kind, right.type.kind)
    if "array" in kinds:
        kind = left.type if kinds[0] == "array" else right.type
        if set(kinds) == {"array"}:
            (left, right), kind = equal_types((left, right), scope, node)
        elif not set(kinds) & {"any", "null"}:
            names = f"{sql_name(left.type)} and {sql_name(right.type)}"
            raise scope.error(
                node,
                f"cannot concatenate {names}: {scope.dialect.name} takes two arrays",
                "write list_append(array, item), list_prepend(item, array), or ARRAY[item]",
            )
        return apply(arrays.concatenated, kind, left, right)
    if kinds == ("bytes", "bytes"):
        return strict(Operation("+", (left.expr, right.expr)), left.type, left, right)
    left, right = cast(left, TEXT, scope), cast(right, TEXT, scope)
    return strict(Operation("+", (left.expr, right.expr)), TEXT, left, right)
