"""The base of the nodes of a logical plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from optimizer.plans.facts import Facts
from optimizer.plans.tree import Tree
from optimizer.record import record


@record
class Node(Tree):
    """Base of all plan nodes. Each kind states its `facts`; there are no defaults."""

    facts: ClassVar[Facts]

    def __init_subclass__(cls) -> None:
        super(Node, cls).__init_subclass__()  # noqa: UP008 (the decorator makes the class again)
        if "facts" not in vars(cls):
            raise TypeError(
                f"plan node {cls.__name__} does not say what it is\n"
                "  give the class `facts = Facts(...)`, as its neighbours have"
            )

    if TYPE_CHECKING:

        def inputs(self) -> tuple[Node, ...]: ...
