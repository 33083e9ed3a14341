"""Turn an outer join whose rows without a partner are dropped above into an inner join.

    where m is not None             where m is not None
      left_join on p        ->        join on p
        S                               S
        M                               M

    where r[1] == 3                                   where r[1] == 3
      select (s.k, None if m is None else m.x)          select (s.k, None if m is None else m.x)
        left_join on p                        ->          join on p

    select (s.k, m[1])                          select (s.k, m[1])
      left_join s.k == m[0]                       join s.k == m[0]
        S                           ->              S
        aggregate Max(s.x) by s.k                   aggregate Max(s.x) by s.k
          S                                           S

Sound:  with None for the missing row, the condition is false without raising, also through selects
        and extends in between. Or no row is missing (`clauses.py`).
Needs:  constants alone decide the condition then, or the declaration of a field: a field that is
        not None does not equal None.
Pays:   an inner join, whose sides can be filtered, and no counts of matches; tests for the missing
        row are dropped.
Source: outer join simplification of SQL optimizers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optimizer import plan
from optimizer.expr import (
    FALSE,
    NONE,
    And,
    Attempt,
    Call,
    Constant,
    Expr,
    Function,
    Lifted,
    Operation,
    Parameter,
)
from optimizer.expressions.knowledge import SKIPS_NONE, Shapes, total
from optimizer.expressions.simplification import is_not_none
from optimizer.expressions.text import is_too_long, over, without_none_tests
from optimizer.plans import clauses
from optimizer.plans.join_lists import outputs
from optimizer.plans.properties import bindings, free, nodes, row_shape, shapes
from optimizer.rules.drop_true_where import drop_true_where
from optimizer.traverse import with_called, with_inputs

Rows = tuple[Expr, ...]


def strengthen_recursion(node: plan.Fixpoint) -> plan.Fixpoint:
    """Make the outer joins inner whose right sides read the recursion, where rows without a partner
    are dropped."""
    if not any(
        map(_may_miss_recursive_rows, [part for body in node.bodies for part in nodes(body)])
    ):
        return node
    made: dict[int, plan.Node] = {}
    for body in node.bodies:
        for part in nodes(body):
            if id(part) not in made:
                found = with_inputs(part, [made[id(source)] for source in part.inputs()])
                made[id(part)] = strengthen_outer_join(found) if free(part) else part
    return replace(node, bodies=tuple([made[id(body)] for body in node.bodies]))


def _may_miss_recursive_rows(node: plan.Node) -> bool:
    return isinstance(node, plan.OuterJoin) and bool(free(node.right))


def strengthen_outer_join(node: plan.Node) -> plan.Node:
    """Make an outer join inner, if conditions above drop its rows without a partner; else
    unchanged."""
    if not isinstance(node, plan.Where | plan.Select | plan.Extend):
        return node
    makes: list[plan.Node] = []
    below = node.input
    while isinstance(below, plan.Select | plan.Extend):
        makes.append(below)
        below = below.input
    if not isinstance(below, plan.OuterJoin):
        return node
    joined = _always_matched(below)
    if joined is below and isinstance(node, plan.Where) and isinstance(node.predicate, Lifted):
        rows = [outputs(make) for make in makes if isinstance(make, plan.Select | plan.Extend)]
        joined = _strengthen(below, node.predicate.body, rows[::-1])
    if joined is below:
        return node
    for above in (*reversed(makes), node):
        joined = with_called(with_inputs(above, [joined]), _drop_none_tests)
    return drop_true_where(joined)


def _always_matched(joined: plan.OuterJoin) -> plan.Node:
    """Return an inner join for a left join whose rows all have partners; other joins unchanged."""
    if joined.kind != "left" or not clauses.is_always_matched(joined):
        return joined
    return plan.Join(joined.left, joined.right, joined.match)


def _drop_none_tests(function: Function, of: Shapes) -> Function:
    """Return a callable of rows that are not None now; unchanged if it was not lifted."""
    if not isinstance(function, Lifted):
        return function
    return function.with_body(without_none_tests(function.body, of))


def _strengthen(joined: plan.OuterJoin, test: Expr, rows: Sequence[Rows]) -> plan.Node:
    """Return the join without the rows that a condition drops.

    `rows` are the steps that compute the tested rows of the join's pairs.
    """
    count = bindings(joined.left)
    without_right = _drops(joined, range(count, count + 1), test, rows)
    without_left = _drops(joined, range(count), test, rows)
    dropped = {"left": without_right, "right": without_left, "full": without_left or without_right}
    if not dropped[joined.kind]:
        return joined
    if joined.kind == "full" and not (without_left and without_right):
        return replace(joined, kind="left" if without_left else "right")
    return plan.Join(joined.left, joined.right, joined.match)


def _drops(joined: plan.OuterJoin, missing: range, test: Expr, rows: Sequence[Rows]) -> bool:
    """Return True if the condition is false if these bindings are None, and the steps cannot
    raise."""
    count = bindings(joined.left)
    of: Shapes = (*shapes(joined.left), row_shape(joined.right))
    row: Rows = tuple(NONE if place in missing else Parameter(place) for place in range(count + 1))
    for made in rows:
        row = tuple(over(expr, row) for expr in made)
        if any(is_too_long(expr) or not total(expr, of) for expr in row):
            return False
    return _is_false(over(test, row), of)


def _is_false(test: Expr, of: Shapes) -> bool:
    """Return True if a condition is false, and does not raise."""
    match test:
        case Constant(value):
            return not value
        case And(tests):  # the first one that is false is the last one that is evaluated
            return _is_false(tests[0], of)
        case Attempt(Operation("is not", (value, Constant(None))), otherwise):
            return otherwise == FALSE and _is_none(value)
        case Operation("==", (side, Constant(None))) | Operation("==", (Constant(None), side)):
            return is_not_none(side, of)
        case _:
            return False


def _is_none(value: Expr) -> bool:
    """Return True for None, and for a call with an argument None that gives None or raises."""
    match value:
        case Constant(None):
            return True
        case Call(Constant(function), (_, *arguments), ()) if getattr(function, SKIPS_NONE, False):
            return any(map(_is_none, arguments))
        case _:
            return False
