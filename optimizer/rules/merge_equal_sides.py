"""Compute a set operation of a relation with itself from the relation alone.

    difference                empty             union, intersection         distinct
      A               ->                          A                   ->      A
      A                                           A

    intersection_all: A        difference_all: empty        A union (A union B): the inner union

Sound:  both weights of every row are equal.
Needs:  the sides are the same relation; for `empty`, that nothing in it may raise; for
        `intersection_all` and unions of unions, that no row has a negative weight.
Pays:   no operator that holds both sides.
Source: [i3ql] S4, S5.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.plans.properties import bindings, may_be_negative
from optimizer.plans.side_conditions import plan_may_raise


def merge_equal_sides(node: plan.Node) -> plan.Node:
    """Replace a set operation of a relation with itself by the relation; other nodes unchanged."""
    match node:
        case plan.Difference(left, right) | plan.DifferenceAll(left, right) if left is right:
            return node if plan_may_raise(left) else plan.Empty(bindings(left))
        case plan.Union(left, right) | plan.Intersection(left, right) if left is right:
            return plan.Distinct(left)
        case plan.IntersectionAll(left, right) if left is right:
            return node if may_be_negative(left) else left
        case plan.Union(left, plan.Union(a, b) as inner) if left is a or left is b:
            return node if may_be_negative(node) else inner
        case plan.Union(plan.Union(a, b) as inner, right) if right is a or right is b:
            return node if may_be_negative(node) else inner
        case _:
            return node
