"""Rows with names: what an aggregate emits as records with a field per column.

    aggregate(orders=Count(), total=Sum("total"))

    select Row(town, orders, total)
      aggregate Count(), Sum(order.total) by order.town

The columns are named by a select above the aggregate, so that equal aggregates are one whatever
their columns are called, and rules look through the record to what it is made of.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.callables.source import caller
from optimizer.expr import Call, Lifted, all_parameters, constant
from optimizer.expressions.naming import Naming, naming_of


def named(node: plan.Node, naming: Naming) -> plan.Select:
    """The rows of an aggregate, or of other bindings, as records."""
    parameters = all_parameters(len(naming.columns))
    kind = constant(naming.kind)
    if naming.generated:
        body = Call(kind, parameters)
    else:
        body = Call(kind, (), tuple(zip(naming.columns, parameters, strict=True)))
    name = f"{naming.kind.__name__}({', '.join(naming.columns)})"
    identity = ("named", body)
    made = Opaque(naming, len(parameters), name, caller(), (), identity, "the names of aggregate")
    return plan.Select(node, Lifted(body, naming.columns, (made,), len(parameters), made))


def naming_by(node: plan.Node) -> Naming | None:
    """How a node names its rows, if that is what it does."""
    return naming_of(node.function) if isinstance(node, plan.Select) else None
