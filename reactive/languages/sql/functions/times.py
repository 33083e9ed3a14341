"""Functions of dates, timestamps, intervals and numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Constant, Operation, constant
from reactive.languages.sql.expressions.arithmetic import REAL, calculate, check_range, integer_of
from reactive.languages.sql.expressions.casts import apply, argument, cast
from reactive.languages.sql.functions.arrays import cast_arguments, make_function
from reactive.languages.sql.runtime import casts, intervals, moments, numbers, times
from reactive.languages.sql.terms.calls import Maker, arguments, function_name
from reactive.languages.sql.terms.errors import nearest, source_of, take
from reactive.languages.sql.terms.folding import with_folded_constants
from reactive.languages.sql.terms.types import (
    ANY,
    BOOL,
    DATE,
    FLOAT,
    INSTANT,
    INT,
    INTERVAL,
    NUMBERS,
    TEXT,
    TIME,
    TIMESTAMP,
    UNSIGNED,
    SqlType,
    range_of,
    sql_name,
)
from reactive.languages.sql.terms.values import NULL_VALUE, TypedValue, is_null, literal_value

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope


# The functions of dates, timestamps and intervals.

FRACTIONS = frozenset({"epoch", "julian"})


def extract_part(unit: str, value: TypedValue, node: exp.Expr, scope: Scope) -> TypedValue:
    """Return a part of a time.

    Raises
    ------
    PlanError: there is no such part.
    """
    named = intervals.unit_named(unit)
    if named not in times.PARTS:
        raise scope.error(node, f"there is no part {unit!r} of a time{nearest(named, times.PARTS)}")
    if value.type.kind == "text":
        value = argument(value, TIMESTAMP, scope)
    has = {"interval": times.PARTS_OF_INTERVALS, "time": times.PARTS_OF_TIMES}
    if scope.dialect.name == "duckdb" and named not in has.get(value.type.kind, times.PARTS):
        raise scope.error(node, f"duckdb has no part {named!r} of {sql_name(value.type)}")
    kind = FLOAT if named in FRACTIONS else INT
    return apply(times.extracted, kind, literal_value(named), value)


def _translate_extract(node: Any, scope: Scope) -> TypedValue:
    return extract_part(node.this.name, scope.value(node.expression), node, scope)


def _named_part(unit: str) -> Maker:
    return lambda node, scope: extract_part(unit, cast_arguments(node, scope, ANY)[0], node, scope)


def _translate_date_part(node: Any, scope: Scope) -> TypedValue:
    unit, value = arguments(node)
    return extract_part(unit.name, scope.value(value), node, scope)


def unit_of(node: Any, scope: Scope, unit: str) -> TypedValue:
    """Return the unit of a function as a constant.

    Raises
    ------
    PlanError: there is no such unit.
    """
    named = intervals.unit_named(unit)
    known = {**intervals.LENGTHS, **intervals.MONTHS}
    if named not in known:
        raise scope.error(node, f"there is no unit of time {unit!r}{nearest(named, known)}")
    return literal_value(named)


def _truncate_moment(node: Any, scope: Scope) -> TypedValue:
    """Return date_trunc() of a time or an interval; other values are cast to a timestamp."""
    unit = unit_of(node, scope, node.args["unit"].name)
    value = scope.value(node.this)
    if value.type.kind == "interval":
        return apply(times.truncated_interval, INTERVAL, unit, value)
    if value.type.kind not in ("date", "timestamp"):
        value = argument(value, TIMESTAMP, scope)
    return apply(times.truncated, TIMESTAMP, unit, value)


def _boundaries(node: Any, scope: Scope) -> TypedValue:
    """Make DATEDIFF, for which sqlglot parses the end first."""
    unit = unit_of(node, scope, node.args["unit"].name if node.args.get("unit") else "day")
    end, begin = (_moment(scope.value(each), scope) for each in (node.this, node.expression))
    return apply(times.boundaries, INT, unit, begin, end)


def _moment(value: TypedValue, scope: Scope) -> TypedValue:
    """Return a date or a timestamp as it is, and another value cast to a timestamp."""
    return value if value.type.kind in ("date", "timestamp") else argument(value, TIMESTAMP, scope)


def translate_interval(node: Any, scope: Scope) -> TypedValue:
    """Translate INTERVAL 3 DAY, INTERVAL '1 day 2 hours', INTERVAL (x) HOUR."""
    amount = node.this
    if node.args.get("unit") is None:
        return argument(scope.value(amount), INTERVAL, scope)
    unit = unit_of(node, scope, node.args["unit"].name)
    if isinstance(amount, exp.Literal):
        return literal_value(intervals.interval(float(amount.this), str(_constant_value(unit))))
    value = scope.value(amount)
    if isinstance(value.expr, Constant) and not value.nulls:
        return literal_value(
            intervals.interval(float(value.expr.value), str(_constant_value(unit)))
        )
    return apply(intervals.interval, INTERVAL, argument(value, FLOAT, scope), unit)


def _constant_value(value: TypedValue) -> Any:
    assert isinstance(value.expr, Constant)
    return value.expr.value


def _amount_of(unit: str) -> Maker:
    """Return the maker of a function such as to_days(), the interval of a number of `unit`."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        value = scope.value(arguments(node)[0])
        if isinstance(value.expr, Constant) and not value.nulls:
            return literal_value(intervals.interval(float(value.expr.value), unit))
        return apply(
            intervals.interval, INTERVAL, argument(value, FLOAT, scope), literal_value(unit)
        )

    return translate


def _date_add(symbol: str) -> Maker:
    """Make DATE_ADD and the like."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        by = node.expression
        amount = scope.value(by)
        if node.args.get("unit") is not None and amount.type.kind != "interval":
            amount = translate_interval(exp.Interval(this=by, unit=node.args["unit"]), scope)
        return calculate(symbol, _moment(scope.value(node.this), scope), amount, node, scope)

    return translate


def _translate_date_bin(node: Any, scope: Scope) -> TypedValue:
    """Return the bucket of a time; `unit` is where the parser puts an offset or an origin."""
    width, value = scope.value(node.this), _moment(scope.value(node.expression), scope)
    third = node.args.get("unit")
    if third is None:
        return apply(times.bucket, value.type, width, value)
    take(third)
    other = literal_value(third.name) if isinstance(third, exp.Var) else scope.value(third)
    if other.type.kind == "interval":
        begin = apply(times.bucket, TIMESTAMP, width, calculate("-", value, other, node, scope))
        return cast(calculate("+", begin, other, node, scope), value.type, scope)
    if other.type.kind not in ("date", "timestamp"):
        raise scope.error(
            third,
            f"time_bucket() of a {sql_name(value.type)} has an interval or a timestamp as third "
            f"argument, not {sql_name(other.type)}",
            "cast the time to timestamptz for a zone, or for an origin in one",
        )
    kind = DATE if value.type.kind == other.type.kind == "date" else TIMESTAMP
    return apply(times.bucket, kind, width, argument(value, kind, scope), other)


def refuse_clock(node: Any, scope: Scope) -> TypedValue:
    """Refuse the current time, whose passing a live query does not notice."""
    raise scope.error(
        node,
        f"{node.sql()} is another time at each change, which a live query does not notice",
        "give it: db.sql('... :now ...', now=datetime.now())",
    )


def _clock_as(kind: SqlType) -> Maker:
    """Return the maker of the moment of the database's clock, cast to a type.

    If the clock has moments without a time zone, instants are timestamps.
    """

    def translate(node: Any, scope: Scope) -> TypedValue:
        if node.args.get("this") is not None and not isinstance(node, exp.Anonymous):
            raise scope.error(node, "the digits of the current time are not supported", "omit them")
        value, is_zoned = scope.clock(node)
        read = replace(value, type=INSTANT if is_zoned else TIMESTAMP)
        return read if kind == INSTANT else cast(read, kind, scope)

    return translate


CLOCK: dict[str | type[exp.Expr], Maker] = {
    exp.CurrentTimestamp: _clock_as(INSTANT),
    exp.Localtimestamp: _clock_as(TIMESTAMP),
    exp.CurrentDate: _clock_as(DATE),
    **dict.fromkeys(("now", "transaction_timestamp"), _clock_as(INSTANT)),
    exp.CurrentTime: refuse_clock,
    exp.Localtime: refuse_clock,
}


def _convert_epoch(node: Any, scope: Scope) -> TypedValue:
    """Translate TO_TIMESTAMP and EPOCH_MS, or their opposite; refuse other units."""
    value = scope.value(node.this)
    scale = node.args.get("scale")
    if scale is None:
        return apply(times.timestamp_of_seconds, TIMESTAMP, value)
    if scale.name == "6":
        return apply(times.timestamp_of_microseconds, TIMESTAMP, value)
    if scale.name != "3":
        raise scope.error(node, f"a time in units of 10^-{scale.name} seconds is not supported")
    if value.type.kind in ("date", "timestamp"):
        return apply(times.epoch_milliseconds, INT, value)
    return apply(times.timestamp_of_milliseconds, TIMESTAMP, value)


def _to_date(node: Any, scope: Scope) -> TypedValue:
    return argument(scope.value(arguments(node)[0]), DATE, scope)


def _cast_to_timestamp(node: Any, scope: Scope) -> TypedValue:
    return argument(scope.value(arguments(node)[0]), TIMESTAMP, scope)


def _translate_age(node: Any, scope: Scope) -> TypedValue:
    """Return age() of two times; refuse other numbers of arguments: they would read the clock."""
    values = [_moment(value, scope) for value in cast_arguments(node, scope)]
    if len(values) != 2:
        return refuse_clock(node, scope)
    return apply(times.age, INTERVAL, *values)


def _date_diff_by_name(node: Any, scope: Scope) -> TypedValue:
    """Translate DATE_SUB, the number of whole units between two moments."""
    unit, begin, end = arguments(node)
    made = unit_of(node, scope, unit.name)
    return apply(times.whole_units, INT, made, scope.value(begin), scope.value(end))


PARTS: dict[str | type[exp.Expr], Maker] = {
    exp.Year: _named_part("year"),
    exp.Month: _named_part("month"),
    exp.Day: _named_part("day"),
    exp.DayOfMonth: _named_part("day"),
    exp.DayOfWeek: _named_part("dow"),
    exp.DayOfWeekIso: _named_part("isodow"),
    exp.DayOfYear: _named_part("doy"),
    exp.Hour: _named_part("hour"),
    exp.Minute: _named_part("minute"),
    exp.Second: _named_part("second"),
    exp.Week: _named_part("week"),
    exp.WeekOfYear: _named_part("week"),
    exp.Quarter: _named_part("quarter"),
    exp.TimeToUnix: _named_part("epoch"),
    **{name: _named_part(name) for name in ("weekday", "century", "decade", "millennium", "era")},
    **{name: _named_part(name) for name in ("isoyear", "yearweek", "julian", "epoch")},
}


def _date(node: Any, scope: Scope) -> TypedValue:
    """Return DATE of one argument, a cast; refuse modifiers, and all calls in SQLite."""
    if scope.dialect.name == "sqlite" or len(arguments(node)) != 1:
        raise scope.error(node, "date() is not supported here", "write CAST(x AS DATE)")
    return argument(scope.value(arguments(node)[0]), DATE, scope)


TIME_FUNCTIONS: dict[str | type[exp.Expr], Maker] = {
    exp.Date: _date,
    **PARTS,
    exp.Extract: _translate_extract,
    exp.TimestampTrunc: _truncate_moment,
    exp.DateTrunc: _truncate_moment,
    exp.DateDiff: _boundaries,
    exp.Interval: translate_interval,
    exp.DateAdd: _date_add("+"),
    exp.DateSub: _date_add("-"),
    exp.LastDay: make_function(times.last_day, DATE, ANY),
    exp.DateFromParts: make_function(times.date_of_parts, DATE, INT, INT, INT),
    exp.TimestampFromParts: make_function(
        times.timestamp_of_parts, TIMESTAMP, INT, INT, INT, INT, INT, FLOAT
    ),
    exp.TimeToStr: lambda node, scope: apply(
        moments.written,
        TEXT,
        _moment(scope.value(node.this), scope),
        scope.value(node.args["format"]),
    ),
    exp.StrToTime: make_function(moments.read, TIMESTAMP, TEXT, TEXT),
    exp.UnixToTime: _convert_epoch,
    exp.DateBin: _translate_date_bin,
    exp.Dayname: make_function(times.day_name, TEXT, ANY),
    exp.Monthname: make_function(times.month_name, TEXT, ANY),
    **CLOCK,
    "get_current_timestamp": _clock_as(INSTANT),
    exp.Date: _to_date,
    exp.Timestamp: _cast_to_timestamp,
    exp.TsOrDsToTimestamp: _cast_to_timestamp,
    exp.TsOrDsToDate: _to_date,
    exp.ToDays: _amount_of("day"),
    "date_part": _translate_date_part,
    "datepart": _translate_date_part,
    "date_sub": _date_diff_by_name,
    "datesub": _date_diff_by_name,
    "age": _translate_age,
    "epoch_ms": make_function(times.epoch_milliseconds, INT, TIMESTAMP),
    "epoch_us": make_function(times.epoch_microseconds, INT, TIMESTAMP),
    "epoch_ns": make_function(times.epoch_nanoseconds, INT, TIMESTAMP),
    exp.TimeFromParts: make_function(times.time_of_parts, TIME, INT, INT, FLOAT),
    **{f"to_{unit}": _amount_of(intervals.unit_named(unit)) for unit in ("quarters", "centuries")},
    "to_millennia": _amount_of("millennium"),
    **{f"to_{unit}s": _amount_of(unit) for unit in (*intervals.LENGTHS, "month", "year", "decade")},
}


# The functions of numbers.


def _round_number(node: Any, scope: Scope) -> TypedValue:
    """Return ROUND of a number; other values are cast to a float."""
    value, *digits = cast_arguments(node, scope)
    if value.type.kind not in NUMBERS:
        value = argument(value, FLOAT, scope)
    kind = value.type
    if kind.kind == "float" and scope.dialect.name == "duckdb":
        return _of_real(value, apply(numbers.rounded_by_power, FLOAT, value, *digits))
    if kind.kind == "decimal":
        kind, digits = _rounded_type(value, digits, node, scope)
        return apply(numbers.rounded, kind, value, *digits)
    made = apply(numbers.rounded, _signed_type(kind), value, *digits)
    return check_range(made) if digits and scope.dialect.name == "duckdb" else made


def _of_real(value: TypedValue, made: TypedValue) -> TypedValue:
    """Return what a function made of a value: a REAL of a REAL."""
    return apply(casts.to_real_or_infinity, REAL, made) if value.type == REAL else made


def _signed_type(kind: SqlType) -> SqlType:
    """Return BIGINT for an integer type without a sign, which such functions do not have."""
    return SqlType("int", size=8) if kind.names == UNSIGNED else kind


def _rounded_type(
    value: TypedValue, digits: list[TypedValue], node: Any, scope: Scope
) -> tuple[SqlType, list[TypedValue]]:
    """Return the type of a decimal rounded to some digits, and these digits, at most its scale.

    Raises
    ------
    PlanError: the number of digits is not known before a row is read.
    """
    kind = value.type
    known = with_folded_constants(digits[0].expr) if digits else constant(0)
    sign = 1
    if isinstance(known, Operation) and known.operator == "-" and len(known.operands) == 1:
        sign, known = -1, known.operands[0]
    if not isinstance(known, Constant):
        if scope.dialect.name != "duckdb":
            return kind, digits
        raise scope.error(
            node,
            f"duckdb has no {function_name(node)}() of a decimal to digits that a row says",
            "cast the number to DOUBLE, or write the digits",
        )
    if known.value is None:
        return kind, digits
    written = sign * known.value
    scale = written if kind.scale is None else min(kind.scale, written)
    return SqlType("decimal", kind.precision, max(scale, 0)), [
        literal_value(scale)
    ] if digits else []


def _truncate_number(node: Any, scope: Scope) -> TypedValue:
    """Return TRUNC of a number, to some digits if they are given."""
    value, *digits = cast_arguments(node, scope)
    kind = value.type
    if kind.kind == "decimal":
        kind, digits = _rounded_type(value, digits, node, scope)
    elif digits and kind.kind == "float" and scope.dialect.name == "duckdb":
        return _of_real(value, apply(numbers.truncated_by_power, FLOAT, value, *digits))
    return apply(numbers.truncated, kind, value, *digits)


def _to_whole(function: Any) -> Maker:
    """Make a rounding to whole numbers; DuckDB converts integers to floats for it."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        (value,) = cast_arguments(node, scope, ANY)
        if value.type.kind not in ("decimal", "float"):
            value = argument(value, FLOAT, scope)
        return apply(function, _whole_type(value), value)

    return translate


def _whole_type(value: TypedValue) -> SqlType:
    """Return the type of a rounded number: a decimal without places; other types stay."""
    kind = value.type
    return SqlType("decimal", kind.precision, 0) if kind.kind == "decimal" else kind


def _translate_log(node: Any, scope: Scope) -> TypedValue:
    """Translate LOG of a base and a number, or the common one."""
    values = [argument(value, FLOAT, scope) for value in cast_arguments(node, scope)]
    if len(values) == 1:
        return apply(numbers.logarithm_10, FLOAT, *values)
    named = source_of(scope.text, node).partition("(")[0].strip().lower()
    one = {"log2": numbers.logarithm_2, "log10": numbers.logarithm_10}.get(named)
    if one is not None:  # to sqlglot it is LOG of a base
        return apply(one, FLOAT, values[1])
    return apply(numbers.logarithm_of, FLOAT, *values)


def _product_by_name(symbol: str) -> Maker:
    """Return the maker of an operator that is called by name, such as `multiply(a, b)`."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        left, right = cast_arguments(node, scope)
        return calculate(symbol, left, right, node, scope)

    return translate


def _define_of_float(function: Any) -> Maker:
    return make_function(function, FLOAT, FLOAT)


def floored_quotient(one: float, other: float) -> float:
    """Return a whole number of times, rounded down, as a float."""
    return numbers.floor(numbers.quotient(one, other))  # type: ignore[no-any-return]


def floored_remainder(one: float, other: float) -> float:
    """Return the remainder of a floored division, with the sign of the divisor."""
    return one % other + 0.0 if other and not math.isinf(one) else math.nan


def _translate_isfinite(node: Any, scope: Scope) -> TypedValue:
    """Return isfinite() of a number; dates and times are finite."""
    (value,) = cast_arguments(node, scope, ANY)
    if value.type.kind in ("date", "timestamp", "timestamptz"):  # Python's are
        return apply(_true_of, BOOL, value)
    return make_function(math.isfinite, BOOL, FLOAT)(node, scope)


def _true_of(value: Any) -> bool:
    """Return True for any value."""
    return True


def _translate_bit_count(node: Any, scope: Scope) -> TypedValue:
    (value,) = cast_arguments(node, scope, INT)
    return apply(numbers.bits, INT, value, literal_value(8 * (value.type.size or 8)))


def _translate_abs(node: Any, scope: Scope) -> TypedValue:
    (value,) = cast_arguments(node, scope, ANY)
    if is_null(value):
        return NULL_VALUE
    is_int, is_duckdb = value.type.kind == "int", scope.dialect.name == "duckdb"
    made = apply(numbers.absolute if is_duckdb and not is_int else abs, value.type, value)
    return check_range(made) if is_int and is_duckdb else made


def even(value: float) -> float:
    """Return the even number next to a number, away from zero; NaN and infinities as they are."""
    if not math.isfinite(value):
        return value
    return math.copysign(math.ceil(abs(value) / 2) * 2, value)


def _define_bit_operation(function: Any, *, sized: bool = False) -> Maker:
    """Make a shift, or XOR, of the type that both operands have in common."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        left, right = cast_arguments(node, scope, INT, INT)
        kind = integer_of(left, right, node)
        if is_null(left) or is_null(right):
            return TypedValue(NULL_VALUE.expr, kind, NULL_VALUE.nulls)
        most = [literal_value(range_of(kind)[1])] if sized and kind.size is not None else []
        return apply(function, kind, left, right, *most)

    return translate


def _divisor(function: Any) -> Maker:
    """Make GCD or LCM: of BIGINT, or of HUGEINT where one is among its arguments."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        values = cast_arguments(node, scope, INT, INT)
        if any(map(is_null, values)):
            return NULL_VALUE
        sizes = [v.type.size for v in values]
        is_free = any(v.type.size is None and not isinstance(v.expr, Constant) for v in values)
        size = None if is_free else 16 if 16 in sizes else 8
        kind = SqlType("int", size=size)
        return check_range(apply(function, kind, *values))

    return translate


NUMBER_FUNCTIONS: dict[str | type[exp.Expr], Maker] = {
    exp.Abs: _translate_abs,
    exp.Round: _round_number,
    exp.Trunc: _truncate_number,
    exp.Ceil: _to_whole(numbers.ceiling),
    exp.Floor: _to_whole(numbers.floor),
    exp.Sign: make_function(numbers.sign, INT),
    exp.Sqrt: _define_of_float(numbers.square_root),
    exp.Cbrt: _define_of_float(numbers.cube_root),
    exp.Exp: _define_of_float(numbers.exponential),
    exp.Ln: _define_of_float(numbers.logarithm),
    exp.Log: _translate_log,
    exp.Pow: make_function(numbers.power, FLOAT, FLOAT, FLOAT),
    exp.Pi: lambda node, scope: literal_value(math.pi),
    exp.Sin: _define_of_float(numbers.Total(math.sin)),
    exp.Cos: _define_of_float(numbers.Total(math.cos)),
    exp.Tan: _define_of_float(numbers.Total(math.tan)),
    exp.Asin: _define_of_float(numbers.Total(math.asin)),
    exp.Acos: _define_of_float(numbers.Total(math.acos)),
    exp.Atan: _define_of_float(math.atan),
    exp.Atan2: make_function(math.atan2, FLOAT, FLOAT, FLOAT),
    exp.Sinh: _define_of_float(numbers.Total(math.sinh)),
    exp.Cosh: _define_of_float(numbers.Total(math.cosh)),
    exp.Tanh: _define_of_float(math.tanh),
    exp.Degrees: _define_of_float(math.degrees),
    exp.Radians: _define_of_float(math.radians),
    exp.Factorial: make_function(numbers.factorial, SqlType("int", size=16), INT),
    exp.IsNan: make_function(math.isnan, BOOL, FLOAT),
    exp.IsInf: make_function(math.isinf, BOOL, FLOAT),
    exp.BitwiseLeftShift: _define_bit_operation(numbers.shifted_left, sized=True),
    exp.BitwiseRightShift: _define_bit_operation(numbers.shifted_right, sized=True),
    exp.BitwiseXor: _define_bit_operation(int.__xor__),
    "isfinite": _translate_isfinite,
    "gcd": _divisor(math.gcd),
    "lcm": _divisor(math.lcm),
    "even": make_function(even, FLOAT, FLOAT),
    "fdiv": make_function(floored_quotient, FLOAT, FLOAT, FLOAT),
    "fmod": make_function(floored_remainder, FLOAT, FLOAT, FLOAT),
    "bit_count": _translate_bit_count,
    "add": _product_by_name("+"),
    "subtract": _product_by_name("-"),
    "multiply": _product_by_name("*"),
    "log10": _define_of_float(numbers.logarithm_10),
    "log2": _define_of_float(numbers.logarithm_2),
}
