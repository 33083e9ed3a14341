"""Operators and functions of JSON in DuckDB, as expressions.

    j -> '$.a'            trees.extract(j, "$.a")
    j -> '$.a[*]'         trees.found_at(j, "$.a[*]"), a list
    from_json(j, '["INTEGER"]')     conversions.Read of a list of integers

A text is read as JSON wherever a function takes JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from optimizer.expr import Call, Constant, tuple_of
from reactive.languages.sql.expressions.casts import maybe, part_cast
from reactive.languages.sql.json import conversions, trees
from reactive.languages.sql.json.conversions import Encoder
from reactive.languages.sql.terms.calls import Maker, arguments, function_name
from reactive.languages.sql.terms.types import (
    BOOL,
    JSON,
    TEXT,
    SqlType,
    sql_name,
    type_of_sql,
)
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

UNSIGNED = SqlType("int", size=8, names=("unsigned",))
READ = frozenset({"text", "json", "any", "null"})
"""Kinds of values that are read as JSON."""


def list_of(kind: SqlType) -> SqlType:
    """Return the type of lists of a type."""
    return SqlType("array", items=(kind,))


ROWS = list_of(
    SqlType(
        "struct",
        items=(TEXT, JSON, TEXT, JSON, UNSIGNED, UNSIGNED, TEXT, TEXT),
        names=("key", "value", "type", "atom", "id", "parent", "fullkey", "path"),
    )
)


def document(node: Any, scope: Scope) -> TypedValue:
    """Return an argument that is read as JSON; refuse other types."""
    value = scope.value(node)
    if value.type.kind not in READ:
        raise scope.error(
            node, f"{sql_name(value.type)} is no JSON in duckdb", "to_json(...) makes it JSON"
        )
    return value


def _path(node: Any, scope: Scope) -> TypedValue:
    """Return a path; refuse a constant that is none."""
    value = scope.value(node)
    if value.type.kind not in ("text", "int", "any", "null"):
        raise scope.error(node, "a path of JSON is a text or an integer", "'$.key', '$[0]'")
    path = constant_of(value)
    if isinstance(path, str):
        try:
            trees.read_steps(path)
        except ValueError as error:
            raise scope.error(node, str(error)) from None
    return value


def constant_of(value: TypedValue) -> Any:
    """Return the value of a constant; None of others."""
    return value.expr.value if isinstance(value.expr, Constant) else None


def _define_at(of_one: Any, kind: SqlType, of_several: Any = None) -> Maker:
    """Make a function of JSON and a path; `of_several`: that of a path with wildcards."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        nodes = arguments(node)
        if not 1 <= len(nodes) <= 2:
            told = count_error_text(1, 2, len(nodes))
            raise scope.error(node, f"{function_name(node)}() {told}")
        value = document(nodes[0], scope)
        if len(nodes) == 1:
            return maybe(of_one, kind, value)
        if isinstance(nodes[1], exp.Array):
            return _of_paths(of_one, kind, value, nodes[1], scope)
        return at_path(of_one, kind, of_several, value, nodes[1], scope)

    return translate


def at_path(
    of_one: Any, kind: SqlType, of_several: Any, value: TypedValue, node: Any, scope: Scope
) -> TypedValue:
    """Return a function of JSON at a path."""
    path = _path(node, scope)
    constant_path = constant_of(path)
    if constant_path is not None and not is_null(path) and trees.is_wild(constant_path):
        if of_several is None:
            raise scope.error(node, "a path with wildcards is not supported here")
        return maybe(of_several, list_of(kind), value, path)
    return maybe(of_one, kind, value, path)


def _of_paths(of_one: Any, kind: SqlType, value: TypedValue, node: Any, scope: Scope) -> TypedValue:
    """Return the list of a function at each of some paths."""
    parts = [as_optional(maybe(of_one, kind, value, _path(e, scope))) for e in node.expressions]
    return TypedValue(tuple_of(*parts), list_of(kind), value.nulls)


EXTRACT = _define_at(trees.extract, JSON, trees.found_at)
EXTRACT_TEXT = _define_at(trees.extract_text, TEXT, trees.texts_at)


def _define(function: Any, kind: SqlType, count: int = 1) -> Maker:
    """Make a function of some arguments that are read as JSON."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        nodes = arguments(node)
        if len(nodes) != count:
            told = count_error_text(count, count, len(nodes))
            raise scope.error(node, f"{function_name(node)}() {told}")
        return maybe(function, kind, *[document(each, scope) for each in nodes])

    return translate


def encoder_of(kind: SqlType, scope: Scope) -> Encoder:
    """Return the encoder of values of a type."""
    return conversions.encoder(kind, lambda of, to: part_cast(of, to, scope))


def _to_json(node: Any, scope: Scope) -> TypedValue:
    """Translate TO_JSON, JSON_QUOTE, ROW_TO_JSON and ARRAY_TO_JSON."""
    nodes = arguments(node)
    if len(nodes) != 1:
        raise scope.error(node, f"{function_name(node)}() {count_error_text(1, 1, len(nodes))}")
    value = scope.value(nodes[0])
    if is_null(value):
        return NULL_VALUE
    return maybe(conversions.JsonWriter(encoder_of(value.type, scope)), JSON, value)


def _array(node: Any, scope: Scope) -> TypedValue:
    """Translate JSON_ARRAY."""
    values = [scope.value(each) for each in node.expressions]
    function = conversions.JsonArrayWriter(tuple(encoder_of(each.type, scope) for each in values))
    return TypedValue(Call(callee(function), tuple(map(as_optional, values))), JSON)


def _object(node: Any, scope: Scope) -> TypedValue:
    """Translate JSON_OBJECT of keys and values in turn."""
    nodes = []
    for each in node.expressions:
        is_pair = isinstance(each, exp.JSONKeyValue)
        nodes += [each.this, each.expression] if is_pair else [each]
    if len(nodes) % 2:
        raise scope.error(node, "json_object() takes keys and values in turn")
    values = [scope.value(each) for each in nodes]
    for key in values[::2]:
        if key.type.kind not in ("text", "any"):
            raise scope.error(node, "keys of json_object() are VARCHAR", "cast them")
    function = conversions.JsonObjectWriter(tuple(encoder_of(v.type, scope) for v in values[1::2]))
    return TypedValue(Call(callee(function), tuple(map(as_optional, values))), JSON)


def _merge_patch(node: Any, scope: Scope) -> TypedValue:
    nodes = arguments(node)
    if len(nodes) < 2:
        raise scope.error(node, "json_merge_patch() takes two or more arguments")
    values = [document(each, scope) for each in nodes]
    call = Call(callee(trees.patched), tuple(map(as_optional, values)))
    return nullable_value(call, JSON)


def _define_reader(*, lenient: bool) -> Maker:
    """Make FROM_JSON or JSON_TRANSFORM, or their strict kin."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        nodes = arguments(node)
        if len(nodes) != 2:
            told = count_error_text(2, 2, len(nodes))
            raise scope.error(node, f"{function_name(node)}() {told}")
        value, structure = document(nodes[0], scope), constant_of(scope.value(nodes[1]))
        if not isinstance(structure, str):
            raise scope.error(nodes[1], "the structure has to be a constant text")
        try:
            kind = conversions.type_of_structure(trees.parse(structure), _read_type)
        except ValueError as error:
            raise scope.error(nodes[1], str(error)) from None
        decode = conversions.decoder(kind, lambda of, to: part_cast(of, to, scope), lenient=lenient)
        return maybe(conversions.Read(decode), kind, value)

    return translate


def _read_type(name: str) -> SqlType | None:
    """Return the type that a text names; None if there is none."""
    try:
        return type_of_sql(exp.DataType.build(name, dialect="duckdb"))
    except SqlglotError:
        return None


def lambda_or_arrow(node: Any, scope: Scope) -> TypedValue:
    """Translate `j -> 'a'` inside of a call, where the parser takes it for a lambda."""
    names = node.expressions
    if len(names) != 1:
        raise scope.error(node, "a lambda cannot stand here")
    value = document(exp.Column(this=names[0]), scope)
    return at_path(trees.extract, JSON, trees.found_at, value, node.this, scope)


OF_ARRAYS: dict[str | type[exp.Expr], Maker] = {
    "json_each": _define_at(trees.rows, ROWS),
    "json_tree": _define_at(trees.all_rows, ROWS),
}
"""Functions that give an array here, and in DuckDB rows of FROM."""
TABLE: dict[str | type[exp.Expr], Maker] = {
    **OF_ARRAYS,
    exp.JSONExtract: EXTRACT,
    exp.JSONExtractScalar: EXTRACT_TEXT,
    "json_extract_path": EXTRACT,
    "json_extract_path_text": EXTRACT_TEXT,
    exp.JSONType: _define_at(trees.type_at, TEXT),
    exp.JSONKeys: _define_at(trees.keys_at, list_of(TEXT)),
    exp.JSONObject: _object,
    exp.JSONArray: _array,
    exp.ParseJSON: _define(trees.compact, JSON),
    exp.FromJson: _define_reader(lenient=True),
    "from_json": _define_reader(lenient=True),
    "json_transform": _define_reader(lenient=True),
    "from_json_strict": _define_reader(lenient=False),
    "json_transform_strict": _define_reader(lenient=False),
    "json_array_length": _define_at(trees.length_at, UNSIGNED),
    "json_exists": _define_at(trees.exists, BOOL),
    "json_value": _define_at(trees.scalar_at, TEXT),
    "json_valid": _define(trees.is_valid, BOOL),
    "json_contains": _define(trees.contains, BOOL, 2),
    "json_structure": _define(trees.structure, JSON),
    "json_pretty": _define(trees.pretty, TEXT),
    "json_merge_patch": _merge_patch,
    **dict.fromkeys(("to_json", "json_quote", "row_to_json", "array_to_json"), _to_json),
}
