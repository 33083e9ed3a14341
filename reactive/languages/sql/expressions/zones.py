"""Instants (TIMESTAMPTZ) with values without a zone: casts, operators, functions, comparisons.

    t >= '2024-10-27 02:30+01'       the text as an instant; one without an offset is in the zone of
                                     the database
    t = naive_column                 refused: `naive_column AT TIME ZONE 'UTC'` says which instant
    extract(hour from t)             the hour of the local time in that zone
    t + interval '1 day'             by the calendar of that zone

A field that is declared as `datetime` (`MOMENT`) may hold either; a constant that it is compared
with is then a timestamp or an instant, as the value is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.errors import PlanError
from optimizer.expr import NONE, Attribute, Call, Conditional, Constant, Operation, conjunction
from reactive.languages.sql.runtime import arrays, intervals
from reactive.languages.sql.runtime.intervals import unit_named
from reactive.languages.sql.terms.errors import take
from reactive.languages.sql.terms.types import (
    FLOAT,
    INSTANT,
    INT,
    INTERVAL,
    MOMENT,
    TEXT,
    TIMESTAMP,
    SqlType,
    sql_name,
)
from reactive.languages.sql.terms.values import TypedValue, callee, is_simple, literal_value

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

Applied = Callable[..., TypedValue]
"""`casts.applied`."""
Cast = Callable[..., TypedValue]
"""`casts.cast`."""
OF_TIME = frozenset({"timestamp", "timestamptz", "date"})


def is_zoned(value: TypedValue) -> bool:
    """Return True if the value has a zone, or may have one."""
    return value.type.kind == "timestamptz" or value.type == MOMENT


def function_of(of: SqlType, to: SqlType, zone: str) -> tuple[Any, tuple[Any, ...]] | None:
    """Return the function that casts from or to an instant, and its further arguments.

    The function is None if the cast leaves the value as it is. Return None, in place of both, if
    neither type is an instant, or if there is no such cast.
    """
    if to.kind == "timestamptz":
        if of.kind not in ("text", "any", "null", *OF_TIME):
            return None
        made = {"text": arrays.read, "date": arrays.aware, "timestamp": arrays.aware}.get(of.kind)
        return (made, (zone,) if made else ())
    if of.kind != "timestamptz" and of != MOMENT:
        return None
    found = {
        "timestamp": arrays.naive,
        "date": arrays.date,
        "time": arrays.time,
        "text": arrays.text,
    }.get(to.kind)
    return None if found is None or to == MOMENT else (found, (zone,))


# Comparisons.


def agreed(
    node: exp.Expr | None,
    scope: Scope,
    values: tuple[TypedValue, ...],
    cast: Cast,
    applied: Applied,
) -> tuple[TypedValue, ...]:
    """Return values converted to instants, if some are, so that they can be compared.

    Raises
    ------
    PlanError: one is a timestamp without a zone and not a constant, also as an element of an array.
    """
    nested = [value for value in values if value.type.items and not is_constant(value)]
    naive = _naive_inside([value.type for value in nested])
    if naive is not None:
        raise _without_zone(node, scope, TypedValue(nested[0].expr, naive))
    if any(value.type.kind == "timestamptz" for value in values):
        return tuple([_as_instant(node, scope, value, cast, applied) for value in values])
    known = next((value for value in values if value.type == MOMENT), None)
    if known is None:
        return values
    return tuple([_read_beside_zone(known, value, scope, cast) for value in values])


def _naive_inside(kinds: Sequence[SqlType]) -> SqlType | None:
    """Return the type of times without a zone where other arrays or structs have instants.

    Return None if there is none.
    """
    for place in range(max([len(kind.items) for kind in kinds], default=0)):
        items = [kind.items[place] for kind in kinds if place < len(kind.items)]
        if any(item.kind == "timestamptz" for item in items):
            naive = [item for item in items if item.kind in ("date", "timestamp")]
            found = next((item for item in naive if item != MOMENT), None)
        else:
            found = _naive_inside(items)
        if found is not None:
            return found
    return None


def _as_instant(
    node: exp.Expr | None, scope: Scope, value: TypedValue, cast: Cast, applied: Applied
) -> TypedValue:
    """Return a value to compare with instants; refuse a time without a zone, if not constant."""
    if value.type == MOMENT:
        return applied(arrays.zoned, INSTANT, value)
    if value.type.kind not in (*OF_TIME, "text") or value.type.kind == "timestamptz":
        return value
    if is_constant(value):
        return cast(value, INSTANT, scope)
    if value.type.kind == "text":
        return value
    raise _without_zone(node, scope, value)


def check_alike(node: exp.Expr | None, scope: Scope, one: TypedValue, other: TypedValue) -> None:
    """Refuse an instant and a time without a zone that are compared as they are.

    Raises
    ------
    PlanError: one is an instant, and the other one is none.
    """
    kinds = {one.type.kind, other.type.kind}
    if "timestamptz" in kinds and kinds & {"timestamp", "date", "text"}:
        naive = other if one.type.kind == "timestamptz" else one
        if naive.type != MOMENT:
            raise _without_zone(node, scope, naive)


def _without_zone(node: exp.Expr | None, scope: Scope, value: TypedValue) -> PlanError:
    """Return the error that a time without a zone is compared with instants."""
    return scope.error(
        node,
        f"a {sql_name(value.type)} without a time zone is compared with instants (TIMESTAMPTZ)",
        "say which instant it is: ... AT TIME ZONE 'UTC'; or cast the instant to it",
    )


def _read_beside_zone(known: TypedValue, value: TypedValue, scope: Scope, cast: Cast) -> TypedValue:
    """Return a constant as a timestamp or as an instant, as the `known` value is at run time.

    Other values, and constants of other types, are unchanged.
    """
    if value.type.kind not in ("text", "date", "timestamp") or not is_constant(value):
        return value
    plain, instant = (cast(value, kind, scope).expr for kind in (TIMESTAMP, INSTANT))
    if not (isinstance(plain, Constant) and isinstance(instant, Constant)):
        return TypedValue(plain, TIMESTAMP)  # it is no time
    zone = Operation("is not", (Attribute(known.expr, "tzinfo"), NONE))
    if not is_simple(known.expr):
        return TypedValue(Call(callee(either), (known.expr, plain, instant)), TIMESTAMP)
    there = [Operation("is not", (leaf, NONE)) for leaf in known.nulls]
    return TypedValue(Conditional(conjunction((*there, zone)), instant, plain), TIMESTAMP)


def either(known: Any, plain: Any, instant: Any) -> Any:
    """Return `instant` if the `known` value has a zone, else `plain`."""
    return plain if known is None or known.tzinfo is None else instant


def is_constant(value: TypedValue) -> bool:
    """Return True if the value is a constant that is not NULL."""
    return isinstance(value.expr, Constant) and not value.nulls


# Operators.


def shift_instants(
    symbol: str, left: TypedValue, right: TypedValue, node: exp.Expr, scope: Scope, applied: Applied
) -> TypedValue | None:
    """Return `+` or `-` of instants; None if no operand is one. Refuse a time without a zone."""
    if not (is_zoned(left) or is_zoned(right)):
        return None
    kinds = (left.type.kind, right.type.kind)
    if symbol == "+" and kinds[0] == "interval":
        left, right, kinds = right, left, kinds[::-1]
    zone = literal_value(scope.dialect.timezone)
    if kinds[1] == "interval" and symbol in ("+", "-") and kinds[0] in OF_TIME:
        functions = {"+": arrays.later, "-": arrays.earlier}
        if scope.dialect.name == "duckdb":
            functions = {"+": arrays.later_of_duckdb, "-": arrays.earlier_of_duckdb}
        return applied(functions[symbol], left.type, left, right, zone)
    if symbol == "-" and set(kinds) <= OF_TIME:
        if kinds[0] != kinds[1] and "timestamptz" in kinds:
            naive = left if kinds[1] == "timestamptz" else right
            if naive.type != MOMENT:
                raise scope.error(
                    node,
                    f"there is no - for {sql_name(left.type)} and {sql_name(right.type)}",
                    "say which instant the timestamp is: ... AT TIME ZONE 'UTC'",
                )
        if "date" not in kinds:
            if scope.dialect.name == "duckdb" and scope.dialect.timezone.upper() != "UTC":
                return applied(arrays.between_of_duckdb, INTERVAL, left, right, zone)
            return applied(arrays.between, INTERVAL, left, right)
    return None


# Functions.

LOCAL: frozenset[Any] = frozenset(
    {exp.Year, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfYear}
    | {exp.Hour, exp.Minute, exp.Second, exp.Week, exp.WeekOfYear, exp.Quarter, exp.Extract}
    | {exp.Dayname, exp.Monthname, exp.LastDay, exp.TimeToStr, exp.DateDiff, exp.Date}
    | {exp.TsOrDsToDate, "date_part", "datepart", "weekday", "century", "decade", "era"}
    | {"millennium", "isoyear", "yearweek", "julian", "date_sub", "datesub", "to_char"}
)
"""Functions of the local time in the database's zone."""
OF_EPOCH: frozenset[Any] = frozenset({exp.TimeToUnix, "epoch", "epoch_ms", "epoch_us", "epoch_ns"})
"""Functions of the time since 1970 in UTC."""
OWN: frozenset[Any] = frozenset(
    {exp.TimestampTrunc, exp.DateTrunc, exp.AtTimeZone, exp.UnixToTime, exp.DateBin}
    | {exp.DateAdd, exp.DateSub, exp.DateDiff, "timezone", "make_timestamptz", "time_bucket"}
    | {"age"}
)


def call_on_instants(
    node: Any, scope: Scope, maker: Any, cast: Cast, applied: Applied
) -> TypedValue | None:
    """Return the value of a call that has instants for arguments, or gives one; else None.

    `maker` translates the call on other arguments; None if the dialect has no such function.
    """
    key = node.name.lower() if isinstance(node, exp.Anonymous) else type(node)
    if key in OWN:
        found = _translate_by_own_rule(key, node, scope, cast, applied)
        if found is not None:
            return found
    if maker is None or not (key in LOCAL or key in OF_EPOCH):
        return None
    return _as_local(key, node, scope, maker, applied)


def _as_local(key: Any, node: Any, scope: Scope, maker: Any, applied: Applied) -> TypedValue:
    """Translate a call on instants as the call on their local times in the database's zone.

    Functions and units of the time since 1970 get the local times in UTC. The parts `timezone...`
    of an instant are those of its offset in the database's zone.

    Parameters
    ----------
    key: the name of the function, or the class of the node.
    maker: translates the call on timestamps.
    """
    unit = _unit_of_extract(key, node)
    is_of_epoch = key in OF_EPOCH or unit == "epoch"
    zone = "UTC" if is_of_epoch else scope.dialect.timezone
    kept: dict[int, TypedValue] = {}
    try:
        for each in _time_arguments(node):
            value = scope.value(each)
            if unit.startswith("timezone") and is_zoned(value):
                return applied(
                    arrays.part_of_zone, INT, literal_value(unit), value, literal_value(zone)
                )
            if is_zoned(value):
                value = applied(arrays.naive, TIMESTAMP, value, literal_value(zone))
            if id(each) not in scope.values:
                kept[id(each)] = scope.values[id(each)] = value
        made: TypedValue = maker(node, scope)
        return made
    finally:
        for known in kept:
            scope.values.pop(known, None)


def _unit_of_extract(key: Any, node: Any) -> str:
    """Return the part that EXTRACT or date_part() asks for; empty for other calls."""
    if key is exp.Extract:
        return str(node.this.name).lower()
    if key in ("date_part", "datepart") and node.expressions:
        return str(node.expressions[0].name).lower()
    return ""


def _time_arguments(node: Any) -> list[exp.Expr]:
    """Return the arguments of a call that may be times; units and intervals are left out."""
    if isinstance(node, exp.Extract):
        return [node.expression]
    given = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.expression]
    return [each for each in given if isinstance(each, exp.Expr) and not _is_unit(each)]


def _is_unit(node: Any) -> bool:
    return isinstance(node, exp.Literal | exp.Var | exp.Interval)


def _translate_by_own_rule(
    key: Any, node: Any, scope: Scope, cast: Cast, applied: Applied
) -> TypedValue | None:
    """Return the value of a call that has its own rule for instants; None if none applies."""
    zone = literal_value(scope.dialect.timezone)
    if key is exp.AtTimeZone:
        return _translate_at_time_zone(
            scope.value(node.this), scope.value(node.args["zone"]), node, scope, cast, applied
        )
    if key == "timezone" and len(node.expressions) == 2:
        other, value = (scope.value(each) for each in node.expressions)
        return _translate_at_time_zone(value, other, node, scope, cast, applied)
    if key == "make_timestamptz" and len(node.expressions) in (6, 7):
        return _make_instant(node, scope, cast, applied)
    if key is exp.UnixToTime:
        return _of_seconds(node, scope, applied)
    if key in (exp.TimestampTrunc, exp.DateTrunc):
        return _truncate_instant(node, scope, applied)
    if key is exp.DateBin:
        return _bucket_of_instant(node, scope, cast, applied)
    if key == "age" and len(node.expressions) == 2:
        values = [scope.value(each) for each in node.expressions]
        return applied(arrays.age, INTERVAL, *values, zone) if all(map(is_zoned, values)) else None
    if key is exp.DateDiff and (unit := _unit_below_a_day(node)):
        values = [scope.value(each) for each in (node.expression, node.this)]
        if all(map(is_zoned, values)):
            return applied(arrays.boundaries, INT, literal_value(unit), *values, zone)
    if key in (exp.DateAdd, exp.DateSub) and node.args.get("unit") is None:
        value = scope.value(node.this)
        if is_zoned(value):
            symbol = "+" if key is exp.DateAdd else "-"
            return shift_instants(symbol, value, scope.value(node.expression), node, scope, applied)
    return None


def _bucket_of_instant(node: Any, scope: Scope, cast: Cast, applied: Applied) -> TypedValue | None:
    """Return the bucket of an instant, from an offset or an origin on, or as a zone shows it."""
    width, value = scope.value(node.this), scope.value(node.expression)
    zone, third = literal_value(scope.dialect.timezone), node.args.get("unit")
    if not is_zoned(value):
        return None
    if third is None:
        return applied(arrays.bucket, value.type, width, value, zone)
    take(third)  # a zone is read as the name of a unit, in capitals
    other = literal_value(third.name) if isinstance(third, exp.Var) else scope.value(third)
    if other.type.kind == "interval":
        earlier = shift_instants("-", value, other, node, scope, applied)
        assert earlier is not None
        begin = applied(arrays.bucket, value.type, width, earlier, zone)
        return shift_instants("+", begin, other, node, scope, applied)
    if other.type.kind == "text":
        return applied(
            arrays.bucket_in, value.type, width, value, _zone(other, node, scope, applied), zone
        )
    return applied(arrays.bucket, value.type, width, value, zone, cast(other, INSTANT, scope))


def _unit_below_a_day(node: Any) -> str:
    """Return the unit of a call if it is an hour or less, else an empty text."""
    unit = unit_named(node.args["unit"].name) if node.args.get("unit") else ""
    return unit if unit in arrays.BELOW_A_DAY else ""


def _make_instant(node: Any, scope: Scope, cast: Cast, applied: Applied) -> TypedValue:
    """Translate MAKE_TIMESTAMPTZ, in a zone that is named or in that of the database."""
    kinds = (*[INT] * 5, FLOAT, TEXT)
    given = [cast(scope.value(e), k, scope) for e, k in zip(node.expressions, kinds, strict=False)]
    zone = literal_value(scope.dialect.timezone)
    other = zone if len(given) < 7 else _zone(given.pop(), node, scope, applied)
    return applied(arrays.of_parts, INSTANT, *given, other, zone)


def _zone(other: TypedValue, node: Any, scope: Scope, applied: Applied) -> TypedValue:
    """Return the name of a zone, as the dialect reads it.

    Raises
    ------
    PlanError: there is no such zone.
    """
    is_postgres = scope.dialect.name == "postgres"
    if not is_constant(other):
        return applied(arrays.posix, TEXT, other) if is_postgres else other
    assert isinstance(other.expr, Constant)
    name = other.expr.value
    if scope.dialect.name == "duckdb" and name[:1] in ("+", "-"):
        raise scope.error(node, f"duckdb has no time zone {name!r}", "name one, as 'Europe/Berlin'")
    check_zone(name, node, scope)
    return literal_value(arrays.posix(name) if is_postgres else name)


def _of_seconds(node: Any, scope: Scope, applied: Applied) -> TypedValue | None:
    """Return the instant of seconds, or an instant in milliseconds; None for other arguments."""
    value = scope.value(node.this)
    scale = node.args.get("scale")
    if scale is not None and str(scale.this) == "3" and is_zoned(value):
        return applied(arrays.epoch_milliseconds, INT, value)
    if scale is None and value.type.kind not in ("text", *OF_TIME):
        return applied(arrays.of_seconds, INSTANT, value, literal_value(scope.dialect.timezone))
    return None


def _truncate_instant(node: Any, scope: Scope, applied: Applied) -> TypedValue | None:
    """Return an instant truncated to a unit in its zone; None for other values and units."""
    value, other = scope.value(node.this), node.args.get("zone")
    unit = unit_named(node.args["unit"].name)
    if not is_zoned(value) or unit not in {*intervals.LENGTHS, *intervals.MONTHS}:
        return None
    zone = literal_value(scope.dialect.timezone)
    if other is not None:
        zone = _zone(scope.value(other), node, scope, applied)
    function = arrays.truncated_of_duckdb if scope.dialect.name == "duckdb" else arrays.truncated
    return applied(function, value.type, literal_value(unit), value, zone)


def _translate_at_time_zone(
    value: TypedValue, other: TypedValue, node: Any, scope: Scope, cast: Cast, applied: Applied
) -> TypedValue:
    """Translate AT TIME ZONE: of an instant what clocks show, of a timestamp the instant.

    Raises
    ------
    PlanError: the value is no time, the zone no text; or there is no such zone.
    """
    if scope.dialect.name == "postgres":
        if other.type.kind in ("interval", "time"):
            other = applied(arrays.offset_of, TEXT, cast(other, INTERVAL, scope))
        if value.type.kind == "text" and not is_constant(value):
            raise scope.error(node, "postgres has no AT TIME ZONE for text", "cast it to timestamp")
        if other.type.kind == "null" and value.type.kind in OF_TIME:
            is_naive = value.type.kind == "timestamp"
            return TypedValue(NONE, INSTANT if is_naive else TIMESTAMP, (NONE,))
    if other.type.kind != "text" or value.type.kind not in (*OF_TIME, "text", "null", "any"):
        raise scope.error(
            node,
            f"AT TIME ZONE takes a time and the name of a zone, not {sql_name(value.type)} and "
            f"{sql_name(other.type)}",
        )
    other = _zone(other, node, scope, applied)
    if value.type.kind == "text":
        text, value = value, cast(value, INSTANT, scope)
        if scope.dialect.name == "postgres" and not is_constant(value):
            raise scope.error(node, f"cannot read {text.expr} as a time with a zone")
    if value.type.kind == "date":
        value = cast(value, INSTANT if scope.dialect.name == "postgres" else TIMESTAMP, scope)
    zone = literal_value(scope.dialect.timezone)
    if value.type == MOMENT:
        return applied(arrays.turned, MOMENT, value, other, zone)
    if value.type.kind == "timestamptz":
        return applied(arrays.shown, TIMESTAMP, value, other)
    return applied(arrays.in_session, INSTANT, value, other, zone)


def check_zone(name: str, node: Any, scope: Scope) -> None:
    """Refuse a zone that there is not."""
    try:
        arrays.shown(arrays.read("2000-01-01", "UTC"), name)
    except ValueError as error:
        raise scope.error(node, str(error), "name one as 'Europe/Berlin', or '+02'") from None
