"""Evaluate the parts that constants decide, in every expression of a node.

    where s.age > 2 * limit and True            where s.age > 60
      students                          ->        students

    where s.name == f"{first} {last}"           where s.name == 'Ada Lovelace'

Sound:  only operations on plain built-in values are evaluated; one that raises is left in place.
Needs:  nothing.
Pays:   less to evaluate per row; conditions that are always true or false are seen.
Source: constant folding and propagation.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import And, Constant, Expr, Function, Lifted, conjunction, conjuncts, transform
from optimizer.expressions.knowledge import Shapes, total
from optimizer.expressions.simplification import fold_node
from optimizer.plans.properties import shapes
from optimizer.traverse import with_functions

FOLDED = "constants are folded"


def fold_constants(node: plan.Node) -> plan.Node:
    """Evaluate constant parts of a node's callables; a node without any is marked, and
    unchanged."""
    if FOLDED in node.known:
        return node
    folded = with_functions(node, _fold_function)
    if isinstance(folded, plan.Where) and isinstance(folded.predicate, Lifted):
        body = _condition(folded.predicate.body, shapes(folded.input))
        if body is not folded.predicate.body:
            return plan.Where(folded.input, folded.predicate.with_body(body))
    if folded is node:
        node.known[FOLDED] = True
    return folded


def _fold_function(function: Function) -> Function:
    """Return a callable with its constant parts evaluated; itself if it has none, or is opaque."""
    if not isinstance(function, Lifted):
        return function
    body = transform(function.body, fold_node)
    return function if body is function.body else replace(function, body=body)


def _condition(body: Expr, of: Shapes) -> Expr:
    """Drop parts that are always true; return False if a part is, and no part before it may
    raise."""
    if not isinstance(body, And):
        return body
    tests = conjuncts(body)
    kept: dict[Expr, None] = {}
    for test in tests:
        if isinstance(test, Constant):
            if not test.value and all(total(before, of) for before in kept):
                return test
            if test.value:
                continue
        kept[test] = None
    return body if len(kept) == len(tests) else conjunction(tuple(kept))
