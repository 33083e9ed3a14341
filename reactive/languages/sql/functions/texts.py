"""Functions of texts, and functions that choose among values."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import FALSE, NONE, TRUE, Call, Conditional, Expr, conjunction, constant
from reactive.languages.sql.expressions.casts import align, apply, cast, equal_types
from reactive.languages.sql.expressions.comparisons import comparison
from reactive.languages.sql.functions.arrays import cast_arguments, make_function
from reactive.languages.sql.functions.encodings import named_groups
from reactive.languages.sql.postgres.resolution import operands
from reactive.languages.sql.runtime import arrays, letters, moments, rows, texts
from reactive.languages.sql.terms.calls import Maker, arguments
from reactive.languages.sql.terms.types import (
    ANY,
    BOOL,
    INT,
    NESTED,
    TEXT,
    SqlType,
    is_row,
    sql_name,
)
from reactive.languages.sql.terms.values import (
    NULL_VALUE,
    TypedValue,
    as_optional,
    check_arguments,
    is_null,
    is_simple,
    leaves,
    literal_value,
    nullable_value,
    present,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope


# The functions of texts.


def md5(text: str | bytes) -> str:
    """Return a hash of a text, in hexadecimal digits."""
    return hashlib.md5(text if isinstance(text, bytes) else text.encode()).hexdigest()


def sha256(text: str | bytes, length: int = 256) -> str:
    """Return a hash of a text, in hexadecimal digits."""
    found = text if isinstance(text, bytes) else text.encode()
    return hashlib.new(f"sha{length}", found).hexdigest()


def hexadecimal(value: Any) -> str:
    """Return a number, or the bytes of a text, in hexadecimal digits."""
    if isinstance(value, int):
        return f"{value & (1 << 64) - 1:X}"
    return (value if isinstance(value, bytes) else value.encode()).hex().upper()


def binary(value: Any) -> str:
    """Return a number, or the bytes of a text, in binary digits.

    >>> binary(5), binary("a"), len(binary(-1))
    ('101', '01100001', 64)
    """
    if isinstance(value, int):
        return f"{value & (1 << (64 if -(1 << 63) <= value < 1 << 63 else 128)) - 1:b}"
    return "".join(
        f"{byte:08b}" for byte in (value if isinstance(value, bytes) else value.encode())
    )


def _bytes_in(node: Any, scope: Scope) -> TypedValue:
    """Return octet_length(), the size of bytes; refuse values of other types."""
    (value,) = cast_arguments(node, scope)
    if value.type.kind not in ("bytes", "any", "null"):
        raise scope.error(
            node, f"duckdb has no octet_length() of {sql_name(value.type)}", "strlen(text)"
        )
    return apply(len, INT, value)


def _define_split(function: Any) -> Maker:
    """Make STRING_SPLIT and its like, for which a NULL separator occurs in no text."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        values = cast_arguments(node, scope, TEXT, TEXT)
        kind = SqlType("array", items=(TEXT,))
        check_arguments(function, values)
        return nullable_value(Call(constant(function), tuple(map(as_optional, values))), kind)

    return translate


def _hash(function: Any) -> Maker:
    """Make a hash of a text or of bytes."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        value, *more = cast_arguments(node, scope)
        if value.type.kind != "bytes":
            return make_function(function, TEXT, TEXT, *[INT] * len(more))(node, scope)
        return apply(function, TEXT, value, *more)

    return translate


def base_64(text: str | bytes) -> str:
    """Return the bytes of a text in letters."""
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def _base_64(node: Any, scope: Scope) -> TypedValue:
    """Translate TO_BASE64 of bytes; refuse a text, unless it is a literal."""
    (value,) = cast_arguments(node, scope, ANY)
    is_written = isinstance(arguments(node)[0], exp.Literal)
    if not is_written and value.type.kind not in ("bytes", "any", "null"):
        raise scope.error(
            node, f"duckdb has no to_base64() of {sql_name(value.type)}", "encode(text)"
        )
    return apply(base_64, TEXT, value)


def _has_text_form(kind: SqlType) -> bool:
    """Return True for a type that is cast to a text where a text is taken."""
    return kind.kind not in NESTED | {"any"}


def _concat(node: Any, scope: Scope) -> TypedValue:
    """Make CONCAT, which leaves out NULL; `||` does not."""
    values = [_as_text(scope.value(each), scope) for each in node.expressions]
    if any(v.type.kind == "array" for v in values):
        return _concatenate_in_turn(values)
    if not leaves(*values):
        return apply(texts.joined, TEXT, *values)
    return TypedValue(Call(constant(texts.joined), tuple(map(as_optional, values))), TEXT)


def _concatenate_in_turn(values: list[TypedValue]) -> TypedValue:
    """Return the concatenation of arrays, which is NULL if one of them is."""
    made = values[0]
    for value in values[1:]:
        made = apply(arrays.concatenated, made.type, made, value)
    return made


def _as_text(value: TypedValue, scope: Scope) -> TypedValue:
    """Return a value cast to a text; arrays, structs and unknown values as they are."""
    return cast(value, TEXT, scope) if _has_text_form(value.type) else value


def _join_by_separator(node: Any, scope: Scope) -> TypedValue:
    """Translate CONCAT_WS, which is NULL if the separator is."""
    separator, *values = (_as_text(scope.value(each), scope) for each in node.expressions)
    check_arguments(texts.joined_by, (separator, *values))
    items = tuple(map(as_optional, values))
    made = Call(constant(texts.joined_by), (separator.expr, *items))
    return TypedValue(made, TEXT, separator.nulls)


def _trim_text(node: Any, scope: Scope) -> TypedValue:
    """Return TRIM of a text: at the start, at the end, or at both if the call names no side."""
    side = (node.args.get("position") or "").upper()
    function = {"LEADING": texts.trimmed_left, "TRAILING": texts.trimmed_right}.get(side)
    parts = [node.this] + ([node.expression] if node.args.get("expression") else [])
    values = [cast(scope.value(each), TEXT, scope) for each in parts]
    return apply(function or texts.trimmed, TEXT, *values)


def _pad(node: Any, scope: Scope) -> TypedValue:
    function = texts.filled_left if node.args.get("is_left") else texts.filled_right
    return make_function(function, TEXT, TEXT, INT, TEXT, optional=1)(node, scope)


TAKEN = ("text", "array", "json", "any", "null")
"""Kinds of values that have a length."""


def _length(node: Any, scope: Scope) -> TypedValue:
    """Return the number of letters of a text, or elements of an array; DuckDB refuses others."""
    value = scope.value(node.this)
    if scope.dialect.name == "duckdb" and value.type.kind not in TAKEN:
        raise scope.error(node, f"duckdb has no length() of {sql_name(value.type)}")
    return apply(len, INT, _as_text(value, scope))


def _translate_substring(node: Any, scope: Scope) -> TypedValue:
    """Return SUBSTRING, or a slice of an array; in Postgres a text as start is a pattern."""
    value = scope.value(node.this)
    if value.type.kind == "array":
        return make_function(arrays.slice_of, value.type, ANY, INT, INT)(node, scope)
    if scope.dialect.name == "postgres":
        start = scope.value(node.args["start"])
        if start.type.kind == "text":
            return make_function(texts.extracted_match, TEXT, TEXT, TEXT)(node, scope)
        return make_function(texts.standard_part, TEXT, TEXT, INT, INT, optional=1)(node, scope)
    return make_function(texts.part, TEXT, TEXT, INT, INT, optional=1)(node, scope)


def _replace_match(node: Any, scope: Scope) -> TypedValue:
    """Return regexp_replace() of texts, with its modifiers if there are some."""
    parts = [node.this, node.expression, node.args["replacement"]]
    more = node.args.get("modifiers")
    values = [cast(scope.value(each), TEXT, scope) for each in parts + ([more] if more else [])]
    return apply(texts.replaced_match, TEXT, *values)


def _extract_match(node: Any, scope: Scope) -> TypedValue:
    values = [cast(scope.value(each), TEXT, scope) for each in (node.this, node.expression)]
    group = node.args.get("group")
    if isinstance(group, exp.Array):
        return named_groups(node, group, scope)
    return apply(
        texts.extracted_match, TEXT, *values, scope.value(group) if group else literal_value(0)
    )


def _place(node: Any, scope: Scope) -> TypedValue:
    """Translate STRPOS, INSTR and POSITION, whose arguments sqlglot puts in one order."""
    values = [cast(scope.value(each), TEXT, scope) for each in (node.this, node.args["substr"])]
    return apply(texts.place_of, INT, *values)


def _contains(node: Any, scope: Scope) -> TypedValue:
    """Return the test that an array contains an element, or a text another text."""
    value = scope.value(arguments(node)[0])
    if value.type.kind == "array":
        return make_function(arrays.contains, BOOL, ANY, ANY)(node, scope)
    return make_function(texts.contains, BOOL, TEXT, TEXT)(node, scope)


def _translate_chr(node: Any, scope: Scope) -> TypedValue:
    return apply(texts.letters_of, TEXT, *cast_arguments(node, scope))


def _same_text(node: Any, scope: Scope) -> TypedValue:
    return cast(scope.value(arguments(node)[0]), TEXT, scope)


TEXT_FUNCTIONS: dict[str | type[exp.Expr], Maker] = {
    exp.Upper: make_function(letters.upper, TEXT, TEXT),
    exp.Lower: make_function(letters.lower, TEXT, TEXT),
    exp.Length: _length,
    exp.Substring: _translate_substring,
    exp.Left: make_function(texts.left, TEXT, TEXT, INT),
    exp.Right: make_function(texts.right, TEXT, TEXT, INT),
    exp.Trim: _trim_text,
    exp.Pad: _pad,
    exp.Repeat: make_function(texts.repeated, TEXT, TEXT, INT),
    exp.Reverse: make_function(letters.reversed_text, TEXT, TEXT),
    exp.Replace: make_function(texts.replaced, TEXT, TEXT, TEXT, TEXT),
    exp.Translate: make_function(texts.translated, TEXT, TEXT, TEXT, TEXT),
    exp.SplitPart: make_function(texts.part_between, TEXT, TEXT, TEXT, INT),
    exp.Split: _define_split(texts.parts_of),
    exp.StringToArray: _define_split(texts.parts_of),
    exp.Initcap: lambda node, scope: apply(
        texts.capitalized, TEXT, cast(scope.value(node.this), TEXT, scope)
    ),
    exp.StartsWith: make_function(texts.starts_with, BOOL, TEXT, TEXT),
    exp.EndsWith: make_function(texts.ends_with, BOOL, TEXT, TEXT),
    exp.Contains: _contains,
    exp.StrPosition: _place,
    exp.Concat: _concat,
    exp.ConcatWs: _join_by_separator,
    exp.Ascii: make_function(texts.code_of, INT, TEXT),
    exp.Unicode: make_function(texts.code_or_less, INT, TEXT),
    exp.Chr: _translate_chr,
    exp.BitLength: make_function(texts.bits_of, INT, TEXT),
    exp.RegexpLike: make_function(texts.has_match, BOOL, TEXT, TEXT, TEXT, optional=1),
    exp.RegexpILike: lambda node, scope: apply(
        texts.has_match,
        BOOL,
        scope.value(node.this),
        scope.value(node.expression),
        literal_value("i"),
    ),
    exp.RegexpFullMatch: make_function(texts.is_match, BOOL, TEXT, TEXT, TEXT, optional=1),
    exp.SimilarTo: make_function(texts.is_match, BOOL, TEXT, TEXT),
    exp.RegexpReplace: _replace_match,
    exp.RegexpExtract: _extract_match,
    exp.Levenshtein: make_function(texts.distance, INT, TEXT, TEXT),
    exp.MD5: _hash(md5),
    exp.SHA2: _hash(sha256),
    exp.Hex: make_function(hexadecimal, TEXT, ANY),
    exp.ToBase64: _base_64,
    "base64": _base_64,
    exp.RegexpSplit: _define_split(texts.parts_of_matches),
    "regexp_split_to_array": _define_split(texts.parts_of_matches),
    "bin": make_function(binary, TEXT, ANY),
    exp.Glob: make_function(texts.glob, BOOL, TEXT, TEXT),
    "prefix": make_function(texts.starts_with, BOOL, TEXT, TEXT),
    "suffix": make_function(texts.ends_with, BOOL, TEXT, TEXT),
    "ord": make_function(texts.code_or_less, INT, TEXT),
    "strlen": make_function(texts.bytes_in, INT, TEXT),
    "octet_length": _bytes_in,
    "editdist3": make_function(texts.distance, INT, TEXT, TEXT),
    "regexp_full_match": make_function(texts.is_match, BOOL, TEXT, TEXT, TEXT, optional=1),
    "string": _same_text,
}


# Functions that choose among values, or tell of one: COALESCE, NULLIF, GREATEST, TYPEOF.


def choose_branch(
    branches: list[tuple[Expr, TypedValue]], otherwise: TypedValue, scope: Scope, node: exp.Expr
) -> TypedValue:
    """Return the value of the first branch whose test is true, or else `otherwise`."""
    tests = [test for test, _ in branches]
    values = (otherwise, *(value for _, value in branches))
    values, kind = equal_types(values, scope, node)  # fields of structs are ordered as in ELSE
    made = as_optional(values[0])
    for test, value in zip(reversed(tests), reversed(values[1:]), strict=True):
        made = value_if(test, as_optional(value), made)
    if not any(value.nullable for value in values):
        return TypedValue(made, kind)
    return nullable_value(made, kind)


def value_if(test: Expr, then: Expr, otherwise: Expr) -> Expr:
    """Return a conditional, without one if the test is constant."""
    if test == TRUE:
        return then
    return otherwise if test == FALSE else Conditional(test, then, otherwise)


def case(node: Any, scope: Scope) -> TypedValue:
    """Translate CASE with conditions, or with values that one is compared with."""
    branches = []
    for each in node.args["ifs"]:
        branches.append((_test(node, each.this, scope), scope.value(each.args["true"])))
    default = node.args.get("default")
    otherwise = NULL_VALUE if default is None else scope.value(default)
    return choose_branch(branches, otherwise, scope, node)


def _test(node: Any, when: exp.Expr, scope: Scope) -> Expr:
    """Return the test of one WHEN: a condition, or equality with the value behind CASE."""
    if node.this is None:
        return scope.true(when)
    return comparison("==", scope.value(node.this), scope.value(when), node, scope)


def conditional(node: Any, scope: Scope) -> TypedValue:
    """Translate IF(test, then, otherwise)."""
    otherwise = node.args.get("false")
    return choose_branch(
        [(scope.true(node.this), scope.value(node.args["true"]))],
        NULL_VALUE if otherwise is None else scope.value(otherwise),
        scope,
        node,
    )


def coalesce_values(node: Any, scope: Scope) -> TypedValue:
    """Return the first value that is not NULL."""
    found = [scope.value(each) for each in arguments(node)]
    values, kind = equal_types(tuple(found), scope, node)
    values = tuple(value for value in values if not is_null(value))
    values = _until_never_null(values)
    if not values:
        return NULL_VALUE
    if not values[0].nullable:
        return TypedValue(values[0].expr, kind)
    if len(values) == 1:
        return TypedValue(values[0].expr, kind, values[0].nulls)
    if len(values) == 2 and all(map(is_simple, values[0].nulls)):
        tests = conjunction(present(values[0]))
        made: Expr = Conditional(tests, values[0].expr, as_optional(values[1]))
    else:
        made = Call(constant(moments.coalesce), tuple(map(as_optional, values)))
    return nullable_value(made, kind) if values[-1].nullable else TypedValue(made, kind)


def _until_never_null(values: tuple[TypedValue, ...]) -> tuple[TypedValue, ...]:
    """Return the values up to the first that is never NULL; all if there is none."""
    for place, value in enumerate(values):
        if not value.nullable:
            return values[: place + 1]
    return values


def translate_nullif(node: Any, scope: Scope) -> TypedValue:
    """Return the first value, or NULL if it equals the second."""
    if scope.dialect.name == "postgres":  # of the type of the left operand of its `=`
        value, other = operands("=", node, (node.this, node.expression), scope)
    else:
        value, other = scope.value(node.this), scope.value(node.expression)
    if is_null(value) or is_null(other):
        return value
    one, two = align(node, scope, value, other)
    if one.expr is value.expr:
        made = Call(constant(moments.null_if), (as_optional(value), as_optional(two)))
        return nullable_value(made, value.type)
    test = Call(constant(_equal), (as_optional(one), as_optional(two)))
    return nullable_value(Conditional(test, NONE, as_optional(value)), value.type)


def _equal(one: Any, other: Any) -> bool:
    return one is not None and bool(one == other)


def _define_extreme(function: Any, builtin: Any) -> Maker:
    """Make GREATEST or LEAST; strict where none may be NULL."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        found = tuple(scope.value(each) for each in arguments(node))
        values, kind = equal_types(found, scope, node)
        if kind.kind in NESTED:
            by_rank = rows.greatest if builtin is max else rows.least
            return nullable_value(Call(constant(by_rank), tuple(map(as_optional, values))), kind)
        if not any(value.nullable for value in values):
            if any(map(is_null, values)):
                return NULL_VALUE
            return values[0] if len(values) == 1 else apply(builtin, kind, *values)
        return nullable_value(Call(constant(function), tuple(map(as_optional, values))), kind)

    return translate


def _translate_typeof(node: Any, scope: Scope) -> TypedValue:
    """Translate TYPEOF; refuse structs with names, which DuckDB quotes if they are its words."""
    kind = scope.value(arguments(node)[0]).type
    if _names_fields(kind):
        raise scope.error(node, "typeof() of a struct with names is not supported")
    return literal_value(sql_name(kind))


def _names_fields(kind: SqlType) -> bool:
    """Return True if a type is a struct with names, or contains one."""
    is_named = kind.kind == "struct" and not is_row(kind)
    return is_named or any(map(_names_fields, kind.items))


def _take_first_argument(node: Any, scope: Scope) -> TypedValue:
    """Translate LIKELY and its kind: the value of the first argument."""
    return scope.value(arguments(node)[0])


def _refuse_call(reason: str) -> Maker:
    """Return a maker that refuses its call for `reason`, and suggests a parameter."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        raise scope.error(node, f"{node.sql()} {reason}", "give it as a parameter: `:name`")

    return translate


_BY_CHANCE = _refuse_call("is another value each time, which a live query cannot keep")
CHOICE_FUNCTIONS: dict[str | type[exp.Expr], Maker] = {
    exp.Case: case,
    exp.If: conditional,
    exp.Coalesce: coalesce_values,
    exp.Nullif: translate_nullif,
    exp.Greatest: _define_extreme(moments.greatest, max),
    exp.Least: _define_extreme(moments.least, min),
    exp.Typeof: _translate_typeof,
    exp.Rand: _BY_CHANCE,
    exp.Uuid: _BY_CHANCE,
    "likely": _take_first_argument,
    "unlikely": _take_first_argument,
    "likelihood": _take_first_argument,
}
