"""SQL put together: which module reads what, and the plan of a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from reactive.sql.expressions import predicate, scalar
from reactive.sql.queries import subquery
from reactive.sql.queries.kinds import query
from reactive.sql.terms.catalog import Catalog, Environment, is_relation, named
from reactive.sql.terms.dialects import Dialect
from reactive.sql.terms.scope import Language, Scope, Text
from reactive.sql.terms.values import Value


def _value(node: Any, scope: Scope) -> Value:
    """A value; ARRAY of a query is one that is made of all its rows."""
    if isinstance(node, exp.Array) and [type(e) for e in node.expressions] == [exp.Select]:
        return subquery.array(node.expressions[0], scope)
    return scalar.value(node, scope)


LANGUAGE = Language(
    value=_value,
    true=predicate.true,
    false=predicate.false,
    subquery=subquery.subquery,
    exists=subquery.exists,
    matches=subquery.matches,
    query=query,
)


def scope_of(text: str, dialect: Dialect, catalog: Catalog, parameters: Mapping[str, Any]) -> Scope:
    """What is around a statement: the names of the database, and its parameters."""
    relations = {name: named(v) for name, v in parameters.items() if is_relation(v)}
    constants = {name: v for name, v in parameters.items() if not is_relation(v)}
    environment = Environment(catalog, relations)
    return Scope(Text(text, dialect, LANGUAGE, constants), (), 0, None, environment)
