"""The form that a translation was given, kept beside the plan that it made of the form.

The check of a translation evaluates this form, and so shares nothing with the translation. It is
known of the node itself: a rule that makes another node of it leaves the form behind. Only where a
recursion gets its level, the form gets it too (`parts_of`, `over_parts`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from optimizer import plan
from optimizer.expr import Expr, Function, Lifted, Quantified, Subquery, transform, walk
from optimizer.plans.properties import free, nodes
from optimizer.record import record
from optimizer.traverse import all_substituted, functions, with_functions, with_inputs


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
    """A query in which rows that raise go by a policy; `read` and `checks` as in `guarded`."""

    query: plan.Node
    policy: Literal["null", "drop"]
    read: bool
    checks: bool = False


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


def parts_of(form: Form) -> tuple[plan.Node, ...]:
    """Return the plans in a form: what its nodes read, and the queries in their callables."""
    match form:
        case InRows(node):
            return (*node.inputs(), *_queries(*_bodies(node)))
        case ByPolicy(query):
            return (query,)
        case BesideRows(left, query, arguments):
            return (left, query, *_queries(*arguments))
        case OfGroups(source, key, query):
            asked = _queries(key.body) if isinstance(key, Lifted) else []
            return (source, query, *asked)


def over_parts(form: Form, made: Callable[[plan.Node], plan.Node]) -> Form:
    """Return the form with other plans in the place of its parts."""

    def asking(expr: Expr) -> Expr:
        match expr:
            case Subquery() | Quantified():
                return replace(expr, query=made(expr.query))
            case _:
                return expr

    def called(f: Function) -> Function:
        return f.with_body(transform(f.body, asking)) if isinstance(f, Lifted) else f

    match form:
        case InRows(node):
            node = with_inputs(node, map(made, node.inputs()))
            return InRows(with_functions(node, called))
        case ByPolicy(query):
            return replace(form, query=made(query))
        case BesideRows(left, query, arguments):
            arguments = tuple([transform(each, asking) for each in arguments])
            return replace(form, left=made(left), query=made(query), arguments=arguments)
        case OfGroups(source, key, query):
            return replace(form, source=made(source), key=called(key), query=made(query))


def substituted_with_forms(
    root: plan.Node, level: Any, value: Callable[[plan.Recursive], plan.Node]
) -> plan.Node:
    """Return the plan as `substituted` does; what was known of sub-queries in it stays known."""
    return all_substituted((root,), level, value, FORMS)[0]


class _Forms:
    """The forms of nodes, as what is known beside their inputs."""

    def parts(self, node: plan.Node) -> tuple[plan.Node, ...]:
        form = form_of(node)
        return () if form is None else parts_of(form)

    def carry(
        self, node: plan.Node, made: plan.Node, part: Callable[[plan.Node], plan.Node]
    ) -> None:
        form = form_of(node)
        if form is not None:
            made.known["asked form"] = over_parts(form, part)


FORMS = _Forms()
"""Forms are carried over where nodes are made anew only to have other levels."""


def levels_in(form: Form) -> frozenset[Any]:
    """Return the levels of the recursive relations that a form reads."""
    found = frozenset[Any]().union(*map(free, parts_of(form)))
    return found - {form.level} if isinstance(form, OfGroups) else found


def _bodies(node: plan.Node) -> list[Expr]:
    return [f.body for f in functions(node) if isinstance(f, Lifted)]


def _queries(*exprs: Expr) -> list[plan.Node]:
    parts = [part for expr in exprs for part in walk(expr)]
    return [part.query for part in parts if isinstance(part, Subquery | Quantified)]
