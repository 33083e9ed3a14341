"""UNION, EXCEPT and INTERSECT of texts that a collation of SQLite says are the same.

select 'a' collate nocase as x union select 'A'      one row

The collation of a column is that of the first query, or of the second where the first has none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.expr import Function
from reactive.languages.sql.queries.nodes import key_of
from reactive.languages.sql.queries.ordering import distinct_on
from reactive.languages.sql.queries.query import Query, query_of_rows
from reactive.languages.sql.sqlite.comparisons import collated, collation_of, has_collation
from reactive.languages.sql.terms.schema import Schema
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import SqlType

Collations = list[str | None]


def with_collations(kinds: Schema, left: Query, right: Query) -> Schema:
    """Return the columns of a set operation with the collation that each is compared by."""
    columns = zip(kinds.columns, left.values, right.values, strict=True)
    return Schema(
        tuple(
            replace(c, type=replace(c.type, collation=_first(m.type, t.type), is_collated=False))
            for c, m, t in columns
        )
    )


def _first(mine: SqlType, theirs: SqlType) -> str | None:
    return collation_of(mine) or collation_of(theirs)


def is_by_collation(kinds: Schema) -> bool:
    """Return True if a collation says that different rows are the same."""
    return any(has_collation(column.type) for column in kinds.columns)


def collated_set(
    operation: Any, left: plan.Node, right: plan.Node, kinds: Schema, around: Scope
) -> Query:
    """The rows of a set operation, each of which stands for those that are the same."""
    if isinstance(operation, exp.Union):
        return _each_once(plan.UnionAll(left, right), kinds, around)
    match = plan.Match(_key(left, kinds, around), _key(right, kinds, around))
    kind = plan.AntiJoin if isinstance(operation, exp.Except) else plan.SemiJoin
    return _each_once(kind(left, right, match), kinds, around)


def _each_once(node: plan.Node, kinds: Schema, around: Scope) -> Query:
    rows = query_of_rows(node, kinds, around)
    same = [collated(value, value.type.collation) for value in rows.values]
    return replace(rows, node=distinct_on(node, rows.scope, same, (), rows.values))


def _key(node: plan.Node, kinds: Schema, around: Scope) -> Function:
    rows = query_of_rows(node, kinds, around)
    return rows.scope.function(
        key_of([collated(value, value.type.collation) for value in rows.values])
    )
