"""Values converted to another type: CAST, and implicit conversions of operands and arguments.

cast(x as decimal(8, 2))    to_decimal(x, 8, 2)
day > '2024-01-01'          the text as a date, once, when the view is made
price = 1.5e0               float(price) == 1.5, as a decimal and a float do not mix
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from optimizer.errors import PlanError
from optimizer.expr import Call, Constant, Slot, constant
from optimizer.record import record
from reactive.languages.sql.expressions import collations, zones
from reactive.languages.sql.expressions.zones import is_constant
from reactive.languages.sql.json import conversions, trees
from reactive.languages.sql.postgres import casts as postgres
from reactive.languages.sql.runtime import casts, moments
from reactive.languages.sql.runtime.arrays import read, read_of_duckdb
from reactive.languages.sql.runtime.times import as_date, as_timestamp
from reactive.languages.sql.sqlite import comparisons as sqlite
from reactive.languages.sql.sqlite import values as of_sqlite
from reactive.languages.sql.terms.common_types import VERBS, Place, common_of_all, common_type
from reactive.languages.sql.terms.types import (
    ANY,
    INSTANT,
    INT,
    NESTED,
    NUMBERS,
    RANGES,
    TEXT,
    TIMESTAMP,
    UNSIGNED,
    SqlType,
    is_row,
    is_written_apart,
    range_of,
    sql_name,
)
from reactive.languages.sql.terms.values import (
    ArgumentError,
    TypedValue,
    as_optional,
    call_strictly,
    callee,
    check_arguments,
    is_simple,
    leaves,
    literal_value,
    nullable_value,
    strict,
)

if TYPE_CHECKING:
    from sqlglot import exp

    from reactive.languages.sql.terms.scope import Scope

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
    "int": of_sqlite.integer,
    "float": of_sqlite.number,
    "text": of_sqlite.characters,
    "bytes": of_sqlite.cast_to_blob,
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
"""Simpler functions for some pairs of kinds."""


def cast(
    value: TypedValue, to: SqlType, scope: Scope, *, attempt: bool = False, exact: bool = False
) -> TypedValue:
    """Return a value as one of a type; what cannot be one raises, or is NULL if it is an `attempt`.

    An `exact` cast is one that is written: in DuckDB its integers have the range of their type.
    """
    if value.type.kind == "null":
        return TypedValue(value.expr, to, value.nulls)
    if scope.dialect.numeric_booleans:
        function = OF_SQLITE.get(to.kind)
        return value if function is None else sqlite.map_value(function, to, value)
    if scope.dialect.name == "duckdb":
        _check_cast(value.type, to, scope)
        if value.type.kind == "timestamptz" and to.kind == "timestamp" and to.scale is not None:
            value = cast(value, TIMESTAMP, scope)
    of_zone = zones.function_of(value.type, to, scope.dialect.timezone)
    if of_zone is not None:
        if scope.dialect.name == "duckdb" and of_zone[0] is read:
            of_zone = (read_of_duckdb, of_zone[1])
        return _convert_by(of_zone, value, to, attempt=attempt)
    if scope.dialect.name == "postgres":
        return _cast_like_postgres(value, to, scope)
    if to.kind == value.type.kind == "int" and to.size is None:
        return value
    if value.type == to and to.kind not in NESTED | {"any"}:
        return value
    _check_uuid(value.type, to, scope)
    if to.kind == "decimal" and value.type.kind == "bool":
        value = cast(value, INT, scope)
    try:
        zone = scope.dialect.timezone
        made = _maker(value.type, to, attempt=attempt, exact=exact, zone=zone)
    except ValueError as error:
        raise scope.error(next(iter(scope.at), None), str(error)) from None
    return _convert_by(made, value, to, attempt=attempt)


_NUMBERS = NUMBERS | {"bool"}
CASTS: dict[str, frozenset[str]] = {
    **dict.fromkeys(_NUMBERS, _NUMBERS),
    "date": frozenset({"timestamp", "timestamptz"}),
    "timestamp": frozenset({"date", "time", "timestamptz"}),
    "timestamptz": frozenset({"date", "timestamp"}),
    "uuid": frozenset({"bytes"}),
    "struct": frozenset({"map"}),
    **dict.fromkeys(("time", "interval", "bytes", "array", "map"), frozenset[str]()),
}
"""The kinds that DuckDB casts values of a kind to, beside that kind and texts."""


def _check_cast(of: SqlType, to: SqlType, scope: Scope) -> None:
    """Refuse casts that DuckDB has not, as between numbers and moments."""
    known = None if to.kind == "json" else CASTS.get(of.kind)
    if known is None or to.kind in ("any", "null", "text", of.kind) or to.kind in known:
        return
    if "uuid" in (of.kind, to.kind) and to.kind != "timestamptz":
        return  # told by `_check_uuid`, which has a remedy
    raise scope.error(
        next(iter(scope.at), None),
        f"{scope.dialect.name} has no cast of {sql_name(of)} to {sql_name(to)}",
    )


def _check_uuid(of: SqlType, to: SqlType, scope: Scope) -> None:
    """Refuse casts between UUIDs and unrelated types."""
    kinds = {of.kind, to.kind}
    known = kinds <= {"uuid", "text", "any"} or (of.kind, to.kind) == ("uuid", "bytes")
    if "uuid" in kinds and not known:
        raise scope.error(
            next(iter(scope.at), None),
            f"there is no cast of {sql_name(of)} to {sql_name(to)}",
            "cast it to text first",
        )


def _convert_by(
    made: tuple[Callable[..., Any] | None, tuple[Any, ...]],
    value: TypedValue,
    to: SqlType,
    *,
    attempt: bool,
) -> TypedValue:
    """Return a cast by a function and its arguments; without a function only the type changes."""
    function, more = made
    if function is None:
        return TypedValue(value.expr, to, value.nulls)
    if attempt:
        given = (callee(function), as_optional(value), *map(constant, more))
        return nullable_value(Call(constant(moments.attempt), given), to)
    return _call_or_fold(function, to, value, *more)


def _cast_like_postgres(value: TypedValue, to: SqlType, scope: Scope) -> TypedValue:
    """Return a value cast as Postgres does.

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
        return TypedValue(value.expr, to, value.nulls)
    return _call_or_fold(function, to, value, *more)


def _maker(
    of: SqlType, to: SqlType, *, zone: str, attempt: bool = False, exact: bool = False
) -> tuple[Callable[..., Any] | None, tuple[Any, ...]]:
    """Return the function of a cast, and its further arguments; no function: the value stays.

    Raises
    ------
    ValueError: the fields of two structs have nothing in common.
    """
    of_zone = zones.function_of(of, to, zone)
    if of_zone is not None or of.kind == "null":
        return of_zone or (None, ())
    if "json" in (of.kind, to.kind):
        return _json_maker(of, to, zone, attempt=attempt), ()
    match to.kind:
        case "struct" if of.kind == "struct":
            return _make_struct_cast(of, to, attempt=attempt, exact=exact, zone=zone), ()
        case "map" if of.kind in ("map", "struct", "text"):
            return _make_map_cast(of, to, attempt=attempt, exact=exact, zone=zone), ()
        case "any" | "null" | "struct" | "map":
            return None, ()
        case "array" if of.kind == "text":
            made, more = (
                _maker(TEXT, to.items[0], exact=exact, zone=zone) if to.items else (None, ())
            )
            if attempt or more:
                made = _part_maker(TEXT, to.items[0], attempt=attempt, exact=exact, zone=zone)
            return casts.ListOfText(made), ()
        case "array" if of.kind == "array":
            inner = of.items[0] if of.items else ANY
            item = _part_maker(inner, to.items[0], attempt=attempt, exact=exact, zone=zone)
            return None if item is None else _Each(item), ()
        case "array":
            return None, ()
        case "int" if exact:
            return _in_range(of, to), ()
        case "timestamp" if to.scale is not None:
            to_moment, _ = _maker(of, TIMESTAMP, zone=zone)
            return casts.Rounded(to_moment, to.scale), ()
        case "text" if of.kind in NESTED or is_written_apart(of):
            return _writer(of), ()
        case "decimal":
            return casts.to_decimal, (to.precision, to.scale)
        case "float" if to.size == 4:
            return casts.to_real, ()
        case kind if of.kind == kind:
            return None, ()
        case kind:
            return NATIVE.get((of.kind, kind), MAKES[kind]), ()


def _json_maker(of: SqlType, to: SqlType, zone: str, *, attempt: bool) -> Callable[..., Any] | None:
    """Return the cast from or to JSON of DuckDB."""
    make = _maker_of_parts(zone)
    if to.kind == "json":
        if of.kind in ("text", "json"):
            return None if of.kind == "json" else trees.check
        return conversions.JsonWriter(conversions.encoder(of, make))
    if to.kind in ("text", "any"):
        return None
    return conversions.Read(conversions.decoder(to, make, lenient=attempt, exact=not attempt))


def _maker_of_parts(zone: str) -> Callable[[SqlType, SqlType], Callable[..., Any] | None]:
    """Return the function that gives the cast of a part of JSON."""
    return lambda of, to: _part_maker(of, to, attempt=False, exact=True, zone=zone)


def part_cast(of: SqlType, to: SqlType, scope: Scope) -> Callable[..., Any] | None:
    """Return the cast of a value inside another; None if it stays as it is."""
    return _maker_of_parts(scope.dialect.timezone)(of, to)


def _writer(of: SqlType) -> Callable[..., Any]:
    """Return the function that writes a value as DuckDB does."""
    match of.kind:
        case "float" if of.size == 4:
            return casts.real_text
        case "decimal" if is_written_apart(of):
            return casts.fraction_text
        case "array" if of.items:
            return casts.ListText(_item_writer(of.items[0]))
        case "map":
            return casts.MapText(*map(_item_writer, of.items))
        case "struct":
            names = () if is_row(of) else of.names
            return casts.StructText(names, tuple(map(_item_writer, of.items)))
        case _:
            return casts.to_text


def _item_writer(of: SqlType) -> Callable[..., Any]:
    """Return the function that writes an item of a list; texts in quotes if they need them."""
    written = _writer(of)
    return written if of.kind in NESTED else casts.Quoted(written)


def _in_range(of: SqlType, to: SqlType) -> Callable[..., Any] | None:
    """Return the function that makes an integer of a type's range; None if every value fits."""
    bits, unsigned = RANGES[to.size or 8], to.names == UNSIGNED
    low, high = range_of(to)
    if of.kind == "int" and of.size is not None and not unsigned:
        mine = RANGES[of.size] + (of.names == UNSIGNED)
        if mine <= bits:
            return None
    function = None if of.kind == "int" else NATIVE.get((of.kind, "int"), casts.to_integer)
    return casts.Ranged(function, low, high, sql_name(to))


def _part_maker(
    of: SqlType, to: SqlType, *, attempt: bool, exact: bool, zone: str
) -> Callable[..., Any] | None:
    """Return the cast of a value inside an array or a struct; None if it stays as it is."""
    if of == to and to.kind not in NESTED | {"any"}:
        return None
    function, more = _maker(of, to, attempt=attempt, exact=exact, zone=zone)
    if function is None:
        return None
    return _Part(function, more, attempt)


def _make_struct_cast(
    of: SqlType, to: SqlType, *, attempt: bool, exact: bool, zone: str
) -> Callable[..., Any] | None:
    """Return the function that makes a struct another, whose fields are found by their names.

    A field that is not there is NULL, one that is not wanted is left out. The fields of a row,
    which have no names, are found by their places.

    Raises
    ------
    ValueError: no field of the one has the name of a field of the other.
    """
    places: list[int | None] = list(range(len(to.names)))
    if not is_row(of):
        known = {name.casefold(): place for place, name in reversed(tuple(enumerate(of.names)))}
        places = [known.get(name.casefold()) for name in to.names]
        if places and not any(place is not None for place in places):
            raise ValueError(f"a struct of {', '.join(of.names)} has no field {to.names[0]!r}")
    elif len(of.items) != len(to.items):
        raise ValueError(
            f"a row of {len(of.items)} values cannot be a struct of {len(to.items)} fields"
        )
    items = tuple(
        None
        if place is None
        else _part_maker(of.items[place], kind, attempt=attempt, exact=exact, zone=zone)
        for place, kind in zip(places, to.items, strict=True)
    )
    is_same = places == list(range(len(of.names))) and not any(items)
    return None if is_same else _Fields(tuple(zip(places, items, strict=True)))


def _make_map_cast(
    of: SqlType, to: SqlType, *, attempt: bool, exact: bool, zone: str
) -> Callable[..., Any] | None:
    """Return the function that makes a map of another, of a struct, or of a text.

    Raises
    ------
    ValueError: the struct is a row, whose fields have no names.
    """

    def part(inner: SqlType, to_inner: SqlType) -> Callable[..., Any] | None:
        return _part_maker(inner, to_inner, attempt=attempt, exact=exact, zone=zone)

    key, value = to.items
    if of.kind == "map":
        parts = tuple(map(part, of.items, to.items))
        return casts.MapOfMap(*parts) if any(parts) else None
    if of.kind == "text":
        return casts.MapOfText(part(TEXT, key), part(TEXT, value))
    if is_row(of):
        raise ValueError("a row has no names, and cannot be a map")
    return casts.MapOfStruct(of.names, part(TEXT, key), tuple(part(e, value) for e in of.items))


@record
class _Part:
    """A cast of a value inside another, which is NULL where an attempt fails."""

    function: Callable[..., Any]
    more: tuple[Any, ...]
    attempt: bool

    def __call__(self, value: Any) -> Any:
        if self.attempt:
            return moments.attempt(self.function, value, *self.more)
        return None if value is None else self.function(value, *self.more)


@record
class _Each:
    """Makes the elements of an array others."""

    item: Callable[..., Any]

    def __call__(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(map(self.item, value))


@record
class _Fields:
    """Makes a struct another: the place of each field before, and what makes its value."""

    fields: tuple[tuple[int | None, Callable[..., Any] | None], ...]

    def __call__(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            None if place is None else value[place] if made is None else made(value[place])
            for place, made in self.fields
        )


def argument(value: TypedValue, to: SqlType, scope: Scope) -> TypedValue:
    """Cast an argument to the type that a function takes.

    Raises
    ------
    ArgumentError: a constant text is no value of the type.
    """
    made = cast(value, to, scope)
    given = value.expr.value if isinstance(value.expr, Constant) else None
    if isinstance(given, str) and isinstance(made.expr, Call):  # the conversion has raised
        raise ArgumentError(f"takes {sql_name(to)}, and {given!r:.60} is none")
    return made


def _call_or_fold(
    function: Callable[..., Any], to: SqlType, value: TypedValue, *more: Any
) -> TypedValue:
    """Return a call, evaluated now if its value is constant and it does not raise.

    The value of a slot is not looked at.
    """
    if isinstance(value.expr, Constant) and not value.nulls and value.expr.__class__ is not Slot:
        try:
            return TypedValue(literal_value(function(value.expr.value, *more)).expr, to)
        except (ArithmeticError, ValueError, TypeError):
            pass
    return strict(Call(callee(function), (value.expr, *map(constant, more))), to, value)


def apply(function: Callable[..., Any], kind: SqlType, *values: TypedValue) -> TypedValue:
    """Return a call of a function that never gives NULL; the call is NULL where an argument is.

    Leaves that are calls themselves are evaluated once, in the call.
    """
    if all(map(is_simple, leaves(*values))):
        return call_strictly(function, kind, *values)
    return maybe(function, kind, *values)


def maybe(function: Callable[..., Any], kind: SqlType, *values: TypedValue) -> TypedValue:
    """Return a call of a function that may give NULL; it is also NULL where an argument is."""
    check_arguments(function, values)
    if not leaves(*values):
        return nullable_value(Call(callee(function), tuple(v.expr for v in values)), kind)
    given = (callee(function), *map(as_optional, values))
    return nullable_value(Call(constant(moments.strict_call), given), kind)


def convert_for_column(value: TypedValue, to: SqlType, scope: Scope) -> TypedValue:
    """Return a value as a column of the type stores it."""
    if not scope.dialect.numeric_booleans:
        return cast(value, to, scope, exact=True)
    if to.affinity is not None:
        return sqlite.map_value(_Stored(to.affinity), to, value)
    function = MAKES.get(to.kind)
    return value if function is None else _call_or_fold(function, to, value)


@record
class _Stored:
    """Makes values as a column of SQLite keeps them."""

    affinity: str

    def __call__(self, value: Any) -> Any:
        return of_sqlite.store_value(value, self.affinity)


def align(
    node: exp.Expr, scope: Scope, *values: TypedValue, place: Place = "equality"
) -> tuple[TypedValue, ...]:
    """Return the values converted so that they can be compared with one another.

    Raises
    ------
    PlanError: the dialect does not compare their types.
    """
    if scope.dialect.numeric_booleans:
        left, right = values
        return sqlite.comparable_sides(left, right, ordered=place == "order")
    if scope.dialect.name == "duckdb" and any(value.type.collation for value in values):
        values = collations.comparable(node, scope, values)
    values, kind = _convert_to_one_type(node, scope, values, place)
    return tuple(convert_to_compare(value, kind, scope) for value in values)


def equal_types(
    values: tuple[TypedValue, ...],
    scope: Scope,
    node: exp.Expr | None = None,
    *,
    place: Place = "choice",
) -> tuple[tuple[TypedValue, ...], SqlType]:
    """Return values as they stand in one column: also whole numbers as decimals or floats.

    Raises
    ------
    PlanError: the dialect has no common type of them.
    """
    if scope.dialect.numeric_booleans:
        kind = sqlite.common_column_type([value.type for value in values])
        return values, replace(kind, affinity=None, collation=None, is_collated=False)
    if scope.dialect.name == "duckdb":
        collations.refuse_collated(node, scope, values)
    values, kind = _convert_to_one_type(node, scope, values, place)
    if kind.kind in ("any", "null"):
        return values, kind
    return tuple(cast(value, _wide(kind), scope) for value in values), kind


def _convert_to_one_type(
    node: exp.Expr | None, scope: Scope, values: tuple[TypedValue, ...], place: Place
) -> tuple[tuple[TypedValue, ...], SqlType]:
    """Return values and their type; constant texts are read as it. Refuse types without one."""
    name = scope.dialect.name
    texts = [value.type.kind == "text" and is_constant(value) for value in values]
    if name == "duckdb" and place == "column":
        texts = [False] * len(values)
    kinds = [v.type for v, is_text in zip(values, texts, strict=True) if not is_text]
    if any(kind.kind == "timestamptz" for kind in kinds):
        values = tuple(
            read_constant(node, scope, value, INSTANT) if is_text else value
            for value, is_text in zip(values, texts, strict=True)
        )
    if not any(kind.kind == "text" for kind in kinds):
        values = zones.agreed(node, scope, values, cast, apply)
    texts = [is_text and v.type.kind == "text" for v, is_text in zip(values, texts, strict=True)]
    kinds = [v.type for v, is_text in zip(values, texts, strict=True) if not is_text]
    kind = common_of_all(name, place, kinds)
    if kind is None:
        raise no_common_type_error(node, scope, kinds, place)
    if kind.kind == "null":
        return values, TEXT if any(texts) else kind
    if not any(texts) or kind.kind in ("any", "text"):
        return values, kind
    return tuple(
        read_constant(node, scope, value, kind) if is_text else value
        for value, is_text in zip(values, texts, strict=True)
    ), kind


def read_constant(
    node: exp.Expr | None, scope: Scope, value: TypedValue, kind: SqlType
) -> TypedValue:
    """Return a constant text as a value of a type.

    Raises
    ------
    PlanError: it is none, and the dialect says so before it reads a row.
    """
    is_nested = kind.kind in NESTED
    made = value if is_nested and scope.dialect.name == "duckdb" else cast(value, kind, scope)
    if made is value and is_nested:
        raise no_common_type_error(node, scope, [kind, value.type], "choice")
    if scope.dialect.name == "postgres" and not isinstance(made.expr, Constant):
        assert isinstance(value.expr, Constant)
        raise scope.error(
            node,
            f"cannot read {value.expr.value!r} as {sql_name(kind)}: postgres takes a text beside "
            "such values for one of them",
            "cast the other side to text",
        )
    return made


def no_common_type_error(
    node: exp.Expr | None, scope: Scope, kinds: Sequence[SqlType], place: Place
) -> PlanError:
    """Return the error of types that have nothing in common."""
    one = kinds[0]
    for other in kinds[1:]:
        made = common_type(scope.dialect.name, place, one, other)
        if made is None:
            break
        one = made
    return scope.error(
        node if node is not None else next(iter(scope.at), None),
        f"cannot {VERBS[place]} {sql_name(one)} and {sql_name(other)}: {scope.dialect.name} has "
        "no common type of them here",
        f"make them one: cast(... as {sql_name(one if other.kind == 'text' else other)})",
    )


def convert_to_compare(value: TypedValue, kind: SqlType, scope: Scope) -> TypedValue:
    """Convert a value to compare it with values of a type; integers and decimals mix."""
    of = value.type
    if of == kind or "any" in (of.kind, kind.kind) or of.kind == "null":
        return TypedValue(value.expr, kind, value.nulls) if of.kind == "null" else value
    is_huge = scope.dialect.name == "duckdb" and of.size == 16 and kind.kind == "decimal"
    if is_huge and kind.scale is not None:  # which has no place for the greatest of them
        return cast(value, SqlType("decimal", 38, kind.scale), scope)
    if {of.kind, kind.kind} <= {"int", "decimal", "bool"}:
        return value
    if of.kind == kind.kind and not (of.items and kind.items):
        return value
    if {of.kind, kind.kind} == {"int", "float"} and not isinstance(value.expr, Constant):
        return value if of.size is None else cast(value, kind, scope)
    return cast(value, kind, scope)


def _wide(kind: SqlType) -> SqlType:
    """Return the type without a limit of digits before the point, if it is a decimal."""
    return SqlType("decimal", None, kind.scale) if kind.kind == "decimal" else kind
