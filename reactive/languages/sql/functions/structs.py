"""The functions of STRUCT in DuckDB: a tuple of the values of its fields.

    {'a': 1}, struct_pack(a := 1), row(1, 2)        made of values
    struct_insert(s, c := 3), struct_concat(s, t)   with more fields
    struct_extract(s, 'a'), row(1, 2)[1]            a field

The names of fields are part of the type, so that a function of them is known when a query is made.
A struct that is NULL has fields that are NULL.

Cost: O(fields).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Call, Item, constant, tuple_of
from reactive.languages.sql.expressions.casts import equal_types
from reactive.languages.sql.runtime import arrays
from reactive.languages.sql.terms.calls import Maker, arguments, function_name
from reactive.languages.sql.terms.types import BOOL, INT, TEXT, SqlType, is_row, sql_name
from reactive.languages.sql.terms.values import (
    TypedValue,
    as_optional,
    literal_value,
    nullable_value,
    strict,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

Field = tuple[str, TypedValue]


def struct_of(node: Any, scope: Scope) -> TypedValue:
    """Return the struct of `{'a': 1}` or `struct_pack(a := 1)`."""
    if not node.expressions and function_name(node) == "struct":
        raise scope.error(node, "a struct has at least one field")
    return _pack(_named_values(node.expressions, node, scope), node, scope)


def row_of(node: Any, scope: Scope) -> TypedValue:
    """Return the struct of `row(1, 2)`, whose fields have places and no names."""
    for each in node.expressions:
        if isinstance(each, exp.PropertyEQ):
            raise scope.error(each, "a row has no names", "struct_pack(a := 1)")
    values = [scope.value(each) for each in node.expressions]
    return pack_row(values)


def pack_row(values: Sequence[TypedValue]) -> TypedValue:
    """Return values as one row."""
    names = tuple(f"column{place}" for place in range(len(values)))
    kind = SqlType("struct", items=tuple(v.type for v in values), names=names)
    return TypedValue(tuple_of(*map(as_optional, values)), kind)


def _named_values(nodes: Sequence[Any], node: Any, scope: Scope) -> list[Field]:
    """Return the names and values of `a := 1`, and of columns; refuse values without a name."""
    made = []
    for each in nodes:
        if isinstance(each, exp.Column) and not each.table:
            made.append((each.name, scope.value(each)))
            continue
        if not isinstance(each, exp.PropertyEQ):
            raise scope.error(each, f"{function_name(node)}() takes values with names", "a := 1")
        made.append((each.this.name, scope.value(each.expression)))
    return made


def _pack(fields: Sequence[Field], node: Any, scope: Scope) -> TypedValue:
    """Return the struct of fields; refuse a name that stands twice."""
    seen: set[str] = set()
    for name, _ in fields:
        if name.casefold() in seen:
            raise scope.error(node, f"a struct cannot have two fields {name!r}")
        seen.add(name.casefold())
    kind = SqlType(
        "struct",
        items=tuple(value.type for _, value in fields),
        names=tuple(name for name, _ in fields),
    )
    return TypedValue(tuple_of(*(as_optional(value) for _, value in fields)), kind)


def _struct_argument(node: Any, scope: Scope, call: Any) -> TypedValue:
    """Return an argument that is a struct; refuse other types."""
    value = scope.value(node)
    if value.type.kind != "struct":
        raise scope.error(
            node, f"{function_name(call)}() takes a STRUCT, and got {sql_name(value.type)}"
        )
    return value


def fields_in(value: TypedValue) -> list[Field]:
    """Return the names and values of the fields of a struct."""
    made = []
    for place, (name, kind) in enumerate(zip(value.type.names, value.type.items, strict=True)):
        read = Item(value.expr, constant(place))
        made.append((name, TypedValue(read, kind, (*value.nulls, read))))
    return made


def field_at(value: TypedValue, place: Any, node: Any, scope: Scope) -> TypedValue:
    """Return the field of a struct at a place, from 1 on; refuse a place without one."""
    found = fields_in(value)
    if not isinstance(place, exp.Literal) or place.is_string or not place.this.isdigit():
        raise scope.error(node, "the place of a field is a number that is written out")
    if not 1 <= int(place.this) <= len(found):
        raise scope.error(node, f"there is no field {place.this} in a row of {len(found)}")
    return found[int(place.this) - 1][1]


def extract(value: TypedValue, key: Any, node: Any, scope: Scope) -> TypedValue:
    """Return a field of a struct or object by its name, or of a row by its place."""
    is_place = isinstance(key, exp.Literal) and not key.is_string
    if value.type.kind == "struct" and is_place:
        if not is_row(value.type):
            raise scope.error(node, "a field of a struct with names is read by its name")
        return field_at(value, key, node, scope)
    return scope.field(value, str(key.name), node)


def _extract(node: Any, scope: Scope) -> TypedValue:
    """Translate STRUCT_EXTRACT."""
    return extract(scope.value(node.this), node.expression, node, scope)


def _extract_at(node: Any, scope: Scope) -> TypedValue:
    """Translate STRUCT_EXTRACT_AT."""
    of, place = _take(node, scope, 2)
    return field_at(_struct_argument(of, scope, node), place, node, scope)


def _take(node: Any, scope: Scope, count: int) -> list[Any]:
    """Return the arguments of a call; refuse another number of them."""
    nodes = arguments(node)
    if len(nodes) != count:
        raise scope.error(
            node, f"{function_name(node)}() takes {count} arguments, and got {len(nodes)}"
        )
    return nodes


def _change(node: Any, scope: Scope, *, inserts: bool) -> TypedValue:
    """Return a struct with more fields, or with other values of some fields."""
    nodes = arguments(node)
    if len(nodes) < 2:
        raise scope.error(node, f"{function_name(node)}() takes a struct and fields", "a := 1")
    value = _struct_argument(nodes[0], scope, node)
    if is_row(value.type):
        raise scope.error(node, f"{function_name(node)}() takes a struct with names")
    fields, given = fields_in(value), _named_values(nodes[1:], node, scope)
    if not inserts:
        new = {name.casefold(): (name, each) for name, each in given}
        known = {name.casefold() for name, _ in fields}
        _pack(given, node, scope)  # refuses a name that is given twice
        fields = [new.get(name.casefold(), (name, each)) for name, each in fields]
        given = [(name, each) for name, each in given if name.casefold() not in known]
    return _pack([*fields, *given], node, scope)


def _insert(node: Any, scope: Scope) -> TypedValue:
    """Translate STRUCT_INSERT."""
    return _change(node, scope, inserts=True)


def _update(node: Any, scope: Scope) -> TypedValue:
    """Translate STRUCT_UPDATE."""
    return _change(node, scope, inserts=False)


def _concatenate(node: Any, scope: Scope) -> TypedValue:
    """Translate STRUCT_CONCAT of structs, or of rows."""
    nodes = arguments(node)
    if not nodes:
        raise scope.error(node, "struct_concat() takes structs")
    values = [_struct_argument(each, scope, node) for each in nodes]
    if len({is_row(value.type) for value in values}) > 1:
        raise scope.error(node, "struct_concat() takes structs with names, or rows, and not both")
    fields = [field for value in values for field in fields_in(value)]
    if is_row(values[0].type):
        return pack_row([value for _, value in fields])
    return _pack(fields, node, scope)


def _keys(node: Any, scope: Scope) -> TypedValue:
    """Translate STRUCT_KEYS."""
    (of,) = _take(node, scope, 1)
    value = _struct_argument(of, scope, node)
    if is_row(value.type):
        raise scope.error(node, "a row has no names")
    return strict(literal_value(value.type.names).expr, SqlType("array", items=(TEXT,)), value)


def _values(node: Any, scope: Scope) -> TypedValue:
    """Translate STRUCT_VALUES: a row."""
    (of,) = _take(node, scope, 1)
    value = _struct_argument(of, scope, node)
    names = tuple(f"column{place}" for place in range(len(value.type.names)))
    kind = SqlType("struct", items=value.type.items, names=names)
    return TypedValue(value.expr, kind, value.nulls)


def _define_search(function: Any, kind: SqlType) -> Maker:
    """Make a function of a row, and of a value that may be one of its fields."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        of, item = _take(node, scope, 2)
        value = _struct_argument(of, scope, node)
        if not is_row(value.type):
            raise scope.error(node, f"{function_name(node)}() takes a row, without names")
        fields = [field for _, field in fields_in(value)]
        found, _ = equal_types((*fields, scope.value(item)), scope, node)
        items = strict(tuple_of(*map(as_optional, found[:-1])), value.type, value)
        given = (as_optional(items), as_optional(found[-1]))
        return nullable_value(Call(constant(function), given), kind)

    return translate


TABLE: dict[str | type[exp.Expr], Maker] = {
    exp.Struct: struct_of,
    "row": row_of,
    exp.StructExtract: _extract,
    "struct_extract_at": _extract_at,
    "struct_insert": _insert,
    "struct_update": _update,
    "struct_concat": _concatenate,
    "struct_keys": _keys,
    "struct_values": _values,
    **dict.fromkeys(("struct_contains", "struct_has"), _define_search(arrays.is_in, BOOL)),
    **dict.fromkeys(("struct_position", "struct_indexof"), _define_search(arrays.place_of, INT)),
}
