"""Rows of a recursion that an aggregate counts: as columns over a set.

    join on a == f(e)             columns a, f(e)      join on a == f(e)
      A                      ->                          A
      select f(e)                                        E
        E

A recursion has sets of rows, so that a side of a join is counted only if it is a set. Rules leave
out fields of a side that nobody reads above. So columns are computed above the join again.

Sound:  the callables are lifted, and the rows of the set are those that the columns are made of.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Expr, Lifted, Parameter, all_parameters, row_names, substitute
from optimizer.expressions.text import over
from optimizer.plans.properties import bindings, free, is_set
from optimizer.plans.side_conditions import join_match


def columns_over_set(
    node: plan.Node, *, is_inner: bool = True
) -> tuple[tuple[Expr, ...], plan.Node]:
    """Return the bindings of a node as expressions over the rows of another node: a set, if
    callables are lifted. A join that `is_inner` is a side of another one.
    """
    match node:
        case plan.Recursive():
            pass
        case _ if not free(node) and is_set(node):
            pass
        case plan.Where(source, Lifted() as test):
            columns, base = columns_over_set(source)
            return columns, plan.Where(base, _over(test, columns, bindings(base)))
        case plan.Select(source, Lifted() as function):
            columns, base = columns_over_set(source)
            return (_over(function, columns, bindings(base)).body,), base
        case plan.Extend(source, keep, made) if all(isinstance(column, Lifted) for column in made):
            columns, base = columns_over_set(source)
            more = [_over(f, columns, bindings(base)).body for f in made if isinstance(f, Lifted)]
            return (*[columns[place] for place in keep], *more), base
        case plan.SemiJoin(left, right) | plan.AntiJoin(left, right) if free(left):
            columns, base = columns_over_set(left)
            moved = _match_over(node.match, columns, (Parameter(bindings(base)),), bindings(base))
            if moved is not None and base is not left:
                return columns, replace(node, left=base, match=moved)
        case plan.Join(left, right) | plan.Product(left, right):
            return _pairs_over_sets(node, left, right, is_inner=is_inner)
    return all_parameters(bindings(node)), node


def with_columns(node: plan.Node, columns: tuple[Expr, ...]) -> plan.Node:
    """Return the rows of columns over a node; the node itself if they are its bindings."""
    count = bindings(node)
    if columns == all_parameters(count):
        return node
    made = tuple(Lifted(column, row_names(count), (), count) for column in columns)
    return plan.Select(node, made[0]) if len(made) == 1 else plan.Extend(node, (), made)


def _columns_of_side(node: plan.Node, *, is_inner: bool) -> tuple[tuple[Expr, ...], plan.Node]:
    """Return the columns of a side, and its set; a closed side stays unless the join is inner."""
    if not is_inner and not free(node):
        return all_parameters(bindings(node)), node
    return columns_over_set(node)


def _pairs_over_sets(
    node: plan.Join | plan.Product, left: plan.Node, right: plan.Node, *, is_inner: bool
) -> tuple[tuple[Expr, ...], plan.Node]:
    """Return the columns of pairs, and a join of the sides without their columns.

    Closed sides stay, unless the join `is_inner`, a side of another one: rows of closed sides are
    counted, rows of inner joins are not.
    """
    own, source = _columns_of_side(left, is_inner=is_inner)
    others, partner = _columns_of_side(right, is_inner=is_inner)
    if bindings(partner) > 1:
        others, partner = all_parameters(1), right
    count = bindings(source)
    moved = tuple([substitute(column, (Parameter(count),)) for column in others])
    match = _match_over(join_match(node), own, moved, count)
    if match is None or (source is left and partner is right):
        return all_parameters(bindings(node)), node
    made = plan.Product(source, partner)
    if isinstance(node, plan.Join):
        return (*own, *moved), replace(node, left=source, right=partner, match=match)
    return (*own, *moved), made


def _match_over(
    match: plan.Match, left: tuple[Expr, ...], right: tuple[Expr, ...], count: int
) -> plan.Match | None:
    """Return a match over rows of which both sides are columns; None if it has keys of its own, or
    a predicate that is opaque."""
    if match.left_key is not None or not isinstance(match.on, Lifted | None):
        return None
    on = None if match.on is None else _over(match.on, (*left, *right), count + 1)
    return replace(match, on=on)


def _over(function: Lifted, columns: tuple[Expr, ...], count: int) -> Lifted:
    """Return a callable of columns as a callable of the `count` bindings that they are made of."""
    if columns == all_parameters(function.parameters) and count == function.parameters:
        return function
    return Lifted(over(function.body, columns), row_names(count), function.origins, count)
