"""The plan of `nest`: for each row the rows of an inner query, as one more binding.

    customers.nest(orders=lambda c: orders.where(lambda o: o.cid == c.id))

    extend orders=value (aggregate Collect() (where o.cid == outer[0].id (orders)))
      table customers

The callable is called once, with a placeholder for the row (`OuterRow`). Callables of the inner
query that capture it read the outer row, as subqueries in comprehensions do, and become joins when
the relation is made: a nest is the plan of `[(c, [o for o in orders if ...]) for c in ...]`.

Source: [neumann2015]; nested results as left joins with groups [fegaras2000].

A function of whole relations, which is not lifted: `a.apply(f, b)`.

    apply(f, a, b)   =   Values(begin) + tagged(a) + tagged(b)   in one group, reduced by f

`Values(begin)` keeps the group alive if all relations are empty. `reduce` calls the function for
each commit that changes an input, and emits the difference of the results.

Cost:   for each commit that changes an input, all rows of all inputs, and the call.
Source: [dbsp] definition 3.1, the incremental version of a query: D . Q . I.

A callable of `nest` over the row alone: a comprehension over a collection of the row.

    customers.nest(late=lambda c: [o for o in c.orders if o.day > 9])

The binding is the bag of the comprehension. It is computed for each row; if only the collection of
the row changed, then from its changed elements (`lifting/folds.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import count
from keyword import iskeyword
from operator import itemgetter
from types import FunctionType
from typing import Any, NoReturn

from optimizer import plan
from optimizer.callables.opaque import Opaque, opaque
from optimizer.callables.source import caller
from optimizer.comprehensions.rows import Rows
from optimizer.errors import PlanError
from optimizer.expr import (
    FIRST_UNIQUE,
    Attribute,
    Call,
    Expr,
    Function,
    Item,
    Lifted,
    Outer,
    Parameter,
    Subquery,
    Within,
    all_parameters,
    constant,
    one_value,
    row_names,
    transform,
    tuple_of,
    walk,
)
from optimizer.expressions.knowledge import Arranges, Shapes
from optimizer.expressions.text import KeyOfFirst, Level, Nesting
from optimizer.lifting.lift import Origin, Reader, Unreadable, bound_arguments, tree_of
from optimizer.lifting.outer_values import OuterValue
from optimizer.plans.declared_kinds import binding_types
from optimizer.plans.nodes import sources as literals
from optimizer.plans.properties import binding_names, bindings, only_present, shapes, table_key
from optimizer.record import record
from optimizer.subqueries import keyed_rows
from optimizer.subqueries.keyed_rows import as_expression, outers
from optimizer.traverse import rebuilt, with_functions
from reactive.api.aggregates import Nulls
from reactive.api.columns import Live, kind_shown, take_callable
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.bag import bag_from_weights as make_bag
from reactive.engine.collections.group_values import arrange_bag
from reactive.engine.collections.inner_changes import nested_class
from reactive.engine.collections.sorting import make_sort_key
from reactive.engine.operators.accumulators import CollectAccumulator

NUMBERS = count(FIRST_UNIQUE)
"""Numbers that tell outer rows apart until the query that reads them is finished."""
_REMEDY = "have it in a callable of the query: where(lambda o: o.customer == c.id)"


class OuterRow(Live, OuterValue):
    """Placeholder for a row in a callable of `nest`: the inner query is made once for all rows."""

    __slots__ = ("_expr",)

    def __getattr__(self, name: str) -> OuterRow:
        if name.startswith("_"):
            raise AttributeError(name)
        return OuterRow(Attribute(self._expr, name))

    def __getitem__(self, key: Any) -> OuterRow:
        return OuterRow(Item(self._expr, constant(key)))

    def _refuse(self, *_: object) -> NoReturn:
        """Refuse an operation on the placeholder of a row, which has no value."""
        raise PlanError(
            "nest: its callable is called once, with what stands for every row and has no value\n"
            f"  {_REMEDY}"
        )

    __bool__ = __iter__ = __len__ = __contains__ = _refuse
    __add__ = __sub__ = __mul__ = __radd__ = __rsub__ = __rmul__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _refuse
    __hash__ = object.__hash__

    def _called(self) -> str:
        return "a row around a query"

    _copy_instead = _pickle_instead = _REMEDY


@record
class InSequence(Arranges):
    """Sort collected pairs (sort keys, row), and return the rows.

    Rows with equal keys are ordered by themselves; if they have nested rows, by their first `roots`
    bindings.
    """

    directions: tuple[tuple[bool, Nulls | None], ...]
    roots: int = 0

    @property
    def descending(self) -> bool:
        """Return True if the first sort key is descending."""
        return self.directions[0][0]

    def key(self, value: Any) -> Any:
        """Return the comparable key of a pair."""
        return _order_key(self.directions)(value[0])

    def standing(self) -> Callable[[Any], Any]:
        """Return the function from the sort keys of a row to its comparable key."""
        return _order_key(self.directions)

    def tie(self, row: Any) -> Any:
        """Return the value that orders rows with equal keys: the roots, or the row without any."""
        if not self.roots:
            return row
        return row[0] if self.roots == 1 else row[: self.roots]

    def __call__(self, pairs: Bag[tuple[Any, Any]] | None) -> Any:
        """Return the rows in order; () for None, the value of a row that its own commit deletes."""
        return () if pairs is None else arrange_bag(pairs, self)


@lru_cache(maxsize=256)
def _order_key(directions: tuple[tuple[bool, Nulls | None], ...]) -> Callable[[Any], Any]:
    """Return the function from a tuple of sort keys to a comparable key."""
    calls = [itemgetter(place) for place in range(len(directions))]
    return make_sort_key([plan.SortKey(_KEY, *direction) for direction in directions], calls)


_KEY = Lifted(Parameter(0), ("key",), (), 1)


@record
class NestParts:
    """The result of a nest: the rows with their nested bindings, their description and their order.

    `inside` has the nested relations, and `rows` their rows for each outer row; there are fewer
    than bindings if some bindings are computed from the row alone.
    """

    node: plan.Extend
    nesting: Nesting
    order: tuple[plan.SortKey, ...]
    inside: tuple[Any, ...]
    rows: tuple[tuple[Rows, ...], ...]


def plan_nest(relation: Any, named: Mapping[str, Callable[..., Any]]) -> NestParts:
    """Return the nest of a relation.

    Raises
    ------
    PlanError: a name cannot be that of a binding; or a callable does not return a relation, or
        returns one that cannot be computed for every row.
    """
    keys, node, shown = _order_of(relation)
    if shown != bindings(node):
        raise PlanError(
            "cannot nest in the order of values that the rows lack\n"
            "  nest first, then order_by(key), and select(...) last"
        )
    roots = _names_of(node)
    _check_names(named, roots)
    inner = [_Inside(relation, name, query) for name, query in named.items()]
    columns = tuple(each.column for each in inner)
    made = plan.Extend(node, tuple(range(len(roots))), columns, (*roots, *named))
    old = relation.nesting if hasattr(relation, "nesting") else None
    levels = (*(old.levels if old else ()), *(each.level for each in inner))
    begin = len(roots) + len(named) - len(levels)
    names = (*roots, *named)
    kind = nested_class(begin, names)
    key = _key_of(table_key(node), begin) if old is None else old.key
    types = binding_types(node) if old is None else old.types
    nesting = Nesting(kind, names, True, key, levels, types)
    width = len(names)
    order = tuple(_wider(key, width) for key in keys)
    relations = [each.relation for each in inner if each.relation is not None]
    rows = [each.rows for each in inner if each.rows is not None]
    return NestParts(made, nesting, order, tuple(relations), tuple(rows))


@contextmanager
def add_places(made: NestParts) -> Iterator[None]:
    """Name the places of the inner queries in the error of one that cannot run for every row."""
    try:
        yield
    except PlanError as error:
        places = ", ".join(str(origin) for f in made.node.columns for origin in _origins(f))
        raise PlanError(f"nest: {places}: {error}") from None


def _origins(function: Function) -> tuple[Opaque, ...]:
    return function.origins if isinstance(function, Lifted) else ()


def _wider(key: plan.SortKey, width: int) -> plan.SortKey:
    """Return the sort key for rows with more bindings."""
    of = key.function
    made = as_expression(of)
    names = (*made.names, *row_names(width)[len(made.names) :])
    return replace(key, function=Lifted(made.body, names, made.origins, width))


def named_rows(node: plan.Node, nesting: Nesting) -> plan.Select:
    """Return the plan that makes named tuples of the rows of a nest."""
    width = len(nesting.columns)
    body = Call(constant(nesting.kind), all_parameters(width))
    name = f"Row({', '.join(nesting.columns)})"
    made = Opaque(nesting, width, name, caller(), (), ("named", body), "the names of nest")
    return plan.Select(node, Lifted(body, nesting.columns, (made,), width, made))


def _key_of(table: plan.Table | None, roots: int) -> Callable[[Any], Any]:
    """Return the function that identifies a nested row."""
    if table is None or table.key is None:
        return itemgetter(0) if roots == 1 else itemgetter(slice(roots))
    return KeyOfFirst(table.key)


def _key_of_plain(table: plan.Table | None) -> Callable[[Any], Any]:
    return _itself if table is None or table.key is None else table.key.function


def _itself(row: Any) -> Any:
    return row


def _names_of(node: plan.Node) -> tuple[str, ...]:
    """Return the names of the bindings, with numbered names for unnamed ones."""
    found = binding_names(node)
    return tuple(name or fresh for name, fresh in zip(found, row_names(len(found)), strict=True))


def _check_names(named: Mapping[str, Any], roots: tuple[str, ...]) -> None:
    """Refuse no names, names that are taken, and names that a named tuple cannot have."""
    if not named:
        raise PlanError(
            "nest takes callables with the names of what they give\n"
            "  nest(orders=lambda c: orders.where(lambda o: o.customer == c.id))"
        )
    for name in named:
        if name in roots:
            raise PlanError(f"nest: there is a binding {name!r} already\n  choose another name")
        is_plain = name.isidentifier() and not iskeyword(name) and not name.startswith("_")
        if not is_plain or hasattr(tuple, name) or name == "roots":
            raise PlanError(
                f"nest names a binding {name!r}, which named tuples cannot have\n"
                "  choose another name, an identifier without an underscore before it"
            )


class _Inside:
    """One binding of a nest: a query for each row, or a list computed from the row alone."""

    relation: Any
    rows: tuple[Rows, ...] | None

    def __init__(self, relation: Any, name: str, query: Callable[..., Any]) -> None:
        node = relation.plan
        width = bindings(node)
        opaque_query = opaque(query, width, "nest")
        self.relation = self.rows = None
        of_row = bag_of(opaque_query, shapes(node))
        if of_row is not None:
            self.column = Lifted(of_row, _binding_names(query, width), (opaque_query,), width)
            self.level = Level(name, None, _itself, False, (), (Any,))
            return
        outer = [OuterRow(Outer(next(NUMBERS), shape)) for shape in shapes(node)]
        made = query(*outer)
        if not hasattr(made, "plan"):
            raise PlanError(
                f"nest: {opaque_query} gives {kind_shown(made)}, not a relation\n"
                f"  nest({name}=lambda row: orders.where(lambda o: o.customer == row.id))"
            )
        relation._check_other("nest", made)
        self.relation = made
        found = inside(name, made)
        mine = {each._expr.index: place for place, each in enumerate(outer)}  # type: ignore[attr-defined]
        asked = _subquery(found.collected, mine)
        self.rows = (*_rows_within(made, mine), _collected_rows(asked, found.row))
        self.column = Lifted(
            found.shown(asked), _binding_names(query, width), (opaque_query,), width
        )
        self.level = found.level


@record
class InnerRows:
    """The rows of a query as one value.

    It has the aggregate that collects them, the expression of a row, the sort keys if they are
    ordered, and their level.
    """

    collected: plan.Aggregate
    row: Expr
    order: tuple[plan.SortKey, ...]
    level: Level

    def shown(self, collected: Expr) -> Expr:
        """Return the nested rows as an expression of the collected value.

        Without an order it is `collected` itself.
        """
        if not self.order:
            return collected
        directions = tuple((key.descending, key.nulls) for key in self.order)
        roots = self.level.kind.roots if self.level.levels else 0
        return Call(constant(InSequence(directions, roots), "sorted"), (collected,))


def inside(name: str, made: Any) -> InnerRows:
    """Return the rows of a relation as nested rows."""
    order, source, shown = _order_of(made)
    row, kind = _row_of(made, shown)
    level = _level(name, made, kind, is_sequence=bool(order))
    return InnerRows(_collect_rows(source, row, order), row, order, level)


def rows_within(made: Any) -> Rows | None:
    """Return the rows of a nest, each nested binding as the rows of a query.

    Return None if `made` is no nest, or its inner queries are not known.
    """
    begin, inside = getattr(made, "begin", None), getattr(made, "inside", ())
    if begin is None or not inside:
        return None
    node, count = only_present(begin.plan), bindings(begin.plan)
    every = [Within(ways[0], ways[0].arguments) for ways in inside]
    row = Call(constant(made.nesting.kind), (*all_parameters(count), *every))
    return Rows("list", node, (row,), row_names(count))


def _rows_within(made: Any, mine: Mapping[int, int]) -> tuple[Rows, ...]:
    """Return the rows of a nest for each outer row, with its values; empty if it is no nest."""
    found = rows_within(made)
    if found is None:
        return ()
    (row,) = found.row
    further = {part.index for part in walk(row) if isinstance(part, Outer)}
    numbers = sorted(outers(found.node) | further)
    places = {index: place for place, index in enumerate(numbers)}
    node = _renumber_outers(found.node, places)
    row = transform(row, lambda e: Outer(places[e.index], e.shape) if isinstance(e, Outer) else e)
    given = (Parameter(mine[i]) if i in mine else Outer(i) for i in numbers)
    return (replace(found, node=node, row=(row,), arguments=tuple(given)),)


def _collected_rows(query: Subquery, row: Expr) -> Rows:
    """Return the rows that a query collects, for each outer row."""
    (node,) = query.query.inputs()
    return Rows("list", node, (row,), row_names(bindings(node)), None, query.arguments)


def _binding_names(query: Any, count: int) -> tuple[str, ...]:
    """Return the names that a callable gives to the `count` bindings of the rows.

    Return the default names if the callable has another number of parameters, or no code.
    """
    code = getattr(query, "__code__", None)
    found = () if code is None else code.co_varnames[: code.co_argcount]
    return found if len(found) == count else row_names(count)


def _level(name: str, made: Any, kind: Any, *, is_sequence: bool) -> Level:
    """Return the level of a nest whose inner rows are those of the relation `made`."""
    nesting = getattr(made, "nesting", None)
    key = _key_of_plain(table_key(made.plan)) if nesting is None else nesting.key
    levels, types = (
        ((), binding_types(made.plan)) if nesting is None else (nesting.levels, nesting.types)
    )
    return Level(name, kind, key, is_sequence, levels, types)


def _order_of(relation: Any) -> tuple[tuple[plan.SortKey, ...], plan.Node, int]:
    """Return the sort keys of a query, its rows, and the number of bindings that are shown."""
    node, order = relation.plan, getattr(relation, "order", ())
    if order or not isinstance(node, plan.OrderBy):
        return order, node, bindings(node)
    return node.keys, *keyed_rows.rows_of_order(node)


def _row_of(made: Any, shown: int) -> tuple[Expr, Any]:
    """Return a row of a query as one expression, and its class if it has nested rows."""
    every = all_parameters(shown)
    nesting = getattr(made, "nesting", None)
    if nesting is None:
        return one_value(every), None
    return Call(constant(nesting.kind), every), nesting.kind


def _collect_rows(node: plan.Node, row: Expr, order: tuple[plan.SortKey, ...]) -> plan.Aggregate:
    """Return the aggregate of all rows of a query, with their sort keys if they are ordered."""
    known, count = shapes(node), bindings(node)
    if order:
        row = tuple_of(tuple_of(*[as_expression(key.function, known).body for key in order]), row)
    value = Lifted(row, row_names(count), (), count)
    folded = plan.Folded("Collect", CollectAccumulator(), value)
    return plan.Aggregate(only_present(node), None, (folded,))


def _subquery(node: plan.Aggregate, mine: Mapping[int, int]) -> Subquery:
    """Return the value of a query with its outer values numbered; values further out stay."""
    numbers = sorted(outers(node))
    query = _renumber_outers(node, {index: place for place, index in enumerate(numbers)})
    given = (Parameter(mine[i]) if i in mine else Outer(i) for i in numbers)
    return Subquery("value", query, tuple(given))


def _renumber_outers(node: plan.Node, places: Mapping[int, int]) -> plan.Node:
    """Return a plan with other numbers of its outer values."""

    def renumber_outer(expr: Expr) -> Expr:
        return Outer(places[expr.index], expr.shape) if isinstance(expr, Outer) else expr

    def function(f: Function) -> Function:
        return f.with_body(transform(f.body, renumber_outer)) if isinstance(f, Lifted) else f

    return rebuilt(node, lambda each: with_functions(each, function))


BEGIN = (-1, None)
"""The row that keeps the group alive."""


class OfWhole:
    """Call a function with a bag for each relation, from rows with the number of their relation.

    >>> call = OfWhole(lambda a, b: [len(a), b.count("x")], 2)
    >>> call(None, Bag([(0, "y"), (1, "x"), BEGIN]))
    [1, 1]
    """

    def __init__(self, function: Callable[..., Iterable[Any]], count: int) -> None:
        self._function = function
        self._count = count

    def __call__(self, key: None, rows: Bag[tuple[int, Any]]) -> Iterable[Any]:
        """Return the rows of the function for a group of numbered rows."""
        weights: list[dict[Any, int]] = [{} for _ in range(self._count)]
        for (place, row), weight in rows.items():
            if place >= 0:
                weights[place][row] = weight
        return self._function(*map(make_bag, weights))


def plan_apply(function: Callable[..., Iterable[Any]], sources: tuple[plan.Node, ...]) -> plan.Node:
    """Return the plan of a function of whole relations."""
    own = take_callable(function, len(sources), "apply")
    whole = replace(
        own,
        function=OfWhole(own.function, len(sources)),
        parameters=2,
        name=f"apply({own.name}): whole relations, at each change of one",
        identity=("apply", own.identity, len(sources)),
    )
    return one_group(number_relations(sources), whole)


def one_group(rows: plan.Node, function: Function) -> plan.Node:
    """Return the plan of the rows that a function makes of all rows together."""
    of_key = plan.Reduce(rows, _function(constant(None), 1), function)
    return plan.Select(of_key, _function(Parameter(1), 2))


def number_relations(sources: tuple[plan.Node, ...]) -> plan.Node:
    """Return the rows of relations, each with the number of its relation, and `BEGIN`."""
    rows: plan.Node = literals.values([BEGIN])
    for place, source in enumerate(sources):
        rows = plan.UnionAll(rows, _number_rows(source, place))
    return rows


def _number_rows(source: plan.Node, place: int) -> plan.Node:
    """Return the rows of a relation, each as one value with the number `place`."""
    count = bindings(source)
    row = one_value(all_parameters(count))
    return plan.Select(source, _function(tuple_of(constant(place), row), count))


def _function(body: Expr, count: int) -> Lifted:
    return Lifted(body, row_names(count), (), count)


def bag_of(function: Opaque, known: Shapes) -> Expr | None:
    """Return the bag that a callable makes of its row; None if its result is something else."""
    called = function.function
    if not isinstance(called, FunctionType):
        return None
    if any(isinstance(capture.original, Live) for capture in function.captures):
        return None
    try:
        tree = tree_of(called)
        if not isinstance(tree, ast.Lambda) or not isinstance(tree.body, ast.ListComp):
            return None
        bound = bound_arguments(called, tree, all_parameters(function.parameters), {})
        return Reader(called, Origin(function, known), bound).kept(tree.body, Bag)
    except Unreadable:
        return None
