"""The rows for which a query has a row, or has none: a semi join, or an anti join.

    exists (where o.customer == outer[0].id and o.paid)      semi_join on o.customer == c.id
      table customers                                  ->                 and o.paid
                                                               table customers
                                                               table orders

The conditions of a query that does nothing but filter are those of the join, which finds its keys
in them, and asks no pairs but those that agree in them. Of another query, the values for which it
has a row are found among all that the rows have (`domain.py`).
"""

from __future__ import annotations

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    Expr,
    Item,
    Lifted,
    Parameter,
    Subquery,
    conjunction,
    constant,
    tuple_of,
)
from optimizer.expressions.compose import over
from optimizer.plans.properties import bindings
from optimizer.subqueries.calm import kinds
from optimizer.subqueries.domain import How, calm_of, match_back, translation
from optimizer.subqueries.forms import known_of
from optimizer.subqueries.keyed import Keyed, items, names_of
from optimizer.subqueries.outers import narrowed, with_values
from optimizer.subqueries.peeled import Peeled, peeled
from optimizer.subqueries.raising import Gate, is_quiet_beside
from optimizer.subqueries.stripped import stripped


def existing(
    rows: plan.Node,
    query: Subquery,
    is_there: bool,
    how: How,
    names: tuple[str, ...] = (),
    origins: tuple[Opaque, ...] = (),
) -> plan.Node:
    """The rows for which a query has a row, or has none. Its arguments raise nothing."""
    join = plan.SemiJoin if is_there else plan.AntiJoin
    node = stripped(query.query)
    found = peeled(node)
    gate = Gate()
    if found is not None:
        source = gate.open(gate.before(found.source), rows) if how.in_order else found.source
        on = on_pairs(rows, found, query.arguments, names, origins)
        return join(rows, source, plan.Match(on=on))
    node, values = narrowed(node, query.arguments, calm_of(rows))
    known = known_of(rows)
    by_equation = not how.in_order or is_quiet_beside(
        node, tuple([kinds(value, known) for value in values])
    )
    asked = translation(rows, values, how, names, by_equation=by_equation)
    x = asked.of(gate.before(node) if how.in_order else node)
    made = plan.Select(x.node, asked.plain(tuple_of(x.key), x))
    keyed = Keyed(made, Item(Parameter(0), constant(0)), (), plain=x.plain)
    return join(rows, gate.open(made, rows), match_back(rows, values, keyed, how, names))


def on_pairs(
    rows: plan.Node,
    query: Peeled,
    arguments: tuple[Expr, ...],
    names: tuple[str, ...],
    origins: tuple[Opaque, ...],
) -> Lifted | None:
    """The conditions of a query as those of pairs of a row and one of its source."""
    if not query.conditions:
        return None
    count = bindings(rows)
    row = items(Parameter(count), bindings(query.source))
    tests = [with_values(over(test, row), arguments) for test in query.conditions]
    known = names_of(names[:count], count + 1)
    every = tuple({id(o): o for o in (*origins, *query.origins)}.values())
    return Lifted(conjunction(tuple(tests)), known, every, count + 1)
