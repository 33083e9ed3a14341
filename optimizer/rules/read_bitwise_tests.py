"""Rewrite conditions joined by `&` and `|`, and other words for them, to `and` and `or`.

    join on (p(s, m)) & (q(s, m))         join on q(s, m) and p(s, m)
      S                             ->      S
      M                                     M

    where q(s) if p(s) else False         where p(s) and q(s)
      S                             ->      S

Sound:  only the truth of a condition counts, and a branch that is False is `and`, evaluated in the
        same order. For bools `&` returns the same as `and`. Parts that may raise are still
        evaluated for every row, in their order, before the others: only these are skipped once the
        result is known.
Needs:  each part is a bool: a comparison of fields declared as built-in values, `not`, `is`, `in`.
        Several parts that may raise are all evaluated as written.
Pays:   keys, tests of a side, look-ups and alternatives are found in them as in any condition.
Source: short-circuit evaluation, of expressions without effects.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.expressions.knowledge import Shapes
from optimizer.expressions.simplification import asked_in_turn
from optimizer.plans.properties import shapes
from optimizer.plans.side_conditions import pair_shapes

JOINS = plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin


def read_bitwise_tests(node: plan.Node) -> plan.Node:
    """Rewrite `&` and `|` of boolean parts of a condition to `and` and `or`; else unchanged."""
    test, of = condition_of(node)
    if test is None:
        return node
    body = asked_in_turn(test.body, of)
    if body is test.body:
        return node
    new = test.with_body(body)
    if isinstance(node, plan.Where):
        return plan.Where(node.input, new)
    assert isinstance(node, JOINS)
    return replace(node, match=replace(node.match, on=new))


def condition_of(node: plan.Node) -> tuple[Lifted | None, Shapes]:
    """Return the lifted condition of a node, with the shapes of its arguments; (None, ()) without
    one."""
    found: object = None
    if isinstance(node, plan.Where):
        found, of = node.predicate, shapes(node.input)
    elif isinstance(node, JOINS):
        found, of = node.match.on, pair_shapes(node)
    return (found, of) if isinstance(found, Lifted) else (None, ())
