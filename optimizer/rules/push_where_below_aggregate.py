"""Filter rows before they are grouped, by a condition on the key of their group.

    where p(k)                where p(k) again, if it may raise and rows may be negative
      aggregate by f  ->        aggregate by f
        R                         where p(f(r)), or it raises
                                    R

Sound:  all rows of a group pass or fail together; parts of the key and the values that may raise
        are evaluated before the condition, for dropped rows too. A guard is also evaluated for
        groups that are not shown, because their weight is negative; if it raises it keeps the row.
        Values that an aggregate itself refuses (without sum, or order) are not noticed in a dropped
        group.
Needs:  the condition reads the key only; key and values make no iterator and cost no call twice.
Pays:   no group is kept that is not shown.
Source: HAVING to WHERE of SQL optimizers; beyond [i3ql].
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Expr, Lifted, reads
from optimizer.expressions.knowledge import Shapes, is_value, total
from optimizer.expressions.text import compose, first, needs, over
from optimizer.plans.forms import asked_again, condition, guard
from optimizer.plans.properties import may_be_negative, shapes


def push_where_below_aggregate(node: plan.Node) -> plan.Node:
    """Push a condition on the key below an aggregate; other nodes unchanged."""
    match node:
        case plan.Where(
            plan.Aggregate(source, Lifted() as key, aggregates) as grouped, Lifted() as p
        ) if reads(p.body) <= {0}:
            of = shapes(source)
            asked = compose(Lifted(p.body, p.names[:1], p.origins, 1), key, of)
            needed = _needs_of_values(aggregates, of)
            if asked is None or needed is None:
                return node
            body = over(p.body, (key.body,))
            is_total = total(p.body, shapes(grouped)) or total(body, of)
            if is_total or not may_be_negative(source):
                asked = asked.with_body(first(needed, asked.body))
                return plan.Aggregate(plan.Where(source, asked), key, aggregates)
            if condition(node) is None:
                return node
            test = guard(asked.with_body(body), (*needs(key.body, of), *needed))
            return asked_again(plan.Aggregate(plan.Where(source, test), key, aggregates), p)
        case _:
            return node


def _needs_of_values(aggregates: tuple[plan.Folded, ...], of: Shapes) -> tuple[Expr, ...] | None:
    """Return the parts of the values that may raise; None if evaluating them twice has a cost."""
    found: list[Expr] = []
    for value in (a.value for a in aggregates if a.value is not None):
        if not isinstance(value, Lifted) or not is_value(value.body, of):
            return None
        if not total(value.body, of):
            found.extend(needs(value.body, of))
    return tuple(found)
