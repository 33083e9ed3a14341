"""Compute a set operation of a relation with itself from the relation alone.

    difference                empty             union, intersection         distinct
      A               ->                          A                   ->      A
      A                                           A

    intersection_all: A        difference_all: empty

    A union ((B union A) union C): A union (B union C), at any depth; intersections alike
    A union (A intersection B), A intersection (A union B): distinct A

Sound:  both weights of every row are equal; a row that is in A is in each copy of A.
Needs:  the sides are the same relation; for `empty`, that nothing in it may raise, and if B is
        dropped, nothing in B; for `intersection_all` and nested operations, that no row has a
        negative weight.
Pays:   no operator that holds both sides.
Source: [i3ql] S4, S5.
"""

from __future__ import annotations

from functools import reduce

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
        case plan.Union() | plan.Intersection() if not may_be_negative(node):
            return _without_copies(node)
        case _:
            return node


def _without_copies(node: plan.Union | plan.Intersection) -> plan.Node:
    """Return nested unions, or intersections, of each relation once."""
    kind = type(node)
    sides = _sides(node, kind)
    once = {id(side): side for side in sides}.values()
    kept = [side for side in once if not _adds_nothing(side, sides, kind)]
    if len(kept) == len(sides):
        return node
    return plan.Distinct(kept[0]) if len(kept) == 1 else reduce(kind, kept)


def _sides(node: plan.Node, kind: type[plan.SetOperation]) -> list[plan.Node]:
    """Return the relations of nested operations of one kind, from left to right."""
    found, waiting = [], [node]
    while waiting:
        each = waiting.pop()
        if type(each) is kind:
            waiting += (each.right, each.left)
        else:
            found.append(each)
    return found


def _adds_nothing(side: plan.Node, others: list[plan.Node], kind: type[plan.SetOperation]) -> bool:
    """Return True for an intersection beside a union with one of its sides, or the other way round.

    A row of a side of a union is in the union, and a row of an intersection in each side.
    """
    dual = plan.Intersection if kind is plan.Union else plan.Union
    if type(side) is not dual or plan_may_raise(side):
        return False
    return any(part is other for part in _sides(side, dual) for other in others)
