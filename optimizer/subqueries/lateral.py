"""Rows beside those that a query has for them.

    customers c, and of each
      select o.total                                 join on o.customer == c.id
        where o.customer == outer[0].id       ->       table customers
          table orders                                 table orders

Of a query that does nothing but filter, a join has all the conditions. Another one is asked for all
values that the rows have (`domain.py`).

Sound: for all weights; they multiply.
Needs: the query has no sub-queries in its callables any more (`freed.py`).
Source: [neumann2015].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    NONE,
    Conditional,
    Expr,
    Item,
    Operation,
    Parameter,
    all_parameters,
    constant,
    tuple_of,
)
from optimizer.expressions.compose import over
from optimizer.plans.asked_form import BesideRows, with_form
from optimizer.plans.properties import bindings
from optimizer.subqueries.answers import Answers
from optimizer.subqueries.calm import kinds
from optimizer.subqueries.columns import extended
from optimizer.subqueries.domain import How, calm_of, match_back, translation
from optimizer.subqueries.existing import on_pairs
from optimizer.subqueries.forms import known_of
from optimizer.subqueries.keyed import FIRST, Keyed, items
from optimizer.subqueries.outers import narrowed, with_values
from optimizer.subqueries.peeled import Peeled, peeled
from optimizer.subqueries.raising import Gate, is_quiet_beside

Kind = Literal["inner", "left"]


def lateral(
    left: plan.Node,
    query: plan.Node,
    arguments: tuple[Expr, ...],
    kind: Kind = "inner",
    *,
    of_no_rows: Callable[[plan.Folded], Any],
    canonical: Callable[[Any], Any],
    in_order: bool = True,
    names: tuple[str, ...] = (),
    origins: tuple[Opaque, ...] = (),
) -> plan.Node:
    """The bindings of the left, and then those of a query that reads `Outer(i)`, which is the value
    of `arguments[i]`.

    With `"left"`, rows for which it has none have None in their place. `names` and `origins` are
    those of the left's bindings, for messages; the others are as for `freed`.

    Raises
    ------
    PlanError: the query cannot be asked of all rows together.
    """
    how = How(of_no_rows, canonical, in_order)
    answers = Answers(left, how, names, origins)
    form = BesideRows(left, query, arguments, kind == "left")
    arguments = answers.bound(answers.read(*arguments), None)
    found = peeled(query)
    if found is not None and (kind == "inner" or _is_source(found)):
        node, row = _of_pairs(answers, found, arguments, how, kind)
    else:
        node, row = _of_values(answers, query, arguments, how, kind)
    width = bindings(left)
    if row != (Parameter(width),):  # the query's only binding is not where it should be
        node = extended(node, tuple(range(width)), row, names, origins)
    return with_form(node, form)


def _is_source(query: Peeled) -> bool:
    """Whether its rows are those of the source, of one binding: of none, it is None."""
    return bindings(query.source) == 1 and query.row == all_parameters(1)


def _of_pairs(
    answers: Answers, query: Peeled, arguments: tuple[Expr, ...], how: How, kind: Kind
) -> tuple[plan.Node, tuple[Expr, ...]]:
    """The join of rows with those of the source, and the query's row in it."""
    rows = answers.rows
    gate = Gate()
    source = gate.open(gate.before(query.source), rows) if how.in_order else query.source
    match = plan.Match(on=on_pairs(rows, query, arguments, answers.names, answers.origins))
    other = items(Parameter(bindings(rows)), bindings(source))
    row = tuple([with_values(over(part, other), arguments) for part in query.row])
    if kind == "left":
        return plan.OuterJoin(rows, source, match, "left"), row
    if match == plan.Match():
        return plan.Product(rows, source), row
    return plan.Join(rows, source, match), row


def _of_values(
    answers: Answers, query: plan.Node, arguments: tuple[Expr, ...], how: How, kind: Kind
) -> tuple[plan.Node, tuple[Expr, ...]]:
    """The join of rows with those of the query for all their values, and its row in that."""
    rows, width = answers.rows, bindings(query)
    gate = Gate()
    node, values = narrowed(query, arguments, calm_of(rows))
    known = known_of(rows)
    given = tuple([kinds(value, known) for value in values])
    by_equation = not how.in_order or is_quiet_beside(node, given)
    node = gate.before(node) if how.in_order else node
    asked = translation(rows, values, how, answers.names, by_equation=by_equation)
    x = asked.of(node) if values else Keyed(node, tuple_of(), all_parameters(width))
    packed = plan.Select(x.node, asked.plain(tuple_of(x.key, *x.row), x))
    made = gate.open(packed, rows)
    match = match_back(rows, values, replace(x, node=made, key=FIRST, row=()), how, answers.names)
    place = Parameter(bindings(rows))
    row: tuple[Expr, ...] = tuple([Item(place, constant(1 + i)) for i in range(width)])
    if kind == "left":
        there = Operation("is not", (place, NONE))
        row = tuple([Conditional(there, part, NONE) for part in row])
        return plan.OuterJoin(rows, made, match, "left"), row
    if match == plan.Match():
        return plan.Product(rows, made), row
    return plan.Join(rows, made, match), row
