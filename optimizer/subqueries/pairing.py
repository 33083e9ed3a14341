"""Joins whose conditions have sub-queries in them.

join on p(l, r) and any(...)          where any(...)                 (as `freed.py` has it)
                                        join on p(l, r)
semi_join, anti_join on ...           semi_join, anti_join, by the row, with the pairs
left_join on ...                      the pairs, and the rows that are in none
"""

from __future__ import annotations

from typing import Any

from optimizer import plan
from optimizer.expr import (
    NONE,
    Expr,
    Item,
    Lifted,
    Parameter,
    conjunction,
    conjuncts,
    constant,
    has_subquery,
    items_of,
    one_value,
    row_names,
)
from optimizer.expressions.compose import same
from optimizer.plans.properties import bindings
from optimizer.subqueries.asked import as_condition
from optimizer.subqueries.columns import extended, row_of
from optimizer.subqueries.keyed import asked_of_pairs, read, with_match


def pairs_of(node: Any) -> plan.Node:
    """The pairs of a join, as a `where` of those for which what has no sub-queries is true."""
    asked = asked_of_pairs(node, has_subquery)
    on = asked.on
    assert on is not None
    tests = conjuncts(as_condition(read(on).body))
    first = next(place for place, test in enumerate(tests) if has_subquery(test))
    before = _function(on, conjunction(tests[:first])) if first else None
    match = plan.Match(asked.left_key, asked.right_key, before)
    pairs = with_match(plan.Product(node.left, node.right), match)
    return plan.Where(pairs, _function(on, conjunction(tests[first:])))


def joined(node: Any, pairs: plan.Node) -> plan.Node:
    """The rows of a join of any kind, with its pairs."""
    match node:
        case plan.SemiJoin():
            return plan.SemiJoin(node.left, pairs, _of_left(node.left))
        case plan.AntiJoin():
            return plan.AntiJoin(node.left, pairs, _of_left(node.left))
        case plan.OuterJoin(left, right, _, kind):
            made = pairs
            if kind != "right":
                made = plan.UnionAll(made, _alone_on_the_left(left, pairs))
            if kind != "left":
                made = plan.UnionAll(made, _alone_on_the_right(left, right, pairs))
            return made
        case _:
            return pairs


def _function(on: Any, body: Expr) -> Lifted:
    return read(on).with_body(body)


def _of_left(left: plan.Node) -> plan.Match:
    """When a pair has a row of the left."""
    count = bindings(left)
    return _same_row(count, items_of(Parameter(0), count))


def _same_row(count: int, items: tuple[Expr, ...]) -> plan.Match:
    """When bindings are the items of a pair, whatever NaN is in them."""
    mine, theirs = same(row_of(count)), same(one_value(items))
    return plan.Match(Lifted(mine, row_names(count), (), count), Lifted(theirs, ("row",), (), 1))


def _alone_on_the_left(left: plan.Node, pairs: plan.Node) -> plan.Node:
    count = bindings(left)
    alone = plan.AntiJoin(left, pairs, _of_left(left))
    return extended(alone, tuple(range(count)), (NONE,))


def _alone_on_the_right(left: plan.Node, right: plan.Node, pairs: plan.Node) -> plan.Node:
    count, width = bindings(left), bindings(right)
    whole = extended(right, (), (row_of(width),)) if width > 1 else right
    alone = plan.AntiJoin(whole, pairs, _same_row(1, (Item(Parameter(0), constant(count)),)))
    return extended(alone, (), (*(NONE,) * count, Parameter(0)))
