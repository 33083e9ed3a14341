"""The node of `group_by(key).top(n, by)`, and of `first` and `last`."""

from __future__ import annotations

from optimizer.expr import Function
from optimizer.expressions.text import written
from optimizer.plans import costs, headlines
from optimizer.plans.facts import Calls, Facts, as_first, of_input, same_rows
from optimizer.plans.nodes.order_by import OrderBy, SortKey
from optimizer.plans.plan_node import Node
from optimizer.record import record


def _headline(node: Top) -> str:
    window = f", offset {node.offset}" if node.offset else ""
    by = headlines.sorted_by(node.keys)
    return f"top {node.limit}{window} by {by} of each {written(node.key)}"


@record
class Top(Node):
    """Of each group the `limit` rows that follow the first `offset` in the order of keys."""

    input: Node
    key: Function
    keys: tuple[SortKey, ...]
    limit: int
    offset: int = 0

    facts = Facts(
        calls=(Calls("key", of_input), Calls("keys.function", of_input)),
        raises=True,
        recursion=lambda _: ("order",),
        shapes=same_rows,
        is_set=as_first,
        costs=costs.logarithmic,
        degree=costs.no_degree,
        headline=_headline,
    )

    @property
    def order(self) -> OrderBy:
        """What it would be of one group alone."""
        return OrderBy(self.input, self.keys, self.limit, self.offset)
