"""Filter both sides of a difference or an intersection.

    where p                   where p again, if it may raise
      difference      ->        difference
        A                         where p, or it raises
        B                           A
                                  where p, or it raises
                                    B

The same for difference_all, intersection and intersection_all.

Sound:  whether a row comes out depends on its own weights only. A guard is asked of rows that the
        plain plan would not ask of; where it raises it keeps the row.
Needs:  nothing.
Pays:   the operator holds only rows that may pass.
Source: [i3ql] P6, P9.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Again, Guard, Lifted
from optimizer.knowledge import total
from optimizer.properties import shapes

KINDS = (plan.Difference, plan.DifferenceAll, plan.Intersection, plan.IntersectionAll)


def push_where_below_difference(node: plan.Node) -> plan.Node:
    if not isinstance(node, plan.Where) or not isinstance(node.predicate, Lifted):
        return node
    below, p = node.input, node.predicate
    if not isinstance(below, KINDS) or isinstance(p.body, Again):
        return node
    if total(p.body, shapes(below.left)) and total(p.body, shapes(below.right)):
        return replace(below, left=plan.Where(below.left, p), right=plan.Where(below.right, p))
    guard = p.with_body(Guard(p.body))
    filtered = replace(
        below, left=plan.Where(below.left, guard), right=plan.Where(below.right, guard)
    )
    return plan.Where(filtered, p.with_body(Again(p.body)))
