"""The form that a translation was given, kept beside the plan that it made of the form.

The check of a translation evaluates this form, and so shares nothing with the translation. It is
known of the node itself: a rule that makes another node of it leaves the form behind.
"""

from __future__ import annotations

from typing import Any, Literal

from optimizer import plan
from optimizer.expr import Expr, Function
from optimizer.plans.properties import nodes
from optimizer.record import record


@record
class InRows:
    """A node with sub-queries in its callables."""

    node: plan.Node


@record
class BesideRows:
    """Rows, beside those that a query has for the values of each; with `is_left`, None beside a row
    for which the query has none."""

    left: plan.Node
    query: plan.Node
    arguments: tuple[Expr, ...]
    is_left: bool


@record
class OfGroups:
    """A query for each group of rows, in which these are `Recursive` of a level."""

    source: plan.Node
    key: Function
    query: plan.Node
    level: Any


@record
class ByPolicy:
    """A query in which rows that raise go by a policy; `read` as in `guarded`."""

    query: plan.Node
    policy: Literal["null", "drop"]
    read: bool


@record
class Comparison:
    """A comparison of a row of `count` values with ANY or ALL rows of a query, with NULL as None.

    `wanted` is the truth that is asked for: the comparison may also be NULL.
    """

    symbol: str
    is_all: bool
    wanted: bool
    count: int


Form = InRows | BesideRows | OfGroups | ByPolicy


def with_form(made: plan.Node, form: Form) -> plan.Node:
    """Return a node that now knows its form; a node that was there before stays as it is."""
    if not any(made is node for each in _given(form) for node in nodes(each)):
        made.known["asked form"] = form
    return made


def _given(form: Form) -> tuple[plan.Node, ...]:
    match form:
        case InRows(node) | ByPolicy(node):
            return (node,)
        case BesideRows(left, query):
            return left, query
        case OfGroups(source, _, query):
            return source, query


def form_of(node: plan.Node) -> Form | None:
    """Return the form that a node was made of, if a translation made the node."""
    found: Form | None = node.known.get("asked form")
    return found
