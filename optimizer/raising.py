"""Whether computing a plan may raise."""

from __future__ import annotations

from optimizer import plan
from optimizer.early import pair_shapes, strict
from optimizer.properties import nodes, row_shape, shapes
from optimizer.traverse import functions

RAISING = (plan.Unnest, plan.SelectMany, plan.OrderBy, plan.Aggregate)
"""What may raise without any callable: no iterable, no order, no sum."""


def may_raise(root: plan.Node) -> bool:
    """Whether any callable in the plan, or what is done with its results, may raise."""
    return any(isinstance(node, RAISING) or calls_may_raise(node) for node in nodes(root))


def calls_may_raise(node: plan.Node) -> bool:
    """Whether the callables of one node may."""
    match node:
        case plan.Table() | plan.Empty() | plan.Recursive() | plan.Component():
            return False
        case plan.Fixpoint() | plan.Iterate():
            return True
        case plan.Join() | plan.OuterJoin() | plan.SemiJoin() | plan.AntiJoin():
            match = node.match
            return (
                strict(match.left_key, shapes(node.left))
                or strict(match.right_key, (row_shape(node.right),))
                or strict(match.on, pair_shapes(node))
            )
        case _:
            of = shapes(node.inputs()[0])
            return any(strict(function, of) for function in functions(node))
