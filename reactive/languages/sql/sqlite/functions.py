"""The functions of SQLite by name, CAST and COLLATE. What is not here there is not.

A function takes values of any class and is NULL where one is, unless it says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Call, Constant, Expr, constant, transform
from reactive.languages.sql.functions import texts
from reactive.languages.sql.sqlite import formats, json, times
from reactive.languages.sql.sqlite import values as runtime
from reactive.languages.sql.sqlite.comparisons import bare, collate, collation_of, map_value, of_two
from reactive.languages.sql.terms.calls import Maker, arguments, function_name
from reactive.languages.sql.terms.errors import nearest
from reactive.languages.sql.terms.types import ANY, BOOL, FLOAT, INT, TEXT, SqlType
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

_MISSING = """
    changes last_insert_rowid load_extension
    random randomblob soundex sqlite_version timediff total_changes
    json_each json_error_position json_group_array json_group_object json_pretty json_tree
"""
NOT_SUPPORTED = frozenset(_MISSING.split())
"""Functions that SQLite has, and that are not here."""

OF_AFFINITIES = {"TEXT": "text", "INTEGER": "int", "REAL": "float", "NUMERIC": "float"}
"""The kinds of the result of a CAST, by affinity."""


def cast_to_affinity(node: Any, scope: Scope) -> TypedValue:
    """Translate CAST, of whose type only the affinity counts."""
    value, declared = scope.value(node.this), node.args["to"]
    if isinstance(node, exp.TryCast):
        node.args.get("safe")
    affinity = runtime.affinity_of(declared_name(declared))
    kind: Any = OF_AFFINITIES.get(affinity, "bytes")
    made = SqlType(
        kind, affinity=affinity, collation=value.type.collation, is_collated=value.type.is_collated
    )
    if is_null(value):
        return replace(value, type=made)
    return map_value(runtime.CASTS[affinity], made, value)


def declared_name(declared: Any) -> str:
    """Return the words of a declared type; the numbers behind them mean nothing."""
    if declared is None:
        return ""
    _ = declared.this  # a type of the user's, whatever its name
    return str(declared.args["kind"])


def _collate(node: Any, scope: Scope) -> TypedValue:
    value = scope.value(node.this)
    name = collation_named(node.expression, scope)
    return replace(value, type=replace(value.type, collation=name, is_collated=True))


def collation_named(node: Any, scope: Scope) -> str:
    """Return the collation that a node names.

    Raises
    ------
    PlanError: SQLite has no such collation.
    """
    name = str(node.name).upper()
    if name != "BINARY" and name not in runtime.OWN_COLLATIONS:
        known = ("BINARY", *runtime.OWN_COLLATIONS)
        raise scope.error(
            node,
            f"there is no collation {node.name!r} in sqlite{nearest(name, known)}",
            f"there are {', '.join(known)}",
        )
    return name


def define_of_values(
    function: Callable[..., Any],
    kind: SqlType,
    least: int,
    most: int | None = None,
    *,
    may: bool = False,
) -> Maker:
    """Make a function of `least` to `most` values; it `may` give NULL by itself."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        values = count_arguments(node, scope, least, least if most is None else most)
        if any(map(is_null, values)):
            return NULL_VALUE
        return of_two(function, kind, *values, may_be_null=may)

    return translate


def count_arguments(node: Any, scope: Scope, least: int, most: int) -> list[TypedValue]:
    """Return the arguments of a call.

    Raises
    ------
    PlanError: there are too few or too many.
    """
    nodes = arguments(node)
    if not least <= len(nodes) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise scope.error(
            node,
            f"{function_name(node)}() of sqlite takes {wanted} arguments, and got {len(nodes)}",
        )
    return [scope.value(each) for each in nodes]


# Numbers.


def absolute(value: Any) -> int | float:
    """Return ABS, a float unless the value is an integer; raise for the least integer."""
    if isinstance(value, int):
        if value == runtime.LEAST:
            raise OverflowError("integer overflow")
        return abs(value)
    return abs(runtime.real(value))


class _OfNumbers:
    """A function of numbers; NULL for other values, and without a result."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *values: Any) -> Any:
        numbers = [runtime.numeric(value) for value in values]
        if not all(isinstance(each, int | float) for each in numbers):
            return None
        try:
            made = self.function(*numbers)
        except OverflowError:
            return math.inf
        except (ValueError, ZeroDivisionError):
            return None
        return made if made == made else None


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _make_rounding(function: Callable[[float], int]) -> Callable[..., Any]:
    """Return a function that rounds floats to whole floats; integers and infinity stay."""

    def made(value: Any) -> Any:
        return value if isinstance(value, int) or math.isinf(value) else float(function(value))

    return made


def rounded(value: Any, digits: Any = 0) -> float:
    """Round halves away from zero (ROUND)."""
    number, places = runtime.real(value), min(max(runtime.short_integer(digits), 0), 30)
    if not -4503599627370496.0 <= number <= 4503599627370496.0:
        return number
    if not places:
        return float(int(number + (0.5 if number >= 0 else -0.5)))
    return _at_place(number, places)


def _at_place(value: float, places: int) -> float:
    """Return a float rounded to some places by its exact value, halves away from zero."""
    from decimal import ROUND_HALF_UP, Context, Decimal

    exact = Context(prec=80, rounding=ROUND_HALF_UP)
    return float(Decimal(value).quantize(Decimal(1).scaleb(-places), context=exact))


def _logarithm(one: float, other: float | None = None) -> float:
    """Return a logarithm to base 10, or of `other` to base `one`; raise if the base is up to 1."""
    if other is None:
        return math.log10(one)
    if one <= 1:
        raise ValueError
    return math.log(other) / math.log(one)


def _power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        return math.inf
    return math.pow(base, exponent)


def _math(function: Callable[..., Any], count: int = 1, most: int | None = None) -> Maker:
    return define_of_values(_OfNumbers(function), FLOAT, count, most, may=True)


# Choices.


def _define_choice(function: Callable[..., Any]) -> Maker:
    """Make MAX or MIN of several values, by the first collation among them."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        values = [scope.value(each) for each in arguments(node)]
        node.args.get("ignore_nulls")  # of the dialect
        if any(map(is_null, values)):
            return NULL_VALUE
        collation = collation_of(*(value.type for value in values))
        if collation in runtime.COLLATIONS:
            by = _By(function, runtime.COLLATIONS[collation])
            return of_two(by, ANY, *values, may_be_null=False)
        return of_two(function, ANY, *values, may_be_null=False)

    return translate


class _By:
    """The least or greatest value as a collation orders them."""

    def __init__(self, function: Callable[..., Any], collation: Callable[[Any], Any]) -> None:
        self._pick = min if function is runtime.least else max
        self._collation = collation

    def __call__(self, *values: Any) -> Any:
        if self._pick is min:
            values = values[::-1]
        return self._pick(values, key=lambda value: runtime.rank(self._collation(value)))

    def __eq__(self, other: object) -> bool:
        mine = (self._pick, self._collation)
        return isinstance(other, _By) and mine == (other._pick, other._collation)

    def __hash__(self) -> int:
        return hash((self._pick, self._collation))


def _different(value: Any, other: Any, mine: Any, theirs: Any) -> Any:
    """Return `value`, or None if `mine` equals `theirs`."""
    return None if mine == theirs else value


def _null_if(node: Any, scope: Scope) -> TypedValue:
    """Translate NULLIF, which knows no affinity."""
    value, other = count_arguments(node, scope, 2, 2)
    if is_null(value) or is_null(other):
        return bare(value)
    collation = collation_of(value.type, other.type)
    sides = [as_optional(collate(each, collation)) for each in (value, other)]
    made = Call(constant(_different), (as_optional(value), as_optional(other), *sides))
    return nullable_value(made, bare(value).type)


def _of_null(function: Callable[..., Any], kind: SqlType = TEXT) -> Maker:
    """Return the maker of a function of one argument, also of NULL, that never gives NULL."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        values = count_arguments(node, scope, 1, 1)
        return TypedValue(Call(constant(function), tuple(map(as_optional, values))), kind)

    return translate


def _translate_char(node: Any, scope: Scope) -> TypedValue:
    values = count_arguments(node, scope, 0, 127)
    return TypedValue(Call(constant(runtime.letters), tuple(map(as_optional, values))), TEXT)


def _format(node: Any, scope: Scope) -> TypedValue:
    values = count_arguments(node, scope, 1, 127)
    return nullable_value(Call(constant(formats.formatted), tuple(map(as_optional, values))), TEXT)


def _define_identity(least: int) -> Maker:
    """Return the maker of a function that gives its first argument: `+x`, LIKELY."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        value = count_arguments(node, scope, least, least)[0]
        if str(node.this) != "+":
            return value
        return replace(value, type=replace(value.type, affinity=None))

    return translate


def _swap_arguments(function: Callable[..., bool]) -> Callable[..., bool]:
    """Return a matching function that takes the pattern before the value."""

    def made(pattern: Any, value: Any, *escape: Any) -> bool:
        return function(value, pattern, *escape)

    return made


def zero_bytes(count: Any) -> bytes:
    """Return a blob of zeros; raise if it would be too long."""
    size = runtime.integer(count)
    if size > 1_000_000_000:
        raise ValueError("string or blob too big")
    return bytes(max(size, 0))


def _of_time(function: Callable[..., Any], kind: SqlType, least: int = 1) -> Maker:
    """Make a function of a time value and modifiers, none of which may read the clock."""
    made = define_of_values(function, kind, least, 127, may=True)

    def translate(node: Any, scope: Scope) -> TypedValue:
        nodes = arguments(node)
        said = [n for n in nodes if isinstance(n, exp.Literal) and n.is_string]
        clock = next((n for n in said if n.name.lower() in times.OF_THE_CLOCK), None)
        if len(nodes) < least or clock is not None:
            what = f"{function_name(node)}() of now" if clock is None else repr(clock.name)
            raise scope.error(
                node if clock is None else clock,
                f"{what} of sqlite is not supported: a live query does not notice the clock",
                "take the time from a column or a parameter",
            )
        return made(node, scope)

    return translate


# JSON.


def _of_json(function: Callable[..., Any], kind: SqlType, least: int, most: int) -> Maker:
    """Return the maker of a function that is also called with NULL, and may give NULL."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        values = count_arguments(node, scope, least, most)
        return nullable_value(Call(constant(function), tuple(map(as_optional, values))), kind)

    return translate


def _made_json(
    function: Callable[..., Any], least: int, most: int, pairs: str = "", *, first: int = 0
) -> Maker:
    """Make a function that builds JSON of the values after the `first` ones.

    `pairs` describes the pairs that these values must be.
    """

    def translate(node: Any, scope: Scope) -> TypedValue:
        values = count_arguments(node, scope, least, most)
        if pairs and (len(values) - first) % 2:
            raise scope.error(node, f"{function_name(node)}() of sqlite takes pairs of {pairs}")
        for each in arguments(node)[first:]:
            _refuse_hidden_json(each, scope)
        parts = [as_optional(value) for value in values]
        parts = [*parts[:first], *(transform(part, _mark_json) for part in parts[first:])]
        call = Call(constant(function), tuple(parts))
        return TypedValue(call, TEXT) if first == 0 else nullable_value(call, ANY)

    return translate


def _mark_json(expr: Expr) -> Expr:
    """Mark the result of a call as JSON wherever SQLite treats it as JSON."""
    if not isinstance(expr, Call) or not isinstance(expr.function, Constant):
        return expr
    function = expr.function.value
    if function is json.extracted:
        return Call(constant(json.extracted_json), expr.arguments)
    is_made = isinstance(function, json.Quoted | json.Edit)
    if is_made or function in (json.json, json.part, json.removed, json.patched):
        return Call(callee(json.Told(function)), expr.arguments)
    return expr


def _refuse_hidden_json(node: Any, scope: Scope) -> None:
    """Refuse JSON of a subquery or an aggregate, which SQLite would treat as JSON."""
    for part in node.walk(prune=lambda each: isinstance(each, exp.Query)):
        is_hidden = isinstance(part, exp.Query) or scope.known_value(part) is not None
        if is_hidden and any(map(_makes_json, part.find_all(exp.Anonymous))):
            raise scope.error(
                node,
                "JSON of a sub-query or an aggregate inside of JSON of sqlite is not supported",
                "write json(...) around it",
            )


def _makes_json(node: exp.Anonymous) -> bool:
    name = function_name(node).lower()
    return name == "->" or (name.startswith("json") and name not in ("json_valid", "json_type"))


TABLE: dict[str | type[exp.Expr], Maker] = {
    exp.Case: texts.case,
    exp.If: texts.conditional,
    exp.Coalesce: texts.coalesce_values,
    exp.Greatest: _define_choice(runtime.greatest),
    exp.Least: _define_choice(runtime.least),
    exp.Collate: _collate,
    exp.Glob: define_of_values(runtime.glob, BOOL, 2),
    "+": _define_identity(1),
    "likely": _define_identity(1),
    "unlikely": _define_identity(1),
    "likelihood": _define_identity(2),
    "nullif": _null_if,
    "typeof": _of_null(runtime.type_name),
    "quote": _of_null(runtime.quoted),
    "hex": _of_null(runtime.digits),
    "abs": define_of_values(absolute, FLOAT, 1),
    "round": define_of_values(rounded, FLOAT, 1, 2),
    "sign": define_of_values(_OfNumbers(_sign), INT, 1, may=True),
    "ceil": _math(_make_rounding(math.ceil)),
    "ceiling": _math(_make_rounding(math.ceil)),
    "floor": _math(_make_rounding(math.floor)),
    "trunc": _math(_make_rounding(math.trunc)),
    "sqrt": _math(math.sqrt),
    "exp": _math(math.exp),
    "ln": _math(math.log),
    "log": _math(_logarithm, 1, 2),
    "log10": _math(math.log10),
    "log2": _math(math.log2),
    "pow": _math(_power, 2),
    "power": _math(_power, 2),
    "mod": _math(math.fmod, 2),
    "pi": lambda node, scope: (
        literal_value(math.pi) if not count_arguments(node, scope, 0, 0) else NULL_VALUE
    ),
    "degrees": _math(math.degrees),
    "radians": _math(math.radians),
    **{
        name: _math(getattr(math, name))
        for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")
    },
    "asinh": _math(math.asinh),
    "acosh": _math(math.acosh),
    "atanh": _math(math.atanh),
    "atan2": _math(math.atan2, 2),
    "printf": _format,
    "format": _format,
    "date": _of_time(times.date, TEXT),
    "time": _of_time(times.time, TEXT),
    "datetime": _of_time(times.datetime, TEXT),
    "julianday": _of_time(times.julianday, FLOAT),
    "unixepoch": _of_time(times.unixepoch, FLOAT),
    "strftime": _of_time(times.strftime, TEXT, 2),
    "json": _of_json(json.json, TEXT, 1, 1),
    "json_valid": _of_json(json.valid, INT, 1, 1),
    "json_type": _of_json(json.type_at, TEXT, 1, 2),
    "json_array_length": _of_json(json.length_at, INT, 1, 2),
    "json_extract": _of_json(json.extracted, ANY, 2, 127),
    "->": _of_json(json.part, TEXT, 2, 2),
    "->>": _of_json(json.value_at, ANY, 2, 2),
    "json_quote": _made_json(json.Quoted("quote"), 1, 1),
    "json_array": _made_json(json.Quoted("array"), 0, 127),
    "json_object": _made_json(json.Quoted("object"), 0, 126, "a label and a value"),
    **{
        f"json_{kind}": _made_json(json.Edit(kind), 1, 127, "a path and a value", first=1)
        for kind in ("set", "insert", "replace")
    },
    "json_remove": _of_json(json.removed, TEXT, 1, 127),
    "json_patch": _of_json(json.patched, TEXT, 2, 2),
    "upper": define_of_values(runtime.upper, TEXT, 1),
    "lower": define_of_values(runtime.lower, TEXT, 1),
    "length": define_of_values(runtime.length, INT, 1),
    "substr": define_of_values(runtime.part, ANY, 2, 3, may=True),
    "substring": define_of_values(runtime.part, ANY, 2, 3, may=True),
    "instr": define_of_values(runtime.place, INT, 2),
    "trim": define_of_values(runtime.trimmed, TEXT, 1, 2),
    "ltrim": define_of_values(runtime.trimmed_left, TEXT, 1, 2),
    "rtrim": define_of_values(runtime.trimmed_right, TEXT, 1, 2),
    "replace": define_of_values(runtime.replaced, ANY, 3),
    "unicode": define_of_values(runtime.code, INT, 1, may=True),
    "char": _translate_char,
    "zeroblob": define_of_values(zero_bytes, SqlType("bytes"), 1),
    "like": define_of_values(_swap_arguments(runtime.like), BOOL, 2, 3),
    "glob": define_of_values(_swap_arguments(runtime.glob), BOOL, 2),
}
