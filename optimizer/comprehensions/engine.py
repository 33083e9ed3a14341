"""What the reading of comprehensions is given by an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, Protocol

from optimizer import plan
from optimizer.expr import Expr, Function

Fold = Literal["Sum", "Count", "Min", "Max", "Collect", "Only"]


class Engine(Protocol):
    """Relations as plans, aggregates, and sub-queries as joins."""

    bag: type
    """What lists are in the rows of a query."""

    def plan_of(self, value: Any) -> plan.Node | None:
        """The plan of a relation, a table or a view; None of anything else.

        Raises
        ------
        PlanError: it is of another database.
        """
        ...

    def finds_keys(self, value: Any) -> bool:
        """Whether it is a table or a view in which `in` finds keys."""
        ...

    def text_of(self, value: Any) -> Callable[[], Any] | None:
        """The function that a query was made of; None of anything else."""
        ...

    def fold(self, name: Fold, value: Function | None) -> plan.Folded:
        """An aggregate of the engine. `"Only"` is the one value of a group."""
        ...

    def freed(self, node: plan.Node) -> plan.Node:
        """The node without sub-queries in its callables."""
        ...

    def lateral(self, left: plan.Node, query: plan.Node, arguments: tuple[Expr, ...]) -> plan.Node:
        """Rows beside those that a query has for them, as one binding more."""
        ...

    def fixpoint(self, body: plan.Node, level: object, name: str) -> plan.Node:
        """The smallest relation that is what the body makes of it."""
        ...

    def in_order(self, pairs: Iterable[tuple[Any, Any]], descending: bool) -> tuple[Any, ...]:
        """Rows in the order of keys, as `order_by` has them, of pairs of a key and a row."""
        ...

    def by_themselves(self, values: Iterable[Any], descending: bool) -> tuple[Any, ...]:
        """Values in their own order, as `order_by` has them."""
        ...
