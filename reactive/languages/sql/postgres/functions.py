"""The scalar functions of Postgres, by name, or by node for functions with their own syntax."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Call, constant, tuple_of
from reactive.languages.sql.expressions.casts import apply, argument, cast, equal_types, maybe
from reactive.languages.sql.functions import arrays as common_arrays
from reactive.languages.sql.functions import structs, texts
from reactive.languages.sql.json import documents
from reactive.languages.sql.json import of_postgres as json
from reactive.languages.sql.postgres import (
    arrays,
    calls,
    numbers,
    numerics,
    operators,
    patterns,
    strings,
    times,
)
from reactive.languages.sql.postgres import forms as written
from reactive.languages.sql.postgres.calls import (
    Form,
    call_form,
    define_form,
    fits,
    form,
    forms,
    is_literal,
    kind_name,
)
from reactive.languages.sql.postgres.resolution import operands
from reactive.languages.sql.runtime import texts as common_texts
from reactive.languages.sql.terms.calls import Maker, arguments, function_name
from reactive.languages.sql.terms.types import (
    ANY,
    BOOL,
    BYTES,
    DECIMAL,
    FLOAT,
    INSTANT,
    INT,
    INTERVAL,
    TEXT,
    TIMESTAMP,
    SqlType,
)
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

INT4, INT8 = SqlType("int", size=4), SqlType("int", size=8)
TEXTS, ARRAY = SqlType("array", items=(TEXT,)), SqlType("array", items=(ANY,))
INTS = SqlType("array", items=(INT4,))
_SPLIT = forms(
    form(strings.split, TEXTS, TEXT, TEXT, TEXT, optional=1, asks_null=True, nullable=True)
)


# Numbers.


def _define_of_floats(function: Any) -> Maker:
    return define_form(function, FLOAT, FLOAT)


def _define_by_kind(of_numeric: Any, of_float: Any) -> Maker:
    """Make a function of a numeric, and of a float, which an integer is made."""
    numeric = form(of_numeric, DECIMAL, DECIMAL)
    of_floats = form(of_float, FLOAT, FLOAT)

    def translate(node: Any, scope: Scope) -> TypedValue:
        nodes = arguments(node)
        kinds = [scope.value(each).type.kind for each in nodes]
        found = (numeric,) if kinds == ["decimal"] else (of_floats,)
        return call_form(found, nodes, node, scope)

    return translate


def absolute_integer(value: int) -> int:
    """Return the absolute value of an integer (ABS)."""
    return abs(value)


def common_divisor(a: int, b: int) -> int:
    """Return the greatest common divisor (GCD)."""
    return math.gcd(a, b)


def common_multiple(a: int, b: int) -> int:
    """Return the least common multiple (LCM)."""
    return math.lcm(a, b)


_ROUND = forms(
    form(numbers.float_rounded, FLOAT, FLOAT),
    form(numerics.numeric_rounded, DECIMAL, DECIMAL),
    form(numerics.numeric_rounded, DECIMAL, DECIMAL, INT4),
)
_TRUNC = forms(
    form(numbers.float_cut, FLOAT, FLOAT),
    form(numerics.numeric_cut, DECIMAL, DECIMAL),
    form(numerics.numeric_cut, DECIMAL, DECIMAL, INT4),
)


def _translate_width_bucket(node: Any, scope: Scope) -> TypedValue:
    """Return width_bucket(), in floats if an argument is one, else in numerics."""
    kinds = {scope.value(each).type.kind for each in arguments(node)[:3]}
    kind = FLOAT if "float" in kinds else DECIMAL
    return call_form(
        (form(numerics.bucket, INT4, kind, kind, kind, INT4),), arguments(node), node, scope
    )


def _hexadecimal(node: Any, scope: Scope) -> TypedValue:
    """Return to_hex() of an integer, whose size gives the digits of a negative number."""
    nodes = arguments(node)
    size = scope.value(nodes[0]).type.size or 8 if nodes else 8
    return call_form(
        (form(partial(numbers.hexadecimal, size=size), TEXT, INT),), nodes, node, scope
    )


ABSOLUTE = (
    form(absolute_integer, None, INT, sized=True),
    form(numerics.numeric_absolute, DECIMAL, DECIMAL),
    form(numbers.float_absolute, FLOAT, FLOAT),
)


def _translate_at_sign(node: Any, scope: Scope) -> TypedValue:
    """Translate `@`, the absolute value."""
    values = operands("@", node, node.expressions, scope)
    return calls.apply_form(
        calls.choose_form(ABSOLUTE, values, [False]) or ABSOLUTE[0], values, scope
    )


OF_NUMBERS: dict[str | type[exp.Expr], Maker] = {
    "abs": forms(*ABSOLUTE),
    "round": _ROUND,
    "trunc": _TRUNC,
    "ceil": _define_by_kind(numerics.numeric_ceiling, numbers.float_ceiling),
    "ceiling": _define_by_kind(numerics.numeric_ceiling, numbers.float_ceiling),
    "floor": _define_by_kind(numerics.numeric_floor, numbers.float_floor),
    "sign": _define_by_kind(numerics.numeric_sign, numbers.float_sign),
    "sqrt": _define_by_kind(numerics.numeric_root, numbers.root),
    "exp": _define_by_kind(numerics.numeric_exp, numbers.exponential),
    "ln": _define_by_kind(numerics.numeric_logarithm, numbers.logarithm),
    "log10": _define_by_kind(numerics.numeric_logarithm_10, numbers.logarithm_10),
    "cbrt": _define_of_floats(numbers.cube_root),
    "power": operators.power_call,
    "pow": operators.power_call,
    "pi": define_form(lambda: math.pi, FLOAT),
    "sin": _define_of_floats(math.sin),
    "cos": _define_of_floats(math.cos),
    "tan": _define_of_floats(math.tan),
    "cot": _define_of_floats(numbers.cotangent),
    "asin": _define_of_floats(math.asin),
    "acos": _define_of_floats(math.acos),
    "atan": _define_of_floats(math.atan),
    "atan2": define_form(math.atan2, FLOAT, FLOAT, FLOAT),
    "sinh": _define_of_floats(numbers.hyperbolic_sine),
    "cosh": _define_of_floats(numbers.hyperbolic_cosine),
    "tanh": _define_of_floats(math.tanh),
    "asinh": _define_of_floats(math.asinh),
    "acosh": _define_of_floats(math.acosh),
    "atanh": _define_of_floats(numbers.hyperbolic_area_tangent),
    "degrees": _define_of_floats(numbers.degrees),
    "radians": _define_of_floats(numbers.radians),
    "mod": forms(
        form(numbers.whole_remainder, None, INT, INT, sized=True),
        form(numerics.numeric_remainder, DECIMAL, DECIMAL, DECIMAL),
    ),
    "div": define_form(numerics.numeric_floor_quotient, DECIMAL, DECIMAL, DECIMAL),
    "gcd": define_form(common_divisor, None, INT, INT, sized=True),
    "lcm": define_form(common_multiple, None, INT, INT, sized=True),
    "factorial": define_form(numerics.factorial, DECIMAL, INT8),
    "scale": define_form(numerics.scale_or_none, INT4, DECIMAL, nullable=True),
    "min_scale": define_form(numerics.minimal_scale, INT4, DECIMAL, nullable=True),
    "trim_scale": define_form(numerics.trimmed_scale, DECIMAL, DECIMAL),
    "width_bucket": _translate_width_bucket,
    "to_hex": _hexadecimal,
}


def _choose_logarithm(node: Any, scope: Scope) -> TypedValue:
    """Translate LOG: of one argument the common one, of two that of a base."""
    if len(arguments(node)) == 2:
        of = form(numerics.numeric_logarithm_of, DECIMAL, DECIMAL, DECIMAL)
        return call_form((of,), arguments(node), node, scope)
    return OF_NUMBERS["log10"](node, scope)


OF_NUMBERS["log"] = _choose_logarithm


# Texts.


def _substring(node: Any, scope: Scope) -> TypedValue:
    """Translate SUBSTRING of places, of a regular expression, or of a pattern with its escape."""
    parts = [node.this, node.args.get("start"), node.args.get("length")]
    nodes = [each for each in parts if each is not None]
    if node.args.get("start") is None and len(nodes) == 2:
        nodes = [nodes[0], exp.Literal.number(1), nodes[1]]
    return _choose_substring(nodes, node, scope)


def _substr(node: Any, scope: Scope) -> TypedValue:
    return _choose_substring(arguments(node), node, scope)


def _choose_substring(nodes: list[Any], node: Any, scope: Scope) -> TypedValue:
    """Return substring(): by place, by regular expression, or by a SIMILAR pattern."""
    of: tuple[Form, ...] = (
        form(strings.part, TEXT, TEXT, INT4, INT4, optional=1),
        form(strings.part, BYTES, BYTES, INT4, INT4, optional=1),
        form(patterns.first_part, TEXT, TEXT, TEXT, nullable=True),
        form(patterns.similar_part, TEXT, TEXT, TEXT, TEXT, nullable=True),
    )
    if len(nodes) > 1 and is_literal(nodes[1]):
        of = of[2:]
    return call_form(of, nodes, node, scope, "substring")


def _trim(node: Any, scope: Scope) -> TypedValue:
    """Return TRIM of a text: at the start, at the end, or at both if the call names no side."""
    side = str(node.args.get("position") or "").upper()
    function = {"LEADING": strings.trimmed_left, "TRAILING": strings.trimmed_right}.get(side)
    nodes = [each for each in (node.this, node.args.get("expression")) if each is not None]
    of = form(function or strings.trimmed, TEXT, TEXT, TEXT, optional=1)
    return call_form((of,), nodes, node, scope)


def _position(node: Any, scope: Scope) -> TypedValue:
    nodes = [node.this, node.args["substr"]]
    of = (form(strings.place_of, INT4, TEXT, TEXT), form(strings.place_of, INT4, BYTES, BYTES))
    return call_form(of, nodes, node, scope, "position")


def _overlay(node: Any, scope: Scope) -> TypedValue:
    """Return OVERLAY, which replaces a part of a text by another text."""
    names = ("this", "expression", "from_", "for_")
    nodes = [node.args[name] for name in names if node.args.get(name) is not None]
    of = form(strings.overlaid, TEXT, TEXT, TEXT, INT4, INT4, optional=1)
    return call_form((of,), nodes, node, scope)


def _concat_any(node: Any, scope: Scope) -> TypedValue:
    """Translate CONCAT of anything: NULL is left out."""
    values = [_text_for_concat(scope.value(each)) for each in arguments(node)]
    return TypedValue(Call(constant(strings.joined), tuple(map(as_optional, values))), TEXT)


def _translate_concat_ws(node: Any, scope: Scope) -> TypedValue:
    """Return concat_ws(), which is NULL only if the separator is."""
    separator, *values = _of_text(node, scope)
    if is_null(separator):
        return NULL_VALUE
    items = tuple(as_optional(value) for value in values)
    made = Call(constant(strings.joined_by), (separator.expr, *items))
    return TypedValue(made, TEXT, separator.nulls)


def _of_text(node: Any, scope: Scope) -> list[TypedValue]:
    """Return the arguments as texts show them; the first one is a text.

    Raises
    ------
    PlanError: it is not.
    """
    values = [_text_for_concat(scope.value(each)) for each in arguments(node)]
    if not fits(values[0], TEXT):
        kinds = ", ".join(map(kind_name, values))
        raise scope.error(
            node, f"postgres has no {function_name(node)}({kinds})", "cast it to text"
        )
    return values


def _text_for_concat(value: TypedValue) -> TypedValue:
    """Return the text that CONCAT writes of a value, if its type needs that; else the value."""
    if value.type.kind == "float" and value.type.size == 4:
        return apply(written.real_text, TEXT, value)
    if value.type.kind == "struct":
        return apply(written.row_text, TEXT, value)
    return value


def _translate_format(node: Any, scope: Scope) -> TypedValue:
    """Return format(), which is NULL only if the pattern is."""
    first, *values = _of_text(node, scope)
    if is_null(first):
        return NULL_VALUE
    items = tuple(as_optional(value) for value in values)
    return TypedValue(Call(constant(strings.formatted), (first.expr, *items)), TEXT, first.nulls)


def _normal(node: Any, scope: Scope) -> TypedValue:
    """Return NORMALIZE in a form that a word names, by default NFC."""
    name = node.args.get("form")
    wanted = literal_value(str(name.name if isinstance(name, exp.Expr) else name or "NFC").upper())
    return apply(strings.normal, TEXT, argument(scope.value(node.this), TEXT, scope), wanted)


def _sha(name: str) -> Maker:
    return define_form(partial(strings.sha, name=name), BYTES, BYTES)


def _translate_collate(node: Any, scope: Scope) -> TypedValue:
    """Translate COLLATE "C", which is the order that texts have here; refuse other collations."""
    name = node.expression.name
    if name.upper() not in ("C", "POSIX", "UCS_BASIC", "DEFAULT"):
        raise scope.error(
            node, f"the collation {name!r} of postgres is not supported", 'order by x collate "C"'
        )
    return scope.value(node.this)


OF_TEXTS: dict[str | type[exp.Expr], Maker] = {
    "upper": define_form(strings.upper, TEXT, TEXT),
    "lower": define_form(strings.lower, TEXT, TEXT),
    "initcap": define_form(strings.initial_capitals, TEXT, TEXT),
    "length": forms(form(len, INT4, TEXT), form(len, INT4, BYTES)),
    "char_length": define_form(len, INT4, TEXT),
    "character_length": define_form(len, INT4, TEXT),
    "octet_length": forms(form(strings.size, INT4, TEXT), form(strings.size, INT4, BYTES)),
    "bit_length": forms(form(strings.bits, INT4, TEXT), form(strings.bits, INT4, BYTES)),
    "substr": _substr,
    "left": define_form(strings.left, TEXT, TEXT, INT4),
    "right": define_form(strings.right, TEXT, TEXT, INT4),
    "btrim": define_form(strings.trimmed, TEXT, TEXT, TEXT, optional=1),
    "ltrim": define_form(strings.trimmed_left, TEXT, TEXT, TEXT, optional=1),
    "rtrim": define_form(strings.trimmed_right, TEXT, TEXT, TEXT, optional=1),
    "lpad": define_form(common_texts.padded_left, TEXT, TEXT, INT4, TEXT, optional=1),
    "rpad": define_form(common_texts.padded_right, TEXT, TEXT, INT4, TEXT, optional=1),
    "repeat": define_form(common_texts.repeated, TEXT, TEXT, INT4),
    "reverse": define_form(strings.reversed_, TEXT, TEXT),
    "replace": define_form(strings.replaced, TEXT, TEXT, TEXT, TEXT),
    "translate": define_form(strings.translated, TEXT, TEXT, TEXT, TEXT),
    "split_part": define_form(strings.split_part, TEXT, TEXT, TEXT, INT4),
    "string_to_array": _SPLIT,
    "array_to_string": forms(
        form(arrays.joined_array, TEXT, ARRAY, TEXT),
        form(arrays.joined_array, TEXT, ARRAY, TEXT, TEXT),
    ),
    "starts_with": define_form(strings.starts_with, BOOL, TEXT, TEXT),
    "strpos": define_form(strings.place_of, INT4, TEXT, TEXT),
    "concat": _concat_any,
    "concat_ws": _translate_concat_ws,
    "ascii": define_form(strings.code_of, INT4, TEXT),
    "chr": define_form(strings.letter_of, TEXT, INT4),
    "md5": forms(form(strings.md5, TEXT, TEXT), form(strings.md5, TEXT, BYTES)),
    **{f"sha{size}": _sha(f"sha{size}") for size in (224, 256, 384, 512)},
    "encode": define_form(strings.encoded, TEXT, BYTES, TEXT),
    "decode": define_form(strings.decoded, BYTES, TEXT, TEXT),
    "convert_from": define_form(strings.text_of_bytes, TEXT, BYTES, TEXT),
    "convert_to": define_form(strings.bytes_of_text, BYTES, TEXT, TEXT),
    "get_byte": define_form(strings.byte_at, INT4, BYTES, INT8),
    "quote_literal": forms(
        form(strings.quoted_literal, TEXT, TEXT), form(strings.quoted_literal, TEXT, ANY)
    ),
    "quote_ident": define_form(strings.quoted_name, TEXT, TEXT),
    "quote_nullable": forms(
        form(strings.quoted_or_null, TEXT, TEXT, asks_null=True),
        form(strings.quoted_or_null, TEXT, ANY, asks_null=True),
    ),
    "format": _translate_format,
    "regexp_replace": define_form(patterns.replaced, TEXT, TEXT, TEXT, TEXT, TEXT, optional=1),
    "regexp_match": define_form(
        patterns.groups, TEXTS, TEXT, TEXT, TEXT, optional=1, nullable=True
    ),
    "regexp_split_to_array": define_form(patterns.split, TEXTS, TEXT, TEXT, TEXT, optional=1),
    "regexp_like": define_form(patterns.has_match, BOOL, TEXT, TEXT, TEXT, optional=1),
    "regexp_count": define_form(patterns.count, INT4, TEXT, TEXT, INT4, TEXT, optional=2),
    "regexp_substr": define_form(
        patterns.part, TEXT, TEXT, TEXT, INT4, INT4, optional=2, nullable=True
    ),
    "regexp_instr": define_form(patterns.place, INT4, TEXT, TEXT, INT4, INT4, optional=2),
}


# Arrays.


def _translate_array(node: Any, scope: Scope) -> TypedValue:
    """Translate ARRAY[a, b], or ARRAY(query)."""
    if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Query):
        return common_arrays.array_of(node, scope)
    values, kind = equal_types(tuple(scope.value(each) for each in node.expressions), scope, node)
    kind = TEXT if kind.kind == "null" and values else kind
    made = TypedValue(tuple_of(*map(as_optional, values)), SqlType("array", items=(kind,)))
    if kind.kind != "array":
        return made
    return apply(same_lengths, made.type, made)


def same_lengths(array: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arrays of one length, or none if all are NULL; raise if their lengths differ."""
    if array and all(each is None for each in array):
        return ()
    if len({len(each) if each is not None else 0 for each in array}) > 1:
        raise ValueError("multidimensional arrays must have array expressions with one length")
    return array


def _bracket(node: Any, scope: Scope) -> TypedValue:
    """Translate `a[1]`, `a[1:2]`, places from 1 on; refuse values that are no arrays."""
    value = scope.value(node.this)
    if value.type.kind == "jsonb":
        return json.subscript(value, node, scope)
    if value.type.kind not in ("array", "any", "null"):
        raise scope.error(node, f"postgres has no places in {kind_name(value)}")
    for place in map(scope.slice_of, node.expressions):
        item = value.type.items[0] if value.type.items else ANY
        if isinstance(place, exp.Slice):
            ends = [place.args.get(each) for each in ("this", "expression")]
            first, last = (
                argument(scope.value(each), INT4, scope)
                if each is not None
                else literal_value(number)
                for each, number in zip(ends, (1, 2**31 - 1), strict=True)
            )
            value = apply(arrays.slice_of, value.type, value, first, last)
        else:
            value = maybe(arrays.element, item, value, argument(scope.value(place), INT4, scope))
    return value


def _define_of_array(
    function: Any, result: SqlType | None, *more: SqlType, **options: Any
) -> Maker:
    """Make a function of an array and, in the place of `ANY`, an element of it."""
    return lambda node, scope: _call_with_element(node, scope, function, result, 0, more, options)


def _fewest(function: Any) -> int:
    """Return how many arguments a function has without a default."""
    return int(function.__code__.co_argcount) - len(function.__defaults__ or ())


def _call_with_element(
    node: Any,
    scope: Scope,
    function: Any,
    result: SqlType | None,
    place: int,
    more: tuple[SqlType, ...],
    options: Any,
) -> TypedValue:
    """Return a call with an array and more arguments; `ANY` in `more` is the element's type."""
    nodes = arguments(node)
    if not _fewest(function) <= len(nodes) <= len(more) + 1:
        raise scope.error(node, f"postgres has no {node.name}() of {len(nodes)} arguments")
    values = [scope.value(each) for each in nodes]
    array = values[place]
    if array.type.kind not in ("array", "any", "null"):
        raise scope.error(node, f"postgres has no {node.name}({kind_name(array)}, ...)")
    item = array.type.items[0] if array.type.items else ANY
    kinds = [item if kind.kind == "any" else kind for kind in more[: len(nodes) - 1]]
    kinds.insert(place, array.type)
    kind = result or array.type
    made = [
        value if value.type.kind == wanted.kind else argument(value, wanted, scope)
        for value, wanted in zip(values, kinds, strict=True)
    ]
    if options.get("asks_null"):
        expr = Call(callee(function), tuple(map(as_optional, made)))
        return nullable_value(expr, kind) if options.get("nullable") else TypedValue(expr, kind)
    # an element that is NULL is found as any other is
    expr = Call(callee(function), tuple(map(as_optional, made)))
    if array.nullable:
        expr = Call(constant(_unless_null), (callee(function), *map(as_optional, made)))
        return nullable_value(expr, kind)
    return nullable_value(expr, kind) if options.get("nullable") else TypedValue(expr, kind)


def _unless_null(function: Any, array: Any, *values: Any) -> Any:
    """Call a function of an array and values; return None if the array is None."""
    return None if array is None else function(array, *values)


def _prepend_element(node: Any, scope: Scope) -> TypedValue:
    """Return array_prepend(), the element cast to the array's type; refuse a non-array."""
    item, array = (scope.value(each) for each in arguments(node))
    if array.type.kind not in ("array", "any", "null"):
        kinds = f"{kind_name(item)}, {kind_name(array)}"
        raise scope.error(node, f"postgres has no array_prepend({kinds})")
    kind = array.type.items[0] if array.type.items else item.type
    made = (as_optional(cast(item, kind, scope)), as_optional(array))
    result = array.type if array.type.items else SqlType("array", items=(kind,))
    return TypedValue(Call(callee(arrays.prepended), made), result)


def _translate_array_cat(node: Any, scope: Scope) -> TypedValue:
    left, right = arguments(node)
    return operators.concatenate_sides(node, left, right, scope)


def _translate_array_fill(node: Any, scope: Scope) -> TypedValue:
    """Return array_fill(): an array of the given sizes with one element repeated."""
    item, sizes = (scope.value(each) for each in arguments(node))
    kind = SqlType("array", items=(item.type,))
    made = Call(
        callee(arrays.filled), (as_optional(item), as_optional(argument(sizes, INTS, scope)))
    )
    return TypedValue(made, kind, sizes.nulls)


def _condition_of(symbol: str, function: Any) -> Maker:
    """Make an operator that is TRUE or FALSE of two values of its types."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        values = operands(symbol, node, (node.this, node.expression), scope)
        return apply(function, BOOL, *values)

    return translate


def _series(node: Any, scope: Scope) -> TypedValue:
    """Return generate_series() as an array; refuse other types, and times without an interval.

    Of dates it has instants.
    """
    nodes = arguments(node)
    values = [scope.value(each) for each in nodes]
    if not 2 <= len(values) <= 3:
        raise scope.error(node, "generate_series() takes a start, an end and a step")
    for place, each in enumerate(nodes):
        if is_literal(each):
            known = next((v.type for v in values[:2] if v.type.kind != "text"), INSTANT)
            values[place] = argument(values[place], INTERVAL if place == 2 else known, scope)
    kinds = {value.type.kind for value in values[:2]}
    if kinds & {"date", "timestamp", "timestamptz"}:
        if len(values) != 3 or values[2].type.kind != "interval":
            raise scope.error(node, "generate_series() of times takes an interval as its step")
        if "timestamptz" in kinds or kinds == {"date"}:
            values[:2] = [cast(value, INSTANT, scope) for value in values[:2]]
            values.append(literal_value(scope.dialect.timezone))
            return apply(times.series_of_instants, SqlType("array", items=(INSTANT,)), *values)
        item = TIMESTAMP
    elif kinds <= {"int", "decimal", "any", "null"}:
        item = DECIMAL if "decimal" in {v.type.kind for v in values} else values[0].type
    else:
        raise scope.error(node, f"postgres has no generate_series({kind_name(values[0])}, ...)")
    return apply(times.series, SqlType("array", items=(item,)), *values)


SETS: dict[str, Maker] = {
    "generate_series": _series,
    "generate_subscripts": define_form(arrays.subscripts, INTS, ARRAY, INT4),
    "string_to_table": _SPLIT,
    "regexp_split_to_table": define_form(patterns.split, TEXTS, TEXT, TEXT, TEXT, optional=1),
    "regexp_matches": define_form(
        patterns.all_groups, SqlType("array", items=(TEXTS,)), TEXT, TEXT, TEXT, optional=1
    ),
}
"""Functions that give rows, here as arrays."""


def is_set_returning(node: Any, scope: Scope) -> bool:
    """Return True for a call of a function of Postgres that gives rows."""
    if scope.dialect.name != "postgres" or not isinstance(node, exp.Anonymous):
        return False
    return node.name.lower() in SETS or node.name.lower() in json.SET_RETURNING


def array_of_set(node: Any, scope: Scope) -> TypedValue:
    """Return the rows of such a call as an array."""
    maker = SETS.get(node.name.lower()) if is_set_returning(node, scope) else None
    return scope.value(node) if maker is None else maker(node, scope)


def _refuse_set(node: Any, scope: Scope) -> TypedValue:
    raise scope.error(
        node,
        f"{function_name(node)}() gives rows: it stands in SELECT, outside of CASE, and in FROM",
    )


OF_ARRAYS: dict[str | type[exp.Expr], Maker] = {
    "array_length": define_form(arrays.length, INT4, ARRAY, INT4, nullable=True),
    "array_upper": define_form(arrays.length, INT4, ARRAY, INT4, nullable=True),
    "array_lower": define_form(arrays.lower_bound, INT4, ARRAY, INT4, nullable=True),
    "array_ndims": define_form(arrays.dimensions, INT4, ARRAY, nullable=True),
    "array_dims": define_form(arrays.bounds, TEXT, ARRAY, nullable=True),
    "cardinality": define_form(arrays.cardinality, INT4, ARRAY),
    "array_position": _define_of_array(arrays.position, INT4, ANY, INT4, nullable=True),
    "array_positions": _define_of_array(arrays.positions, INTS, ANY),
    "array_remove": _define_of_array(arrays.without, None, ANY),
    "array_replace": _define_of_array(arrays.exchanged, None, ANY, ANY),
    "array_append": _define_of_array(arrays.appended, None, ANY, asks_null=True),
    "array_prepend": _prepend_element,
    "array_cat": _translate_array_cat,
    "array_fill": _translate_array_fill,
    "trim_array": define_form(arrays.shortened, None, ARRAY, INT4),
    **dict.fromkeys(SETS, _refuse_set),
    "row": structs.row_of,
    "num_nulls": define_form(arrays.nulls_among, INT4, ANY, many=True, asks_null=True),
    "num_nonnulls": define_form(arrays.values_among, INT4, ANY, many=True, asks_null=True),
}


TABLE: dict[str | type[exp.Expr], Maker] = {
    **OF_NUMBERS,
    **OF_TEXTS,
    **OF_ARRAYS,
    **calls.TABLE,
    **operators.TABLE,
    **dict.fromkeys(
        ("random", "gen_random_uuid", "random_normal"), texts.CHOICE_FUNCTIONS[exp.Rand]
    ),
    exp.Case: texts.case,
    exp.Coalesce: texts.coalesce_values,
    exp.Nullif: texts.translate_nullif,
    exp.Greatest: texts.CHOICE_FUNCTIONS[exp.Greatest],
    exp.Least: texts.CHOICE_FUNCTIONS[exp.Least],
    exp.Substring: _substring,
    exp.Trim: _trim,
    exp.StrPosition: _position,
    exp.Overlay: _overlay,
    exp.Normalize: _normal,
    exp.Collate: _translate_collate,
    "@": _translate_at_sign,
    "|/": _define_of_floats(numbers.root),
    "||/": _define_of_floats(numbers.cube_root),
    exp.RegexpLike: _condition_of("~", patterns.has_match),
    exp.RegexpILike: _condition_of("~*", patterns.has_folded_match),
    exp.SimilarTo: _condition_of("~", patterns.similar),
    exp.Array: _translate_array,
    exp.Bracket: _bracket,
    **json.TABLE,
    exp.ArrayContainsAll: json.define_containment(
        "@>", documents.contains, _condition_of("@>", arrays.contains_all)
    ),
    # an older sqlglot has no such node
    **(
        {
            exp.ArrayContainedBy: json.define_containment(
                "<@", documents.contained, _condition_of("<@", arrays.contained_in)
            )
        }
        if hasattr(exp, "ArrayContainedBy")
        else {}
    ),
    exp.ArrayOverlaps: _condition_of("&&", arrays.overlap),
}
