"""Functions of DuckDB for regular expressions, templates, encodings and distances of texts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from reactive.languages.sql.expressions.casts import apply, cast
from reactive.languages.sql.functions.arrays import SAME, make_function
from reactive.languages.sql.runtime import collations, encodings, templates
from reactive.languages.sql.terms.calls import Maker, arguments
from reactive.languages.sql.terms.types import BOOL, BYTES, FLOAT, INT, TEXT, SqlType
from reactive.languages.sql.terms.values import NULL_VALUE, TypedValue, is_null, literal_value

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

TEXTS = SqlType("array", items=(TEXT,))


def named_groups(node: Any, names: Any, scope: Scope) -> TypedValue:
    """Return the struct of the groups of a match, which an array of constant texts names.

    Raises
    ------
    PlanError: a name is no constant text.
    """
    if not all(isinstance(each, exp.Literal) and each.is_string for each in names.expressions):
        raise scope.error(names, "the names of groups are constant texts")
    called = tuple(each.name for each in names.expressions)
    values = [cast(scope.value(each), TEXT, scope) for each in (node.this, node.expression)]
    kind = SqlType("struct", items=(TEXT,) * len(called), names=called)
    return apply(encodings.named_groups, kind, *values, *map(literal_value, called))


def _try(node: Any, scope: Scope) -> TypedValue:
    """Translate TRY of a cast, whose errors are NULL; refuse TRY of anything else."""
    (inner,) = arguments(node)
    if not isinstance(inner, exp.Cast) or isinstance(inner, exp.TryCast):
        raise scope.error(node, "try() takes a cast", "TRY_CAST(... AS ...)")
    made = exp.TryCast(this=inner.this, to=inner.to)
    made.parent = node
    return scope.value(made)


def _define_template(function: Any) -> Maker:
    """Make FORMAT or PRINTF, whose values are integers, floats, booleans, or texts of others."""

    def translate(node: Any, scope: Scope) -> TypedValue:
        template, *values = map(scope.value, arguments(node))
        kinds = {"decimal": FLOAT, **dict.fromkeys(("int", "float", "bool", "null"))}
        given = []
        for value in values:
            if value.type.kind == "any":
                raise scope.error(node, "the type of a value is not known here", "cast it")
            to = kinds.get(value.type.kind, TEXT)
            given.append(value if to is None else cast(value, to, scope))
        if any(map(is_null, (template, *given))):
            return NULL_VALUE
        return apply(function, TEXT, cast(template, TEXT, scope), *given)

    return translate


TABLE: dict[str | type[exp.Expr], Maker] = {
    exp.Format: _define_template(templates.formatted),
    "printf": _define_template(templates.printed),
    exp.RegexpExtractAll: make_function(
        encodings.all_matches, TEXTS, TEXT, TEXT, INT, TEXT, optional=2
    ),
    exp.Try: _try,
    exp.Unhex: make_function(encodings.from_hexadecimal, BYTES, TEXT),
    exp.FromBase64: make_function(encodings.from_base_64, BYTES, TEXT),
    exp.Cot: make_function(encodings.cotangent, FLOAT, FLOAT),
    "regexp_escape": make_function(encodings.escaped, TEXT, TEXT),
    "from_hex": make_function(encodings.from_hexadecimal, BYTES, TEXT),
    "unhex": make_function(encodings.from_hexadecimal, BYTES, TEXT),
    "from_base64": make_function(encodings.from_base_64, BYTES, TEXT),
    "url_encode": make_function(encodings.url_encoded, TEXT, TEXT),
    "strip_accents": make_function(collations.without_accents, TEXT, TEXT),
    "nfc_normalize": make_function(collations.composed, TEXT, TEXT),
    "cot": make_function(encodings.cotangent, FLOAT, FLOAT),
    "gamma": make_function(encodings.gamma, FLOAT, FLOAT),
    "lgamma": make_function(encodings.log_gamma, FLOAT, FLOAT),
    "nextafter": make_function(math.nextafter, FLOAT, FLOAT, FLOAT),
    "signbit": make_function(encodings.has_sign, BOOL, FLOAT),
    "hamming": make_function(encodings.places_that_differ, INT, TEXT, TEXT),
    "mismatches": make_function(encodings.places_that_differ, INT, TEXT, TEXT),
    "jaccard": make_function(encodings.common_letters, FLOAT, TEXT, TEXT),
    "damerau_levenshtein": make_function(encodings.edits_with_swaps, INT, TEXT, TEXT),
    "constant_or_null": make_function(encodings.first_unless_null, SAME),
}
