"""Relations whose rows have a window: `over` returns one, and it is one until no row has a window.

    scores.over(by=f, order=g)                          extend over(team, points)
      .where(lambda s, w: w.rank() <= 3)                where w.rank() <= 3
      .select(lambda s, w: (s.name, w.lag(s.points)))   select (s.name, w.lag(s.points))

The plan with answers in place of windows is made by `window_bindings.resolve`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVarTuple

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import Call, Expr, Function, Lifted, constant, tuple_of
from optimizer.plans.check_reads import check_callable
from optimizer.plans.properties import binding_names, bindings, shapes
from optimizer.subqueries.keyed_rows import as_expression
from reactive.api.aggregates import sort_keys
from reactive.api.relation import GroupedRelation, Relation, views_of
from reactive.api.window_bindings import WindowOf, refuse_windows, resolve, resolved
from reactive.engine.runtime.boundary import boundary

if TYPE_CHECKING:
    from reactive.api.view import AnyView

Ts = TypeVarTuple("Ts")


@boundary
class Windowed(Relation[*Ts]):
    """A relation with a window among the bindings of its rows."""

    _has_windows = True

    def _new(self, node: plan.Node, *others: Any) -> Relation[Any]:
        views = views_of(self, *others)
        made = resolve(node)
        if made is None:
            return Windowed(self._engine, node, views)
        return Relation(self._engine, made, views)

    def _make_groups(self, node: plan.Node) -> GroupedRelation[Any]:
        return GroupedRelation(self._engine, resolved(node), self._kept_views())

    def _in_sequence(self, node: plan.OrderBy, views: tuple[AnyView, ...]) -> NoReturn:
        refuse_windows(node)

    def _query(self) -> NoReturn:
        refuse_windows(self.plan)

    def _subscribe_callback(self, callback: Any, **how: Any) -> NoReturn:
        refuse_windows(self.plan)


def relation_over(relation: Any, by: Any, order: Any, nulls: Any) -> Windowed[Any]:
    """Return a relation with the window of each row as one more binding.

    Raises
    ------
    PlanError: `by` or `order` is no key of the rows, or the relation has an order.
    """
    source: plan.Node = relation.plan
    count = bindings(source)
    keys = _sort_keys(relation, order, nulls)
    sorted_by = [_lift_key(each.function, source) for each in keys]
    parted_by = [] if by is None else [_lift_key(relation._take(by, "the by of over"), source)]
    every = [*parted_by, *sorted_by]
    window = WindowOf(tuple((each.descending, _place_of_none(each)) for each in keys))
    sort = (_tuple_of(parted_by), _tuple_of(sorted_by))
    names = next((each.names for each in every if len(each.names) == count), ())
    origins = tuple(origin for each in every for origin in each.origins)
    made = Lifted(Call(constant(window, "over"), sort), names, origins, count)
    named = (*binding_names(source), None)
    node = plan.Extend(source, tuple(range(count)), (made,), named)
    return Windowed(relation._engine, node, relation._new(node)._kept_views())


def _sort_keys(relation: Any, order: Any, nulls: Any) -> list[plan.SortKey]:
    """Return the keys of an order, a tuple as one key for each of its items."""
    given = tuple(order) if isinstance(order, list | tuple) else (order,)
    if order is None:
        return []
    if not given:
        raise PlanError('over has order=[], which names no key\n  order="at", order=desc(f)')

    def take(of: Any) -> Function:
        return relation._take(of, "the order of over")  # type: ignore[no-any-return]

    return list(sort_keys(given, take, "over", descending=False, nulls=nulls))


def _place_of_none(key: plan.SortKey) -> bool | None:
    """Return True if None is first, False if it is last, None if it is compared like any value."""
    return None if key.nulls is None else key.nulls == "first"


def _lift_key(key: Function, source: plan.Node) -> Lifted:
    check_callable(key, source)
    return as_expression(key, shapes(source))


def _tuple_of(keys: list[Lifted]) -> Expr:
    return tuple_of(*(key.body for key in keys))
