"""Merge two selections of the same relation.

    intersection              distinct
      where p                   where p and q
        A             ->          A
      where q
        A

    union: p or q       difference: p and not q       intersection_all, difference_all: no distinct

Sound:  all copies of a row pass p, and all pass q, or none does. Both are evaluated for every row
        as long as they may raise.
Needs:  the same relation below both; parts that may raise can be evaluated twice without a call,
        and are not too long: each merging doubles them.
Pays:   no operator that holds the rows of both sides.
Source: [i3ql] S4, F2.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import TRUE, And, Expr, Lifted, Operation, Or, conjunction, origins
from optimizer.expressions.knowledge import is_value
from optimizer.expressions.text import first, is_too_long, needs
from optimizer.plans.properties import bindings, shapes

BAGS = (plan.IntersectionAll, plan.DifferenceAll)


def merge_selections(node: plan.Node) -> plan.Node:
    """Merge two selections of one relation into one `where`; other nodes unchanged."""
    if not isinstance(node, plan.SetOperation):
        return node
    base, p = _selection(node.left)
    other, q = _selection(node.right)
    if base is not other or p is None or q is None or (not p and not q):
        return node
    of = shapes(base)
    if not all(is_value(test.body, of) for test in (*p, *q)):
        return node
    a, b = _conjunction_of(p), _conjunction_of(q)
    needed = (*needs(a, of), *needs(b, of))
    body = first(needed, _combine(node, a, b))
    if is_too_long(body):
        return node
    names = (*p, *q)[0].names
    predicate = Lifted(body, names, origins(*p, *q), bindings(base))
    merged = plan.Where(base, predicate)
    return merged if isinstance(node, BAGS) else plan.Distinct(merged)


def _combine(node: plan.Node, a: Expr, b: Expr) -> Expr:
    """Return the condition of a set operation's rows, given those of its sides."""
    match node:
        case plan.Union():
            return Or((a, b))
        case plan.Difference() | plan.DifferenceAll():
            return And((a, Operation("not", (b,))))
        case _:
            return And((a, b))


def _conjunction_of(tests: list[Lifted]) -> Expr:
    return conjunction(tuple(test.body for test in tests)) if tests else TRUE


def _selection(node: plan.Node) -> tuple[plan.Node, list[Lifted] | None]:
    """Return the node below wheres, and their conditions in order; None for these if one is not
    lifted."""
    tests: list[Lifted] = []
    while isinstance(node, plan.Where):
        if not isinstance(node.predicate, Lifted):
            return node, None
        tests.append(node.predicate)
        node = node.input
    return node, tests[::-1]
