"""A semi_join as a join, where there are no semi_joins: within a recursion.

    semi_join s.k == m.k and m.n == 3        join s.k == key
      S                                  ->    S
      M                                        select m.k
                                                 where m.n == 3
                                                   M

Sound:  where copies of a row are one, as they are in a recursion: a row is in the pairs if it has a
        partner.
Needs:  nothing raises, keys tell all, and M is no part of the recursion, whose keys would come a
        round later. Otherwise rows are joined, of which there may be many.
Pays:   a row of S has one partner at most.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import (
    TRUE,
    Expr,
    Lifted,
    Operation,
    Parameter,
    conjunction,
    items_of,
    one_value,
    row_names,
)
from optimizer.expressions.compose import one_row
from optimizer.expressions.knowledge import hashable, total
from optimizer.plans.properties import bindings, free, shapes
from optimizer.plans.side_conditions import SideTerm, may_raise, side_conditions_of


def with_keys(node: plan.SemiJoin) -> plan.Join:
    """The left rows of a semi_join with their partners, or with what is equal in these."""
    pairs = plan.Join(node.left, node.right, node.match)
    found, match = side_conditions_of(pairs), node.match
    if match.left_key is not None or (found is None and match.on is not None) or free(node.right):
        return pairs
    left, right = ((), ()) if found is None else (found.left, found.right)
    if (found and found.residual) or may_raise(left, shapes(node.left)):
        return pairs
    keys = _keys(node.right, right)
    return pairs if keys is None else plan.Join(node.left, keys, _match(left, bindings(node.left)))


def _keys(right: plan.Node, steps: tuple[SideTerm, ...]) -> plan.Node | None:
    """The keys of the rows that pass the tests of their side."""
    count, of = bindings(right), shapes(right)
    own = [(one_row(step.function.body, 0, count), step.is_key) for step in steps]
    keys = [expr for expr, is_key in own if is_key]
    tests = [expr for expr, is_key in own if not is_key]
    if not all(total(e, of) for e, _ in own) or not all(hashable(key, of) for key in keys):
        return None
    passing = plan.Where(right, _function(conjunction(tuple(tests)), count)) if tests else right
    return plan.Select(passing, _function(one_value(keys) if keys else TRUE, count))


def _match(steps: tuple[SideTerm, ...], count: int) -> plan.Match:
    """What is asked of a row of the left, and a key."""
    row, number = Parameter(count), sum(step.is_key for step in steps)
    parts = iter((row,) if number == 1 else items_of(row, number))
    asked: list[Expr] = [
        Operation("==", (step.function.body, next(parts))) if step.is_key else step.function.body
        for step in steps
    ]
    return plan.Match(on=_function(conjunction(tuple(asked)), count + 1)) if asked else plan.Match()


def _function(body: Expr, parameters: int) -> Lifted:
    return Lifted(body, row_names(parameters), (), parameters)
