"""SQL put together: which module reads what, and the plan of a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from sqlglot import exp

from reactive.engine.runtime.large_stack import call_with_large_stack, has_large_stack
from reactive.languages.sql.expressions import predicate, scalar
from reactive.languages.sql.queries import subquery
from reactive.languages.sql.queries.kinds import query
from reactive.languages.sql.terms.catalog import Catalog, Environment, is_relation, named
from reactive.languages.sql.terms.dialects import Dialect
from reactive.languages.sql.terms.errors import too_deep
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.text import Language, Text
from reactive.languages.sql.terms.values import Value
from reactive.languages.sql.text.read import depth_of


def _value(node: Any, scope: Scope) -> Value:
    """A value; ARRAY of a query is one that is made of all its rows."""
    if isinstance(node, exp.Array) and _is_of_query(node.expressions):
        return subquery.array(node.expressions[0], scope)
    return scalar.value(node, scope)


def _is_of_query(parts: list[Any]) -> bool:
    """True if the only part of an ARRAY is a query that is not in brackets of its own."""
    return len(parts) == 1 and isinstance(parts[0], exp.Select | exp.SetOperation | exp.Values)


LANGUAGE = Language(
    value=_value,
    true=predicate.true,
    false=predicate.false,
    subquery=subquery.subquery,
    exists=subquery.exists,
    matches=subquery.matches,
    query=query,
)


MOST_LEVELS = 40
"""Levels of a parsed text that are translated in the thread that asks."""


def _on_large_stack(read: Callable[..., Any]) -> Callable[..., Any]:
    """Read a node with a large stack, whoever asks."""

    def reading(node: Any, scope: Scope, **options: Any) -> Any:
        if has_large_stack():
            return read(node, scope, **options)
        try:
            return call_with_large_stack(lambda: read(node, scope, **options))
        except RecursionError:
            raise too_deep(scope.text, node) from None

    return reading


DEEP_LANGUAGE = Language(*(_on_large_stack(getattr(LANGUAGE, f.name)) for f in fields(Language)))
"""The language for texts nested more deeply than the stack of a thread allows."""


def scope_of(
    tree: exp.Expr, text: str, dialect: Dialect, catalog: Catalog, parameters: Mapping[str, Any]
) -> Scope:
    """Return the scope around a statement: the names of the database, and its parameters."""
    relations = {name: named(v) for name, v in parameters.items() if is_relation(v)}
    constants = {name: v for name, v in parameters.items() if not is_relation(v)}
    environment = Environment(catalog, relations)
    language = LANGUAGE if depth_of(tree) <= MOST_LEVELS else DEEP_LANGUAGE
    return Scope(Text(text, dialect, language, constants), (), 0, None, environment)
