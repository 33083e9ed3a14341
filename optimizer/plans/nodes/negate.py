"""The node of `relation.negate()`: each row, with its weight negated.

    negate            a 1, b 2    ->    a -1, b -2

A row of negative weight is not shown. It counts where weights are added: `union_all` cancels it
with a row of positive weight.
"""

from __future__ import annotations

from optimizer.plans import costs
from optimizer.plans.facts import Facts, never, same_rows
from optimizer.plans.headlines import by_name
from optimizer.plans.plan_node import Node
from optimizer.record import record


@record
class Negate(Node):
    """The rows of the input, with weights negated."""

    input: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=lambda _: ("negation",),
        shapes=same_rows,
        is_set=never,
        costs=costs.constant,
        degree=costs.degree_as_input,
        headline=by_name,
    )
