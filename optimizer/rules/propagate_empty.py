"""Propagate an empty input to the nodes above it.

    join on p                 empty
      empty           ->
      B

A union with an empty side is its other side, and a difference with an empty right its left.

Sound:  by the result of each operator for no rows. An aggregate without a key has a row for none.
Needs:  nothing in an input that is dropped may raise.
Pays:   nothing is computed or kept.
Source: empty relations of SQL optimizers.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import Lifted
from optimizer.plan import Empty
from optimizer.plans.properties import bindings, may_be_negative
from optimizer.plans.side_conditions import plan_may_raise

NEEDS_BOTH = (plan.Product, plan.Join, plan.SemiJoin, plan.Intersection, plan.IntersectionAll)


def propagate_empty(node: plan.Node) -> plan.Node:
    """Replace a node with an empty input by its other input or no rows, unless this may hide an
    exception."""
    if Empty not in map(type, node.inputs()):
        return node
    match node:
        case plan.Where() | plan.Select() | plan.Extend() | plan.Unnest() | plan.SelectMany():
            return Empty(bindings(node))
        case plan.Negate():
            return Empty(bindings(node))
        case plan.Aggregate(key=Lifted() | Opaque()) | plan.Reduce() | plan.Top() | plan.Distinct():
            return Empty(bindings(node))
        case plan.Union(Empty(), other) | plan.Union(other, Empty()):
            return plan.Distinct(other)
        case plan.UnionAll(Empty(), other) | plan.UnionAll(other, Empty()):
            return other
        case plan.Difference(left, Empty()):
            return plan.Distinct(left)
        case plan.DifferenceAll(left, Empty()):
            return node if may_be_negative(left) else left
        case plan.Difference(Empty(), right) | plan.DifferenceAll(Empty(), right):
            return node if plan_may_raise(right) else Empty(bindings(node))
        case _ if isinstance(node, NEEDS_BOTH):
            quiet = not any(plan_may_raise(source) for source in node.inputs())
            no_keys = not isinstance(node, plan.Join | plan.SemiJoin) or node.match.left_key is None
            return Empty(bindings(node)) if quiet and no_keys else node
        case _:
            return node
