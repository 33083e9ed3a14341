"""Groups without an aggregate: each key with the rows that have it, as what is inside of a nest.

    group_by(k).rows()                  rows (key, rows): the key, and a Bag of the rows
    group_by(k).rows(lambda g: ...)     the key, and what a query gives of the rows

    aggregate Collect(row) by k

The query is called once, with a relation that stands for every group, and is asked of all groups
together, as that of `each` is. To callables that only fold the rows they are the query for one
group, and so an aggregate of it.

Source: grouping as a nested query [fegaras2000].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.comprehensions.rows import Rows
from optimizer.expr import (
    Call,
    Expr,
    Function,
    Item,
    Lifted,
    Operation,
    Outer,
    Parameter,
    Within,
    all_parameters,
    constant,
    one_value,
    row_names,
    transform,
    tuple_of,
)
from optimizer.expressions.compose import same
from optimizer.expressions.declared import holds_no_nan
from optimizer.expressions.knowledge import is_canonical, total
from optimizer.expressions.naming import Nesting
from optimizer.plans.binding_types import type_of
from optimizer.plans.extended import extend_of
from optimizer.plans.properties import bindings, is_set, shapes
from optimizer.subqueries.keyed import FIRST, items, read
from optimizer.subqueries.per_group import per_group
from optimizer.traverse import rebuilt, substituted, with_functions
from reactive.api import comprehending, each, nested, nesting
from reactive.engine.collections.nested_rows import nested_class
from reactive.engine.collections.zset import canonical

NAMES = ("key", "rows")


def rows_of_groups(relation: Any, key: Function, query: Callable[[Any], Any] | None) -> Any:
    """The relation of keys, each with what a query gives of its rows.

    Raises
    ------
    PlanError: it is no callable of a relation that returns one, or cannot be asked of all groups.
    """
    level, source = object(), relation.plan
    name = "rows" if query is None else each.parameter_of(query)
    stands = plan.Recursive(level, 0, name, is_set(source), shapes(source))
    given = relation._new(stands)
    made = given if query is None else each.asked("rows", given, query)
    inside = nesting.inside("rows", made)
    groups = per_group(
        inside.collected,
        level,
        source,
        key,
        of_no_rows=comprehending.of_no_rows,
        canonical=canonical,
    )
    whole = plan.Extend(groups, (), tuple(_columns(inside)), NAMES)
    kind = nested_class(1, NAMES)
    naming = Nesting(kind, NAMES, True, _first, (inside.level,), (type_of(key, source),))
    group = _Group(source, read(key, shapes(source)))
    found = nesting.rows_within(made)
    ways = () if found is None else (_within_group(found, level, group.rows, Parameter(0)),)
    rows = (*ways, _of_one_group(inside, level, group.rows))
    return nested.nested(
        relation._new(whole, made), naming, (), (rows,), relation._new(group.keys, made)
    )


def _columns(inside: nesting.Inside) -> list[Lifted]:
    return [
        Lifted(body, row_names(2), (), 2) for body in (Parameter(0), inside.shown(Parameter(1)))
    ]


def _whole(source: plan.Node) -> tuple[Expr, ...]:
    return all_parameters(bindings(source))


def _first(row: Any) -> Any:
    return row[0]


def _within_group(rows: Rows, level: object, group: plan.Node, key: Expr) -> Rows:
    """Rows, and those in them, of the group of a key, in the place of the relation of a level."""
    place = len(rows.arguments)

    def with_key(f: Function) -> Function:
        return f.with_body(transform(f.body, key_at)) if isinstance(f, Lifted) else f

    def key_at(expr: Expr) -> Expr:
        return Outer(place) if isinstance(expr, Outer) else expr

    def within(expr: Expr) -> Expr:
        if not isinstance(expr, Within):
            return expr
        inner = replace(expr.rows, arguments=expr.arguments)
        made = _within_group(inner, level, group, Outer(place))
        return Within(made, made.arguments)

    mine = rebuilt(group, lambda each: with_functions(each, with_key))
    node = substituted(rows.node, level, lambda _: mine)
    row = tuple([transform(expr, within) for expr in rows.row])
    return replace(rows, node=node, row=row, arguments=(*rows.arguments, key))


def _of_one_group(inside: nesting.Inside, level: object, group: plan.Node) -> Rows:
    """What the query gives for the group of a key, which is the only value around it."""

    def asked(node: plan.Node) -> plan.Node:
        return group if isinstance(node, plan.Recursive) and node.level is level else node

    (node,) = inside.collected.inputs()
    node = rebuilt(node, asked)
    return Rows("list", node, (inside.row,), row_names(bindings(node)), None, (Parameter(0),))


class _Group:
    """The distinct keys of rows, and the rows that have the one that is around them.

    A key that may raise is computed before anything is asked.
    """

    def __init__(self, source: plan.Node, by: Lifted) -> None:
        known, key = shapes(source), by.body
        self._never_nan = holds_no_nan(key, known)
        is_a_field = self._never_nan and not isinstance(key, Operation)
        if not (is_a_field or is_canonical(key, known)):
            key = Call(constant(canonical, "canonical"), (key,))
        by, row = by.with_body(key), _whole(source)
        if not total(key, known):
            source = plan.Select(source, by.with_body(tuple_of(key, one_value(row))))
            by = Lifted(FIRST, ("row",), by.origins, 1)
            row = items(Item(Parameter(0), constant(1)), len(row))
        self.keys = plan.Extend(plan.Distinct(plan.Select(source, by)), (0,), (), NAMES[:1])
        found = plan.Where(source, self._has_key(by))
        count = bindings(source)
        columns = [Lifted(each, row_names(count), (), count) for each in row]
        self.rows = extend_of(found, columns)

    def _has_key(self, by: Lifted) -> Lifted:
        """Whether a row has the key that is around it, a NaN too."""
        key, outer = by.body, Outer(0)
        if self._never_nan:
            return by.with_body(Operation("==", (key, outer)))
        return by.with_body(Operation("==", (same(key), same(outer))))
