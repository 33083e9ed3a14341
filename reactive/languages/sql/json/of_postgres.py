"""Operators, functions and aggregates of JSON in Postgres, as expressions.

    j -> 'a'                    documents.field(j, "a") of jsonb, texts.field of json
    j['a'][0]                   documents.at_path(j, ("a", "0"))
    jsonb_each(j)               an array of rows (key, value), which FROM unnests

A value of unknown type is taken for `jsonb`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Call, tuple_of
from reactive.engine.collections.jsonb import Jsonb
from reactive.languages.sql.expressions.casts import apply, cast, maybe
from reactive.languages.sql.json import documents, encoders, jsonpath, texts
from reactive.languages.sql.postgres.calls import Form, call_form, form, is_literal
from reactive.languages.sql.postgres.resolution import operands
from reactive.languages.sql.terms.calls import Maker, arguments, function_name
from reactive.languages.sql.terms.types import (
    BOOL,
    JSON,
    JSONB,
    TEXT,
    SqlType,
)
from reactive.languages.sql.terms.values import (
    TypedValue,
    as_optional,
    callee,
    nullable_value,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

INT4 = SqlType("int", size=4)
TEXTS = SqlType("array", items=(TEXT,))


def array_of(kind: SqlType) -> SqlType:
    """Return the type of arrays of a type."""
    return SqlType("array", items=(kind,))


def pair_of(kind: SqlType) -> SqlType:
    """Return the type of arrays of keys and values."""
    return array_of(SqlType("struct", items=(TEXT, kind), names=("key", "value")))


def as_document(value: TypedValue) -> TypedValue:
    """Return a value of unknown type as a document; others as they are."""
    if value.type.kind not in ("any", "text"):
        return value
    return apply(documents.as_document, JSONB, value)


# Operators.

Parts = dict[tuple[str, str], tuple[Callable[..., Any], SqlType]]
_FIELDS: Parts = {
    ("jsonb", "text"): (documents.field, JSONB),
    ("jsonb", "int"): (documents.element, JSONB),
    ("json", "text"): (texts.field, JSON),
    ("json", "int"): (texts.element, JSON),
}
_FIELD_TEXTS: Parts = {
    ("jsonb", "text"): (documents.field_text, TEXT),
    ("jsonb", "int"): (documents.element_text, TEXT),
    ("json", "text"): (texts.field_text, TEXT),
    ("json", "int"): (texts.element_text, TEXT),
}
_PATHS: Parts = {
    ("jsonb", "array"): (documents.at_path, JSONB),
    ("json", "array"): (texts.at_path, JSON),
}
_PATH_TEXTS: Parts = {
    ("jsonb", "array"): (documents.at_path_text, TEXT),
    ("json", "array"): (texts.at_path_text, TEXT),
}


def _define_operator(symbol: str, known: Parts) -> Maker:
    """Make an operator by the kinds of its operands."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        nodes = (node.this, node.expression)
        if isinstance(node, exp.MatchAgainst):
            nodes = (node.expressions[0], node.this)
        left, right = operands(symbol, node, nodes, scope)
        left = as_document(left)
        if left.type.kind == "jsonb" and right.type.kind == "text" and "array" in _rights(known):
            right = cast(right, TEXTS, scope)
        found = known.get((left.type.kind, right.type.kind))
        if found is None and "null" in (left.type.kind, right.type.kind):
            found = next(iter(known.values()))
        if found is None:
            raise scope.error(node, f"postgres has no operator {symbol} for these", "cast them")
        return maybe(*found, left, right)

    return translate


def _rights(known: Parts) -> set[str]:
    return {right for _, right in known}


def define_containment(symbol: str, function: Any, of_arrays: Maker) -> Maker:
    """Make `@>` or `<@` of documents; of arrays it is another."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        values = operands(symbol, node, (node.this, node.expression), scope)
        kinds = {value.type.kind for value in values}
        if "jsonb" not in kinds and kinds != {"any", "text"}:
            return of_arrays(node, scope)
        return apply(function, BOOL, *map(as_document, values))

    return translate


def subscript(value: TypedValue, node: Any, scope: Scope) -> TypedValue:
    """Translate `j['a'][0]`: places and keys, which are a path."""
    steps = []
    for place in map(scope.slice_of, node.expressions):
        if isinstance(place, exp.Slice):
            raise scope.error(node, "jsonb subscript does not support slices", "j['key'], j[0]")
        step = scope.value(place)
        if step.type.kind not in ("text", "int", "null", "any"):
            raise scope.error(node, "a subscript of jsonb is an integer or a text", "j['key']")
        steps.append(cast(step, TEXT, scope))
    path = TypedValue(tuple_of(*map(as_optional, steps)), TEXTS)
    return maybe(documents.at_path, JSONB, value, path)


# Functions.


def _both(
    name: str,
    of_document: Any,
    of_text: Any,
    result: SqlType | None = None,
    *more: SqlType,
    **options: Any,
) -> dict[str | type[exp.Expr], Maker]:
    """Return the makers of a function of `json`, and of its twin of `jsonb`.

    Without a `result` each gives its own type.
    """

    def make(kind: SqlType, function: Any) -> Maker:
        wanted = form(function, result or kind, kind, *more, **options)

        def translate(node: Any, scope: Scope) -> TypedValue:
            return call_form((wanted,), arguments(node), node, scope)

        return translate

    twin = name.replace("json", "jsonb", 1)
    return {twin: make(JSONB, of_document), name: make(JSON, of_text)}


def _extract(of_document: Any, of_text: Any) -> Callable[[SqlType, SqlType], Maker]:
    """Make JSON_EXTRACT_PATH and its like: a path of any number of texts."""

    def make(kind: SqlType, result: SqlType) -> Maker:
        function = of_document if kind is JSONB else of_text

        def translate(node: Any, scope: Scope) -> TypedValue:
            first, *steps = arguments(node)
            value = cast(as_document(scope.value(first)), kind, scope)
            path = [cast(scope.value(each), TEXT, scope) for each in steps]
            given = TypedValue(tuple_of(*map(as_optional, path)), TEXTS)
            return maybe(function, result, value, given)

        return translate

    return make


def _define_query(function: Any, result: SqlType, *, nullable: bool = True) -> Maker:
    """Make a function of a document, a path, variables and the word whether errors are silent."""
    wanted = form(function, result, JSONB, TEXT, JSONB, BOOL, optional=2, nullable=nullable)

    def translate(node: Any, scope: Scope) -> TypedValue:
        nodes = arguments(node)
        if len(nodes) > 1 and is_literal(nodes[1]):
            path = scope.value(nodes[1])
            try:
                jsonpath.read_path(str(path.expr.value))  # type: ignore[attr-defined]
            except ValueError as error:
                raise scope.error(nodes[1], str(error)) from None
        return call_form((wanted,), nodes, node, scope)

    return translate


def _to_json(kind: SqlType) -> Maker:
    """Make TO_JSON, TO_JSONB, ROW_TO_JSON or ARRAY_TO_JSON."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        nodes = arguments(node)
        if len(nodes) != 1:
            raise scope.error(node, f"{function_name(node)}() takes one argument")
        if is_literal(nodes[0]):
            raise scope.error(node, "the type of the text is not known", "cast it: 'a'::text")
        value = scope.value(nodes[0])
        return encoded(value, kind, scope)

    return translate


def encoded(value: TypedValue, kind: SqlType, scope: Scope) -> TypedValue:
    """Return a value as `json` or `jsonb`."""
    zone = scope.dialect.timezone
    if kind is JSON:
        return apply(encoders.TextEncoder(value.type, zone), JSON, value)
    return apply(encoders.Document(encoders.DataEncoder(value.type, zone)), JSONB, value)


def _build(of_document: Any, of_text: Any, *, pairs: bool) -> Callable[[SqlType], Maker]:
    """Make JSON_BUILD_ARRAY or JSON_BUILD_OBJECT."""

    def make(kind: SqlType) -> Maker:
        encoder = encoders.DataEncoder if kind is JSONB else encoders.TextEncoder
        built = of_document if kind is JSONB else of_text

        def translate(node: Any, scope: Scope) -> TypedValue:
            values = [scope.value(each) for each in arguments(node)]
            if pairs and len(values) % 2:
                raise scope.error(node, "argument list must have even number of elements")
            zone = scope.dialect.timezone
            function = built(tuple(encoder(value.type, zone) for value in values))
            return TypedValue(Call(callee(function), tuple(map(as_optional, values))), kind)

        return translate

    return make


def _jsonb_set_lax(node: Any, scope: Scope) -> TypedValue:
    """Translate JSONB_SET_LAX with its usual treatment of NULL: JSON's null."""
    nodes = arguments(node)
    if not 3 <= len(nodes) <= 4:
        raise scope.error(node, "jsonb_set_lax() with a treatment of NULL is not supported")
    wanted = form(_set_or_null, JSONB, JSONB, TEXTS, JSONB, BOOL, optional=1, asks_null=True)
    made = call_form((wanted,), nodes, node, scope)
    return nullable_value(made.expr, JSONB)


def _set_or_null(document: Any, path: Any, new: Any, creates: bool | None = True) -> Any:
    if document is None or path is None or creates is None:
        return None
    return documents.replaced(document, path, Jsonb(None) if new is None else new, creates)


_OBJECTS = {
    "jsonb_object": (
        form(encoders.object_of_texts, JSONB, TEXTS),
        form(encoders.object_of_both, JSONB, TEXTS, TEXTS),
    ),
    "json_object": (
        form(encoders.object_text_of_texts, JSON, TEXTS),
        form(encoders.object_text_of_both, JSON, TEXTS, TEXTS),
    ),
}


def _object(known: tuple[Form, ...]) -> Maker:
    return lambda node, scope: call_form(known, arguments(node), node, scope)


_PATH = _extract(documents.at_path, texts.at_path)
_PATH_TEXT = _extract(documents.at_path_text, texts.at_path_text)
_ARRAY = _build(encoders.BuiltArray, encoders.BuiltArrayText, pairs=False)
_OBJECT = _build(encoders.BuiltObject, encoders.BuiltObjectText, pairs=True)
OF_ARRAYS: dict[str | type[exp.Expr], Maker] = {
    **_both("json_array_elements", documents.elements, texts.elements, array_of(JSONB)),
    **_both(
        "json_array_elements_text", documents.element_texts, texts.element_texts, array_of(TEXT)
    ),
    **_both("json_each", documents.pairs, texts.pairs, pair_of(JSONB)),
    **_both("json_each_text", documents.text_pairs, texts.text_pairs, pair_of(TEXT)),
    **_both("json_object_keys", documents.keys, texts.keys, array_of(TEXT)),
    "jsonb_path_query": _define_query(jsonpath.query_path, array_of(JSONB), nullable=False),
}
"""Functions that give an array here, and in Postgres rows."""
OF_ARRAYS["json_array_elements"] = _both("json", None, texts.elements, array_of(JSON))["json"]
OF_ARRAYS["json_each"] = _both("json", None, texts.pairs, pair_of(JSON))["json"]
SET_RETURNING = frozenset(OF_ARRAYS)
TABLE: dict[str | type[exp.Expr], Maker] = {
    **OF_ARRAYS,
    exp.JSONExtract: _define_operator("->", _FIELDS),
    exp.JSONExtractScalar: _define_operator("->>", _FIELD_TEXTS),
    exp.JSONBExtract: _define_operator("#>", _PATHS),
    exp.JSONBExtractScalar: _define_operator("#>>", _PATH_TEXTS),
    exp.JSONBContainsTopKey: _define_operator("?", {("jsonb", "text"): (documents.has_key, BOOL)}),
    exp.JSONBContainsAnyTopKeys: _define_operator(
        "?|", {("jsonb", "array"): (documents.has_any_key, BOOL)}
    ),
    exp.JSONBContainsAllTopKeys: _define_operator(
        "?&", {("jsonb", "array"): (documents.has_all_keys, BOOL)}
    ),
    exp.JSONBDeleteAtPath: _define_operator(
        "#-", {("jsonb", "array"): (documents.without_path, JSONB)}
    ),
    exp.JSONBPathExists: _define_operator("@?", {("jsonb", "text"): (jsonpath.has_path, BOOL)}),
    exp.MatchAgainst: _define_operator("@@", {("jsonb", "text"): (jsonpath.has_match, BOOL)}),
    **_both("json_typeof", documents.type_name, texts.kind_of, TEXT),
    **_both("json_array_length", documents.length, texts.length, INT4),
    **_both("json_strip_nulls", documents.without_nulls, texts.without_nulls),
    "jsonb_extract_path": _PATH(JSONB, JSONB),
    "json_extract_path": _PATH(JSON, JSON),
    "jsonb_extract_path_text": _PATH_TEXT(JSONB, TEXT),
    "json_extract_path_text": _PATH_TEXT(JSON, TEXT),
    "jsonb_pretty": _object((form(documents.pretty, TEXT, JSONB),)),
    "jsonb_set": _object((form(documents.replaced, JSONB, JSONB, TEXTS, JSONB, BOOL, optional=1),)),
    "jsonb_set_lax": _jsonb_set_lax,
    "jsonb_insert": _object(
        (form(documents.inserted, JSONB, JSONB, TEXTS, JSONB, BOOL, optional=1),)
    ),
    **{name: _object(known) for name, known in _OBJECTS.items()},
    "to_json": _to_json(JSON),
    "to_jsonb": _to_json(JSONB),
    "row_to_json": _to_json(JSON),
    "array_to_json": _to_json(JSON),
    "json_build_array": _ARRAY(JSON),
    "jsonb_build_array": _ARRAY(JSONB),
    "json_build_object": _OBJECT(JSON),
    "jsonb_build_object": _OBJECT(JSONB),
    "jsonb_path_query_array": _define_query(jsonpath.query_path_array, JSONB, nullable=False),
    "jsonb_path_query_first": _define_query(jsonpath.query_path_first, JSONB),
    "jsonb_path_exists": _define_query(jsonpath.path_exists, BOOL),
    "jsonb_path_match": _define_query(jsonpath.matches_path, BOOL),
}
