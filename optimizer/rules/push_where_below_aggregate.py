"""Filter rows before they are grouped, by a condition on the key of their group.

    where p(k)                aggregate by f
      aggregate by f  ->        where p(f(r))
        R                         R

Sound:  all rows of a group pass or fail together; what the key and the values may raise is
        evaluated before the condition, for dropped rows too. What an aggregate itself refuses
        (values that have no sum, or no order) goes unnoticed in a group that is dropped.
Needs:  the condition reads the key only; key and values make no iterator and cost no call twice.
Pays:   no group is kept that is not shown.
Source: HAVING to WHERE of SQL optimizers; beyond [i3ql].
"""

from __future__ import annotations

from optimizer import plan
from optimizer.compose import compose, first, needs
from optimizer.expr import Expr, Lifted, reads
from optimizer.knowledge import Shapes, is_value, total
from optimizer.properties import shapes


def push_where_below_aggregate(node: plan.Node) -> plan.Node:
    match node:
        case plan.Where(
            plan.Aggregate(source, Lifted() as key, aggregates) as grouped, Lifted() as p
        ) if reads(p.body) <= {0}:
            of = shapes(source)
            asked = compose(Lifted(p.body, p.names[:1], p.origins, 1), key, of)
            needed = _needs(aggregates, of)
            if asked is None or needed is None:
                return node
            asked = asked.with_body(first(needed, asked.body))
            return plan.Aggregate(plan.Where(source, asked), grouped.key, aggregates)
        case _:
            return node


def _needs(aggregates: tuple[plan.Folded, ...], of: Shapes) -> tuple[Expr, ...] | None:
    """What the values may raise; None if evaluating them twice has a cost."""
    found: list[Expr] = []
    for value in (a.value for a in aggregates if a.value is not None):
        if not isinstance(value, Lifted) or not is_value(value.body, of):
            return None
        if not total(value.body, of):
            found.extend(needs(value.body, of))
    return tuple(found)
