"""Aggregates of the rows that match each row of another relation: the groups are rows of the left.

    aggregate Sum(b.n) by d             d        3   5
      join b.k < d                      sum      1   7
        d
        b

More rows on the left are more groups, and none of those that are there changes: a recursion may
come through the left, as nowhere else through an aggregate.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import all_parameters, one_value
from optimizer.lifting.lift import lift
from optimizer.plans.properties import bindings, free, is_set, once, shapes
from optimizer.plans.side_conditions import match_of

Rows = plan.Join | plan.Product | plan.OuterJoin
"""Joins that make pairs, the left ones first."""


def by_left_row(node: plan.Aggregate) -> Rows | None:
    """The join whose left rows, each of which is there once, are the groups of an aggregate."""
    found: Rows | None = once(node, "by_left_row", _found)
    return found


def partners_of(node: plan.Aggregate) -> plan.AntiJoin:
    """What asks for the partners of the rows that are the groups."""
    found: plan.AntiJoin = once(node, "partners_of", _partners)
    return found


def _found(node: plan.Aggregate) -> Rows | None:
    join = node.input
    if not isinstance(join, Rows) or (isinstance(join, plan.OuterJoin) and join.kind != "left"):
        return None
    if node.key is None or free(join.right) or not is_set(join.left):
        return None
    key = lift(node.key, shapes(join)) if isinstance(node.key, Opaque) else node.key
    rows = one_value(all_parameters(bindings(join.left)))
    return join if key.body == rows else None


def _partners(node: plan.Aggregate) -> plan.AntiJoin:
    join = by_left_row(node)
    assert join is not None
    return plan.AntiJoin(join.left, join.right, match_of(join))
