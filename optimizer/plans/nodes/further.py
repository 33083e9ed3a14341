"""The node of `group_by(key).reduce(function)`.

A function may offer to keep its groups itself (`KeepsGroups`): then it is told of the rows that
come and go, and need not be asked of all rows of a group. What it says of all is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any, Protocol, runtime_checkable

from optimizer.callables.opaque import Opaque
from optimizer.expr import Constant, Function, Lifted
from optimizer.expressions.knowledge import Shape, Shapes
from optimizer.expressions.text import written
from optimizer.plans import costs
from optimizer.plans.facts import Calls, Facts, never, of_input
from optimizer.plans.plan_node import Node
from optimizer.record import record


def _made(node: Reduce, inputs: Sequence[Shapes]) -> Shapes:
    found = keeper(node.function)
    return (None, None if found is None else found.shape)


def _key_and_rows(inputs: Sequence[Shapes], place: int) -> Shapes:
    """A key, and the rows of its group as one value."""
    return (None, None)


@runtime_checkable
class KeepsGroups(Protocol):
    """A function of `reduce` that keeps its groups."""

    def __call__(self, key: Any, rows: Any) -> Any:
        """What it makes of all rows of a group."""
        ...

    @property
    def shape(self) -> Shape:
        """What is known of the rows that it makes."""
        ...

    def kept(self) -> Callable[[], Any]:
        """What makes an empty group (`operators/kept_groups.py`)."""
        ...

    def limited(self, item: int, most: int) -> Any:
        """One that makes no rows of which an item is greater; None if there is none."""
        ...

    def dropping(self) -> Any:
        """One that makes no rows of a group of which something raises."""
        ...


def keeper(function: Function) -> KeepsGroups | None:
    """The function itself, if it keeps its groups."""
    called = function.function if isinstance(function, Opaque) else None
    if called is None or called.__class__ is FunctionType:  # which is asked more quickly
        return None
    return called if isinstance(called, KeepsGroups) else None


def is_of_whole(node: Reduce) -> bool:
    """Whether a function is asked of all rows together, as that of `apply`: they are one group."""
    is_one = isinstance(node.key, Lifted) and isinstance(node.key.body, Constant)
    return is_one and keeper(node.function) is None


def kept_by(function: Any, name: str) -> Opaque:
    """A function that keeps its groups, and is equal to another that is equal, in a plan."""
    return Opaque(function, 2, name, None, (), (name, function), "reduce")


def replaced(function: Function, by: Any, more: str = "") -> Opaque:
    """Another function in the place of one that keeps its groups, and more of a name."""
    assert isinstance(function, Opaque)
    name = function.name + more
    return replace(function, function=by, name=name, identity=(name, by))


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
        shapes=_made,
        is_set=never,
        costs=costs.whole_group,
        degree=costs.no_degree,
        headline=lambda node: f"reduce {written(node.function)} by {written(node.key)}",
    )
