"""The functions of numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from reactive.sql.expressions.arithmetic import combined, ranged
from reactive.sql.expressions.casts import applied, argument
from reactive.sql.functions.calls import SAME, Maker, arguments, given, of
from reactive.sql.runtime import numbers
from reactive.sql.terms.types import ANY, BOOL, FLOAT, INT, NUMBERS, SqlType
from reactive.sql.terms.values import Value, literal

if TYPE_CHECKING:
    from reactive.sql.terms.scope import Scope


def _rounded(node: Any, scope: Scope) -> Value:
    value, *digits = given(node, scope)
    if value.type.kind not in NUMBERS:
        value = argument(value, FLOAT, scope)
    kind = value.type
    if kind.kind == "float" and scope.dialect.name == "duckdb":
        return applied(numbers.rounded_by_power, FLOAT, value, *digits)
    if kind.kind == "decimal":
        known = arguments(node)[1].name if digits else "0"
        kind = SqlType("decimal", kind.precision, int(known) if known.isdigit() else kind.scale)
    return applied(numbers.rounded, kind, value, *digits)


def _truncated(node: Any, scope: Scope) -> Value:
    value, *digits = given(node, scope)
    kind = _whole(value)
    if digits and value.type.kind == "decimal":
        known = arguments(node)[1].name
        kind = SqlType("decimal", kind.precision, int(known) if known.isdigit() else 0)
    return applied(numbers.truncated, kind, value, *digits)


def _to_whole(function: Any) -> Maker:
    """A rounding to whole numbers, of which DuckDB makes floats of integers."""

    def made(node: Any, scope: Scope) -> Value:
        (value,) = given(node, scope, ANY)
        if value.type.kind != "decimal":
            value = argument(value, FLOAT, scope)
        return applied(function, _whole(value), value)

    return made


def _whole(value: Value) -> SqlType:
    kind = value.type
    return SqlType("decimal", kind.precision, 0) if kind.kind == "decimal" else kind


def _logarithm(node: Any, scope: Scope) -> Value:
    """LOG of a base and a number, or the common one."""
    values = [argument(value, FLOAT, scope) for value in given(node, scope)]
    if len(values) == 1:
        return applied(numbers.logarithm_10, FLOAT, *values)
    base = arguments(node)[0].name
    special = {"10": numbers.logarithm_10, "2": numbers.logarithm_2}.get(base)
    if special is not None:
        return applied(special, FLOAT, values[1])
    return applied(numbers.logarithm_of, FLOAT, *values)


def _product_by_name(symbol: str) -> Maker:
    def made(node: Any, scope: Scope) -> Value:
        left, right = given(node, scope)
        return combined(symbol, left, right, node, scope)

    return made


def _float(function: Any) -> Maker:
    return of(function, FLOAT, FLOAT)


def floored_quotient(one: float, other: float) -> float:
    """A whole number of times, rounded down, as a float."""
    return numbers.floor(numbers.quotient(one, other))  # type: ignore[no-any-return]


def floored_remainder(one: float, other: float) -> float:
    """What is left then, with the sign of the divisor."""
    return one % other if other else math.nan


def _is_finite(node: Any, scope: Scope) -> Value:
    (value,) = given(node, scope, ANY)
    if value.type.kind in ("date", "timestamp", "timestamptz"):  # Python's are
        return applied(_true_of, BOOL, value)
    return of(math.isfinite, BOOL, FLOAT)(node, scope)


def _true_of(value: Any) -> bool:
    return True


def _bits(node: Any, scope: Scope) -> Value:
    (value,) = given(node, scope, INT)
    return applied(numbers.bits, INT, value, literal(8 * (value.type.size or 8)))


def _absolute(node: Any, scope: Scope) -> Value:
    made = of(numbers.absolute if scope.dialect.name == "duckdb" else abs, SAME)(node, scope)
    is_checked = scope.dialect.name == "duckdb" and made.type.kind == "int"
    return ranged(made) if is_checked else made


def even(value: float) -> float:
    """The even number next to a number, away from zero."""
    return math.copysign(math.ceil(abs(value) / 2) * 2, value)


TABLE: dict[str | type[exp.Expr], Maker] = {
    exp.Abs: _absolute,
    exp.Round: _rounded,
    exp.Trunc: _truncated,
    exp.Ceil: _to_whole(numbers.ceiling),
    exp.Floor: _to_whole(numbers.floor),
    exp.Sign: of(numbers.sign, INT),
    exp.Sqrt: _float(numbers.square_root),
    exp.Cbrt: _float(numbers.cube_root),
    exp.Exp: _float(numbers.exponential),
    exp.Ln: _float(numbers.logarithm),
    exp.Log: _logarithm,
    exp.Pow: of(numbers.power, FLOAT, FLOAT, FLOAT),
    exp.Pi: lambda node, scope: literal(math.pi),
    exp.Sin: _float(math.sin),
    exp.Cos: _float(math.cos),
    exp.Tan: _float(math.tan),
    exp.Asin: _float(math.asin),
    exp.Acos: _float(math.acos),
    exp.Atan: _float(math.atan),
    exp.Atan2: of(math.atan2, FLOAT, FLOAT, FLOAT),
    exp.Sinh: _float(math.sinh),
    exp.Cosh: _float(math.cosh),
    exp.Tanh: _float(math.tanh),
    exp.Degrees: _float(math.degrees),
    exp.Radians: _float(math.radians),
    exp.Factorial: of(numbers.factorial, INT, INT),
    exp.IsNan: of(math.isnan, BOOL, FLOAT),
    exp.IsInf: of(math.isinf, BOOL, FLOAT),
    exp.BitwiseLeftShift: of(numbers.shifted_left, INT, INT, INT),
    exp.BitwiseRightShift: of(numbers.shifted_right, INT, INT, INT),
    exp.BitwiseXor: of(int.__xor__, INT, INT, INT),
    "isfinite": _is_finite,
    "gcd": of(math.gcd, INT, INT, INT),
    "lcm": of(math.lcm, INT, INT, INT),
    "even": of(even, FLOAT, FLOAT),
    "fdiv": of(floored_quotient, FLOAT, FLOAT, FLOAT),
    "fmod": of(floored_remainder, FLOAT, FLOAT, FLOAT),
    "bit_count": _bits,
    "add": _product_by_name("+"),
    "subtract": _product_by_name("-"),
    "multiply": _product_by_name("*"),
    "log10": _float(numbers.logarithm_10),
    "log2": _float(numbers.logarithm_2),
}
