"""The methods of ordered relations that keep the order: `where`, `select`, `extend` and `bind`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, overload

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans import explain as explaining
from optimizer.subqueries import keyed_rows
from optimizer.traverse import with_inputs
from reactive.engine.collections.order import tie_key
from reactive.engine.runtime.boundary import boundary

if TYPE_CHECKING:
    from reactive.api.relation import OrderedRelation, Relation

Ts = TypeVarTuple("Ts")
U = TypeVar("U")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
BAG = (plan.Previous, plan.Aggregate)
"""Nodes whose result does not depend on the order of the rows."""


@boundary
class KeepsOrder(Generic[*Ts]):
    """Base of ordered relations; it comes before `Relation` in the order of bases."""

    def where(
        self, predicate: Callable[[*Ts], object] | None = None, /, **fields: Any
    ) -> OrderedRelation[*Ts]:
        """Keep the rows that satisfy the predicate, in their order; see `Relation.where`."""
        base: Any = super()
        return base.where(predicate, **fields)  # type: ignore[no-any-return]

    @overload
    def select(self, function: Callable[[*Ts], U], /) -> OrderedRelation[U]: ...
    @overload
    def select(self, name: str, /, **named: Callable[[*Ts], Any] | str) -> OrderedRelation[Any]: ...
    @overload
    def select(self, /, **named: Callable[[*Ts], Any] | str) -> OrderedRelation[Any]: ...
    @overload
    def select(
        self,
        first: Callable[[*Ts], Any] | str,
        second: Callable[[*Ts], Any] | str,
        /,
        *more: Callable[[*Ts], Any] | str,
        **named: Callable[[*Ts], Any] | str,
    ) -> OrderedRelation[Any]: ...
    def select(self, /, *columns: Any, **named: Any) -> Any:
        """Compute a value from each row, in the order of the rows; see `Relation.select`."""
        base: Any = super()
        return base.select(*columns, **named)

    @overload
    def extend(self, a: Callable[[*Ts], A], /) -> OrderedRelation[*Ts, A]: ...
    @overload
    def extend(
        self, a: Callable[[*Ts], A], b: Callable[[*Ts], B], /
    ) -> OrderedRelation[*Ts, A, B]: ...
    @overload
    def extend(
        self, a: Callable[[*Ts], A], b: Callable[[*Ts], B], c: Callable[[*Ts], C], /
    ) -> OrderedRelation[*Ts, A, B, C]: ...
    @overload
    def extend(
        self, /, *columns: Callable[[*Ts], Any] | str, **named: Callable[[*Ts], Any] | str
    ) -> OrderedRelation[*tuple[Any, ...]]: ...
    def extend(self, /, *columns: Any, **named: Any) -> Any:
        """Append bindings to the rows, in their order; see `Relation.extend`."""
        base: Any = super()
        return base.extend(*columns, **named)

    @overload
    def bind(self, a: Callable[[*Ts], A], /) -> OrderedRelation[A]: ...
    @overload
    def bind(self, a: Callable[[*Ts], A], b: Callable[[*Ts], B], /) -> OrderedRelation[A, B]: ...
    @overload
    def bind(
        self, a: Callable[[*Ts], A], b: Callable[[*Ts], B], c: Callable[[*Ts], C], /
    ) -> OrderedRelation[A, B, C]: ...
    @overload
    def bind(
        self,
        a: Callable[[*Ts], A],
        b: Callable[[*Ts], B],
        c: Callable[[*Ts], C],
        d: Callable[[*Ts], D],
        /,
    ) -> OrderedRelation[A, B, C, D]: ...
    @overload
    def bind(
        self, /, *columns: Callable[[*Ts], Any] | str, **named: Callable[[*Ts], Any] | str
    ) -> OrderedRelation[*tuple[Any, ...]]: ...
    def bind(self, /, *columns: Any, **named: Any) -> Any:
        """Replace the bindings of the rows, in their order; see `Relation.bind`."""
        base: Any = super()
        return base.bind(*columns, **named)

    def _order(self: Any) -> plan.OrderBy:
        """Return the plan of the order."""
        return self.plan  # type: ignore[no-any-return]

    def _with_windows(self: Any, node: plan.Node) -> Relation[Any]:
        """Return the relation with windows, in no order; refuse to lose one that no limit used."""
        order: plan.OrderBy = self._order()
        if keyed_rows.is_lost(order):
            raise PlanError(
                "over would lose the order of the rows\n"
                "  give over(order=...), and call order_by(key) after select"
            )
        base: Any = super()
        rows = keyed_rows.in_no_order(order)
        return base._with_windows(with_inputs(node, [rows]))  # type: ignore[no-any-return]

    def _new(self: Any, node: plan.Node, *others: Any) -> Relation[Any]:
        """Return a relation of `node` in the same order; in no order if the node loses it.

        Raises `PlanError` if the node loses an order that no limit has used.
        """
        base: Any = super()
        inputs = node.inputs()
        if not inputs or inputs[0] is not self.plan:
            return base._new(node, *others)  # type: ignore[no-any-return]
        order: plan.OrderBy = self._order()
        ordered = keyed_rows.order_above(with_inputs(node, [order, *inputs[1:]]), tie_key)
        if ordered is None:
            check_lost(order, node)
            if self.plan is order:
                node = with_inputs(node, [keyed_rows.in_no_order(order), *inputs[1:]])
            return base._new(node, *others)  # type: ignore[no-any-return]
        rows = base._new(ordered.input, *others)
        ordered = replace(ordered, input=rows.plan)
        return self._in_sequence(ordered, rows._kept_views())  # type: ignore[no-any-return]


def check_lost(order: plan.OrderBy, node: plan.Node) -> None:
    """Refuse a node that loses an order which no `limit` has used.

    Raises
    ------
    PlanError: the node loses the order.
    """
    if keyed_rows.is_lost(order) and not isinstance(node, BAG):
        name = explaining.headline(node).split()[0]
        raise PlanError(
            f"cannot keep the order of the rows in {name}\n"
            f"  call order_by(key) after {name}, or leave it out"
        )
