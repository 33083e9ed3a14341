"""Filter both sides of a difference or an intersection.

    where p                   where p again, if it may raise
      difference      ->        difference
        A                         where p, or it raises
        B                           A
                                  where p, or it raises
                                    B

The rule also applies to difference_all, intersection and intersection_all.

Sound:  the weight of a row depends on its own weights only. A guard is also evaluated for rows for
        which the plain plan would not evaluate p; if it raises it keeps the row.
Needs:  nothing.
Pays:   the operator holds only rows that may pass.
Source: [i3ql] P6, P9.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.expressions.knowledge import total
from optimizer.plans.forms import asked_again, condition, guard
from optimizer.plans.properties import shapes

AnyDifference = plan.Difference | plan.DifferenceAll | plan.Intersection | plan.IntersectionAll


def push_where_below_difference(node: plan.Node) -> plan.Node:
    """Push a condition to both sides of a difference or intersection; if it may raise, it is
    repeated above."""
    p = condition(node)
    if p is None or not isinstance(below := node.inputs()[0], AnyDifference):
        return node
    if total(p.body, shapes(below.left)) and total(p.body, shapes(below.right)):
        return _filter_both_sides(below, p)
    return asked_again(_filter_both_sides(below, guard(p)), p)


def _filter_both_sides(node: AnyDifference, p: Lifted) -> plan.Node:
    return replace(node, left=plan.Where(node.left, p), right=plan.Where(node.right, p))
