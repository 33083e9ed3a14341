"""The functions of lists in DuckDB that read several elements together.

list_zip([1, 2], ['a'])       rows of the elements at each place
flatten([[1], [2, 3]])        the elements of the elements
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Call, constant
from reactive.languages.sql.expressions.casts import apply, argument, cast, maybe
from reactive.languages.sql.functions import texts
from reactive.languages.sql.functions.arrays import cast_arguments, element_type
from reactive.languages.sql.functions.structs import pack_row
from reactive.languages.sql.runtime import lists
from reactive.languages.sql.terms.calls import Maker, arguments, function_name
from reactive.languages.sql.terms.types import ANY, BOOL, FLOAT, INT, NULL, SqlType, sql_name
from reactive.languages.sql.terms.values import (
    NULL_VALUE,
    TypedValue,
    as_optional,
    is_null,
    literal_value,
    nullable_value,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

FLOATS = SqlType("array", items=(FLOAT,))


def list_of(kind: SqlType) -> SqlType:
    """Return the type of lists of a type."""
    return SqlType("array", items=(kind,))


def _list_argument(value: TypedValue, node: Any, scope: Scope) -> TypedValue:
    """Return an argument that is a list or NULL; refuse others."""
    if value.type.kind not in ("array", "null"):
        got = sql_name(value.type)
        raise scope.error(node, f"{function_name(node)}() takes a list, and got {got}")
    return value


def flatten(node: Any, scope: Scope) -> TypedValue:
    """Translate FLATTEN of a list of lists."""
    (array,) = cast_arguments(node, scope, ANY)
    return flattened(_list_argument(array, node, scope), node, scope)


def flattened(array: TypedValue, node: Any, scope: Scope) -> TypedValue:
    """Return the elements of the lists in a list; refuse a list of other values."""
    if is_null(array):
        return NULL_VALUE
    inner = element_type(array)
    if inner.kind not in ("array", "null"):
        raise scope.error(node, f"{sql_name(array.type)} is no list of lists")
    return apply(lists.flattened, inner if inner.items else list_of(NULL), array)


def _zip(node: Any, scope: Scope) -> TypedValue:
    """Translate LIST_ZIP; a last argument TRUE ends it with the shortest list."""
    nodes = list(arguments(node))
    is_short = False
    if len(nodes) > 1 and isinstance(nodes[-1], exp.Boolean):
        is_short = bool(nodes.pop().this)
    if not nodes:
        raise scope.error(node, f"{function_name(node)}() takes at least one list")
    values = [_list_argument(scope.value(each), node, scope) for each in nodes]
    row = pack_row([TypedValue(each.expr, element_type(each)) for each in values])
    function = lists.shortest_zipped if is_short else lists.zipped
    return TypedValue(Call(constant(function), tuple(map(as_optional, values))), list_of(row.type))


def _choose(function: Callable[..., Any], of: SqlType) -> Maker:
    """Make a function of a list, and a list of tests or places."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        array, other = cast_arguments(node, scope, ANY, ANY)
        if is_null(array) or is_null(other):
            return NULL_VALUE
        array = _list_argument(array, node, scope)
        return apply(function, array.type, array, cast(other, list_of(of), scope))

    return translate


def _resize(node: Any, scope: Scope) -> TypedValue:
    """Translate LIST_RESIZE."""
    array, size, *filler = cast_arguments(node, scope, ANY, INT, ANY, optional=1)
    if is_null(array):
        return NULL_VALUE
    kind = element_type(_list_argument(array, node, scope))
    given = [cast(each, kind, scope) for each in filler]
    values = tuple(map(as_optional, (array, size, *given)))
    return nullable_value(Call(constant(lists.resized), values), array.type)


def _rank(node: Any, scope: Scope) -> TypedValue:
    """Translate LIST_GRADE_UP with its order and place of NULL."""
    nodes = list(arguments(node))
    words = [each.name.upper() for each in nodes[1:] if isinstance(each, exp.Literal)]
    known = [("ASC", "DESC"), ("NULLS LAST", "NULLS FIRST")]
    if len(words) != len(nodes) - 1 or len(words) > 2 or not nodes:
        raise scope.error(node, "list_grade_up() takes a list, 'ASC' or 'DESC', 'NULLS FIRST'")
    for word, each, choice in zip(words, nodes[1:], known, strict=False):
        if word not in choice:
            raise scope.error(each, f"{word!r} is none of {', '.join(choice)}")
    array = _list_argument(scope.value(nodes[0]), node, scope)
    is_descending, nulls_first = words[:1] == ["DESC"], words[1:] == ["NULLS FIRST"]
    return apply(
        lists.ranks, list_of(INT), array, literal_value(is_descending), literal_value(nulls_first)
    )


def _of_vectors(function: Callable[..., Any], *, nullable: bool = False) -> Maker:
    """Make a function of two lists of numbers."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        values = cast_arguments(node, scope, ANY, ANY)
        if any(map(is_null, values)):
            return NULL_VALUE
        vectors = [argument(_list_argument(v, node, scope), FLOATS, scope) for v in values]
        return (maybe if nullable else apply)(function, FLOAT, *vectors)

    return translate


def _repeat(node: Any, scope: Scope) -> TypedValue:
    """Translate REPEAT of a text or a list."""
    if scope.value(node.this).type.kind != "array":
        return texts.TEXT_FUNCTIONS[exp.Repeat](node, scope)
    array, times = cast_arguments(node, scope, ANY, INT)
    return NULL_VALUE if is_null(times) else apply(lists.repeated, array.type, array, times)


def _names(word: str) -> tuple[str, str]:
    return f"list_{word}", f"array_{word}"


TABLE: dict[str | type[exp.Expr], Maker] = {
    exp.Repeat: _repeat,
    "flatten": flatten,
    exp.Flatten: flatten,
    **dict.fromkeys(_names("zip"), _zip),
    **dict.fromkeys(_names("where"), _choose(lists.kept, BOOL)),
    **dict.fromkeys(_names("select"), _choose(lists.chosen, INT)),
    **dict.fromkeys(_names("resize"), _resize),
    **dict.fromkeys(_names("grade_up"), _rank),
    **dict.fromkeys(("list_inner_product", "list_dot_product"), _of_vectors(lists.inner_product)),
    "list_negative_inner_product": _of_vectors(lists.negative_inner_product),
    "list_negative_dot_product": _of_vectors(lists.negative_inner_product),
    exp.EuclideanDistance: _of_vectors(lists.distance),
    "list_cosine_similarity": _of_vectors(lists.cosine, nullable=True),
    exp.CosineDistance: _of_vectors(lists.cosine_distance, nullable=True),
}
