"""Read the distinct keys of rows from these rows, instead of joining with them.

    join d == o.town                            bind o.town, o
      distinct                                    table orders
        select o.town                     ->
          table orders
      table orders

    left_join d == row[0]                       bind town, (town, count)
      distinct                                    aggregate Count() by o.town
        select o.town                     ->        table orders
          table orders
      aggregate Count() by o.town
        table orders

A comprehension writes groups like this: `{t: sum(o.total for o in orders if o.town == t) for t in
{o.town for o in orders}}`.

Sound:  every row, and every group, has its key among the distinct ones, once; except for a NaN,
        which a join matches with nothing unless it is in a tuple of a tuple (`text.same`), and for
        rows of negative weight.
Needs:  keys without NaN, as their classes declare, or keys that are compared within tuples; rows of
        stored tables.
Pays:   a join, its indexes, and the distinct keys.
Source: *unnesting* of groups [fegaras2000].
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

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
    items_of,
    one_value,
    reads,
    row_names,
    substitute,
)
from optimizer.expressions.simplification import holds_no_nan
from optimizer.expressions.text import over, same
from optimizer.plans.join_lists import extend_of, outputs
from optimizer.plans.properties import bindings, may_be_negative, shapes
from optimizer.record import record


def drop_distinct_keys(node: plan.Node) -> plan.Node:
    """Replace a join with the distinct keys of rows by these rows; return other nodes unchanged."""
    if not isinstance(node, plan.Join | plan.OuterJoin):
        return node
    keys, asked = _distinct_keys(node.left), _pair_equations(node)
    if keys is None or asked is None:
        return node
    source, key = keys
    if asked.mine == same(Parameter(0)):
        by = same(key.body)
    elif _is_whole(asked.mine, key) and _has_no_nan_key(source, key):
        by = key.body
    else:
        return node
    if isinstance(node, plan.Join) and node.right == source and asked.theirs == by:
        return _filter_rest(_keyed_rows(source, key), asked.rest)
    has_all = isinstance(node, plan.Join) or (node.kind == "left" and asked.rest is None)
    if has_all and _is_whole(asked.theirs, key) and _has_groups(node.right, source, by):
        return _filter_rest(_groups_of(node.right, key), asked.rest)
    return node


@record
class _PairEquations:
    """The equation of a pair, as one expression per side, and the remaining condition."""

    mine: Expr
    theirs: Expr
    rest: Lifted | None


def _distinct_keys(node: plan.Node) -> tuple[plan.Node, Lifted] | None:
    """Return the rows whose distinct keys a node has, and their key; None for other nodes."""
    node = node.input if isinstance(node, plan.Shared) else node
    match node:
        case plan.Distinct(plan.Select(source, Lifted() as key)):
            return None if may_be_negative(source) else (source, key)
        case plan.Extend(below, (0,), ()):
            return _distinct_keys(below)
        case _:
            return None


def _has_no_nan_key(source: plan.Node, key: Lifted) -> bool:
    parts = _items_of_tuple(key.body) or (key.body,)
    return all(holds_no_nan(part, shapes(source)) for part in parts)


def _pair_equations(node: plan.Join | plan.OuterJoin) -> _PairEquations | None:
    """Return the equations of a join, as one expression per side; None if there are none to
    lift."""
    match = node.match
    if isinstance(match.left_key, Lifted) and isinstance(match.right_key, Lifted):
        theirs = _of_bindings(match.right_key.body, node.right)
        if match.on is not None and not isinstance(match.on, Lifted):
            return None
        return _PairEquations(match.left_key.body, theirs, match.on)
    if match.left_key is not None or not isinstance(match.on, Lifted):
        return None
    tests = conjuncts(match.on.body)
    found = list(takewhile(bool, map(_sides_of_equation, tests)))
    if not found:
        return None
    mine, theirs = (one_value(side) for side in zip(*filter(None, found), strict=True))
    rest = tests[len(found) :]
    others = match.on.with_body(conjunction(rest)) if rest else None
    of_right = substitute(theirs, (Parameter(0), Parameter(0)))
    return _PairEquations(mine, _of_bindings(of_right, node.right), others)


def _sides_of_equation(test: Expr) -> tuple[Expr, Expr] | None:
    """Return the left and the right side of an equation of both; None for other tests."""
    if not isinstance(test, Operation) or test.operator != "==":
        return None
    for mine, theirs in (test.operands, test.operands[::-1]):
        if reads(mine) == {0} and reads(theirs) == {1}:
            return mine, theirs
    return None


def _is_whole(expr: Expr, key: Lifted) -> bool:
    """Return True if an expression is the only binding, a key; or a tuple of all its items."""
    count = len(_items_of_tuple(key.body))
    return expr == Parameter(0) or (
        count > 0 and _items_of_tuple(expr) == items_of(Parameter(0), count)
    )


def _items_of_tuple(expr: Expr) -> tuple[Expr, ...]:
    """Return the items of a tuple display."""
    return expr.items if isinstance(expr, Display) and expr.kind == "tuple" else ()


def _of_bindings(expr: Expr, node: plan.Node) -> Expr:
    """Rewrite an expression over a row as one value to its bindings."""
    return over(expr, (one_value(all_parameters(bindings(node))),))


def _has_groups(node: plan.Node, source: plan.Node, key: Expr) -> bool:
    """Return True if a node has the groups of rows by a key."""
    match node:
        case plan.Aggregate(plan.Extend(below) as extended, Lifted(body), row=None):
            made = outputs(extended)
            is_same = below == source and over(body, made) == key
            return is_same or (extended == source and body == key)
        case plan.Aggregate(below, Lifted(body), row=None):
            return below == source and body == key
        case _:
            return False


def _keyed_rows(source: plan.Node, key: Lifted) -> plan.Node:
    whole = key.with_body(one_value(all_parameters(bindings(source))))
    return extend_of(source, [key, whole])


def _groups_of(node: plan.Node, key: Lifted) -> plan.Node:
    """Return the groups by a key, and beside it the row of the group.

    There, the key may be in a tuple of a tuple.
    """
    assert isinstance(node, plan.Aggregate) and isinstance(node.key, Lifted)
    count = bindings(node)
    whole: tuple[Expr, ...] = all_parameters(count)
    if node.key.body == same(key.body):
        node, whole = replace(node, key=key), (same(Parameter(0)), *whole[1:])
    names = ("key", *row_names(count)[1:])
    columns = (Parameter(0), one_value(whole))
    return extend_of(node, [Lifted(body, names, (), count) for body in columns])


def _filter_rest(node: plan.Node, rest: Lifted | None) -> plan.Node:
    return node if rest is None else plan.Where(node, rest)
