"""Relations and views of rows with nested rows: the results of `nest`.

Elements of nested rows: the results of `unnest` on a nest.

    nest.unnest(lambda c, orders: orders)      beside each element, the row of the nest

A callable that only folds a bag reads the inner query instead, and a callable that reads no bag is
applied to the rows without bags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVarTuple

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.callables.source import caller
from optimizer.comprehensions.query import ITERATED
from optimizer.comprehensions.rows import Rows
from optimizer.expr import Apply, Function, Lifted, Parameter, reads, substitute, walk
from optimizer.expressions.knowledge import Shapes
from optimizer.expressions.text import Nesting
from optimizer.lifting.lift import lift
from optimizer.plans.explain import Explanation
from optimizer.plans.properties import bindings, may_be_negative, naming_by, shapes
from optimizer.subqueries import keyed_rows
from optimizer.subqueries.keyed_rows import items, over_row
from optimizer.traverse import functions, has_subqueries, with_functions, with_inputs
from reactive.api import comprehending
from reactive.api.keeping_order import check_lost
from reactive.api.nesting import add_places, named_rows, plan_nest
from reactive.api.ordered_view import OrderedView
from reactive.api.relation import GroupedRelation, OrderedRelation, Relation, views_of
from reactive.api.subscriptions import at_path
from reactive.api.view import View
from reactive.engine.collections.order import tie_key
from reactive.engine.collections.zset import canonical, repeat_by_weight
from reactive.engine.runtime.boundary import boundary
from reactive.errors import MissingKeyError

if TYPE_CHECKING:
    from reactive.api import parameter as parameters
    from reactive.api.literal import OnError
    from reactive.api.subscriptions.observe import Relay, Subscription
    from reactive.engine.dataflow.delta import Delta

Ts = TypeVarTuple("Ts")


_SIGNED = "all inside by value: rows of negative weight, of negate or a table that is not stored"


@boundary
class NestedRelation(Relation[*Ts]):
    """A relation of rows with nested rows; its view names them, and finds rows by key.

    >>> from reactive import Database
    >>> db = Database()
    >>> words, letters = db.table(str, name="words"), db.table(str, name="letters")
    >>> begin = letters.nest(words=lambda letter: words.where(lambda w: w[0] == letter))
    >>> view = begin.where(lambda letter, words: len(words) > 1).materialize()
    >>> letters.add_all(["b", "t"])
    >>> words.add_all(["to", "be", "the"])
    >>> sorted(view["t"].words)
    ['the', 'to']
    """

    nesting: Nesting
    order: tuple[plan.SortKey, ...] = ()
    """The sort keys of the rows, if they are ordered."""
    inside: Inside = ()
    """The nested bindings as rows for each outer row: for each binding the ways to read it, of
        which the
    first builds no bags.
    """
    begin: Relation[Any] | None = None
    """The rows without the nested bindings."""

    def materialize(
        self, name: str | None = None, *, on_error: OnError = "raise", kept: bool = False
    ) -> Any:
        """Return a view whose rows are named tuples; `view[key]` is one of them."""
        return self._engine.materialize(self._rows(), name, caller(), on_error, kept=kept)

    def _rows(self) -> Relation[Any]:
        """Return the relation of the rows as views show them."""
        query: Any = self._query()
        node: plan.Node = named_rows(query.plan, query.nesting)
        if query.order:
            node = plan.OrderBy(node, tuple(map(_of_row, query.order)), None, 0)
        return Relation(self._engine, node, query._kept_views())

    def _run(self) -> plan.Node:
        """Return the plan of the rows as views and subscriptions show them."""
        return self._rows().plan

    def explain(self, *, optimized: bool = True, costs: bool = False) -> Explanation:
        """Return the plans as text; say if negative weights cause nested rows to be kept by value.

        See `Relation.explain`.

        >>> from reactive import Database
        >>> words = Database().table(str, name="words")
        >>> less = words.negate().nest(less=lambda w: words.where(lambda v: v < w))
        >>> print(less.explain().splitlines()[-1])
        all inside by value: rows of negative weight, of negate or a table that is not stored
        """
        made = super().explain(optimized=optimized, costs=costs)
        if not optimized or not may_be_negative(self.plan):
            return made
        return Explanation(f"{made}\n{_SIGNED}", made.drawing)

    def subscribe(
        self,
        callback: Callable[[Delta[Any]], object],
        *,
        path: tuple[Any, ...] | None = None,
        **how: Any,
    ) -> Any:
        """Call a function with the changes of the rows, or of the nested rows of one row.

        Parameters
        ----------
        path: `(key, "orders")` is the orders of the row with this key, `(key, "orders", key,
            "lines")` the lines of one order. They are empty while the row does not exist.
        callback, how: as for `Relation.subscribe`.

        Raises
        ------
        PlanError: there is no nested binding of that name.

        >>> from reactive import Database
        >>> db = Database()
        >>> words, letters = db.table(str, name="words"), db.table(str, name="letters")
        >>> begin = letters.nest(words=lambda letter: words.where(lambda w: w[0] == letter))
        >>> with begin.subscribe(lambda delta: print(delta.added), path=("t", "words")):
        ...     words.add("to")
        ...     letters.add_all(["b", "t"])
        ...     words.add_all(["be", "the"])
        ('to',)
        ('the',)
        """
        subscribe: Any = super().subscribe  # type: ignore[misc]
        if path is None or how.get("name") is not None:
            return subscribe(callback, path=path, **how)
        path = at_path.check_path(self.nesting, path)
        if not at_path.has_copies(self.nesting):
            heard = at_path.hear_nested(self.nesting, callback, path, 0)
            return subscribe(heard, **how)
        return self._subscribed_to_copies(callback, path, **how)

    def _subscribed_to_copies(self, callback: Any, path: Any, **how: Any) -> Subscription[Any]:
        """Subscribe to a view, which knows the number of rows with the key."""
        view: Any = self.materialize()
        return view.subscribe(callback, path=path, **how)  # type: ignore[no-any-return]

    def _subscribe_callback(
        self, callback: Callable[[Delta[Any]], object], *, snapshot: bool, way: Relay | None
    ) -> Subscription[Any]:
        return self._rows()._subscribe_callback(callback, snapshot=snapshot, way=way)

    def order_by(self, key: Any, *more: Any, **how: Any) -> Any:
        """Sort the rows as `Relation.order_by` does; they keep their names."""
        ordered = super().order_by(key, *more, **how)
        assert isinstance(ordered.plan, plan.OrderBy)
        return make_nested(self, self.nesting, ordered.plan.keys)

    def _new(self, node: plan.Node, *others: Any) -> Relation[Any]:
        """Return a relation of `node`, which stays nested if the node keeps the rows."""
        begin = self._begin(node)
        if begin is not None and isinstance(node, MADE):
            return begin
        made = super()._new(node, *others)
        if isinstance(node, plan.Unnest) and node.input is self.plan and self.inside:
            return unnest_nest(self, made, node)
        if isinstance(node, SAME) and node.inputs()[0] is self.plan:
            inside = () if begin is None else self.inside
            return make_nested(made, self.nesting, self.order, inside, begin)
        return made

    def _make_groups(self, node: plan.Node) -> GroupedRelation[Any]:
        """Return groups over the rows without bags, if no callable reads a bag."""
        above, groups = (node, node.inputs()[0]) if isinstance(node, plan.Select) else (None, node)
        begin = self._begin(groups)
        if begin is None:
            return super()._make_groups(node)
        made = begin.plan if above is None else with_inputs(above, [begin.plan])
        return GroupedRelation(self._engine, made, self._kept_views())

    def _begin(self, node: plan.Node) -> Relation[Any] | None:
        """Return the result of `node` on the rows without bags; None if it must read a bag."""
        begin, is_known = self.begin, isinstance(node, plan.Where | MADE)
        if begin is None or not is_known or node.inputs()[0] is not self.plan:
            return None
        made = narrow_bindings(node, range(bindings(begin.plan)), begin.plan)
        return None if made is None else Relation(self._engine, made, self._kept_views())

    def _convert_callable(self, function: Callable[..., Any], known: Shapes, role: str) -> Function:
        """Convert a callable; one that reads nested rows reads their queries, if possible."""
        made = super()._convert_callable(function, known, role)
        begin = len(self.nesting.columns) - len(self.inside)
        return rewrite_inner_reads(self._engine, made, known, role, self.inside, begin)


@boundary
class OrderedNestedRelation(NestedRelation[*Ts]):
    """A relation of rows with nested rows, in an order; its view is a sequence."""

    def limit(
        self, n: int | parameters.Parameter[int], offset: int = 0
    ) -> OrderedNestedRelation[*Ts]:
        """Keep the `n` rows after the first `offset` rows; see `OrderedRelation.limit`."""
        ordered = OrderedRelation[*Ts](self._engine, self._in_order(), self._kept_views())
        made: Any = make_nested(ordered.limit(n, offset), self.nesting, self.order)
        return made  # type: ignore[no-any-return]

    def previous(self) -> OrderedNestedRelation[*Ts]:
        """Return the rows as of the previous commit; see `OrderedRelation.previous`."""
        made: Any = make_nested(super().previous(), self.nesting, self.order)
        return made  # type: ignore[no-any-return]

    def materialize(
        self, name: str | None = None, *, on_error: OnError = "raise", kept: bool = False
    ) -> Any:
        """Return a view that is a sequence of named tuples."""
        view = super().materialize(name, on_error=on_error, kept=kept)
        view.query = self
        return view

    def _new(self, node: plan.Node, *others: Any) -> Relation[Any]:
        """Return a relation of `node` in the same order; nested in no order if it is lost."""
        if isinstance(node, SAME) or not node.inputs() or node.inputs()[0] is not self.plan:
            return super()._new(node, *others)
        order = self._in_order()
        ordered = keyed_rows.order_above(with_inputs(node, [order, *node.inputs()[1:]]), tie_key)
        if ordered is None:
            check_lost(order, node)
            return super()._new(node, *others)
        rows = Relation[Any](self._engine, ordered.input, views_of(self, *others))
        ordered = replace(ordered, input=rows.plan)
        return OrderedRelation(self._engine, ordered, rows._kept_views())

    def _in_order(self) -> plan.OrderBy:
        return plan.OrderBy(self.plan, self.order, None, 0)


def nest(relation: Any, named: Mapping[str, Any]) -> NestedRelation[Any]:
    """Return the relation of `Relation.nest`."""
    made = plan_nest(relation, named)
    with add_places(made):
        rows = relation._new(made.node, *made.inside)
    inside = made.rows if len(made.rows) == len(named) else ()
    return make_nested(rows, made.nesting, made.order, inside, relation)


def make_nested(
    relation: Any,
    nesting: Nesting,
    order: tuple[plan.SortKey, ...] = (),
    inside: Inside = (),
    begin: Relation[Any] | None = None,
) -> NestedRelation[Any]:
    """Return a relation whose rows have nested rows, ordered if there is an `order`."""
    kind: Any = OrderedNestedRelation if order else NestedRelation
    made: NestedRelation[Any] = kind(relation._engine, relation.plan, relation._kept_views())
    made.nesting, made.order, made.inside, made.begin = nesting, order, inside, begin
    return made


def _of_row(key: plan.SortKey) -> plan.SortKey:
    """Return the sort key of bindings as a sort key of named rows."""
    made = over_row(key.function, items(Parameter(0), key.function.parameters), 1)
    return replace(key, function=made)


@boundary
class NestedView(View[*Ts], NestedRelation[*Ts]):
    """Rows with nested rows, each a named tuple `(row, name, ...)`.

    A name that is no binding is looked up in `row`. `view[key]` finds a row by the key of its
    table, or by `row` if the table has no key; `in` takes a key or a row. Nested rows are a `Bag`,
    or a tuple if the inner query has an order.

    >>> from reactive import Database
    >>> db = Database()
    >>> numbers = db.table(int, name="numbers")
    >>> below = numbers.nest(less=lambda n: numbers.where(lambda m: m < n).order_by(lambda m: m))
    >>> view = below.materialize()
    >>> numbers.add_all([3, 1, 2])
    >>> view[3].less, view[3].real, 7 in view
    ((1, 2), 3, False)
    """

    def __init__(self, engine: Any, relation: Relation[Any], node: Any, channel: Any) -> None:
        super().__init__(engine, relation, node, channel)
        select = relation.plan
        assert isinstance(select, plan.Select) and isinstance(select.function, Lifted)
        made: Any = select.function.made
        self.nesting = made.function
        names = self.nesting.columns
        self.plan = plan.Extend(self.plan, (), _items(len(names)), names)
        inner = Relation[Any](engine, select.input, relation._views)
        self.relation = make_nested(inner, self.nesting)

    def __getitem__(self, key: Any) -> Any:
        row = self._find(key)
        if row is None:
            raise MissingKeyError(
                f"{self._channel} has no row {key!r:.100}\n  view.get(key) gives None for one", key
            )
        return row

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the row with a key, or the default if there is none."""
        row = self._find(key)
        return default if row is None else row

    def keys(self) -> list[Any]:
        """Return the keys of the rows."""
        keys: list[Any] = self._read_leaf("keys")
        return keys

    def __contains__(self, item: object) -> bool:
        return self._find(item) is not None or self.count(item) > 0

    def __len__(self) -> int:
        return int(self._read_leaf("__len__"))

    def count(self, row: object) -> int:
        """Return the number of copies of `row`, 0 if it is absent."""
        found: int = self._read_leaf("count", row)
        if not found and (same := canonical(row)) is not row:
            found = self._read_leaf("count", same)
        return found

    def _all_rows(self) -> list[Any]:
        rows: list[Any] = self._read_leaf("rows")
        return rows

    def _each(self) -> Iterable[Any]:
        """Iterate over all rows; many offloaded rows are fetched in pieces."""
        with self._reading():
            find = getattr(self._contents, "pieces", None)
            pieces = None if find is None else find()
        return self._all_rows() if pieces is None else repeat_by_weight(chain.from_iterable(pieces))

    def _read_leaf(self, what: str, *arguments: Any) -> Any:
        """Return an answer of the leaf, inside the lock, because a tree may cache its reads."""
        with self._reading():
            return self._ask(what, *arguments)

    def _subscribed_to_copies(self, callback: Any, path: Any, **how: Any) -> Subscription[Any]:
        """Subscribe to the rows at a path, counted once for each copy of the outer row."""
        subscribe: Any = super(NestedRelation, self).subscribe  # type: ignore[misc]
        with self._engine.shaping():
            row = self._find(path[0])
            copies = 0 if row is None else self.count(row)
            heard = at_path.hear_nested(self.nesting, callback, path, copies)
            return subscribe(heard, **how)  # type: ignore[no-any-return]

    def _find(self, key: Any) -> Any:
        """Return the row of a key, tried as given and then canonical; None if there is none."""
        found = self._read_leaf("find", key)
        if found is None and (same := canonical(key)) is not key:
            found = self._read_leaf("find", same)
        return found


def _items(width: int) -> tuple[Lifted, ...]:
    return tuple(Lifted(item, ("row",), (), 1) for item in items(Parameter(0), width))


Inside: TypeAlias = tuple[tuple[Rows, ...], ...]
"""Rows of each nested binding: the ways to read them, the best first."""
SAME = (plan.Where, plan.Distinct, plan.SemiJoin, plan.AntiJoin, plan.Previous)
"""Nodes that keep or drop rows without changing them."""
MADE = plan.Select | plan.Extend | plan.Aggregate | plan.SelectMany
"""Nodes that may read no nested rows."""


@boundary
class UnnestedRelation(Relation[*Ts]):
    """Rows of a nest, with their nested rows, paired with each element of a binding.

    A callable that only folds a bag reads the inner query instead.
    """

    inside: Inside = ()
    place: int = 0
    """The position of the first nested binding."""
    flat: Relation[Any] | None = None
    """The rows without the nested bindings."""
    is_read: bool = False
    """True if a callable reads an inner query: building rows with bags would then be useless."""

    def _new(self, node: plan.Node, *others: Any) -> Relation[Any]:
        """Return a relation of `node`, over the inner query where no bag must be read."""
        is_read = self.is_read or has_subqueries(node)
        flat = self._flat(node) if is_read else None
        if flat is not None and isinstance(node, MADE):
            return flat
        made = super()._new(node, *others)
        if not isinstance(node, (*SAME, plan.Unnest)) or node.inputs()[0] is not self.plan:
            return made
        flat = self._flat(node) if flat is None else flat
        return _make_unnested(made, self.inside, self.place, flat, is_read)

    def _flat(self, node: plan.Node) -> Relation[Any] | None:
        """Return the result of `node` on the rows without bags; None if it must read a bag."""
        flat, is_known = self.flat, isinstance(node, plan.Where | plan.Unnest | MADE)
        if flat is None or not is_known or node.inputs()[0] is not self.plan:
            return None
        made = narrow_bindings(
            node, _outer_places(self.place, self.inside, bindings(self.plan)), flat.plan
        )
        return None if made is None else Relation(self._engine, made, self._kept_views())

    def _convert_callable(self, function: Callable[..., Any], known: Shapes, role: str) -> Function:
        """Return the callable as a function; it reads queries in place of bags if it can."""
        made = super()._convert_callable(function, known, role)
        return rewrite_inner_reads(self._engine, made, known, role, self.inside, self.place)


def unnest_nest(nest: Any, made: Relation[Any], node: plan.Unnest) -> UnnestedRelation[Any]:
    """Return the elements of a collection beside the rows of a nest."""
    place, is_read = len(nest.nesting.columns) - len(nest.inside), has_subqueries(node)
    flat = None if nest.begin is None else _elements(nest, node, place)
    relation = None if flat is None else Relation[Any](nest._engine, flat, made._kept_views())
    return _make_unnested(made, nest.inside, place, relation, is_read)


def _elements(nest: Any, node: plan.Unnest, place: int) -> plan.Node | None:
    """Return the plan of the elements beside the rows without bags; None if a bag must be read.

    `place` is the position of the first nested binding.
    """
    begin = nest.begin.plan
    made = narrow_bindings(node, range(bindings(begin)), begin)
    if made is not None or not isinstance(node.function, Opaque):
        return made
    match lift(node.function, shapes(nest.plan)).body:
        case Parameter(index) if index >= place:
            rows = nest.inside[index - place][-1]
            return comprehending.pair_with_query(nest._engine, begin, rows)
    return None


def _make_unnested(
    made: Relation[Any], inside: Inside, place: int, flat: Relation[Any] | None, is_read: bool
) -> UnnestedRelation[Any]:
    """Return a relation of elements of nested rows, with what it knows of the nest.

    `inside` has the queries of the nested bindings, which begin at `place`. `flat` is the
    relation of the rows without the nested bindings, or None; `is_read` is stored with it.
    """
    found = UnnestedRelation[Any](made._engine, made.plan, made._kept_views())
    found.inside, found.place, found.flat, found.is_read = inside, place, flat, is_read
    return found


def _is_read(function: Function, known: Shapes) -> bool:
    """Return True if a callable is lifted whole, so that it returns a bag or a part of a row."""
    made = lift(function, known) if isinstance(function, Opaque) else function
    return not any(isinstance(part, Apply) for part in walk(made.body))


def _outer_places(place: int, inside: Inside, count: int) -> list[int]:
    """Return the positions of the bindings that are not nested, of `count` bindings.

    The nested ones begin at `place`, as many as in `inside`.
    """
    return [*range(place), *range(place + len(inside), count)]


def rewrite_inner_reads(
    engine: Any, made: Function, known: Shapes, role: str, inside: Inside, begin: int
) -> Function:
    """Return a callable that reads the queries of nested rows in place of the nested rows.

    Return `made` if there is none, and for `order_by`. `role` is the method that takes the
    callable; `begin` is the position of the first nested binding; `inside` has for each nested
    binding its queries, the best first.
    """
    if not inside or len(known) < begin + len(inside) or role == "order_by":
        return made
    if role in ITERATED and _is_read(made, known):
        return made
    whole = made if isinstance(made, Opaque) else made.origins[0]
    for way in range(max(map(len, inside))):
        rows = {begin + n: ways[min(way, len(ways) - 1)] for n, ways in enumerate(inside)}
        found = comprehending.lift_over_inner_rows(engine, whole, known, rows)
        if found is not None:
            return found
    return made


def narrow_bindings(node: plan.Node, kept: Sequence[int], source: plan.Node) -> plan.Node | None:
    """Return a node over rows with only the bindings `kept`; None if it reads other bindings."""
    places = {place: Parameter(number) for number, place in enumerate(kept)}
    if isinstance(node, plan.Extend):
        if not places.keys() >= set(node.keep):
            return None
        node = replace(node, keep=tuple([places[place].index for place in node.keep]))
    if any(f.value is None and f.name != "Count" for f in getattr(node, "aggregates", ())):
        return None
    every = {
        f: lift(f, shapes(node.inputs()[0])) if isinstance(f, Opaque) else f
        for f in functions(node)
    }
    if any(not places.keys() >= reads(f.body) for f in every.values()):
        return None

    def narrow(f: Function) -> Function:
        found = every[f]
        row = tuple([places.get(place, Parameter(place)) for place in range(found.parameters)])
        names = tuple([found.names[place] for place in kept if place < len(found.names)])
        body = substitute(found.body, row)
        return replace(found, body=body, names=names, parameters=len(kept), made=None)

    return with_inputs(with_functions(node, narrow), [source])


# Ordered views whose rows have nested rows.


@boundary
class OrderedNestedView(OrderedView[*Ts]):
    """Rows with nested rows, as in a `NestedView`, in an order: `view[0].orders`.

    >>> from reactive import Database
    >>> db = Database()
    >>> numbers = db.table(int, name="numbers")
    >>> below = numbers.nest(less=lambda n: numbers.where(lambda m: m < n).order_by(lambda m: m))
    >>> view = below.order_by(lambda n, less: n, descending=True).materialize()
    >>> numbers.add_all([3, 1, 2])
    >>> view[0].less, view.to_python()[2]
    ((1, 2), {'row': 1, 'less': []})
    """

    query: Any = None
    """The ordered query; the view shows a part of it."""

    def limit(self, n: int | parameters.Parameter[int], offset: int = 0) -> Any:
        """Return the `n` rows after the first `offset` rows, as a relation that sorts again."""
        return self._ordered_source().limit(n, offset)

    def previous(self) -> Any:
        """Return the rows as of the previous commit; see `OrderedRelation.previous`."""
        return self._ordered_source().previous()

    def _ordered_source(self) -> Any:
        return self.relation if self.query is None else self.query

    def subscribe(
        self,
        callback: Callable[[Delta[Any]], object],
        *,
        path: tuple[Any, ...] | None = None,
        **how: Any,
    ) -> Any:
        """Call a function with the changes of the rows, or of the nested rows of one row.

        See `NestedRelation.subscribe`.

        Raises
        ------
        PlanError: there is no nested binding of that name.
        """
        subscribe: Any = super().subscribe  # type: ignore[misc]
        if path is None or how.get("name") is not None:
            return subscribe(callback, path=path, **how)
        nesting = self._nesting()
        path = at_path.check_path(nesting, path)
        with self._engine.shaping():
            rows = self._all_rows() if at_path.has_copies(nesting) else ()
            copies = sum(nesting.key(row) == path[0] for row in rows)
            heard = at_path.hear_nested(nesting, callback, path, copies)
            return subscribe(heard, **how)

    def _nesting(self) -> Nesting:
        """Return the levels of the nest below the order."""
        node = self.relation.plan
        assert isinstance(node, plan.OrderBy)
        found: Any = naming_by(node.input)
        return found  # type: ignore[no-any-return]
