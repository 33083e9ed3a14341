"""The node of an order, and the keys that rows stand by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Literal

from optimizer.expr import Function
from optimizer.expressions.knowledge import Shapes
from optimizer.plans import costs, headlines
from optimizer.plans.facts import Calls, Facts, of_input
from optimizer.plans.plan_node import Node
from optimizer.record import record


@record
class SortKey:
    """One key of an order, least or greatest first. `nulls` says where None stands, as the key or
    as a part of it that is a tuple; without it, None is compared like any value."""

    function: Function
    descending: bool = False
    nulls: Literal["first", "last"] | None = None


def _shown(node: OrderBy, inputs: Sequence[Shapes]) -> Shapes:
    return inputs[0][: node.shown]


@record
class OrderBy(Node):
    """Rows in order of keys, one after the other, at least one: the `limit` rows (None: all) that
    follow the first `offset`.

    Of each row it shows the first `shown` bindings (None: all). The others are what it stands by,
    so that two rows that look alike may stand at different places.
    """

    input: Node
    keys: tuple[SortKey, ...]
    limit: int | None
    offset: int
    shown: int | None = None

    facts = Facts(
        calls=(Calls("keys.function", of_input),),
        raises=True,
        recursion=lambda _: ("order",),
        shapes=_shown,
        is_set=lambda node, inputs: node.shown is None and inputs[0],
        costs=costs.logarithmic,
        degree=costs.degree_as_input,
        headline=headlines.order_by,
    )

    @property
    def descending(self) -> bool:
        """Whether the first key is."""
        return self.keys[0].descending

    @property
    def show(self) -> Callable[[Any], Any] | None:
        """What is shown of a row; None if all of it is."""
        if self.shown is None:
            return None
        return itemgetter(0) if self.shown == 1 else itemgetter(slice(self.shown))
