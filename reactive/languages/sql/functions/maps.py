"""The functions of MAP in DuckDB.

    map {'a': 1, 'b': 2}        (("a", 1), ("b", 2)), the pairs in the order of the text
    m['a'], map_extract(...)    the value of a key, the list of it
    map_entries(m)              the pairs, as structs with `key` and `value`: `m` itself

Maps are equal, and ordered, as the lists of their pairs are: other than in Python, the order of the
keys counts. Keys are unique and not NULL.

Cost: O(pairs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlglot import exp

from optimizer.expr import NONE, Call, Parameter, tuple_of
from reactive.languages.sql.expressions.casts import apply, cast, equal_types, maybe
from reactive.languages.sql.functions import arrays
from reactive.languages.sql.functions.structs import extract
from reactive.languages.sql.runtime.casts import map_of
from reactive.languages.sql.terms.calls import Maker, arguments, function_name
from reactive.languages.sql.terms.types import ANY, BOOL, INT, NULL, SqlType, sql_name
from reactive.languages.sql.terms.values import (
    NULL_VALUE,
    TypedValue,
    as_optional,
    callee,
    count_error_text,
    is_null,
    nullable_value,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

Entries: TypeAlias = tuple[tuple[Any, Any], ...]


# The functions at run time.


def of_lists(keys: tuple[Any, ...], values: tuple[Any, ...]) -> Entries:
    """Return the map of keys and their values.

    >>> of_lists((1, 2), ("a", None))
    ((1, 'a'), (2, None))
    """
    if len(keys) != len(values):
        raise ValueError("a map has as many keys as values")
    return map_of(zip(keys, values, strict=True))


def of_entries(entries: tuple[Any, ...]) -> Entries:
    """Return the map of a list of pairs; refuse a pair that is NULL."""
    if None in entries:
        raise ValueError("the keys of a map cannot be NULL")
    return map_of(entries)


def keys(entries: Entries) -> tuple[Any, ...]:
    """Return the keys of a map."""
    return tuple([key for key, _ in entries])


def values(entries: Entries) -> tuple[Any, ...]:
    """Return the values of a map."""
    return tuple([value for _, value in entries])


def _is_same(one: Any, other: Any) -> bool:
    return bool(one == other) or (one != one and other != other)


def found(entries: Entries | None, key: Any) -> tuple[Any, ...] | None:
    """Return the list of the value of a key, which is empty without it; None for no map.

    >>> found((("a", 1),), "a"), found((("a", 1),), None)
    ((1,), ())
    """
    if entries is None:
        return None
    return tuple([value for mine, value in entries if key is not None and _is_same(mine, key)])


def value_of(entries: Entries, key: Any) -> Any:
    """Return the value of a key; None without it."""
    return next((value for mine, value in entries if _is_same(mine, key)), None)


def has_key(entries: Entries | None, key: Any) -> bool | None:
    """Return True if a map has a key; None, for NULL, as `arrays.is_in` does."""
    return None if entries is None else _is_among(keys(entries), key)


def has_value(entries: Entries | None, value: Any) -> bool | None:
    """Return True if a map has a value; None, for NULL, as `arrays.is_in` does."""
    return None if entries is None else _is_among(values(entries), value)


def _is_among(items: tuple[Any, ...], item: Any) -> bool | None:
    if item is None:
        return None if items else False
    return any(_is_same(each, item) for each in items if each is not None)


def has_entry(entries: Entries | None, key: Any, value: Any) -> bool | None:
    """Return True if a map has a key with a value, which may be NULL; None for no map."""
    if entries is None:
        return None
    return any(mine == key and _is_same(own, value) for mine, own in entries)


def concatenated(*maps: Entries | None) -> Entries | None:
    """Return the pairs of several maps, of a key the last; None if all maps are NULL.

    >>> concatenated((("a", 1), ("b", 2)), None, (("a", 3),))
    (('a', 3), ('b', 2))
    """
    given = [each for each in maps if each is not None]
    if not given:
        return None
    made: dict[Any, Any] = {}
    for each in given:
        made |= dict(each)
    return tuple(made.items())


# Their translation.


def map_type(key: SqlType, value: SqlType) -> SqlType:
    """Return the type of maps."""
    return SqlType("map", items=(key, value))


def _list_type(kind: SqlType) -> SqlType:
    return SqlType("array", items=(kind,))


def _entry_type(kind: SqlType) -> SqlType:
    return SqlType("struct", items=kind.items, names=("key", "value"))


def _check_count(node: Any, scope: Scope, least: int, most: int | None) -> list[exp.Expr]:
    """Return the arguments of a call; refuse fewer or more of them."""
    nodes = arguments(node)
    if len(nodes) < least or (most is not None and len(nodes) > most):
        told = count_error_text(least, most, len(nodes))
        raise scope.error(node, f"{function_name(node)}() {told}")
    return nodes


def _translate_literal(node: Any, scope: Scope) -> TypedValue:
    """Translate `map {key: value, ...}`."""
    pairs = [(each.this, each.expression) for each in node.this.expressions]
    if not pairs:
        return TypedValue(tuple_of(), map_type(NULL, NULL))
    # The parser takes a bare name before the colon for a name; it is a column.
    own = [exp.Column(this=k) if isinstance(k, exp.Identifier) else k for k, _ in pairs]
    of_keys, key = equal_types(tuple(map(scope.value, own)), scope, node)
    of_values, value = equal_types(tuple(scope.value(each) for _, each in pairs), scope, node)
    lists = [tuple_of(*map(as_optional, each)) for each in (of_keys, of_values)]
    return TypedValue(Call(callee(of_lists), tuple(lists)), map_type(key, value))


def _translate_map(node: Any, scope: Scope) -> TypedValue:
    """Translate `map(keys, values)` and `map()`."""
    nodes = _check_count(node, scope, 0, 2)
    if not nodes:
        return TypedValue(tuple_of(), map_type(NULL, NULL))
    if len(nodes) == 1:
        raise scope.error(node, "map() takes a list of keys and a list of values")
    lists = [scope.value(each) for each in nodes]
    for each, value in zip(nodes, lists, strict=True):
        if value.type.kind not in ("array", "null", "any"):
            raise scope.error(each, f"map() takes lists, and got {sql_name(value.type)}")
    kind = map_type(*[v.type.items[0] if v.type.items else NULL for v in lists])
    return apply(of_lists, kind, *lists)


def _translate_entries(node: Any, scope: Scope) -> TypedValue:
    """Translate MAP_FROM_ENTRIES of a list of structs, or rows, of two fields."""
    (of,) = _check_count(node, scope, 1, 1)
    value = scope.value(of)
    if is_null(value):
        return NULL_VALUE
    inner = value.type.items[0] if value.type.items else ANY
    if inner.kind in ("any", "null") and value.type.kind in ("array", "any"):
        return apply(of_entries, map_type(ANY, ANY), value)
    if value.type.kind != "array" or inner.kind != "struct" or len(inner.items) != 2:
        raise scope.error(
            of, f"map_from_entries() takes structs of two fields, and got {sql_name(value.type)}"
        )
    return apply(of_entries, map_type(*inner.items), value)


def _map_argument(node: Any, scope: Scope) -> TypedValue:
    """Return an argument that is a map; refuse other types."""
    value = scope.value(node)
    if value.type.kind not in ("map", "any", "null"):
        raise scope.error(node, f"{sql_name(value.type)} is no MAP")
    return value


def _define_part(function: Callable[..., Any] | None, result: Callable[..., SqlType]) -> Maker:
    """Make a function of a map, whose type `result` says; without one its value is the map."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        (of,) = _check_count(node, scope, 1, 1)
        value = _map_argument(of, scope)
        kind = result(value.type if value.type.items else map_type(ANY, ANY))
        if function is None or is_null(value):
            return TypedValue(value.expr, kind, value.nulls)
        return apply(function, kind, value)

    return translate


def _with_items(
    value: TypedValue, node: Any, scope: Scope, given: dict[int, TypedValue]
) -> tuple[TypedValue, list[TypedValue]]:
    """Return a map, and keys or values to look for in it, both of their common types.

    `given` has them by their place in a pair: 0 for a key, 1 for a value.
    """
    if not value.type.items:
        return value, list(given.values())
    kinds, made = list(value.type.items), []
    for place, item in given.items():
        mine = TypedValue(Parameter(0), kinds[place])
        (_, item), kinds[place] = equal_types((mine, item), scope, node)
        made.append(item)
    return cast(value, map_type(*kinds), scope), made


def _define_look_up(
    function: Callable[..., Any], result: SqlType | None, *places: int, is_list: bool = False
) -> Maker:
    """Make a function of a map, and of a key or value that it is asked for.

    Its type is `result`; without one that of the values, or with `is_list` of lists of them.
    """

    def translate(node: Any, scope: Scope) -> TypedValue:
        of, *others = _check_count(node, scope, len(places) + 1, len(places) + 1)
        value = _map_argument(of, scope)
        kind = result or (value.type.items[1] if value.type.items else ANY)
        kind = _list_type(kind) if is_list else kind
        asked = dict(zip(places, map(scope.value, others), strict=True))
        if is_null(value):
            return TypedValue(value.expr, kind, value.nulls)
        value, items = _with_items(value, node, scope, asked)
        given = tuple(map(as_optional, (value, *items)))
        return nullable_value(Call(callee(function), given), kind)

    return translate


def _bracket(node: Any, scope: Scope) -> TypedValue:
    """Translate `m[key]` and `s['field']`; brackets behind other values are those of arrays."""
    value = scope.value(node.this)
    if value.type.kind == "struct" or value.type.record is not None:
        return extract(value, node.expressions[0], node, scope)
    if value.type.kind != "map":
        return arrays.bracket(node, scope)
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        raise scope.error(node, "a map is read by one key")
    return look_up(value, scope.value(node.expressions[0]), node, scope)


def look_up(value: TypedValue, key: TypedValue, node: Any, scope: Scope) -> TypedValue:
    """Return the value of a key in a map; NULL without it."""
    kind = value.type.items[1] if value.type.items else ANY
    value, (key,) = _with_items(value, node, scope, {0: key})
    if is_null(value) or is_null(key):
        return TypedValue(NONE, kind, (NONE,))
    return maybe(value_of, kind, value, key)


def _key_value(node: Any, scope: Scope) -> TypedValue:
    """Translate MAP_EXTRACT_VALUE."""
    of, key = _check_count(node, scope, 2, 2)
    value, asked = _map_argument(of, scope), scope.value(key)
    return look_up(value, asked, node, scope)


def _concatenate(node: Any, scope: Scope) -> TypedValue:
    """Translate MAP_CONCAT, which leaves out maps that are NULL."""
    nodes = _check_count(node, scope, 2, None)
    found = tuple(_map_argument(each, scope) for each in nodes)
    made, kind = equal_types(found, scope, node)
    if all(map(is_null, made)):
        return NULL_VALUE
    call = Call(callee(concatenated), tuple(map(as_optional, made)))
    return nullable_value(call, kind) if all(v.nullable for v in made) else TypedValue(call, kind)


def _cardinality(node: Any, scope: Scope) -> TypedValue:
    """Translate CARDINALITY of a map or a list."""
    (of,) = _check_count(node, scope, 1, 1)
    value = scope.value(of)
    if value.type.kind not in ("map", "array", "any", "null"):
        raise scope.error(of, f"cardinality() takes a MAP or a list, and no {sql_name(value.type)}")
    return apply(len, INT, value)


TABLE: dict[str | type[exp.Expr], Maker] = {
    exp.ToMap: _translate_literal,
    exp.Map: _translate_map,
    exp.MapFromEntries: _translate_entries,
    exp.MapKeys: _define_part(keys, lambda kind: _list_type(kind.items[0])),
    exp.Bracket: _bracket,
    "map_values": _define_part(values, lambda kind: _list_type(kind.items[1])),
    "map_entries": _define_part(None, lambda kind: _list_type(_entry_type(kind))),
    "map_extract": _define_look_up(found, None, 0, is_list=True),
    "element_at": _define_look_up(found, None, 0, is_list=True),
    "map_extract_value": _key_value,
    "map_contains": _define_look_up(has_key, BOOL, 0),
    "map_contains_value": _define_look_up(has_value, BOOL, 1),
    "map_contains_entry": _define_look_up(has_entry, BOOL, 0, 1),
    "map_concat": _concatenate,
    "cardinality": _cardinality,
}
