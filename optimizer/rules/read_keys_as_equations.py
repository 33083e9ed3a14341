"""Have keys as written, beside an equation of both sides, be equations too: one key of all.

    join s.k == m.k and on s.x == m.x         join on s.k == m.k and s.x == m.x
      S                                 ->      S
      M                                         M

Sound:  the same pairs have equal keys, and what is asked of pairs is asked of these.
Needs:  the keys raise nothing, and one of both holds no NaN.
Pays:   pairs are looked up by all that must be equal.
Source: join keys of SQL optimizers.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import (
    Display,
    Expr,
    Lifted,
    Operation,
    Parameter,
    conjunction,
    conjuncts,
    origins,
)
from optimizer.expressions.compose import over
from optimizer.expressions.declared import holds_no_nan
from optimizer.expressions.knowledge import Shapes, total
from optimizer.plans.properties import bindings, row_shape, shapes
from optimizer.plans.side_conditions import pair_shapes, side_of


def read_keys_as_equations(node: plan.Node) -> plan.Node:
    match node:
        case plan.Join(_, _, plan.Match(Lifted() as left, Lifted() as right, Lifted() as on)):
            if not _has_equation(node, on) or not _are_plain(node, left.body, right.body):
                return node
        case _:
            return node
    theirs = over(right.body, (Parameter(bindings(node.left)),))
    equations = [Operation("==", pair) for pair in _pairs(left.body, theirs)]
    body = conjunction((*equations, *conjuncts(on.body)))
    made = replace(on.with_body(body), origins=origins(left, right, on))
    return replace(node, match=plan.Match(on=made))


def _has_equation(node: plan.Join, on: Lifted) -> bool:
    """Whether the predicate asks first, or after what raises nothing, whether both sides have
    something equal."""
    known = pair_shapes(node)
    for test in conjuncts(on.body):
        if _is_equation(test, bindings(node.left)):
            return True
        if not total(test, known):
            return False
    return False


def _is_equation(test: Expr, count: int) -> bool:
    if not isinstance(test, Operation) or test.operator != "==":
        return False
    return {side_of(side, count) for side in test.operands} == {"left", "right"}


def _are_plain(node: plan.Join, left: Expr, right: Expr) -> bool:
    of_left: Shapes = shapes(node.left)
    of_right: Shapes = (row_shape(node.right),)
    return all(
        total(mine, of_left)
        and total(theirs, of_right)
        and (holds_no_nan(mine, of_left) or holds_no_nan(theirs, of_right))
        for mine, theirs in _pairs(left, right)
    )


def _pairs(left: Expr, right: Expr) -> list[tuple[Expr, Expr]]:
    """What of both sides is equal: of tuples that are written out, item by item."""
    match left, right:
        case Display("tuple", some), Display("tuple", others) if len(some) == len(others):
            return list(zip(some, others, strict=True))
        case _:
            return [(left, right)]
