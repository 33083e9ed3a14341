"""The node of `group_by(key).each(query)`: what the plan that it became gives, as bindings."""

from __future__ import annotations

from collections.abc import Sequence

from optimizer.expressions.knowledge import Shapes
from optimizer.plans import headlines
from optimizer.plans.facts import Facts, as_first
from optimizer.plans.plan_node import Node
from optimizer.record import record


def _items(node: Each, inputs: Sequence[Shapes]) -> Shapes:
    row = inputs[0][0]
    return row if isinstance(row, tuple) and len(row) == node.width else (None,) * node.width


@record
class Each(Node):
    """Rows that are tuples of `width` values, each of which is a binding: the key of a group, and
    those of a query of the group."""

    input: Node
    width: int

    facts = Facts(
        calls=(),
        raises=False,
        recursion=lambda _: ("aggregate",),
        shapes=_items,
        is_set=as_first,
        headline=headlines.by_name,
    )
