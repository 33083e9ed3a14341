"""Choose the operator of Postgres that a symbol means for operands of some types.

    date + integer      date + int4
    time + timestamp    interval + timestamp      a time is implicitly cast to an interval
    '1 day' + time      interval + time           a text that is written out has no type: unknown
    date + '1'          refused                   four operators fit equally well

The operators are those of `pg_operator`, also for types that this library does not have, because
they can make a choice ambiguous. `anyarray` and its like stand for many types of arrays.

Source: PostgreSQL documentation, "Operator Type Resolution"; `func_select_candidate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlglot import exp

from reactive.languages.sql.expressions.casts import cast, read_constant
from reactive.languages.sql.terms.common_types import common_type
from reactive.languages.sql.terms.types import (
    BOOL,
    BYTES,
    DATE,
    DECIMAL,
    FLOAT,
    INSTANT,
    INTERVAL,
    JSON,
    JSONB,
    NULL,
    TEXT,
    TIME,
    TIMESTAMP,
    UUID,
    SqlType,
    innermost,
)
from reactive.languages.sql.terms.values import TypedValue, is_null

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

Signature: TypeAlias = "tuple[str, ...]"
"""The types of the operands."""
TYPES: dict[str, SqlType] = {
    "int2": SqlType("int", size=2),
    "int4": SqlType("int", size=4),
    "int8": SqlType("int", size=8),
    "float4": SqlType("float", size=4),
    "float8": FLOAT,
    "numeric": DECIMAL,
    "bool": BOOL,
    "text": TEXT,
    "bytea": BYTES,
    "date": DATE,
    "time": TIME,
    "timestamp": TIMESTAMP,
    "timestamptz": INSTANT,
    "interval": INTERVAL,
    "uuid": UUID,
    "json": JSON,
    "jsonb": JSONB,
    "_text": SqlType("array", items=(TEXT,)),
    "jsonpath": TEXT,
}
"""Types by the names that `pg_type` has; others are only there to be chosen, and refused."""
SHOWN = {
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "bool": "boolean",
}
"""Names of types in messages, as Postgres writes them."""
_CATEGORIES = {
    "N": "int2 int4 int8 float4 float8 numeric money",
    "D": "date time timetz timestamp timestamptz",
    "T": "interval",
    "S": "text bpchar name",
    "B": "bool",
    "G": "box circle line lseg path point polygon",
    "I": "inet",
    "V": "bit varbit",
    "P": "anyarray anycompatible anycompatiblearray anyelement anynonarray anyrange anymultirange",
}
_CATEGORY = {name: key for key, names in _CATEGORIES.items() for name in names.split()}
_PREFERRED = frozenset({"float8", "timestamptz", "interval", "text", "bool", "inet", "varbit"})
_IMPLICIT: dict[str, frozenset[str]] = {
    "int2": frozenset({"int4", "int8", "numeric", "float4", "float8"}),
    "int4": frozenset({"int8", "numeric", "float4", "float8"}),
    "int8": frozenset({"numeric", "float4", "float8"}),
    "numeric": frozenset({"float4", "float8"}),
    "float4": frozenset({"float8"}),
    "date": frozenset({"timestamp", "timestamptz"}),
    "timestamp": frozenset({"timestamptz"}),
    "time": frozenset({"interval", "timetz"}),
    "text": frozenset({"bpchar", "name"}),
}


def _cross(names: str) -> list[Signature]:
    """Return all pairs of some types, as signatures."""
    return list(product(names.split(), repeat=2))


def _alike(names: str) -> list[Signature]:
    """Return a signature of two equal types for each type."""
    return [(name, name) for name in names.split()]


def _read_signatures(texts: str) -> list[Signature]:
    """Return the signatures written as `one/other`."""
    return [tuple(text.split("/")) for text in texts.split()]


def _either(texts: str) -> list[Signature]:
    """Return the signatures written as `one/other`, and each with its types exchanged."""
    return [pair for one, other in _read_signatures(texts) for pair in ((one, other), (other, one))]


def _single(names: str) -> list[Signature]:
    return [(name,) for name in names.split()]


_INTEGERS, _NUMBERS = "int2 int4 int8", "int2 int4 int8 float4 float8 numeric"
_ARITHMETIC = [*_cross(_INTEGERS), *_cross("float4 float8"), ("numeric", "numeric")]
_RANGES = _alike("anyrange anymultirange")
_BITS = _alike("int2 int4 int8 bit inet macaddr macaddr8")
_SHIFTS = _read_signatures("int2/int4 int4/int4 int8/int4 bit/int4") + _alike(
    "box circle inet point polygon anyrange anymultirange"
)
_COMPARED = [
    *_ARITHMETIC,
    *_cross("date timestamp timestamptz"),
    *_either("name/text"),
    *_alike("anyarray anyrange anymultirange bit bool box bpchar bytea circle inet interval jsonb"),
    *_alike("lseg macaddr money name oid path pg_lsn record text time timetz uuid varbit"),
]
_CONTAINED = _alike("anyarray anyrange anymultirange box circle jsonb polygon tsquery")
_OF_JSON = _read_signatures("json/text json/int4 jsonb/text jsonb/int4")
_OF_PATHS = _read_signatures("json/_text jsonb/_text")
_OF_KEYS = _read_signatures("jsonb/_text")
_LIKE = _read_signatures("text/text bpchar/text name/text")
OPERATORS: dict[str, list[Signature]] = {
    "+": _ARITHMETIC
    + _RANGES
    + _alike("interval money point path")
    + _either("date/int4 date/interval date/time date/timetz interval/time interval/timestamp")
    + _either("interval/timestamptz interval/timetz numeric/pg_lsn int8/inet")
    + _read_signatures("box/point circle/point path/point"),
    "-": _ARITHMETIC
    + _RANGES
    + _alike("date time timestamp timestamptz interval money inet pg_lsn point")
    + _read_signatures(
        "date/int4 date/interval time/interval timestamp/interval timestamptz/interval"
    )
    + _read_signatures("timetz/interval inet/int8 pg_lsn/numeric jsonb/int4 jsonb/text jsonb/_text")
    + _read_signatures("box/point circle/point path/point"),
    "*": _ARITHMETIC
    + _RANGES
    + _either("float8/interval float4/money float8/money int2/money int4/money int8/money")
    + _read_signatures("box/point circle/point path/point point/point"),
    "/": _ARITHMETIC
    + _read_signatures("interval/float8 money/float4 money/float8 money/int2 money/int4 money/int8")
    + _read_signatures("money/money box/point circle/point path/point point/point"),
    "%": _alike("int2 int4 int8 numeric"),
    "^": _alike("float8 numeric"),
    "||": _alike("text bytea jsonb tsquery tsvector varbit anycompatiblearray")
    + _either("text/anynonarray anycompatible/anycompatiblearray"),
    "&": _BITS,
    "|": _BITS,
    "#": _alike("int2 int4 int8 bit box line lseg"),
    "<<": _SHIFTS,
    ">>": _SHIFTS,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _COMPARED),
    "~~": [*_LIKE, ("bytea", "bytea")],
    "~~*": _LIKE,
    "~": _LIKE,
    "~*": _LIKE,
    "@>": _CONTAINED
    + _read_signatures("anyrange/anyelement box/point circle/point path/point polygon/point"),
    "<@": _CONTAINED
    + _read_signatures("anyelement/anyrange point/box point/circle point/path lseg/box"),
    **dict.fromkeys(("->", "->>"), _OF_JSON),
    **dict.fromkeys(("#>", "#>>"), _OF_PATHS),
    "?": _read_signatures("jsonb/text"),
    **dict.fromkeys(("?|", "?&", "#-"), _OF_KEYS),
    "@?": _read_signatures("jsonb/jsonpath"),
    "@@": _read_signatures("jsonb/jsonpath text/text"),
    "&&": _alike("anyarray anyrange anymultirange box circle inet polygon tsquery"),
}
UNARY: dict[str, list[Signature]] = {
    "+": _single(_NUMBERS),
    "-": _single(f"{_NUMBERS} interval"),
    "~": _single(f"{_INTEGERS} bit inet macaddr macaddr8"),
    "@": _single(_NUMBERS),
    "|/": _single("float8"),
    "||/": _single("float8"),
}
UNKNOWN = "unknown"


# Choosing an operator.


class NoOperator(TypeError):
    """No operator takes the types, or several do; the message begins with the verb."""


@lru_cache(maxsize=4_000)
def choose(symbol: str, given: tuple[str, ...]) -> Signature:
    """Return the signature of the operator that Postgres takes for types.

    >>> choose("+", ("time", "timestamp")), choose("-", ("unknown", "date"))
    (('interval', 'timestamp'), ('date', 'date'))

    Raises
    ------
    NoOperator: there is none, or there are several that fit equally well.
    """
    known = (OPERATORS if len(given) == 2 else UNARY)[symbol]
    alike = _alike_types(given)
    if alike in known:  # an untyped constant gets the type of the other operand
        return alike
    fitting = [each for each in known if _accepts(each, given)]
    if not fitting:
        raise NoOperator("has no operator")
    found = _chosen(fitting, given)
    if found is None:
        raise NoOperator("cannot choose an operator")
    return found


def _alike_types(given: Signature) -> Signature:
    """Return the types `given` with unknown ones replaced by the first known type, if any."""
    known = [name for name in given if name != UNKNOWN]
    return (known[0],) * len(given) if len(known) < len(given) and known else given


def _accepts(signature: Signature, given: Sequence[str]) -> bool:
    """Return True if each operand is of its type, or can be cast to it implicitly."""
    return all(map(_is_castable, given, signature)) and _agree(signature, given)


def _is_castable(of: str, to: str) -> bool:
    """Return True if an argument of type `of` can be passed as type `to` without a written cast."""
    is_array = of.startswith("_")
    if of in (UNKNOWN, to) or to in ("anyelement", "anycompatible"):
        return True
    if to in ("anyarray", "anycompatiblearray"):
        return is_array
    return not is_array if to == "anynonarray" else to in _IMPLICIT.get(of, ())


def _agree(signature: Signature, given: Sequence[str]) -> bool:
    """Return True if the types that stand for `anyarray` are one, or have a common type."""
    items = [
        name.removeprefix("_") if parameter.endswith("array") else name
        for parameter, name in zip(signature, given, strict=True)
        if parameter.startswith("any") and parameter != "anynonarray" and name != UNKNOWN
    ]
    if len(items) < 2 or items[0] == items[1]:
        return True
    if "anyarray" in signature or any(item not in TYPES for item in items):
        return False
    return common_type("postgres", "choice", *(TYPES[item] for item in items)) is not None


def _chosen(fitting: list[Signature], given: Sequence[str]) -> Signature | None:
    """Return the best of several operators; None if there is no best."""
    for score in (_exact_types, _preferred_types):
        fitting = _keep_best(fitting, [score(each, given) for each in fitting])
        if len(fitting) == 1:
            return fitting[0]
    if UNKNOWN not in given:
        return None
    fitting = _of_categories(fitting, given)
    if len(fitting) == 1:
        return fitting[0]
    known = {name for name in given if name != UNKNOWN}
    if len(known) != 1:
        return None
    alike = [each for each in fitting if _accepts(each, [*known] * len(given))]
    return alike[0] if len(alike) == 1 else None


def _keep_best(fitting: list[Signature], scores: list[int]) -> list[Signature]:
    """Return the signatures with the greatest of the scores."""
    most = max(scores)
    return [each for each, score in zip(fitting, scores, strict=True) if score == most]


def _exact_types(signature: Signature, given: Sequence[str]) -> int:
    """Return the number of arguments of types `given` whose type is exactly the parameter's."""
    return sum(of == to for of, to in zip(given, signature, strict=True))


def _preferred_types(signature: Signature, given: Sequence[str]) -> int:
    """Return the number of arguments whose type is exact, or the preferred one of its category."""
    return sum(
        of != UNKNOWN and (of == to or (to in _PREFERRED and _category(to) == _category(of)))
        for of, to in zip(given, signature, strict=True)
    )


def _category(name: str) -> str:
    return "A" if name.startswith("_") else _CATEGORY.get(name, "U")


def _of_categories(fitting: list[Signature], given: Sequence[str]) -> list[Signature]:
    """Keep the operators whose types at the places of unknown operands are of one category.

    `given` are the operand types. Return `fitting` unchanged if there is no such category, or
    if it keeps none.
    """
    wanted: dict[int, tuple[str, bool]] = {}
    for place in (place for place, name in enumerate(given) if name == UNKNOWN):
        names = [each[place] for each in fitting]
        categories = {_category(name) for name in names}
        if len(categories) > 1 and "S" not in categories:
            return fitting
        category = "S" if "S" in categories else categories.pop()
        has_preferred = any(n in _PREFERRED for n in names if _category(n) == category)
        wanted[place] = category, has_preferred
    kept = [
        each
        for each in fitting
        if all(
            _category(each[place]) == category and (not preferred or each[place] in _PREFERRED)
            for place, (category, preferred) in wanted.items()
        )
    ]
    return kept or fitting


# Operands.


def operands(symbol: str, node: Any, nodes: Sequence[exp.Expr], scope: Scope) -> list[TypedValue]:
    """Return the operands of an operator as values of the types that Postgres takes them for.

    Raises
    ------
    PlanError: Postgres has no such operator for their types, or a constant is no value of its type.
    """
    values = [scope.value(each) for each in nodes]
    return operand_values(symbol, node, nodes, values, scope)


def operand_values(
    symbol: str, node: Any, nodes: Sequence[exp.Expr], values: Sequence[TypedValue], scope: Scope
) -> list[TypedValue]:
    """Return `operands` of values that are known already."""
    given = [
        UNKNOWN if is_unknown(each) else pg_type_name(value.type)
        for each, value in zip(nodes, values, strict=True)
    ]
    names = tuple(name for name in given if name is not None)
    if len(names) < len(given):  # nothing is known of one of them
        return list(values)
    chosen = _choose_for(symbol, node, names, scope)
    others = values[::-1]
    return [
        _cast_to_parameter(value, name, parameter, other, node, scope)
        for value, name, parameter, other in zip(values, names, chosen, others, strict=True)
    ]


def against_elements(
    symbol: str, node: Any, one: exp.Expr, array: exp.Expr, scope: Scope
) -> tuple[TypedValue, TypedValue]:
    """Return the operands of an operator between a value and each element of an array.

    Raises
    ------
    PlanError: the other operand is no array, or the operator does not take its elements.
    """
    value, items = scope.value(one), scope.value(array)
    if is_unknown(array):
        items = TypedValue(items.expr, NULL, items.nulls)
    elif items.type.kind not in ("array", "any"):
        raise scope.error(node, "ANY and ALL of postgres take an array", "array[...]")
    given = (
        UNKNOWN if is_unknown(one) else pg_type_name(value.type),
        pg_type_name(innermost(items.type)),
    )
    if items.type.kind == "any" or given[0] is None or given[1] is None:
        return value, items
    chosen = _choose_for(symbol, node, (given[0], given[1]), scope)
    item = TYPES.get(chosen[1])
    if item is None:
        raise scope.error(node, f"postgres compares no elements of {_show_types(chosen[1])} here")
    of_array = SqlType("array", items=(item,))
    if is_unknown(array) and not is_null(items):
        items = read_constant(node, scope, scope.value(array), of_array)
    elif given[1] != chosen[1]:
        items = cast(items, of_array, scope)
    return _cast_to_parameter(value, given[0], chosen[0], items, node, scope), items


def _choose_for(symbol: str, node: Any, names: Signature, scope: Scope) -> Signature:
    """Return the types that an operator takes for the given arguments; refuse none or several."""
    try:
        return choose(symbol, names)
    except NoOperator as error:
        shown = " and ".join(map(_show_types, names))
        raise scope.error(
            node, f"postgres {error} {symbol} for {shown}", "cast one of them"
        ) from None


def _cast_to_parameter(
    value: TypedValue, given: str, parameter: str, other: TypedValue, node: Any, scope: Scope
) -> TypedValue:
    """Return an operand as a value of its parameter's type; refuse types that are not supported."""
    if given != UNKNOWN and (given == parameter or parameter.startswith("any")):
        return value
    kind = TYPES.get(parameter) or _stands_for(parameter, other.type)
    if kind is None:
        raise scope.error(
            node, f"postgres takes this for {parameter}, which is not supported", "cast it"
        )
    if given in ("date", "timestamp") and parameter == "timestamptz":
        return value  # it has to say which instant it is
    if given != UNKNOWN:
        return value if value.type.kind == kind.kind == "int" else cast(value, kind, scope)
    if value.type.kind == "null" or kind.kind == "text":
        return cast(value, kind, scope)
    return read_constant(node, scope, value, kind)


def _stands_for(parameter: str, other: SqlType) -> SqlType | None:
    """Return the type of a constant for a parameter such as `anyelement`; None for others."""
    if parameter in ("anyarray", "anycompatiblearray"):
        return other if other.kind == "array" else SqlType("array", items=(other,))
    if parameter in ("anycompatible", "anyelement"):
        return innermost(other)
    return TEXT if parameter == "anynonarray" else None


def _show_types(name: str) -> str:
    inner = name.removeprefix("_")
    return SHOWN.get(inner, inner) + "[]" * (inner != name)


def is_unknown(node: Any) -> bool:
    """Return True for a text that is written out, and of NULL: constants that have no type yet."""
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, exp.Null) or (isinstance(node, exp.Literal) and bool(node.is_string))


def pg_type_name(kind: SqlType) -> str | None:
    """Return the name that `pg_type` has for a type; None if it is not known.

    >>> pg_type_name(SqlType("array", items=(FLOAT,)))
    '_float8'
    """
    match kind.kind:
        case "any":
            return None
        case "null":
            return UNKNOWN
        case "struct":
            return "record"
        case "array":
            inner = pg_type_name(innermost(kind))
            return None if inner in (None, UNKNOWN) else f"_{inner}"
        case "int":
            return f"int{kind.size or 4}"
        case "float":
            return f"float{kind.size or 8}"
        case name:
            return {"decimal": "numeric", "bytes": "bytea"}.get(name, name)
