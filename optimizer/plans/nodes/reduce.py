"""The node of `group_by(key).reduce(function)`."""

from __future__ import annotations

from collections.abc import Sequence

from optimizer.expr import Function
from optimizer.expressions.knowledge import Shapes
from optimizer.expressions.text import written
from optimizer.plans.facts import Calls, Facts, never, of_input
from optimizer.plans.plan_node import Node
from optimizer.record import record


def _key_and_rows(inputs: Sequence[Shapes], place: int) -> Shapes:
    """A key, and the rows of its group as one value."""
    return (None, None)


@record
class Reduce(Node):
    """The rows that a callable makes of the key and the rows of a group, behind that key."""

    input: Node
    key: Function
    function: Function

    facts = Facts(
        calls=(Calls("key", of_input), Calls("function", _key_and_rows, of_rows=False)),
        raises=True,
        recursion=lambda _: ("aggregate",),
        shapes=lambda node, _: (None, None),
        is_set=never,
        headline=lambda node: f"reduce {written(node.function)} by {written(node.key)}",
    )
