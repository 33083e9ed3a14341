"""COLLATE in DuckDB: what comparisons, orders and groups read in place of a text.

    s collate nocase = 'A'       lower(s) == 'a'
    order by s collate nocase    by lower(s)

A text has its collation by its type, through FROM and WITH. A function or operator that would give
its result the collation of an argument is refused, so that no comparison is by another order than
in DuckDB.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from reactive.languages.sql.runtime.collations import BINARY, COLLATIONS
from reactive.languages.sql.sqlite.comparisons import collate, has_collation
from reactive.languages.sql.terms.errors import nearest, take
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.values import TypedValue

PLAIN = (
    *(exp.Paren, exp.Alias, exp.Collate, exp.Column, exp.Query, exp.Subquery, exp.Exists),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.In, exp.Between, exp.Is, exp.Not, exp.And, exp.Or, exp.Window, exp.Literal, exp.Length),
)
"""Expressions that may have a part with a collation."""


def translate_collate(node: Any, scope: Scope) -> TypedValue:
    """Return a text with a written collation.

    Raises
    ------
    PlanError: the value is no text, or there is no such collation.
    """
    value = scope.value(node.this)
    if value.type.kind not in ("text", "any", "null"):
        raise scope.error(node, "a collation is of a text", "cast it to VARCHAR")
    name = collation_named(node.expression, scope)
    return replace(value, type=replace(value.type, collation=name, is_collated=True))


def collation_named(node: Any, scope: Scope) -> str:
    """Return the collation that a node names; refuse others than those of DuckDB's core."""
    take(node)
    parts = [part.name for part in node.parts] if isinstance(node, exp.Column) else [node.name]
    name = ".".join(parts).lower()
    if name in BINARY:
        return "BINARY"
    if name not in COLLATIONS:
        known = (*COLLATIONS, "c", "posix")
        raise scope.error(
            node,
            f"there is no collation {name!r}{nearest(name, known)}",
            f"there are {', '.join(known)}",
        )
    return name


def comparable(
    node: exp.Expr | None, scope: Scope, values: tuple[TypedValue, ...]
) -> tuple[TypedValue, ...]:
    """Return values as the collation of one of them compares them.

    Raises
    ------
    PlanError: two of them have different collations.
    """
    names = {value.type.collation for value in values} - {None}
    if not names:
        return values
    if len(names) > 1:
        told = ", ".join(sorted(map(str, names)))
        raise scope.error(node, f"a comparison has two collations: {told}", "write one of them")
    (name,) = names
    return tuple(without_collation(collate(value, name)) for value in values)


def without_collation(value: TypedValue) -> TypedValue:
    """Return a value that is compared as it is."""
    if value.type.collation is None:
        return value
    return replace(value, type=replace(value.type, collation=None, is_collated=False))


def refuse_collated(node: exp.Expr | None, scope: Scope, values: tuple[TypedValue, ...]) -> None:
    """Check that no value has a collation where its result would have it."""
    for value in values:
        if has_collation(value.type):
            raise scope.error(
                node,
                f"a text with collation {value.type.collation!r} can be compared, ordered and "
                "grouped by, and counted",
                "write COLLATE where it is compared",
            )


def keep_collation(value: TypedValue, node: Any, scope: Scope) -> TypedValue:
    """Return a text that was cast, with the collation of what it was cast from."""
    found = scope.collated.get(id(node))
    if found is None or value.type.kind != "text":
        return value
    return replace(value, type=replace(value.type, collation=found[1].type.collation))


def check_parts(node: Any, scope: Scope) -> None:
    """Check the parts of an expression that the scope has found to have a collation."""
    if isinstance(node, PLAIN) or not scope.collated:
        return
    for part in node.iter_expressions():
        found = scope.collated.get(id(part))
        if found is not None:
            refuse_collated(node, scope, (found[1],))
