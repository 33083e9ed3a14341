"""Filter rows before their groups are reduced, by a condition on the key of their group.

    where p(k)              reduce f by g
      reduce f by g   ->      where p(g(r))
        R                       R

Sound:  all rows of a group pass or fail together, and what the key may raise is evaluated before
        the condition. What the callable itself refuses goes unnoticed in a group that is dropped,
        as what an aggregate refuses does.
Needs:  the condition reads the key only; the key makes no iterator and costs no call twice.
Pays:   no group is kept that is not shown, and its callable is not asked.
Source: as `push_where_below_aggregate`.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.compose import compose
from optimizer.expr import Lifted, reads
from optimizer.properties import shapes


def push_where_below_reduce(node: plan.Node) -> plan.Node:
    match node:
        case plan.Where(plan.Reduce(source, Lifted() as key, function), Lifted() as p) if reads(
            p.body
        ) <= {0}:
            asked = compose(Lifted(p.body, p.names[:1], p.origins, 1), key, shapes(source))
            return node if asked is None else plan.Reduce(plan.Where(source, asked), key, function)
        case _:
            return node
