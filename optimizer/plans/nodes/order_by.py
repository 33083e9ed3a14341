"""The node of an order, and the keys that rows stand by."""

from __future__ import annotations

from typing import Literal

from optimizer.expr import Function
from optimizer.plans import costs, headlines
from optimizer.plans.facts import Calls, Facts, as_first, of_input, same_rows
from optimizer.plans.plan_node import Node
from optimizer.record import record


@record
class SortKey:
    """One key of an order, least or greatest first. `nulls` says where None stands, as the key or
    as a part of it that is a tuple; without it, None is compared like any value."""

    function: Function
    descending: bool = False
    nulls: Literal["first", "last"] | None = None


@record
class OrderBy(Node):
    """Rows in order of keys, one after the other, at least one: the `limit` rows (None: all) that
    follow the first `offset`."""

    input: Node
    keys: tuple[SortKey, ...]
    limit: int | None
    offset: int

    facts = Facts(
        calls=(Calls("keys.function", of_input),),
        raises=True,
        recursion=lambda _: ("order",),
        shapes=same_rows,
        is_set=as_first,
        costs=costs.logarithmic,
        degree=costs.degree_as_input,
        headline=headlines.order_by,
    )

    @property
    def descending(self) -> bool:
        """Whether the first key is."""
        return self.keys[0].descending
