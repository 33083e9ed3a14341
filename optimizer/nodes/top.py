"""The node of `group_by(key).top(n, by)`, and of `first` and `last`."""

from __future__ import annotations

from dataclasses import dataclass

from optimizer import headlines
from optimizer.expr import Function
from optimizer.facts import Calls, Facts, as_first, of_input, same_rows
from optimizer.nodes.order_by import OrderBy, SortKey
from optimizer.plan_node import Node
from optimizer.text import written


def _headline(node: Top) -> str:
    window = f", offset {node.offset}" if node.offset else ""
    by = headlines.sorted_by(node.keys)
    return f"top {node.limit}{window} by {by} of each {written(node.key)}"


@dataclass(frozen=True, slots=True)
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
        headline=_headline,
    )

    @property
    def order(self) -> OrderBy:
        """What it would be of one group alone."""
        return OrderBy(self.input, self.keys, self.limit, self.offset)
