"""LIKE, ILIKE and SIMILAR TO, with an ESCAPE or without, and LIKE ANY of an array of patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import Call, Operation
from reactive.languages.sql.expressions.casts import apply, cast, maybe
from reactive.languages.sql.expressions.operands import check_operands
from reactive.languages.sql.postgres import patterns
from reactive.languages.sql.postgres.resolution import against_elements, operands
from reactive.languages.sql.runtime import rows, texts
from reactive.languages.sql.sqlite import values
from reactive.languages.sql.terms.types import BOOL, TEXT
from reactive.languages.sql.terms.values import (
    NULL_VALUE,
    TypedValue,
    as_optional,
    callee,
    is_null,
    nullable_value,
    strict,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

QUANTIFIERS = (exp.Any, exp.All)


def translate_like(node: Any, scope: Scope) -> TypedValue:
    """Translate LIKE and ILIKE, with an ESCAPE or without."""
    inner = node.this if isinstance(node, exp.Escape) else node
    if isinstance(inner.expression, QUANTIFIERS):
        return _like_elements(node, inner, scope)
    check_operands(inner, scope)
    parts = [inner.this, inner.expression]
    parts += [node.expression] if isinstance(node, exp.Escape) else []
    if scope.dialect.name == "postgres":
        values = operands(_like_symbol(inner), inner, parts[:2], scope)
        values += [cast(scope.value(each), values[1].type, scope) for each in parts[2:]]
    else:
        values = [cast(scope.value(each), TEXT, scope) for each in parts]
    is_negated = inner.args.get("negate")
    if any(map(is_null, values)):
        return NULL_VALUE
    made = apply(_like_function(inner, scope, values[0]), BOOL, *values)
    if not is_negated:
        return made
    return strict(Operation("not", (made.expr,)), BOOL, made)


def _like_elements(node: Any, inner: Any, scope: Scope) -> TypedValue:
    """Translate LIKE ANY and LIKE ALL of an array of patterns; refuse a query, and ESCAPE."""
    quantifier = inner.expression
    if node is not inner or query_in(quantifier) is not None:
        what = "ESCAPE" if node is not inner else "a query"
        raise scope.error(node, f"LIKE {quantifier.key.upper()} cannot have {what}")
    if scope.dialect.name == "postgres":
        symbol = _like_symbol(inner)
        one, array = against_elements(symbol, inner, inner.this, quantifier.this, scope)
    else:
        one = cast(scope.value(inner.this), TEXT, scope)
        array = scope.value(quantifier.this)
    kind = rows.AnyFits if isinstance(quantifier, exp.Any) else rows.AllFit
    tests = rows.NOT_LIKE if inner.args.get("negate") else rows.LIKE
    fits = kind(tests[_like_function(inner, scope, one)])
    if scope.dialect.name != "postgres":
        return maybe(fits, BOOL, one, array)
    return nullable_value(
        Call(callee(rows.OfElements(fits)), (as_optional(one), as_optional(array))), BOOL
    )


def _like_symbol(node: Any) -> str:
    """Return the operator of Postgres that a LIKE stands for."""
    if isinstance(node, exp.SimilarTo):
        return "~"
    return "~~*" if isinstance(node, exp.ILike) else "~~"


def _like_function(node: Any, scope: Scope, of: TypedValue) -> Any:
    """Return the function that matches LIKE, ILIKE or SIMILAR TO in the dialect."""
    if scope.dialect.name == "postgres":
        if isinstance(node, exp.SimilarTo):
            return patterns.similar
        if of.type.kind == "bytes":
            return patterns.like_bytes
        return patterns.like_folded if isinstance(node, exp.ILike) else patterns.like
    if scope.dialect.name == "sqlite":
        return values.like
    if isinstance(node, exp.ILike):
        return texts.like_folded
    return texts.like


def query_in(node: Any) -> exp.Expr | None:
    """Return the query of ANY or ALL, through brackets; None of an array."""
    inner = node.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    return inner if isinstance(inner, exp.Query) else None
