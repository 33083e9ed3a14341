"""Levels of a nest as fragments stored elsewhere: rows with their keys, by the key.

    customers c            (c.id, c)              found by the key of the view, and by the label of
                                                  its inner rows
      orders o             (o.customer, o)        found by their label
                           (o.id, o)              found by the label of their inner rows
        lines l            (l.order, l)

Equal parts are one. No part has a bag: the inner rows of a row are looked up by its label, as in
the process.

Source: query shredding [cheney2014]; labels and dictionaries [slender].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer import plan
from optimizer.expr import Expr, Lifted, all_parameters, one_value, row_names, tuple_of
from optimizer.expressions.text import KeyOfFirst, Nesting, written
from optimizer.plans import shredding
from optimizer.plans.properties import bindings, may_be_negative, shapes
from optimizer.record import record
from optimizer.subqueries.keyed_rows import as_expression


@record
class Levels:
    """A nest, its levels, and their parts.

    `places` has the part numbers of each level: of the top level, the part by the key of the view;
    of others, the part by their label; then the parts by the labels of inner levels.
    """

    nesting: Nesting
    top: shredding.ShreddedLevel
    parts: tuple[plan.Select, ...]
    names: tuple[str, ...]
    """The names of the parts, such as `orders by o.customer`."""
    places: tuple[tuple[int, ...], ...]


@record
class Elsewhere:
    """The names of the parts of levels elsewhere, and a function for all rows.

    The function takes the operators of the parts; it returns None if all rows cannot be computed
    there.
    """

    names: tuple[str, ...]
    every: Callable[[Sequence[Any]], Any]


def levels_of(root: plan.Node) -> Levels | None:
    """Return the levels of a nest at the top of a view; None for any other query."""
    if not isinstance(root, plan.Select) or not isinstance(root.input, plan.OuterJoin):
        return None
    nesting = shredding.nesting_of(root)
    if nesting is None or may_be_negative(root):
        return None
    top = shredding.shred(root, in_order=False)
    return None if top is None else _select_levels(nesting, top)


def _select_levels(nesting: Nesting, top: shredding.ShreddedLevel) -> Levels:
    """Return the levels of a nest as selections by key; equal selections are one part."""
    parts: dict[plan.Select, int] = {}
    names: list[str] = []
    places: list[tuple[int, ...]] = []
    every = shredding.levels(top)
    for level, name in zip(every, shredding.names_of_levels(every, nesting), strict=True):
        own = level.label or level.key(_build_view_key(nesting, top))
        keys = [own, *(level.key(inside.key) for inside in level.inside)]
        found = [_select_with_keys(level.rows, key) for key in keys]
        places.append(tuple([parts.setdefault(part, len(parts)) for part in found]))
        for key, place in zip(keys, places[-1], strict=True):
            if place == len(names):
                names.append(f"{name} by {written(key)}")
    return Levels(nesting, top, tuple(parts), tuple(names), tuple(places))


def _select_with_keys(rows: plan.Node, key: Lifted) -> plan.Select:
    """Return the plan of rows with their keys."""
    width = bindings(rows)
    row = one_value(all_parameters(width))
    return plan.Select(rows, Lifted(tuple_of(key.body, row), row_names(width), key.origins, width))


def _build_view_key(nesting: Nesting, top: shredding.ShreddedLevel) -> Lifted:
    """Return the key of the view as a function of the first bindings of its rows."""
    count = nesting.kind.roots
    body: Expr = one_value(all_parameters(count))
    if isinstance(nesting.key, KeyOfFirst):
        body = as_expression(nesting.key.key, shapes(top.rows)[:1]).body
    return Lifted(body, row_names(count), (), count)
