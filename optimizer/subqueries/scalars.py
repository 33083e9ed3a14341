"""An aggregate of all rows, and what is computed of it.

select row / row1 if row1 else None            aggregate Sum(o.total), Count()
  aggregate Sum(o.total), Count()       and    lambda row, row1: row / row1 if row1 else None
    ...
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Expr, all_parameters
from optimizer.expressions.compose import is_too_long, over
from optimizer.expressions.knowledge import is_value
from optimizer.plans.extended import outputs
from optimizer.plans.properties import bindings, shapes
from optimizer.record import record
from optimizer.subqueries.outers import with_values


@record
class Scalar:
    """One value, which is computed of the results of an aggregate."""

    aggregate: plan.Aggregate
    value: Expr


def scalar(query: plan.Node) -> Scalar | None:
    """A query as what is computed of an aggregate of all rows; None if it is no such one."""
    above: list[plan.Select | plan.Extend] = []
    node = query
    while isinstance(node, plan.Select | plan.Extend):
        above.append(node)
        node = node.input
    if not isinstance(node, plan.Aggregate) or node.key is not None:
        return None
    row: tuple[Expr, ...] = all_parameters(bindings(node))
    for each in reversed(above):
        made, of = outputs(each), shapes(each.input)
        if not all(is_value(expr, of) for expr in made):
            return None
        row = tuple([over(expr, row) for expr in made])
    return None if len(row) > 1 or is_too_long(row[0]) else Scalar(node, row[0])


def of_results(found: Scalar, results: tuple[Expr, ...], arguments: tuple[Expr, ...]) -> Expr:
    """The value, with the results of the aggregate, and the arguments, in their places."""
    return with_values(over(found.value, results), arguments)
