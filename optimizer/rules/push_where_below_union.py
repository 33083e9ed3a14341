"""Filter both sides of a union.

    where p                   union
      union           ->        where p
        A                         A
        B                       where p
                                  B

The same for union_all.

Sound:  a row of the union is a row of A or of B.
Needs:  nothing.
Pays:   the union holds only rows that pass, and the condition can go further down.
Source: [i3ql] P7; union_all is beyond it.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Lifted


def push_where_below_union(node: plan.Node) -> plan.Node:
    match node:
        case plan.Where(plan.Union(left, right), Lifted() as p):
            return plan.Union(plan.Where(left, p), plan.Where(right, p))
        case plan.Where(plan.UnionAll(left, right), Lifted() as p):
            return plan.UnionAll(plan.Where(left, p), plan.Where(right, p))
        case _:
            return node
