"""A correlated query for all rows around it: for each value that they have, once.

    where o.customer == outer[0]        outer[0] is c.id of customers c
      table orders
    ->
    join outer == o.customer            or, if nothing in it raises,    table orders, by o.customer
      distinct
        select c.id
          table customers
      table orders

Source: [neumann2015] the domain of a dependent join.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Call,
    Expr,
    Lifted,
    Parameter,
    constant,
    one_value,
    tuple_of,
)
from optimizer.expressions.compose import same
from optimizer.expressions.declared import holds_no_nan
from optimizer.expressions.knowledge import is_canonical
from optimizer.plans.properties import bindings, of_either_sign, shapes
from optimizer.record import record
from optimizer.subqueries.calm import NOTHING, is_calm, kinds
from optimizer.subqueries.forms import known_of
from optimizer.subqueries.keyed import Keyed, items, names_of
from optimizer.subqueries.outers import outers
from optimizer.subqueries.translation import Asked, Translation, Values

WITHOUT_NAN = frozenset({int, bool, str, bytes, NOTHING, date, datetime, time, timedelta})
REFUSAL = "a sub-query that reads the row around it cannot do {} for every row"


@record
class How:
    """What only an engine knows: what an aggregate shows of no rows, and a value in which every NaN
    is the same. And whether a language says in what order things are asked, so that what raises
    may do so of no other rows than those that it is asked of."""

    of_no_rows: Callable[[plan.Folded], Any]
    canonical: Callable[[Any], Any]
    in_order: bool = True


def translation(
    rows: plan.Node,
    arguments: tuple[Expr, ...],
    how: How,
    names: tuple[str, ...] = (),
    *,
    by_equation: bool,
) -> Translation:
    """Of queries, for all values that arguments have in some rows.

    With `by_equation` they are asked of other values too, where an equation finds those.
    """
    key = one_value(arguments) if arguments else tuple_of()
    groups = plan.Distinct(plan.Select(of_either_sign(rows), _callable(key, rows, names)))
    known = Keyed(groups, Parameter(0), (), covers=True)
    values = Values(known, groups, len(arguments), None, ("outer",))
    asked = Asked(how.of_no_rows, REFUSAL, by_equation)
    return Translation(values, asked, lambda node: bool(outers(node)), lambda node: None)


def match_back(
    rows: plan.Node,
    arguments: tuple[Expr, ...],
    keyed: Keyed,
    how: How,
    names: tuple[str, ...] = (),
) -> plan.Match:
    """When rows have the value of a row of a query, whose key is read in it as one value."""
    count = len(arguments)
    if not arguments:
        return plan.Match()
    of = shapes(rows)
    if keyed.plain or all(_holds_no_nan(value, rows) for value in arguments):
        mine, theirs = one_value(arguments), one_value(items(keyed.key, count))
    else:
        value = one_value(arguments)
        known = all(is_canonical(each, of) for each in arguments)
        mine = same(value if known else Call(constant(how.canonical, "canonical"), (value,)))
        theirs = same(keyed.key)
    return plan.Match(_callable(mine, rows, names), Lifted(theirs, ("row",), (), 1))


def may_ask(rows: plan.Node, how: How) -> Callable[[Expr], bool]:
    """What says whether something may be computed of every row, because it raises nothing."""
    known = known_of(rows)
    return lambda expr: not how.in_order or is_calm(expr, known)


def calm_of(rows: plan.Node) -> Callable[[Expr], bool]:
    """What says whether something raises nothing, whatever the row."""
    known = known_of(rows)
    return lambda expr: is_calm(expr, known)


def _holds_no_nan(expr: Expr, rows: plan.Node) -> bool:
    """Whether the value equals itself, by what is declared or known of the rows."""
    known = known_of(rows)
    found = kinds(expr, known)
    return holds_no_nan(expr, known.shapes) or (bool(found) and found <= WITHOUT_NAN)


def _callable(body: Expr, rows: plan.Node, names: tuple[str, ...]) -> Lifted:
    count = bindings(rows)
    return Lifted(body, names_of(names, count), (), count)
