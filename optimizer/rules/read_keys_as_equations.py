"""Turn written keys, beside an equation of both sides, into equations: one key for all.

    join s.k == m.k and on s.x == m.x         join on s.k == m.k and s.x == m.x
      S                                 ->      S
      M                                         M

Sound:  the same pairs have equal keys, and the predicate tests these pairs.
Needs:  the keys raise nothing, and one of both has no NaN. To other tuples, the equation is added
        as an item, and is also tested on the pairs.
Pays:   pairs are looked up by all equations.
Source: join keys of SQL optimizers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from optimizer import plan
from optimizer.expr import (
    Display,
    Expr,
    Lifted,
    Operation,
    Parameter,
    all_parameters,
    conjunction,
    conjuncts,
    origins,
    tuple_of,
)
from optimizer.expressions.knowledge import Shapes, hashable, total
from optimizer.expressions.simplification import holds_no_nan
from optimizer.expressions.text import over
from optimizer.plans.properties import bindings, row_shape, shapes
from optimizer.plans.side_conditions import pair_shapes, side_of
from optimizer.subqueries import keyed_rows

Matching: TypeAlias = plan.Join | plan.SemiJoin | plan.AntiJoin


def read_keys_as_equations(node: plan.Node) -> plan.Node:
    """Merge written keys with the equations of a join's condition; unchanged if it has none."""
    if not isinstance(node, plan.Join | plan.SemiJoin | plan.AntiJoin):
        return node
    match node.match:
        case plan.Match(Lifted() as left, Lifted() as right, Lifted() as on):
            if not _has_equation(node, on):
                return node
            if not _are_plain(node, left.body, right.body):
                return _with_more_keys(node, left, right, on)
        case _:
            return node
    theirs = over(right.body, (Parameter(bindings(node.left)),))
    equations = [Operation("==", pair) for pair in _equal_parts(left.body, theirs)]
    body = conjunction((*equations, *conjuncts(on.body)))
    made = replace(on.with_body(body), origins=origins(left, right, on))
    return replace(node, match=plan.Match(on=made))


def _with_more_keys(node: Matching, left: Lifted, right: Lifted, on: Lifted) -> plan.Node:
    """Append the sides of equations to keys that are tuple displays.

    The items of the keys stay items, so that a NaN among them keeps its meaning. Return `node`
    unchanged if the keys are no displays of equal length, or if no equation can be added.
    """
    count, known = bindings(node.left), pair_shapes(node)
    mine, theirs = [list(keyed_rows.tuple_items(f.body) or ()) for f in (left, right)]
    if not mine or len(mine) != len(theirs):
        return node
    found = False
    for test in conjuncts(on.body):
        if not total(test, known):
            break
        if not _is_equation_of_sides(test, count):
            continue
        assert isinstance(test, Operation)
        a, b = sorted(test.operands, key=lambda side: side_of(side, count) != "left")
        b = over(b, (*all_parameters(count), Parameter(0)))
        is_known = a in mine or not (hashable(a, known) and hashable(b, (known[-1],)))
        if not is_known:
            mine, theirs, found = [*mine, a], [*theirs, b], True
    if not found:
        return node
    keys = left.with_body(tuple_of(*mine)), right.with_body(tuple_of(*theirs))
    return replace(node, match=plan.Match(*keys, on))


def _has_equation(node: Matching, on: Lifted) -> bool:
    """Return True if the predicate has an equation of both sides, after parts that cannot raise."""
    known = pair_shapes(node)
    for test in conjuncts(on.body):
        if _is_equation_of_sides(test, bindings(node.left)):
            return True
        if not total(test, known):
            return False
    return False


def _is_equation_of_sides(test: Expr, count: int) -> bool:
    if not isinstance(test, Operation) or test.operator != "==":
        return False
    return {side_of(side, count) for side in test.operands} == {"left", "right"}


def _are_plain(node: Matching, left: Expr, right: Expr) -> bool:
    """Return True if no key part raises, and NaN cannot make `==` differ from a look-up."""
    of_left: Shapes = shapes(node.left)
    of_right: Shapes = (row_shape(node.right),)
    return all(
        total(mine, of_left)
        and total(theirs, of_right)
        and (holds_no_nan(mine, of_left) or holds_no_nan(theirs, of_right))
        for mine, theirs in _equal_parts(left, right)
    )


def _equal_parts(left: Expr, right: Expr) -> list[tuple[Expr, Expr]]:
    """Return the pairs of equal parts of both sides: of tuple displays, item by item."""
    match left, right:
        case Display("tuple", some), Display("tuple", others) if len(some) == len(others):
            return list(zip(some, others, strict=True))
        case _:
            return [(left, right)]
