"""Push a condition on one side of a join into the plan of that side.

    join on k and p(s)            join on k and p(s) again, if it may raise
      A (a join, union, ...) ->     where p(s), or an exception
      B                               A
                                    B

In a semi_join, an anti_join and a left_join only the right side is filtered.

Conditions on a table's rows are left to the index of the join, which holds only rows that pass.

Sound:  a guard drops a row only if p, and the expressions that the join evaluates for the row
        before p, raise nothing. The other side raises nothing, so that no pair that would raise is
        missed.
Needs:  the steps of the other side cannot raise.
Pays:   operators below hold only rows that may pass.
Source: [i3ql] P4, P5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optimizer import plan
from optimizer.expr import Again, Expr, Lifted, conjunction, conjuncts, reads, row_names
from optimizer.expressions.knowledge import total
from optimizer.expressions.text import needs, one_row
from optimizer.plans.forms import guard
from optimizer.plans.properties import bindings, row_shape, shapes
from optimizer.plans.side_conditions import (
    SideTerm,
    may_raise,
    of_left,
    of_right,
    pair_shapes,
    side_conditions_of,
    side_of,
    strict,
)
from optimizer.rules.propagate_constants import implied_conditions

DEEPER = (
    *(plan.Join, plan.Product, plan.SemiJoin, plan.AntiJoin, plan.OuterJoin, plan.Aggregate),
    *(plan.UnionAll, plan.SetOperation, plan.Distinct, plan.Select, plan.Extend),
)


Joins = plan.Join | plan.SemiJoin | plan.AntiJoin | plan.OuterJoin


def push_test_below_join(node: plan.Node) -> plan.Node:
    """Push one test of a side below a join, if that side is a join, union or the like."""
    if not isinstance(node, Joins) or not isinstance(node.match.on, Lifted):
        return node
    if isinstance(node, plan.OuterJoin) and node.kind != "left":
        return node
    if node.match.left_key is not None:
        return _of_written_keys(node, node.match.on)
    found = side_conditions_of(node)
    if found is None:
        return node
    right_shape = (row_shape(node.right),)
    filters_left = isinstance(node, plan.Join) and _is_deeper(node.left)
    if filters_left and not may_raise(found.right, right_shape):
        pushed = _push_first(node, "left", found.left)
        if pushed is not None:
            return pushed
    if _is_deeper(node.right) and not may_raise(found.left, shapes(node.left)):
        pushed = _push_first(node, "right", found.right)
        if pushed is not None:
            return pushed
    return node


def _of_written_keys(node: Joins, on: Lifted) -> plan.Node:
    """Push a test of a join with written keys, which tests only pairs with equal keys.

    A test may be pushed if the tests before it raise nothing, or read its side.
    """
    sides = (("left", node.left), ("right", node.right))
    for side, source in sides if isinstance(node, plan.Join) else sides[1:]:
        if _is_deeper(source):
            pushed = _push_first(node, side, tuple(_first_tests(node, on, side)))
            if pushed is not None:
                return pushed
    return node


def _first_tests(node: Joins, on: Lifted, side: str) -> Iterator[SideTerm]:
    """Yield the tests of one side of a join, until a test that may raise and is not of that
    side."""
    count, known = bindings(node.left), pair_shapes(node)
    make = of_left if side == "left" else of_right
    for test in conjuncts(on.body):
        if side_of(test, count) == side:
            yield SideTerm(make(on, test, count), is_key=False)
        elif not total(test, known):
            return


def _is_deeper(node: plan.Node) -> bool:
    """Return True for a side that is computed by a join, union or the like, below filters."""
    while isinstance(node, plan.Where):
        node = node.input
    return isinstance(node, DEEPER)


def _push_first(node: Joins, side: str, steps: tuple[SideTerm, ...]) -> plan.Node | None:
    """Return the join with the first condition pushed that was not pushed before; None if there is
    none."""
    is_left = side == "left"
    source, key = (
        (node.left, node.match.left_key) if is_left else (node.right, node.match.right_key)
    )
    other = node.match.right_key if is_left else node.match.left_key
    if strict(other, (row_shape(node.right),) if is_left else shapes(node.left)):
        return None
    if key is not None and not isinstance(key, Lifted):
        return None
    of = shapes(source) if is_left else (row_shape(source),)
    needed = needs(key.body, of) if key is not None else ()
    for step in steps:
        test = step.function
        if not step.is_key and not isinstance(test.body, Again):
            return _push_test(node, side, test, needed)
        needed = (*needed, *needs(test.body, of))
    return None


def _push_test(node: Joins, side: str, test: Lifted, needed: tuple[Expr, ...]) -> plan.Node | None:
    """Return the join with a test below it; if it may raise, guarded there and asked again here.

    Return None if no condition of the join is that test.
    """
    on, match = node.match.on, node.match
    assert isinstance(on, Lifted)
    source = node.left if side == "left" else node.right
    start, count = bindings(node.left), bindings(source)
    tests = conjuncts(on.body)
    wanted = {0} if side == "right" else None
    original = _original(tests, test.body, start, is_left=wanted is None)
    if original is None:
        return None
    of = shapes(source) if side == "left" else (row_shape(source),)
    drop = total(test.body, of) and not needed
    if not drop:
        test = guard(test, needed)
    if side == "right":
        names = test.names if count == 1 else row_names(count)
        test = Lifted(one_row(test.body, 0, count), names, test.origins, count)
    others = tuple(t for t in tests if t is not original)
    again = tuple(Again(t) if t is original else t for t in tests)
    follows = original in implied_conditions(
        node, others
    )  # `propagate_constants` would add it again for ever
    rest = others if drop and not follows else again
    changed = replace(match, on=on.with_body(conjunction(rest)) if rest else None)
    where = plan.Where(source, test)
    if side == "left":
        return replace(node, left=where, match=changed)
    return replace(node, right=where, match=changed)


def _original(tests: tuple[Expr, ...], body: Expr, start: int, *, is_left: bool) -> Expr | None:
    """Return the condition of the predicate that a step of a side was made of, or None."""
    for test in tests:
        if is_left and test == body:
            return test
        if not is_left and reads(test) == {start} and one_row(test, start, 1) == body:
            return test
    return None
