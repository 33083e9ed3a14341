"""Ask a condition on bindings of the row that has them as its items.

    where p(k, v)          each
      each            ->     where p(r[0], r[1])
        R                      R

Sound:  the rows are the same; a binding is an item of the tuple.
Needs:  the condition is read.
Pays:   the condition can go further down: one on the key of the groups to their rows.
Source: that of `push_where_below_select`.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.expressions.compose import of_items


def push_where_below_each(node: plan.Node) -> plan.Node:
    match node:
        case plan.Where(plan.Each(source, width), Lifted() as p):
            return plan.Each(plan.Where(source, of_items(p, width)), width)
        case _:
            return node
