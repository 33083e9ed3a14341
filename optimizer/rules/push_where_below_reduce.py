"""Filter rows before their groups are reduced, by a condition on the key of their group.

    where p(k)              where p(k) again, if it may raise
      reduce f by g   ->      reduce f by g
        R                       where p(g(r)), or it raises
                                  R

Sound:  all rows of a group pass or fail together, and parts of the key that may raise are evaluated
        before the condition. A guard is also evaluated for groups without result; if it raises it
        keeps the row. Values that the callable itself refuses are not noticed in a dropped group,
        as in an aggregate.
Needs:  the condition reads the key only; the key makes no iterator and no costly call twice.
Pays:   groups that are not shown are not stored, and their callable is not called.
Source: as `push_where_below_aggregate`.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Lifted, reads
from optimizer.expressions.knowledge import total
from optimizer.expressions.text import compose, needs, over
from optimizer.plans.forms import asked_again, condition, guard
from optimizer.plans.properties import shapes


def push_where_below_reduce(node: plan.Node) -> plan.Node:
    """Push a condition on the key below a reduce; other nodes unchanged."""
    match node:
        case plan.Where(plan.Reduce(source, Lifted() as key, function), Lifted() as p) if reads(
            p.body
        ) <= {0}:
            of = shapes(source)
            asked = compose(Lifted(p.body, p.names[:1], p.origins, 1), key, of)
            if asked is None:
                return node
            body = over(p.body, (key.body,))
            if total(p.body, shapes(node)) or total(body, of):
                return plan.Reduce(plan.Where(source, asked), key, function)
            if condition(node) is None:
                return node
            test = guard(asked.with_body(body), needs(key.body, of))
            return asked_again(plan.Reduce(plan.Where(source, test), key, function), p)
        case _:
            return node
