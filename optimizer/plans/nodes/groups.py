"""Nodes that read several rows together: aggregates, reductions and top rows of groups, and orders.

    aggregate Count(), Sum(o.price) by o.customer      one row per group
    reduce f by o.customer                             the rows that f makes of a group
    top 3 by o.price descending of each o.customer     the first rows of each group
    order_by o.price, limit 10                         rows in order

A function of `reduce` may offer to keep its groups (`KeepsGroups`): then it receives the inserted
and deleted rows, and is not called with all rows of a changed group. Its result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from optimizer.callables.opaque import Opaque
from optimizer.expr import Constant, Function, Lifted
from optimizer.expressions.knowledge import Shape, Shapes
from optimizer.expressions.text import written
from optimizer.plans import facts as costs
from optimizer.plans import headlines
from optimizer.plans.facts import (
    Calls,
    Facts,
    Node,
    always,
    as_first,
    never,
    of_input,
    orders,
    same_rows,
    shapes_of_groups,
)
from optimizer.record import record

if TYPE_CHECKING:
    from optimizer.plans.nodes.sources import Table


def _shapes_of_reduce(node: Reduce, inputs: Sequence[Shapes]) -> Shapes:
    found = keeper(node.function)
    return (None, None if found is None else found.shape)


def _costs_of_reduce(node: Reduce) -> costs.Costs:
    """Return the cost that a function that keeps its groups tells; else that of a whole group."""
    return (getattr(keeper(node.function), "cost", costs.Cost.GROUP),)


def _shapes_of_group(inputs: Sequence[Shapes], place: int) -> Shapes:
    """Return (None, None): nothing is known of a key, nor of the rows of a group as one value."""
    return (None, None)


@runtime_checkable
class KeepsGroups(Protocol):
    """A function of `reduce` that keeps its groups."""

    def __call__(self, key: Any, rows: Any) -> Any:
        """Return the value for all rows of a group."""
        ...

    @property
    def shape(self) -> Shape:
        """The shape of the rows that the function returns."""
        ...

    def kept(self) -> Callable[[], Any]:
        """Return the maker of an empty group (`operators/aggregate.py`)."""
        ...

    def limited(self, item: int, most: int) -> Any:
        """Return a function that omits rows whose `item` exceeds `most`; None if there is none."""
        ...

    def dropping(self) -> Any:
        """Return a function that returns no rows for a group whose callables raise."""
        ...


def keeper(function: Function) -> KeepsGroups | None:
    """Return the callable of `function` if it keeps its groups, else None."""
    called = function.function if isinstance(function, Opaque) else None
    if called is None or called.__class__ is FunctionType:  # a quicker test than the protocol's
        return None
    return called if isinstance(called, KeepsGroups) else None


def callables_of(function: Function) -> tuple[Opaque, ...]:
    """Return the user's callables that a function calls for the groups that it keeps."""
    return getattr(keeper(function), "callables", ())


def is_of_whole(node: Reduce) -> bool:
    """Return True if all rows are one group, whose rows the function gets together (`apply`,
    `through`)."""
    is_one = isinstance(node.key, Lifted) and isinstance(node.key.body, Constant)
    kept = keeper(node.function)
    return is_one and (kept is None or hasattr(kept, "stays_whole"))


def kept_by(function: Any, name: str) -> Opaque:
    """Return a function that keeps its groups as a callable of a plan, equal to its equals."""
    role = getattr(function, "method", "reduce")
    return Opaque(function, 2, name, None, (), (name, function), role)


def replaced(function: Function, by: Any, more: str = "") -> Opaque:
    """Return `function` with the callable `by`, and `more` at the end of its name."""
    assert isinstance(function, Opaque)
    name = function.name + more
    return replace(function, function=by, name=name, identity=(name, by))


@record
class Folded:
    """One aggregate of a group: its accumulator (an object of the engine), and the value it reads.

    `functions` are the user's callables in the accumulator; `tolerant` is the accumulator whose
    result is a `Fault` if one of them raises. With `skip_none`, values that are None are left out.
    Rules read the `name`; texts show the `label`: for an aggregate of the user's own, its class.
    The result rises with more rows if the `direction` is 1, and falls if it is -1, as the user
    declares.
    """

    name: str
    accumulator: Any
    value: Function | None
    functions: tuple[Opaque, ...] = ()
    skip_none: bool = False
    tolerant: Any = None
    own_name: str | None = None
    direction: int = 0

    @property
    def label(self) -> str:
        """The name that texts show."""
        return self.own_name or self.name


@record
class Aggregate(Node):
    """One row per group: its key, then each aggregate. Without a key, one row for all rows.

    `row` is the class of named rows; the engine sets it if it fuses the select that names them.
    """

    input: Node
    key: Function | None
    aggregates: tuple[Folded, ...]
    row: Any = None

    facts = Facts(
        calls=(Calls("key", of_input), Calls("aggregates.value", of_input)),
        raises=True,
        recursion=lambda _: ("aggregate",),
        shapes=shapes_of_groups,
        is_set=always,
        costs=costs.of_aggregates,
        degree=costs.degree_of_aggregates,
        headline=headlines.aggregate,
    )


def _headline_of_reduce(node: Reduce) -> str:
    by = f" by {written(node.key)}"
    is_one = node.method != "reduce" and is_of_whole(node)
    return f"{node.method} {written(node.function)}" + ("" if is_one else by)


@record
class Reduce(Node):
    """The rows that a callable returns for the key and the rows of a group, each after the key."""

    input: Node
    key: Function
    function: Function

    facts = Facts(
        calls=(Calls("key", of_input), Calls("function", _shapes_of_group, of_rows=False)),
        raises=True,
        recursion=lambda node: ("aggregate" if node.method == "reduce" else "operator",),
        shapes=_shapes_of_reduce,
        is_set=never,
        costs=_costs_of_reduce,
        degree=costs.no_degree,
        headline=_headline_of_reduce,
    )

    @property
    def method(self) -> str:
        """The method of relations and groups that makes such a node."""
        return getattr(keeper(self.function), "method", "reduce")


@record
class SortKey:
    """One key of an order, ascending or descending.

    `nulls` places None, as the key or as a part of a key that is a tuple; without it, None is
    compared like any value.
    """

    function: Function
    descending: bool = False
    nulls: Literal["first", "last"] | None = None


def _shapes_of_order(node: OrderBy, inputs: Sequence[Shapes]) -> Shapes:
    return inputs[0][: node.shown]


@record
class OrderBy(Node):
    """The rows in the order of one or more keys: `limit` rows (None: all) after the first `offset`.

    The limit may be a parameter, a table of one number.

    The first `shown` bindings of a row (None: all) are shown. The others only place the row, so
    that two rows that look alike may stand at different places.
    """

    input: Node
    keys: tuple[SortKey, ...]
    limit: int | Table | None
    offset: int
    shown: int | None = None

    facts = Facts(
        calls=(Calls("keys.function", of_input),),
        raises=True,
        recursion=orders,
        shapes=_shapes_of_order,
        is_set=lambda node, inputs: node.shown is None and inputs[0],
        costs=costs.logarithmic,
        degree=costs.degree_as_input,
        headline=headlines.order_by,
    )

    @property
    def descending(self) -> bool:
        """True if the first key is descending."""
        return self.keys[0].descending

    @property
    def show(self) -> Callable[[Any], Any] | None:
        """The function that returns the shown part of a row; None if all of it is shown."""
        if self.shown is None:
            return None
        return itemgetter(0) if self.shown == 1 else itemgetter(slice(self.shown))


def _headline_of_top(node: Top) -> str:
    window = f", offset {node.offset}" if node.offset else ""
    by = headlines.sorted_by(node.keys)
    return f"top {node.limit}{window} by {by} of each {written(node.key)}"


@record
class Top(Node):
    """The rows of each group from `offset` on, at most `limit`, in the order of keys."""

    input: Node
    key: Function
    keys: tuple[SortKey, ...]
    limit: int
    offset: int = 0

    facts = Facts(
        calls=(Calls("key", of_input), Calls("keys.function", of_input)),
        raises=True,
        recursion=orders,
        shapes=same_rows,
        is_set=as_first,
        costs=costs.logarithmic,
        degree=costs.no_degree,
        headline=_headline_of_top,
    )

    @property
    def order(self) -> OrderBy:
        """The order and limit of one group, as a node over all rows."""
        return OrderBy(self.input, self.keys, self.limit, self.offset)
