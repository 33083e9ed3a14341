"""The functions of dates, timestamps and intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Constant
from reactive.languages.sql.expressions.arithmetic import combined
from reactive.languages.sql.expressions.casts import applied, argument
from reactive.languages.sql.functions.calls import Maker, arguments, given, of
from reactive.languages.sql.runtime import intervals, moments, times
from reactive.languages.sql.terms.types import (
    ANY,
    DATE,
    FLOAT,
    INT,
    INTERVAL,
    TEXT,
    TIME,
    TIMESTAMP,
    sql_name,
)
from reactive.languages.sql.terms.values import Value, literal

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

FRACTIONS = frozenset({"epoch", "julian"})


def extracted(unit: str, value: Value, node: exp.Expr, scope: Scope) -> Value:
    """A part of a time.

    Raises
    ------
    PlanError: there is no such part.
    """
    named = intervals.unit_named(unit)
    if named not in times.PARTS:
        raise scope.error(
            node, f"there is no part {unit!r} of a time{scope.nearest(named, times.PARTS)}"
        )
    if value.type.kind == "text":
        value = argument(value, TIMESTAMP, scope)
    has = {"interval": times.PARTS_OF_INTERVALS, "time": times.PARTS_OF_TIMES}
    if scope.dialect.name == "duckdb" and named not in has.get(value.type.kind, times.PARTS):
        raise scope.error(node, f"duckdb has no part {named!r} of {sql_name(value.type)}")
    kind = FLOAT if named in FRACTIONS else INT
    return applied(times.extracted, kind, literal(named), value)


def _extract(node: Any, scope: Scope) -> Value:
    return extracted(node.this.name, scope.value(node.expression), node, scope)


def _named_part(unit: str) -> Maker:
    return lambda node, scope: extracted(unit, given(node, scope, ANY)[0], node, scope)


def _date_part(node: Any, scope: Scope) -> Value:
    unit, value = arguments(node)
    return extracted(unit.name, scope.value(value), node, scope)


def unit_of(node: Any, scope: Scope, unit: str) -> Value:
    """The unit of a function as a constant.

    Raises
    ------
    PlanError: there is no such unit.
    """
    named = intervals.unit_named(unit)
    known = {**intervals.LENGTHS, **intervals.MONTHS}
    if named not in known:
        raise scope.error(node, f"there is no unit of time {unit!r}{scope.nearest(named, known)}")
    return literal(named)


def _truncated(node: Any, scope: Scope) -> Value:
    unit = unit_of(node, scope, node.args["unit"].name)
    value = scope.value(node.this)
    if value.type.kind == "interval":
        return applied(times.truncated_interval, INTERVAL, unit, value)
    if value.type.kind not in ("date", "timestamp"):
        value = argument(value, TIMESTAMP, scope)
    return applied(times.truncated, TIMESTAMP, unit, value)


def _boundaries(node: Any, scope: Scope) -> Value:
    """DATEDIFF, of which sqlglot puts the end first."""
    unit = unit_of(node, scope, node.args["unit"].name if node.args.get("unit") else "day")
    end, begin = (_moment(scope.value(each), scope) for each in (node.this, node.expression))
    return applied(times.boundaries, INT, unit, begin, end)


def _moment(value: Value, scope: Scope) -> Value:
    return value if value.type.kind in ("date", "timestamp") else argument(value, TIMESTAMP, scope)


def interval(node: Any, scope: Scope) -> Value:
    """INTERVAL 3 DAY, INTERVAL '1 day 2 hours', INTERVAL (x) HOUR."""
    amount = node.this
    if node.args.get("unit") is None:
        return argument(scope.value(amount), INTERVAL, scope)
    unit = unit_of(node, scope, node.args["unit"].name)
    if isinstance(amount, exp.Literal):
        return literal(intervals.interval(float(amount.this), str(_constant(unit))))
    value = scope.value(amount)
    if isinstance(value.expr, Constant) and not value.nulls:
        return literal(intervals.interval(float(value.expr.value), str(_constant(unit))))
    return applied(intervals.interval, INTERVAL, argument(value, FLOAT, scope), unit)


def _constant(value: Value) -> Any:
    assert isinstance(value.expr, Constant)
    return value.expr.value


def _amount_of(unit: str) -> Maker:
    def made(node: Any, scope: Scope) -> Value:
        value = scope.value(arguments(node)[0])
        if isinstance(value.expr, Constant) and not value.nulls:
            return literal(intervals.interval(float(value.expr.value), unit))
        return applied(intervals.interval, INTERVAL, argument(value, FLOAT, scope), literal(unit))

    return made


def _added(symbol: str) -> Maker:
    """DATE_ADD and the like."""

    def made(node: Any, scope: Scope) -> Value:
        by = node.expression
        amount = scope.value(by)
        if node.args.get("unit") is not None and amount.type.kind != "interval":
            amount = interval(exp.Interval(this=by, unit=node.args["unit"]), scope)
        return combined(symbol, _moment(scope.value(node.this), scope), amount, node, scope)

    return made


def _bucket(node: Any, scope: Scope) -> Value:
    value = _moment(scope.value(node.expression), scope)
    return applied(times.bucket, value.type, scope.value(node.this), value)


def _now(node: Any, scope: Scope) -> Value:
    raise scope.error(
        node,
        f"{node.sql()} is another time at each change, which a live query does not notice",
        "give it: db.sql('... :now ...', now=datetime.now())",
    )


def _seconds(node: Any, scope: Scope) -> Value:
    """TO_TIMESTAMP of seconds, EPOCH_MS of milliseconds, or their opposite."""
    value = scope.value(node.this)
    scale = node.args.get("scale")
    if scale is None:
        return applied(times.timestamp_of_seconds, TIMESTAMP, value)
    if scale.name == "6":
        return applied(times.timestamp_of_microseconds, TIMESTAMP, value)
    if scale.name != "3":
        raise scope.error(node, f"a time in units of 10^-{scale.name} seconds is not supported")
    if value.type.kind in ("date", "timestamp"):
        return applied(times.epoch_milliseconds, INT, value)
    return applied(times.timestamp_of_milliseconds, TIMESTAMP, value)


def _to_date(node: Any, scope: Scope) -> Value:
    return argument(scope.value(arguments(node)[0]), DATE, scope)


def _to_timestamp(node: Any, scope: Scope) -> Value:
    return argument(scope.value(arguments(node)[0]), TIMESTAMP, scope)


def _between(node: Any, scope: Scope) -> Value:
    values = [_moment(value, scope) for value in given(node, scope)]
    if len(values) != 2:
        return _now(node, scope)
    return applied(times.age, INTERVAL, *values)


def _date_diff_by_name(node: Any, scope: Scope) -> Value:
    """DATE_SUB: how many whole units there are between."""
    unit, begin, end = arguments(node)
    made = unit_of(node, scope, unit.name)
    return applied(times.whole_units, INT, made, scope.value(begin), scope.value(end))


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


def _date(node: Any, scope: Scope) -> Value:
    """DATE of one argument is a cast; SQLite's makes texts, and takes modifiers."""
    if scope.dialect.name == "sqlite" or len(arguments(node)) != 1:
        raise scope.error(node, "date() is not supported here", "write CAST(x AS DATE)")
    return argument(scope.value(arguments(node)[0]), DATE, scope)


TABLE: dict[str | type[exp.Expr], Maker] = {
    exp.Date: _date,
    **PARTS,
    exp.Extract: _extract,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.DateDiff: _boundaries,
    exp.Interval: interval,
    exp.DateAdd: _added("+"),
    exp.DateSub: _added("-"),
    exp.LastDay: of(times.last_day, DATE, ANY),
    exp.DateFromParts: of(times.date_of_parts, DATE, INT, INT, INT),
    exp.TimestampFromParts: of(times.timestamp_of_parts, TIMESTAMP, INT, INT, INT, INT, INT, FLOAT),
    exp.TimeToStr: lambda node, scope: applied(
        moments.written,
        TEXT,
        _moment(scope.value(node.this), scope),
        scope.value(node.args["format"]),
    ),
    exp.StrToTime: of(moments.read, TIMESTAMP, TEXT, TEXT),
    exp.UnixToTime: _seconds,
    exp.DateBin: _bucket,
    exp.Dayname: of(times.day_name, TEXT, ANY),
    exp.Monthname: of(times.month_name, TEXT, ANY),
    exp.CurrentDate: _now,
    exp.CurrentTimestamp: _now,
    exp.CurrentTime: _now,
    exp.Localtime: _now,
    exp.Localtimestamp: _now,
    exp.Date: _to_date,
    exp.Timestamp: _to_timestamp,
    exp.TsOrDsToTimestamp: _to_timestamp,
    exp.TsOrDsToDate: _to_date,
    exp.ToDays: _amount_of("day"),
    "date_part": _date_part,
    "datepart": _date_part,
    "date_sub": _date_diff_by_name,
    "datesub": _date_diff_by_name,
    "age": _between,
    **dict.fromkeys(("now", "today", "get_current_timestamp", "transaction_timestamp"), _now),
    "epoch_ms": of(times.epoch_milliseconds, INT, TIMESTAMP),
    "epoch_us": of(times.epoch_microseconds, INT, TIMESTAMP),
    "epoch_ns": of(times.epoch_nanoseconds, INT, TIMESTAMP),
    exp.TimeFromParts: of(times.time_of_parts, TIME, INT, INT, FLOAT),
    **{f"to_{unit}": _amount_of(intervals.unit_named(unit)) for unit in ("quarters", "centuries")},
    "to_millennia": _amount_of("millennium"),
    **{f"to_{unit}s": _amount_of(unit) for unit in (*intervals.LENGTHS, "month", "year", "decade")},
}
