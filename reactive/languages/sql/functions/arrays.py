"""The functions of arrays.

How a line of a table of functions becomes a value.

exp.Left: make_function(texts.left, TEXT, TEXT, INT)      left(text, integer) gives a text
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Call, Constant, Parameter, constant, tuple_of
from reactive.languages.sql.expressions.casts import apply, argument, cast, equal_types, maybe
from reactive.languages.sql.json import trees
from reactive.languages.sql.runtime import arrays
from reactive.languages.sql.terms.calls import Maker, arguments, function_name
from reactive.languages.sql.terms.folding import with_folded_constants
from reactive.languages.sql.terms.types import (
    ANY,
    BOOL,
    FLOAT,
    INSTANT,
    INT,
    TEXT,
    TIMESTAMP,
    SqlType,
    sql_name,
)
from reactive.languages.sql.terms.values import (
    NULL_VALUE,
    TypedValue,
    as_optional,
    check_arguments,
    count_error_text,
    is_null,
    literal_value,
    nullable_value,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope


NO_TEXTS = frozenset(
    {"int", "float", "decimal", "bool", "date", "time", "timestamp", "interval"} | {"bytes"}
)
"""Kinds that DuckDB makes no text of where a function takes one."""
SAME = SqlType("any", size=0)
"""In the place of a result: the type of the first argument."""


def make_function(
    function: Callable[..., Any],
    result: SqlType,
    *parameters: SqlType,
    optional: int = 0,
    nullable: bool = False,
) -> Maker:
    """Make a function that is NULL where an argument is; if it is `nullable`, elsewhere too.

    `parameters` are the types that it takes, `ANY` for any; the last `optional` may be left out.
    Without parameters it takes as many of any type as it is given.
    """

    def translate(node: Any, scope: Scope) -> TypedValue:
        values = cast_arguments(node, scope, *parameters, optional=optional)
        if any(map(is_null, values)):
            return NULL_VALUE
        kind = values[0].type if result is SAME else result
        return (maybe if nullable else apply)(function, kind, *values)

    return translate


def cast_arguments(
    node: Any, scope: Scope, *parameters: SqlType, optional: int = 0
) -> list[TypedValue]:
    """Return the values of the arguments, cast to the types that a function takes.

    Raises
    ------
    PlanError: there are too few or too many.
    """
    nodes = arguments(node)
    if parameters and not len(parameters) - optional <= len(nodes) <= len(parameters):
        told = count_error_text(len(parameters) - optional, len(parameters), len(nodes))
        raise scope.error(node, f"{function_name(node)}() {told}")
    values = [scope.value(each) for each in nodes]
    kinds = (*parameters, *[ANY] * len(values))
    for value, kind in zip(values, kinds, strict=False):
        if value.type.kind == "uuid" and kind.kind not in ("any", "uuid"):
            raise scope.error(node, f"{function_name(node)}() takes no UUID", "cast it to text")
        if kind.kind == "text" and value.type.kind in NO_TEXTS and scope.dialect.name == "duckdb":
            raise scope.error(
                node,
                f"duckdb has no {function_name(node)}() of {sql_name(value.type)}",
                "cast it to text",
            )
    return [
        value if kind.kind == "any" else argument(value, kind, scope)
        for value, kind in zip(values, kinds, strict=False)
    ]


def strings(node: Any) -> str:
    """Return the text of a constant argument, as the name of a unit."""
    return str(node.name)


def array_of(node: Any, scope: Scope) -> TypedValue:
    """Return the value of `[a, b]` or `ARRAY[a, b]`; refuse too many levels of arrays."""
    values, kind = equal_types(tuple(scope.value(each) for each in node.expressions), scope, node)
    made = SqlType("array", items=(kind,))
    if _count_array_levels(made) > MOST_LEVELS:
        raise scope.error(node, f"arrays are nested more than {MOST_LEVELS} levels deep")
    return TypedValue(tuple_of(*map(as_optional, values)), made)


MOST_LEVELS = 100
"""Levels of arrays in arrays; values that are deeper cannot be hashed or compared."""


def _count_array_levels(kind: SqlType) -> int:
    """Return the number of levels of arrays."""
    found = 0
    while kind.kind == "array":
        found, kind = found + 1, kind.items[0]
    return found


def element_type(value: TypedValue) -> SqlType:
    """Return the type of the elements of an array."""
    if value.type.kind == "text":
        return TEXT
    return value.type.items[0] if value.type.kind == "array" and value.type.items else ANY


def _element(node: Any, scope: Scope) -> TypedValue:
    array, place = cast_arguments(node, scope)
    return maybe(arrays.element, element_type(array), array, place)


def bracket(node: Any, scope: Scope) -> TypedValue:
    """Translate `a[1]` and `a[1:2]`."""
    value = scope.value(node.this)
    place = scope.slice_of(node.expressions[0])
    if isinstance(place, exp.Slice):
        first, last = (place.args.get(each) for each in ("this", "expression"))
        ends = (
            scope.value(each) if each is not None else TypedValue(constant(number), INT)
            for each, number in ((first, 1), (last, -1))
        )
        return apply(arrays.slice_of, value.type, value, *ends)
    if value.type.kind == "json":
        return maybe(trees.item, value.type, value, scope.value(place))
    return maybe(arrays.element, element_type(value), value, scope.value(place))


def _translate_series(node: Any, scope: Scope) -> TypedValue:
    """Translate RANGE and GENERATE_SERIES."""
    return series_of(node, scope, None)


def series_of(node: Any, scope: Scope, most: int | None) -> TypedValue:
    """Return the array of RANGE or GENERATE_SERIES; its first `most` elements, if not None.

    Raises
    ------
    PlanError: there is no series from values of these types.
    """
    is_range = bool(node.args.get("is_end_exclusive"))
    parts = [node.args.get(each) for each in ("start", "end", "step")]
    values = [scope.value(each) for each in parts if isinstance(each, exp.Expr)]
    kinds = [value.type.kind for value in values]
    limit = [] if most is None else [literal_value(most)]
    if set(kinds) <= {"int", "null", "any", "bool"}:
        if len(values) == 2 and limit:
            values.append(literal_value(1))
        function = arrays.numbers if is_range else arrays.series
        return apply(function, SqlType("array", items=(INT,)), *values, *limit)
    moments = {"date", "timestamp", "timestamptz", "null"}
    if len(kinds) != 3 or kinds[2] not in ("interval", "null") or not {*kinds[:2]} <= moments:
        names = ", ".join(sql_name(value.type) for value in values)
        raise scope.error(
            node,
            f"there is no {'range' if is_range else 'generate_series'} of {names}",
            "give two integers, or two moments and an INTERVAL",
        )
    kind, zone = TIMESTAMP, ""
    if "timestamptz" in kinds:
        kind, zone = INSTANT, scope.dialect.timezone
        values[:2] = [cast(value, INSTANT, scope) for value in values[:2]]
    more = (literal_value(most or MOST), literal_value(zone), literal_value(not is_range))
    return apply(arrays.moments, SqlType("array", items=(kind,)), *values, *more)


MOST = arrays.MOST_ELEMENTS + 1


def _define_of_element(function: Any) -> Maker:
    """Return the maker of a function from an array to a value of its elements' type, or NULL."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        (value,) = cast_arguments(node, scope)
        return maybe(function, element_type(value), value)

    return translate


def _concatenate_arrays(node: Any, scope: Scope) -> TypedValue:
    """Return the concatenation of arrays; DuckDB skips those that are NULL."""
    values, kind = equal_types(tuple(cast_arguments(node, scope)), scope, node)
    if scope.dialect.name == "duckdb":
        items = tuple(map(as_optional, values))
        check_arguments(arrays.concatenated_of_all, [v for v in values if not is_null(v)])
        return nullable_value(Call(constant(arrays.concatenated_of_all), items), kind)
    made = values[0]
    for value in values[1:]:
        made = apply(arrays.concatenated, kind, made, value)
    return made


def _define_with_element(
    function: Callable[..., Any],
    result: SqlType,
    *,
    nullable: bool = False,
    knows_null: bool = False,
) -> Maker:
    """Make a function of an array and a possible element of it, both of one type.

    With `knows_null` the function is also called for NULL.
    """

    def translate(node: Any, scope: Scope) -> TypedValue:
        array, item = cast_arguments(node, scope, ANY, ANY)
        if is_null(array) or (is_null(item) and not knows_null):
            return NULL_VALUE
        if array.type.kind == "array":
            of_item = TypedValue(Parameter(0), element_type(array))
            (_, item), kind = equal_types((of_item, item), scope, node)
            array = cast(array, SqlType("array", items=(kind,)), scope)
        kind = array.type if result is SAME else result
        if knows_null:
            check_arguments(function, (array, item))
            return nullable_value(
                Call(constant(function), (as_optional(array), as_optional(item))), kind
            )
        return (maybe if nullable else apply)(function, kind, array, item)

    return translate


def _define_extension(*, is_first: bool) -> Maker:
    """Make LIST_APPEND or LIST_PREPEND, which treat a NULL array as empty."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        array, item = cast_arguments(node, scope, ANY, ANY)  # sqlglot has the array first
        if array.type.kind not in ("array", "null"):
            got = sql_name(array.type)
            raise scope.error(node, f"{function_name(node)}() takes an array, and got {got}")
        of_item = (
            TypedValue(Parameter(0), element_type(array)) if array.type.kind == "array" else item
        )
        (_, item), kind = equal_types((of_item, item), scope, node)
        made = SqlType("array", items=(kind,))
        array = cast(array, made, scope)
        function = arrays.prepended if is_first else arrays.appended
        return TypedValue(Call(constant(function), (as_optional(array), as_optional(item))), made)

    return translate


def _array_to_string(node: Any, scope: Scope) -> TypedValue:
    """Translate ARRAY_TO_STRING; refuse a separator that is not constant."""
    array, separator = cast_arguments(node, scope, ANY, TEXT)
    known = with_folded_constants(separator.expr)
    if not isinstance(known, Constant):
        raise scope.error(
            node,
            f"duckdb has no {function_name(node)}() by a separator that a row says",
            "write the separator",
        )
    return maybe(arrays.Joined(known.value), TEXT, array)


def _sort_list(node: Any, scope: Scope) -> TypedValue:
    """Translate LIST_SORT and LIST_REVERSE_SORT; NULL is last unless the call says otherwise."""
    value = scope.value(node.this)
    ways = [_is_true(node.args.get(name)) for name in ("asc", "nulls_first")]
    is_ascending = node.args.get("asc") is None or ways[0]
    return apply(
        arrays.in_order, value.type, value, literal_value(not is_ascending), literal_value(ways[1])
    )


def _is_true(node: Any) -> bool:
    return isinstance(node, exp.Boolean) and bool(node.this)


TABLE: dict[str | type[exp.Expr], Maker] = {
    exp.Array: array_of,
    exp.Bracket: bracket,
    exp.ArraySize: make_function(len, INT, ANY),
    exp.ArrayContains: _define_with_element(arrays.is_in, BOOL, knows_null=True),
    exp.ArrayContainsAll: make_function(arrays.contains_all, BOOL, ANY, ANY),
    # Earlier releases of sqlglot turn `a <@ b` around, and have no class for it.
    **(
        {exp.ArrayContainedBy: make_function(arrays.contained_by, BOOL, ANY, ANY)}
        if hasattr(exp, "ArrayContainedBy")
        else {}
    ),
    exp.ArrayOverlaps: make_function(arrays.contains_any, BOOL, ANY, ANY),
    exp.ArrayConcat: _concatenate_arrays,
    exp.ArrayAppend: _define_extension(is_first=False),
    exp.ArrayPrepend: _define_extension(is_first=True),
    exp.ArrayReverse: make_function(arrays.backwards, SAME, ANY),
    exp.ArrayPosition: _define_with_element(arrays.place_of, INT, knows_null=True),
    "list_has_all": make_function(arrays.contains_all, BOOL, ANY, ANY),
    "list_has_any": make_function(arrays.contains_any, BOOL, ANY, ANY),
    "list_first": _define_of_element(arrays.first),
    "list_last": _define_of_element(arrays.last),
    "list_any_value": _define_of_element(arrays.any_value),
    "list_unique": make_function(arrays.different, INT, ANY),
    "list_indexof": _define_with_element(arrays.place_of, INT, knows_null=True),
    "array_indexof": _define_with_element(arrays.place_of, INT, knows_null=True),
    exp.ArrayDistinct: make_function(arrays.distinct, SAME, ANY),
    exp.ArraySort: _sort_list,
    exp.ArrayMin: _define_of_element(arrays.least),
    exp.ArrayMax: _define_of_element(arrays.greatest),
    exp.ArrayToString: _array_to_string,
    exp.GenerateSeries: _translate_series,
    "list_position": _define_with_element(arrays.place_of, INT, knows_null=True),
    "array_position": _define_with_element(arrays.place_of, INT, knows_null=True),
    "list_reverse": make_function(arrays.backwards, SAME, ANY),
    "array_reverse": make_function(arrays.backwards, SAME, ANY),
    "list_slice": make_function(arrays.slice_of, SAME, ANY, INT, INT),
    "array_slice": make_function(arrays.slice_of, SAME, ANY, INT, INT),
    "list_extract": _element,
    "list_element": _element,
    "array_extract": _element,
    "list_sum": _define_of_element(arrays.total),
    "list_avg": make_function(arrays.mean, FLOAT, ANY, nullable=True),
}
