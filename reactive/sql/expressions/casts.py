"""Values as those of another type: CAST, and what operators and functions make of their operands.

cast(x as decimal(8, 2))    to_decimal(x, 8, 2)
day > '2024-01-01'          the text as a date, once, when the view is made
price = 1.5e0               float(price) == 1.5, as a decimal and a float do not mix
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from optimizer.expr import Call, Constant, constant
from optimizer.record import record
from reactive.sql.expressions import zones
from reactive.sql.postgres import casts as postgres
from reactive.sql.runtime import casts, nulls
from reactive.sql.runtime.times import as_date, as_timestamp
from reactive.sql.terms.types import ANY, DECIMAL, NULL, SqlType, common, sql_name
from reactive.sql.terms.values import (
    Value,
    called,
    callee,
    is_simple,
    itself,
    leaves,
    literal,
    strict,
    whole,
)

if TYPE_CHECKING:
    from sqlglot import exp

    from reactive.sql.terms.scope import Scope

MAKES: dict[str, Callable[..., Any]] = {
    "int": casts.to_integer,
    "float": casts.to_float,
    "text": casts.to_text,
    "bool": casts.to_boolean,
    "date": casts.to_date,
    "timestamp": casts.to_timestamp,
    "time": casts.to_time,
    "interval": casts.to_interval,
    "bytes": casts.to_bytes,
    "uuid": casts.to_uuid,
}
OF_SQLITE: dict[str, Callable[..., Any]] = {
    "int": casts.to_integer_cut,
    "float": casts.to_float_of_prefix,
    "text": casts.to_text_of_sqlite,
    "any": casts.to_number_of_prefix,
    "bool": casts.to_number_of_prefix,
    "date": casts.to_number_of_prefix,
    "timestamp": casts.to_number_of_prefix,
    "bytes": casts.to_bytes,
}
NATIVE: dict[tuple[str, str], Callable[..., Any]] = {
    ("bool", "int"): int,
    ("int", "float"): float,
    ("decimal", "float"): float,
    ("bool", "float"): float,
    ("int", "bool"): bool,
    ("float", "bool"): bool,
    ("int", "text"): str,
    ("date", "timestamp"): as_timestamp,
    ("timestamp", "date"): as_date,
    ("uuid", "bytes"): casts.bytes_of_uuid,
}
"""Of which pairs of kinds something simpler does."""


def cast(value: Value, to: SqlType, scope: Scope, *, attempt: bool = False) -> Value:
    """A value as one of a type; what cannot be one raises, or is NULL if it is an `attempt`."""
    if value.type.kind == "null":
        return Value(value.expr, to, value.nulls)
    if scope.dialect.numeric_booleans:
        return _made(OF_SQLITE.get(to.kind, casts.to_text_of_sqlite), to, value)
    of_zone = zones.function_of(value.type, to, scope.dialect.timezone)
    if of_zone is not None:
        return _by(of_zone, value, to, attempt=attempt)
    if scope.dialect.name == "postgres":
        return _of_postgres(value, to, scope)
    if to.kind == value.type.kind == "int" and to.size is None:
        return value
    if value.type == to and to.kind not in ("any", "array", "struct"):
        return value
    _check_uuid(value.type, to, scope)
    return _by(_maker(value.type, to), value, to, attempt=attempt)


def _check_uuid(of: SqlType, to: SqlType, scope: Scope) -> None:
    """Refuse casts between UUIDs and what has nothing to do with them."""
    kinds = {of.kind, to.kind}
    known = kinds <= {"uuid", "text", "any"} or (of.kind, to.kind) == ("uuid", "bytes")
    if "uuid" in kinds and not known:
        raise scope.error(
            next(iter(scope.at), None),
            f"there is no cast of {sql_name(of)} to {sql_name(to)}",
            "cast it to text first",
        )


def _by(
    made: tuple[Callable[..., Any] | None, tuple[Any, ...]],
    value: Value,
    to: SqlType,
    *,
    attempt: bool,
) -> Value:
    """A value as a function makes it, with further arguments."""
    function, more = made
    if function is None:
        return Value(value.expr, to, value.nulls)
    if attempt:
        given = (callee(function), whole(value), *map(constant, more))
        return itself(Call(constant(nulls.attempt), given), to)
    return _made(function, to, value, *more)


def _of_postgres(value: Value, to: SqlType, scope: Scope) -> Value:
    """A value cast as Postgres does.

    Raises
    ------
    PlanError: it has no such cast.
    """
    found = postgres.maker(value.type, to)
    if found is None:
        raise scope.error(
            next(iter(scope.at), None),
            f"postgres has no cast of {sql_name(value.type)} to {sql_name(to)}",
        )
    function, more = found
    if function is None:
        return Value(value.expr, to, value.nulls)
    return _made(function, to, value, *more)


def _maker(of: SqlType, to: SqlType) -> tuple[Callable[..., Any] | None, tuple[Any, ...]]:
    """The function that makes a value of a type, and what it is given besides."""
    match to.kind:
        case "any" | "null" | "struct":
            return None, ()
        case "array":
            item, more = _maker(of.items[0] if of.items else ANY, to.items[0])
            return (None, ()) if item is None else (_Each(item, more), ())
        case "decimal":
            return casts.to_decimal, (to.precision, to.scale)
        case "float" if to.size == 4:
            return casts.to_real, ()
        case kind if of.kind == kind:
            return None, ()
        case kind:
            return NATIVE.get((of.kind, kind), MAKES[kind]), ()


@record
class _Each:
    """Makes the elements of an array others."""

    item: Callable[..., Any]
    more: tuple[Any, ...]

    def __call__(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(None if each is None else self.item(each, *self.more) for each in value)


def _made(function: Callable[..., Any], to: SqlType, value: Value, *more: Any) -> Value:
    """A call, done at once where its value is constant and it does not raise."""
    if isinstance(value.expr, Constant) and not value.nulls:
        try:
            return Value(literal(function(value.expr.value, *more)).expr, to)
        except (ArithmeticError, ValueError, TypeError):
            pass
    return strict(Call(callee(function), (value.expr, *map(constant, more))), to, value)


def applied(function: Callable[..., Any], kind: SqlType, *values: Value) -> Value:
    """A call of a function that gives no NULL, which is NULL where a value is.

    Leaves that are calls themselves are evaluated once, in the call.
    """
    if all(map(is_simple, leaves(*values))):
        return called(function, kind, *values)
    return maybe(function, kind, *values)


def maybe(function: Callable[..., Any], kind: SqlType, *values: Value) -> Value:
    """A call of a function that may give NULL, and does where a value is."""
    if not leaves(*values):
        return itself(Call(callee(function), tuple(v.expr for v in values)), kind)
    given = (callee(function), *map(whole, values))
    return itself(Call(constant(nulls.strict_call), given), kind)


def aligned(node: exp.Expr, scope: Scope, *values: Value) -> tuple[Value, ...]:
    """Values that can be compared with one another, and be results of the same CASE."""
    if scope.dialect.numeric_booleans:
        return values
    values = zones.agreed(node, scope, values, cast, applied)
    kind = NULL
    for value in values:
        kind = common(kind, value.type)
    texts = any(v.type.kind == "text" for v in values)
    if texts and kind.kind not in ("text", "any", "null"):
        _refuse_mixed(node, scope, kind, values)
    return tuple(fitted(value, kind, scope) for value in values)


def _refuse_mixed(node: exp.Expr, scope: Scope, kind: SqlType, values: tuple[Value, ...]) -> None:
    """A text that is no constant is not taken for a number or a date."""
    for value in values:
        if value.type.kind == "text" and not isinstance(value.expr, Constant):
            raise scope.error(
                node,
                f"{node.sql(scope.dialect.name)} has texts and values of type {sql_name(kind)}",
                f"make them one: cast(... as {sql_name(kind)})",
            )


def fitted(value: Value, kind: SqlType, scope: Scope) -> Value:
    """A value as one that may stand beside others of a type. Whole numbers and decimals mix."""
    of = value.type
    if of == kind or "any" in (of.kind, kind.kind) or of.kind == "null":
        return Value(value.expr, kind, value.nulls) if of.kind == "null" else value
    if {of.kind, kind.kind} <= {"int", "decimal", "bool"} or of.kind == kind.kind:
        return value
    if {of.kind, kind.kind} == {"int", "float"} and not isinstance(value.expr, Constant):
        return value
    return cast(value, kind, scope)


def equal_types(values: tuple[Value, ...], scope: Scope) -> tuple[tuple[Value, ...], SqlType]:
    """Values as they stand in one column: also whole numbers as decimals or floats."""
    kind = NULL
    if any(value.type.kind == "timestamptz" for value in values):
        node = next(iter(scope.at), None)
        values = zones.agreed(node, scope, values, cast, applied)
    for value in values:
        kind = common(kind, value.type)
    if scope.dialect.numeric_booleans or kind.kind in ("any", "null"):
        return values, kind
    if scope.dialect.name == "postgres" and kind.kind == "decimal":
        kind = DECIMAL  # each keeps its own scale
    return tuple(cast(value, _wide(kind), scope) for value in values), kind


def _wide(kind: SqlType) -> SqlType:
    """A decimal keeps the digits that a value has, other than in a CAST."""
    return SqlType("decimal", None, kind.scale) if kind.kind == "decimal" else kind
