"""A way of running a query that does not hold for the rows after all."""

from __future__ import annotations

from typing import Any

from optimizer import plan


class BailOut(Exception):
    """An aggregate cannot be kept by factors after all; `owner` is its node in the plan."""

    def __init__(self, owner: plan.Node, operator: Any) -> None:
        super().__init__("an aggregate is computed without factors from now on")
        self.owner = owner
        self.operator = operator
