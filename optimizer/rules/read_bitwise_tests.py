"""Take conditions joined by `&` and `|` for those joined by `and` and `or`.

    join on (p(s, m)) & (q(s, m))         join on q(s, m) and p(s, m)
      S                             ->      S
      M                                     M

Sound:  of bools `&` gives what `and` gives. What may raise is still asked of every row, in its
        order, before what cannot raise: only that is left out where the result is known.
Needs:  each part is a bool: a comparison of fields declared as built-in values, `not`, `is`, `in`.
        Of several parts that may raise, all are asked as written.
Pays:   keys, tests of a side, look-ups and alternatives are found in them as in any condition.
Source: short-circuit evaluation, of what has no effects.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.expressions.evaluated import asked_in_turn
from optimizer.expressions.knowledge import Shapes
from optimizer.plans.properties import shapes
from optimizer.plans.side_conditions import pair_shapes

JOINS = plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin


def read_bitwise_tests(node: plan.Node) -> plan.Node:
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
    """The condition of a node that has been read, with the shapes of its arguments."""
    found: object = None
    if isinstance(node, plan.Where):
        found, of = node.predicate, shapes(node.input)
    elif isinstance(node, JOINS):
        found, of = node.match.on, pair_shapes(node)
    return (found, of) if isinstance(found, Lifted) else (None, ())
