"""Propagate a constant from one side of an equation to the other.

    join on s.k == m.k and s.k == 3             join on s.k == m.k and s.k == 3 and m.k == 3
      S                                   ->      S
      M                                           M

    semi_join on s.k == m.k                     semi_join on s.k == m.k and m.k == 3
      where s.k == 3                      ->      where s.k == 3
        S                                           S
      M                                           M

Sound:  pairs that fail the new condition fail one of the old ones, or do not exist; equality is
        transitive. The condition is evaluated last; in nodes that count matches, or have written
        keys, it must not raise.
Needs:  a plain constant, in the predicate or in the plans of the sides. In a join that keeps rows
        without a partner only rows of the other side are left out.
Pays:   the index of M holds only rows that may match.
Source: transitive predicates of SQL optimizers.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Expr, Function, Lifted, Operation, conjunction, conjuncts, origins, reads
from optimizer.expressions.knowledge import total
from optimizer.plans.forms import AnyJoin, equal_to_constants, equations, of_pairs, pinned_constant
from optimizer.plans.properties import bindings
from optimizer.plans.side_conditions import pair_shapes


def propagate_constants(node: plan.Node) -> plan.Node:
    """Add the conditions that equations with constants imply to a join; other nodes unchanged."""
    if not isinstance(node, AnyJoin):
        return node
    on = node.match.on
    tests = conjuncts(on.body) if isinstance(on, Lifted) else ()
    if on is not None and not tests:
        return node
    new = implied_conditions(node, tests)
    if not new:
        return node
    changed = _predicate_with(node.match, conjunction((*tests, *new)))
    return replace(node, match=replace(node.match, on=changed))


def implied_conditions(join: AnyJoin, tests: tuple[Expr, ...]) -> list[Expr]:
    """Return the conditions on pairs that follow from `tests`, and from constants of the sides.

    `tests` replace the conditions of the join.
    """
    said = dict(found for test in tests if (found := pinned_constant(test)) is not None)
    known = {**of_pairs(join), **said}
    if not known:
        return []
    new = equal_to_constants(known, list(equations(join)))
    return [
        test
        for side, value in new.items()
        if _excludes_rows(join, side, test := Operation("==", (side, value)))
    ]


def _excludes_rows(join: AnyJoin, side: Expr, test: Expr) -> bool:
    """Return True if a test excludes rows of its side, and adds no exception."""
    if isinstance(join, plan.Join):
        return join.match.left_key is None or total(test, pair_shapes(join))
    is_right = bindings(join.left) in reads(side)
    kept = join.kind if isinstance(join, plan.OuterJoin) else "left"
    return kept == ("left" if is_right else "right") and total(test, pair_shapes(join))


def _predicate_with(match: plan.Match, body: Expr) -> Lifted:
    """Return the predicate of a match with another body, over the names of both sides."""
    if isinstance(match.on, Lifted):
        return match.on.with_body(body)
    left, right = _lifted_key(match.left_key), _lifted_key(match.right_key)
    names = (*left.names, *right.names)
    return Lifted(body, names, origins(left, right), left.parameters + right.parameters)


def _lifted_key(key: Function | None) -> Lifted:
    assert isinstance(key, Lifted)
    return key
