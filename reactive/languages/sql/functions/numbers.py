"""The functions of numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Constant, Operation, constant
from reactive.languages.sql.expressions.arithmetic import REAL, combined, integer_of, ranged
from reactive.languages.sql.expressions.casts import applied, argument
from reactive.languages.sql.functions.calls import SAME, Maker, given, name_of, of
from reactive.languages.sql.runtime import casts, numbers
from reactive.languages.sql.terms.errors import source_of
from reactive.languages.sql.terms.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NUMBERS,
    UNSIGNED,
    SqlType,
    range_of,
)
from reactive.languages.sql.terms.values import NULL_VALUE, Value, is_null, literal

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope


def _rounded(node: Any, scope: Scope) -> Value:
    value, *digits = given(node, scope)
    if value.type.kind not in NUMBERS:
        value = argument(value, FLOAT, scope)
    kind = value.type
    if kind.kind == "float" and scope.dialect.name == "duckdb":
        return _of_real(value, applied(numbers.rounded_by_power, FLOAT, value, *digits))
    if kind.kind == "decimal":
        kind, digits = _shortened(value, digits, node, scope)
        return applied(numbers.rounded, kind, value, *digits)
    made = applied(numbers.rounded, _signed(kind), value, *digits)
    return ranged(made) if digits and scope.dialect.name == "duckdb" else made


def _of_real(value: Value, made: Value) -> Value:
    """Return what a function made of a value: a REAL of a REAL."""
    return applied(casts.to_real_or_infinity, REAL, made) if value.type == REAL else made


def _signed(kind: SqlType) -> SqlType:
    """Return BIGINT for an integer type without a sign, which such functions do not have."""
    return SqlType("int", size=8) if kind.names == UNSIGNED else kind


def _shortened(
    value: Value, digits: list[Value], node: Any, scope: Scope
) -> tuple[SqlType, list[Value]]:
    """Return the type of a decimal that is rounded to some digits, and these: it gets no more.

    Raises
    ------
    PlanError: the number of digits is not known before a row is read.
    """
    kind = value.type
    known = digits[0].expr if digits else constant(0)
    sign = 1
    if isinstance(known, Operation) and known.operator == "-" and len(known.operands) == 1:
        sign, known = -1, known.operands[0]
    if not isinstance(known, Constant):
        if scope.dialect.name != "duckdb":
            return kind, digits
        raise scope.error(
            node,
            f"duckdb has no {name_of(node)}() of a decimal to digits that a row says",
            "cast the number to DOUBLE, or write the digits",
        )
    if known.value is None:
        return kind, digits
    written = sign * known.value
    scale = written if kind.scale is None else min(kind.scale, written)
    return SqlType("decimal", kind.precision, max(scale, 0)), [literal(scale)] if digits else []


def _truncated(node: Any, scope: Scope) -> Value:
    value, *digits = given(node, scope)
    kind = value.type
    if kind.kind == "decimal":
        kind, digits = _shortened(value, digits, node, scope)
    elif digits and kind.kind == "float" and scope.dialect.name == "duckdb":
        return _of_real(value, applied(numbers.truncated_by_power, FLOAT, value, *digits))
    return applied(numbers.truncated, kind, value, *digits)


def _to_whole(function: Any) -> Maker:
    """A rounding to whole numbers, of which DuckDB makes floats of integers."""

    def made(node: Any, scope: Scope) -> Value:
        (value,) = given(node, scope, ANY)
        if value.type.kind not in ("decimal", "float"):
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
    named = source_of(scope.text, node).partition("(")[0].strip().lower()
    one = {"log2": numbers.logarithm_2, "log10": numbers.logarithm_10}.get(named)
    if one is not None:  # to sqlglot it is LOG of a base
        return applied(one, FLOAT, values[1])
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
    return one % other + 0.0 if other and not math.isinf(one) else math.nan


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
    if not math.isfinite(value):
        return value
    return math.copysign(math.ceil(abs(value) / 2) * 2, value)


def _of_bits(function: Any, *, sized: bool = False) -> Maker:
    """A shift, or XOR, of the type that both operands have in common."""

    def made(node: Any, scope: Scope) -> Value:
        left, right = given(node, scope, INT, INT)
        kind = integer_of(left, right, node)
        if is_null(left) or is_null(right):
            return Value(NULL_VALUE.expr, kind, NULL_VALUE.nulls)
        most = [literal(range_of(kind)[1])] if sized and kind.size is not None else []
        return applied(function, kind, left, right, *most)

    return made


def _divisor(function: Any) -> Maker:
    """GCD or LCM: of BIGINT, or of HUGEINT where one is among its arguments."""

    def made(node: Any, scope: Scope) -> Value:
        values = given(node, scope, INT, INT)
        if any(map(is_null, values)):
            return NULL_VALUE
        sizes = [v.type.size for v in values]
        is_free = any(v.type.size is None and not isinstance(v.expr, Constant) for v in values)
        size = None if is_free else 16 if 16 in sizes else 8
        kind = SqlType("int", size=size)
        return ranged(applied(function, kind, *values))

    return made


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
    exp.Sin: _float(numbers.Total(math.sin)),
    exp.Cos: _float(numbers.Total(math.cos)),
    exp.Tan: _float(numbers.Total(math.tan)),
    exp.Asin: _float(numbers.Total(math.asin)),
    exp.Acos: _float(numbers.Total(math.acos)),
    exp.Atan: _float(math.atan),
    exp.Atan2: of(math.atan2, FLOAT, FLOAT, FLOAT),
    exp.Sinh: _float(numbers.Total(math.sinh)),
    exp.Cosh: _float(numbers.Total(math.cosh)),
    exp.Tanh: _float(math.tanh),
    exp.Degrees: _float(math.degrees),
    exp.Radians: _float(math.radians),
    exp.Factorial: of(numbers.factorial, SqlType("int", size=16), INT),
    exp.IsNan: of(math.isnan, BOOL, FLOAT),
    exp.IsInf: of(math.isinf, BOOL, FLOAT),
    exp.BitwiseLeftShift: _of_bits(numbers.shifted_left, sized=True),
    exp.BitwiseRightShift: _of_bits(numbers.shifted_right, sized=True),
    exp.BitwiseXor: _of_bits(int.__xor__),
    "isfinite": _is_finite,
    "gcd": _divisor(math.gcd),
    "lcm": _divisor(math.lcm),
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
