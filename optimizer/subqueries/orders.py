"""Orders that stay: the plan of a filter or a projection over an ordered relation.

    where p                            order_by k
      order_by k             ->          where p

    select f                           order_by row1, row2         shows row0
      order_by k             ->          bind f(row), k(row), tie(row)

The order moves above the node. What `select` and `bind` leave out stays beside the rows, unseen:
the keys, and what tied rows stand by. A window stays below, since it chooses the rows:

    select f                           order_by row1, row2         shows row0
      order_by k, limit 3    ->          bind f(row), k(row), tie(row)
                                           order_by k, limit 3

Cost: a second order of the rows of a window; else none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Call,
    Expr,
    Function,
    Lifted,
    Parameter,
    all_parameters,
    constant,
    one_value,
    row_names,
)
from optimizer.plans.binding_names import binding_names
from optimizer.plans.properties import bindings, nodes, shapes
from optimizer.subqueries.keyed import over_row, read

TIE = "tie"
"""The name of the hidden binding by which tied rows stand."""


def rows_of_order(order: plan.OrderBy) -> tuple[plan.Node, int]:
    """Return the rows that stand in the order, with every binding that its keys read, and how many
    of the bindings are shown."""
    source: plan.Node = order.input
    if order.limit is not None or order.offset:
        source = replace(order, shown=None)
    count = bindings(source) if order.shown is None else order.shown
    return source, count


def is_lost(order: plan.OrderBy) -> bool:
    """Return True if the order chose no row, so that nothing is left of it where it is not kept."""
    windows = (n.limit is not None or n.offset for n in nodes(order) if isinstance(n, plan.OrderBy))
    return not any(windows)


def in_no_order(order: plan.OrderBy) -> plan.Node:
    """Return the rows of an order, as a bag; a window keeps its order, which chooses the rows."""
    if order.limit is not None or order.offset:
        return order
    source, count = rows_of_order(order)
    return source if order.shown is None else plan.Extend(source, tuple(range(count)), ())


def order_above(node: plan.Node, tie: Callable[[Any], Any]) -> plan.OrderBy | None:
    """Return the order of what `node` makes of the rows of an order; None if it keeps no order.

    Parameters
    ----------
    node: a node whose first input is a `plan.OrderBy`.
    tie: what rows with equal keys stand by.
    """
    order = node.inputs()[0]
    assert isinstance(order, plan.OrderBy)
    source, count = rows_of_order(order)
    match node:
        case plan.Where(_, predicate):
            made: plan.Node = plan.Where(source, _widened(predicate, source, count))
        case plan.SemiJoin() | plan.AntiJoin():
            made = replace(node, left=source, match=_match(node.match, source, count))
        case plan.Distinct() if order.shown is None:
            made = plan.Distinct(source)
        case plan.Select(_, function):
            return _bound(order, (), (function,), (), tie)
        case plan.Extend(_, keep, columns, names):
            if order.shown is not None or keep != tuple(range(count)):
                return _bound(order, keep, columns, names, tie)
            made = replace(node, input=source)
        case _:
            return None
    keys = [_over(key, bindings(made)) for key in order.keys]
    return plan.OrderBy(made, tuple(keys), None, 0, order.shown)


def in_order(order: plan.Node, keys: tuple[plan.SortKey, ...]) -> plan.OrderBy:
    """Return rows in the order of some keys. Rows that are equal in these stay in the order that
    they had, if they had one, as `sorted` has it."""
    if not isinstance(order, plan.OrderBy):
        return plan.OrderBy(order, keys, None, 0)
    source, count = rows_of_order(order)
    made = [replace(key, function=_widened(key.function, source, count)) for key in keys]
    known = {key.function for key in made}
    for key in order.keys:
        then = _over(key, bindings(source))
        if then.function not in known:  # else its rows are equal where it would be asked
            known.add(then.function)
            made.append(then)
    return plan.OrderBy(source, tuple(made), None, 0, order.shown)


def _bound(
    order: plan.OrderBy,
    keep: tuple[int, ...],
    columns: tuple[Function, ...],
    names: tuple[str | None, ...],
    tie: Callable[[Any], Any],
) -> plan.OrderBy:
    """Return the order over other bindings, with its keys beside them."""
    source, count = rows_of_order(order)
    width, shown = bindings(source), len(keep) + len(columns)
    hidden = [key.function for key in order.keys]
    keys = [*order.keys]
    if TIE not in binding_names(source)[count:]:
        row = Call(constant(tie, TIE), (one_value(all_parameters(width)[:count]),))
        hidden.append(Lifted(row, row_names(width), (), width))
        keys.append(plan.SortKey(hidden[-1]))
    shown_names = (*names, *[None] * shown)[:shown]
    unseen = (*[None] * (len(keys) - 1), TIE)
    every = (*[_widened(f, source, count) for f in columns], *hidden)
    made = plan.Extend(source, keep, every, (*shown_names, *unseen))
    total = shown + len(hidden)
    by = [replace(k, function=_place(shown + n, total)) for n, k in enumerate(keys)]
    return plan.OrderBy(made, tuple(by), None, 0, shown)


def _place(place: int, count: int) -> Lifted:
    return Lifted(Parameter(place), row_names(count), (), count)


def _over(key: plan.SortKey, width: int) -> plan.SortKey:
    """Return the key of rows that have more bindings behind their own."""
    if key.function.parameters == width:
        return key
    return replace(key, function=_of_first(key.function, key.function.parameters, width, ()))


def _widened(function: Function, source: plan.Node, count: int) -> Function:
    """Return a callable of the shown bindings as one of all."""
    width = bindings(source)
    return function if width == count else _of_first(function, count, width, shapes(source))


def _match(match: plan.Match, source: plan.Node, count: int) -> plan.Match:
    """Return the condition of a join whose left has hidden bindings too."""
    width = bindings(source)
    if width == count:
        return match
    left, on = match.left_key, match.on
    if left is not None:
        left = _widened(left, source, count)
    if on is not None:
        pair: tuple[Expr, ...] = (*all_parameters(count), Parameter(width))
        on = over_row(on, pair, width + 1)
    return replace(match, left_key=left, on=on)


def _of_first(function: Function, count: int, width: int, known: Any) -> Lifted:
    made = read(function, known[:count])
    names = (*made.names[:count], *row_names(width)[count:])
    return Lifted(made.body, names, made.origins, width)
