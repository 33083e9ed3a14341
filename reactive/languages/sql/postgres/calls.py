"""Forms of functions by the types of their arguments, and the functions of times.

A function has several forms, by the types of its arguments.

    "abs": forms(Form(abs, None, INT), Form(numeric_absolute, DECIMAL, DECIMAL), ...)

The call uses the form whose types equal those of the arguments, or the first form to whose types
they convert implicitly: an integer to a numeric, a numeric to a float, a date to a timestamp, a
text constant to any type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Call, constant
from optimizer.record import record
from reactive.languages.sql.expressions.casts import apply, argument, cast, maybe
from reactive.languages.sql.functions import times as common_times
from reactive.languages.sql.postgres import (
    formats,
    moment_reader,
    moments,
    number_formats,
    number_reader,
    times,
)
from reactive.languages.sql.postgres.numbers import RANGES
from reactive.languages.sql.terms.calls import Maker, arguments, function_name
from reactive.languages.sql.terms.errors import nearest
from reactive.languages.sql.terms.types import (
    ANY,
    BOOL,
    DATE,
    DECIMAL,
    FLOAT,
    INSTANT,
    INT,
    INTERVAL,
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
    is_null,
    literal_value,
    nullable_value,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope


IMPLICIT = {
    "int": ("int", "decimal", "float"),
    "decimal": ("decimal", "float"),
    "date": ("date", "timestamp"),
    "time": ("time", "interval"),
}
"""Kinds that a value of a kind is implicitly cast to where no form fits, in this order."""
NAMES = {
    "int": "integer",
    "float": "double precision",
    "decimal": "numeric",
    "bool": "boolean",
    "bytes": "bytea",
    "array": "array",
    "struct": "record",
}


@record
class Form:
    """A function of arguments of some types; `result` None is the type of the first argument.

    `optional` arguments may be left out; `nullable`: it may give None; `asks_null`: it is called
    of None, too; `many`: the last parameter stands for any number of arguments.
    """

    function: Callable[..., Any]
    result: SqlType | None
    parameters: tuple[SqlType, ...] = ()
    optional: int = 0
    nullable: bool = False
    asks_null: bool = False
    many: bool = False
    sized: bool = False

    def kinds(self, count: int) -> tuple[SqlType, ...] | None:
        """Return the types of `count` arguments; None if it does not take as many."""
        most = len(self.parameters)
        if self.many and count >= most:
            return (*self.parameters, *[self.parameters[-1]] * (count - most))
        return self.parameters[:count] if most - self.optional <= count <= most else None


def form(
    function: Callable[..., Any], result: SqlType | None, *parameters: SqlType, **more: Any
) -> Form:
    """Return a form with its parameters behind the result."""
    return Form(function, result, parameters, **more)


def define_form(
    function: Callable[..., Any], result: SqlType | None, *parameters: SqlType, **more: Any
) -> Maker:
    """Return the maker of a function that has one form."""
    return forms(form(function, result, *parameters, **more))


def forms(*given: Form) -> Maker:
    """Return the maker of a function that has several forms."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        return call_form(given, arguments(node), node, scope)

    return translate


def call_form(
    given: Sequence[Form], nodes: Sequence[exp.Expr], node: Any, scope: Scope, name: str = ""
) -> TypedValue:
    """Return the value of the form that fits the arguments.

    Raises
    ------
    PlanError: none does.
    """
    values = [scope.value(each) for each in nodes]
    literals = [is_literal(each) for each in nodes]
    found = choose_form(given, values, literals)
    if found is None:
        kinds = ", ".join(map(kind_name, values))
        known = name or function_name(node)
        raise scope.error(
            node, f"postgres has no {known}({kinds})", "cast its arguments to the types it takes"
        )
    return apply_form(found, values, scope)


def apply_form(found: Form, values: Sequence[TypedValue], scope: Scope) -> TypedValue:
    """Return the call of a form with values that fit it; NULL if one is, but for `asks_null`."""
    kinds = found.kinds(len(values))
    assert kinds is not None
    made = [
        _cast_unless_fits(value, kind, scope) for value, kind in zip(values, kinds, strict=True)
    ]
    if found.asks_null:
        expr = Call(callee(found.function), tuple(map(as_optional, made)))
        kind = found.result or made[0].type
        return nullable_value(expr, kind) if found.nullable else TypedValue(expr, kind)
    if any(map(is_null, values)):
        return TypedValue(NULL_VALUE.expr, found.result or made[0].type, NULL_VALUE.nulls)
    kind = found.result or made[0].type
    if found.sized:
        kind = SqlType("int", size=_size(made))
    result = (maybe if found.nullable else apply)(found.function, kind, *made)
    if found.sized and kind.size is not None:
        return apply(RANGES[kind.size], kind, result)
    return result


def _size(values: Sequence[TypedValue]) -> int | None:
    """Return the greatest size of the integers among the values; None if one is not known."""
    sizes = [value.type.size for value in values if value.type.kind == "int"]
    return None if None in sizes else max(size for size in sizes if size is not None)


def _cast_unless_fits(value: TypedValue, kind: SqlType, scope: Scope) -> TypedValue:
    """Return a value cast to a type, unless it is of its kind or the type is any."""
    if kind.kind == "any" or (kind.kind == value.type.kind and kind.kind != "array"):
        return value
    return argument(value, kind, scope)


def choose_form(
    given: Sequence[Form], values: Sequence[TypedValue], literals: Sequence[bool]
) -> Form | None:
    """Return the form that fits values, where some are text constants; None if none does."""
    for exact in (True, False):
        for each in given:
            kinds = each.kinds(len(values))
            if kinds is not None and all(
                _fits(value, is_text, kind, exact=exact)
                for value, is_text, kind in zip(values, literals, kinds, strict=True)
            ):
                return each
    return None


def _fits(value: TypedValue, is_text: bool, kind: SqlType, *, exact: bool) -> bool:
    """Return True if an argument fits a type; `exact`: without a cast to another kind."""
    of = value.type
    if kind.kind == "any" or of.kind in ("null", "any"):
        return True
    if kind.kind == of.kind:
        return kind.kind != "int" or None in (kind.size, of.size) or of.size <= kind.size  # type: ignore[operator]
    if exact:
        return False
    return is_text or kind.kind in IMPLICIT.get(of.kind, ())


def fits(value: TypedValue, kind: SqlType) -> bool:
    """Return True if a value can be one of a type without a cast."""
    return _fits(value, False, kind, exact=False)


def is_literal(node: Any) -> bool:
    """Return True for a text constant, which may stand for a value of any type."""
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, exp.Literal) and node.is_string


def kind_name(value: TypedValue) -> str:
    """Return the name that Postgres gives to the type of a value."""
    return NAMES.get(value.type.kind, value.type.kind)


def constant_text(node: Any, scope: Scope) -> str | None:
    """Return the text of a constant argument; None of another."""
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


# The functions of times of Postgres, with TO_CHAR and TO_TIMESTAMP.

INT4, INT8 = SqlType("int", size=4), SqlType("int", size=8)


def _read_time_field(
    function: Any, kind: SqlType, name: str, value: TypedValue, node: Any, scope: Scope
) -> TypedValue:
    """Return a field of a time (EXTRACT, date_part()); refuse one that its type does not have."""
    named = times.field_name(name)
    if named not in times.FIELDS:
        near = nearest(named, times.FIELDS)
        raise scope.error(node, f"there is no field {name!r} of a time in postgres{near}")
    if value.type.kind == "date" and kind is FLOAT:
        value = argument(value, TIMESTAMP, scope)
    if value.type.kind not in ("date", "timestamp", "time", "interval", "any", "null"):
        raise scope.error(node, f"postgres has no fields of {kind_name(value)}", "cast it")
    is_wrong = (value.type.kind == "date" and named in times.OF_TIME - {"epoch"}) or (
        value.type.kind == "interval" and named not in times.OF_INTERVAL
    )
    if is_wrong or (value.type.kind == "time" and named not in times.OF_TIME):
        raise scope.error(node, f"postgres has no field {named!r} of {kind_name(value)}")
    return apply(function, kind, literal_value(named), value)


def _extract_field(node: Any, scope: Scope) -> TypedValue:
    value = scope.value(node.expression)
    return _read_time_field(times.extracted, DECIMAL, node.this.name, value, node, scope)


def _extract_float_field(node: Any, scope: Scope) -> TypedValue:
    """Return date_part() of a time; refuse a field that is not constant."""
    unit, value = arguments(node)
    name = constant_text(unit, scope)
    if name is None:
        raise scope.error(node, "the field of date_part() has to be a constant")
    return _read_time_field(times.field, FLOAT, name, scope.value(value), node, scope)


def _truncate_time(node: Any, scope: Scope) -> TypedValue:
    """Return date_trunc() of a time or an interval; refuse unknown units and other types."""
    unit, of = node.args.get("unit"), node.this
    name = None if unit is None else str(unit.name)
    named = "" if name is None else times.field_name(name)
    if named not in times.TRUNCATED:
        raise scope.error(
            node,
            f"there is no unit {name!r} of date_trunc() in postgres"
            f"{nearest(named, times.TRUNCATED)}",
        )
    value = scope.value(of)
    if value.type.kind == "interval":
        return apply(times.truncated_interval, INTERVAL, literal_value(named), value)
    if value.type.kind not in ("date", "timestamp", "any", "null"):
        raise scope.error(node, f"postgres has no date_trunc(text, {kind_name(value)})")
    return apply(times.truncated, TIMESTAMP, literal_value(named), value)


def _read_interval(node: Any, scope: Scope) -> TypedValue:
    """Translate INTERVAL '1 day', INTERVAL '90' MINUTE; refuse one that is not constant."""
    unit = node.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        raise scope.error(
            node, "an interval of postgres TO a field is not supported", "write the units out"
        )
    text = node.this
    if not isinstance(text, exp.Literal):
        raise scope.error(node, "an interval of postgres is a constant", "interval '1 day' * x")
    name = "second" if unit is None else str(unit.name).lower()
    given = str(text.this) if unit is None else f"{text.this} {name}"
    if unit is not None and not re.fullmatch(r"\s*[+-]?\d+\s*", str(text.this)):
        # `interval '1.5' month` is cut, `interval '1.5 months'` is not; they look alike here
        return _interval_as_written(given, node, scope)
    try:
        return literal_value(moments.interval(given))
    except (ValueError, ArithmeticError) as error:
        raise scope.error(node, f"cannot read an interval: {error}") from None


def _interval_as_written(given: str, node: Any, scope: Scope) -> TypedValue:
    """Return an interval with its unit inside the quotes; refuse one with the unit behind them."""
    text = str(node.this.this)
    inside = re.search(rf"'\s*{re.escape(text)}\s*[a-z]+\s*'", scope.text, re.IGNORECASE)
    if inside is None or re.search(rf"'\s*{re.escape(text)}\s*'", scope.text):
        raise scope.error(
            node,
            f"the interval {text!r} of postgres is cut to its unit",
            "put the unit into the quotes",
        )
    return literal_value(moments.interval(given))


def _age(node: Any, scope: Scope) -> TypedValue:
    """Return age() of two times; refuse other numbers of arguments: they would read the clock."""
    if len(arguments(node)) != 2:
        return common_times.refuse_clock(node, scope)
    return call_form(
        (form(times.age, INTERVAL, TIMESTAMP, TIMESTAMP),), arguments(node), node, scope
    )


def _is_finite(value: Any) -> bool:
    """Return True (ISFINITE), since values of Python are finite."""
    return True


def _make_interval(node: Any, scope: Scope) -> TypedValue:
    """Translate MAKE_INTERVAL, whose arguments may have names; refuse unknown names."""
    names = ("years", "months", "weeks", "days", "hours", "mins", "secs")
    parts: list[Any] = [literal_value(0)] * 7
    nodes = arguments(node)
    for place, each in enumerate(nodes):
        name = names[place] if place < 7 else ""
        if isinstance(each, exp.Kwarg | exp.PropertyEQ):
            name, each = str(each.this.name).lower(), each.expression
        if name not in names:
            raise scope.error(node, f"make_interval() has no argument {name!r}")
        kind = FLOAT if name == "secs" else INT4
        parts[names.index(name)] = argument(scope.value(each), kind, scope)
    return apply_form(form(times.interval_of, INTERVAL, *[INT4] * 6, ANY), parts, scope)


def _to_char(node: Any, scope: Scope) -> TypedValue:
    """Return to_char() of a time, an interval or a number; refuse a literal text."""
    of: tuple[Form, ...] = (
        form(formats.written, TEXT, TIMESTAMP, TEXT, nullable=True),
        form(formats.written, TEXT, INTERVAL, TEXT, nullable=True),
        form(number_formats.integer_written, TEXT, INT4, TEXT),
        form(number_formats.bigint_written, TEXT, INT, TEXT),
        form(number_formats.numeric_written, TEXT, DECIMAL, TEXT),
        form(number_formats.float_written, TEXT, FLOAT, TEXT),
    )
    nodes = arguments(node)
    kind = scope.value(nodes[0]).type if nodes else ANY
    if kind.kind == "float" and kind.size == 4:
        of = (form(number_formats.real_written, TEXT, FLOAT, TEXT),)
    if nodes and is_literal(nodes[0]):
        raise scope.error(node, "postgres has no to_char(text, text)", "cast the first argument")
    return call_form(of, nodes, node, scope)


def _read_timestamp(node: Any, scope: Scope) -> TypedValue:
    """Translate TO_TIMESTAMP of a text: an instant, in the zone of the database."""
    of = form(moment_reader.read, TIMESTAMP, TEXT, TEXT)
    return cast(call_form((of,), arguments(node), node, scope), INSTANT, scope)


OF_TIMES: dict[str | type[exp.Expr], Maker] = {
    "date_part": _extract_float_field,
    "date_bin": forms(
        form(times.bucket, TIMESTAMP, INTERVAL, TIMESTAMP, TIMESTAMP),
        form(times.bucket_of_instant, INSTANT, INTERVAL, INSTANT, INSTANT),
    ),
    "age": _age,
    "justify_days": define_form(times.justified_days, INTERVAL, INTERVAL),
    "justify_hours": define_form(times.justified_hours, INTERVAL, INTERVAL),
    "justify_interval": define_form(times.justified, INTERVAL, INTERVAL),
    "isfinite": forms(*(form(_is_finite, BOOL, kind) for kind in (DATE, TIMESTAMP, INTERVAL))),
    "make_date": define_form(times.date_of, DATE, INT4, INT4, INT4),
    "make_time": define_form(times.time_of, TIME, INT4, INT4, FLOAT),
    "make_timestamp": define_form(times.timestamp_of, TIMESTAMP, *[INT4] * 5, FLOAT),
    "make_interval": _make_interval,
    "to_char": _to_char,
    "to_timestamp": _read_timestamp,
    "to_date": define_form(moment_reader.read_date, DATE, TEXT, TEXT),
    "to_number": define_form(number_reader.number_read, DECIMAL, TEXT, TEXT, nullable=True),
    **dict.fromkeys(("clock_timestamp", "timeofday"), common_times.refuse_clock),
}


def _overlaps(node: Any, scope: Scope) -> TypedValue:
    """Return OVERLAPS of two pairs of times; refuse rows of other lengths."""
    sides = [side for each in (node.this, node.expression) for side in each.expressions]
    if len(sides) != 4:
        raise scope.error(node, "OVERLAPS compares two rows of two times")
    given = tuple(as_optional(scope.value(each)) for each in sides)
    return nullable_value(Call(constant(times.overlap), given), BOOL)


TABLE: dict[str | type[exp.Expr], Maker] = {
    **OF_TIMES,
    exp.Extract: _extract_field,
    exp.DateTrunc: _truncate_time,
    exp.TimestampTrunc: _truncate_time,
    exp.UnixToTime: define_form(times.timestamp_of_seconds, TIMESTAMP, FLOAT),
    exp.Interval: _read_interval,
    exp.Overlaps: _overlaps,
    **common_times.CLOCK,
    "statement_timestamp": common_times.CLOCK["now"],
}
