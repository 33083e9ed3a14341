"""A query of one group becomes one of all groups: the value that rows depend on is the key.

    g.where(p).group_by(j).aggregate(Count())        aggregate Count() by (k, j)
                                                       where p
                                                         rows of all groups, grouped by k

A group exists while it has a row. What shows something of no rows, an aggregate of all, does so for
groups of which nothing is left where it stands.

Source: `translation.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Expr,
    Function,
    Item,
    Lifted,
    Parameter,
    all_parameters,
    constant,
    one_value,
    row_names,
    tuple_of,
)
from optimizer.expressions.knowledge import is_canonical, total
from optimizer.plans.asked_form import OfGroups, with_form
from optimizer.plans.properties import bindings, free, shapes
from optimizer.subqueries.keyed import FIRST, ONE, Keyed, items, read
from optimizer.subqueries.translation import Asked, Translation, Values

REFUSAL = "each cannot do {} for every group"


def per_group(
    query: plan.Node,
    level: object,
    source: plan.Node,
    key: Function,
    *,
    of_no_rows: Callable[[plan.Folded], Any],
    canonical: Callable[[Any], Any],
) -> plan.Node:
    """The plan of a query for each group of `source`, in which it is `Recursive` of the level.

    `of_no_rows` gives what an aggregate shows of no rows, `canonical` a value in which every NaN is
    the same. Rows are the key of the group, and the bindings of the query.

    Raises
    ------
    PlanError: something in the query cannot be asked of all groups together.
    """
    values = _groups(source, read(key, shapes(source)), canonical)

    def leaf(node: plan.Node) -> Keyed | None:
        return values.known if isinstance(node, plan.Recursive) else None

    asked = Asked(of_no_rows, REFUSAL)
    all_ = Translation(values, asked, lambda node: level in free(node), leaf)
    return with_form(all_.bindings_of(query), OfGroups(source, key, query, level))


def _groups(source: plan.Node, key: Lifted, canonical: Callable[[Any], Any]) -> Values:
    """The rows of all groups."""
    same = None if is_canonical(key.body, shapes(source)) else constant(canonical, "canonical")
    row: tuple[Expr, ...] = all_parameters(bindings(source))
    whole, names = Keyed(source, key.body, row, covers=True), key.names
    if not total(key.body, shapes(source)):  # it is asked of all rows, once
        made = key.with_body(tuple_of(key.body, one_value(row)))
        row = items(Item(Parameter(0), ONE), len(row))
        pairs = plan.Select(source, made)
        whole, names = Keyed(pairs, FIRST, row, covers=True, pair=len(row)), ("row",)
    count = bindings(whole.node)
    known = (*names, *row_names(count)[len(names) :])
    each = plan.Select(whole.node, Lifted(whole.key, known, key.origins, count))
    return Values(whole, plan.Distinct(each), None, same, names, key.origins)
