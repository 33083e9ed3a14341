"""Rows of a sub-query for many outer rows at a time, with the bindings and orders that they keep.

`order_above` keeps an order: it plans a filter or a projection over an ordered relation.

    where p                            order_by k
      order_by k             ->          where p

    select f                           order_by row1, row2         shows row0
      order_by k             ->          bind f(row), k(row), tie(row)

The order moves above the node. The sort keys and the tie-breaker become hidden bindings beside the
rows of `select` and `bind`. A window stays below, because it chooses the rows:

    select f                           order_by row1, row2         shows row0
      order_by k, limit 3    ->          bind f(row), k(row), tie(row)
                                           order_by k, limit 3

Cost: a second order of the rows of a window; else none.

`narrow_query` reduces a correlated query to the values that it needs of the row around it.

    where o.customer == outer[0].id and o.paid       arguments (c,)
    ->
    where o.customer == outer[0] and o.paid          arguments (c.id,)

Smaller values have fewer different ones, and a value that is a side of an equation can be a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import is_
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    Apply,
    Call,
    Constant,
    Display,
    Expr,
    Function,
    Item,
    Lifted,
    Local,
    Operation,
    Outer,
    Parameter,
    all_parameters,
    conjunction,
    constant,
    items_of,
    one_value,
    origins,
    parts,
    rebuilt,
    row_names,
    transform,
    tuple_of,
    walk,
)
from optimizer.expressions.knowledge import Shape, Shapes, is_container, total
from optimizer.expressions.simplification import is_no_tuple
from optimizer.expressions.text import over, project_node
from optimizer.lifting.lift import lift
from optimizer.plans.facts import Cost
from optimizer.plans.nodes.groups import KeepsGroups, keeper
from optimizer.plans.properties import binding_names, bindings, fact, nodes, row_shape, shapes
from optimizer.record import record
from optimizer.traverse import functions, with_functions
from optimizer.traverse import rebuilt as rebuilt_plan

# The rows of a query for many values together, and how they are read.


@record
class KeyedRows:
    """The rows of a query for many values: expressions over a node's row for the value, which is
    its key, and for the bindings of the query for one value.

    `covers` is True if there is a row for every value. `plain` is True if keys are compared like
    values of the rows, so that no key has a NaN; otherwise each key is one of the requested values,
    and equal to itself.

    `pair` is not 0 if each row of the node was made here as a tuple of the key and a row of `pair`
    bindings. Only the code that makes such rows can set it: a tuple of the user may be read by the
    same expressions, `row[0]` and `row[1]`, and have more items.
    """

    node: plan.Node
    key: Expr
    row: tuple[Expr, ...]
    covers: bool = False
    plain: bool = False
    pair: int = 0


ZERO, ONE = constant(0), constant(1)
FIRST = Item(Parameter(0), ZERO)
"""The key of a packed row: its only binding is a tuple of the key and the row."""


def as_expression(f: Function, given: Shapes = ()) -> Lifted:
    """Return a callable as an expression; one that was not lifted is lifted now.

    `given` has the shapes of its parameters.
    """
    return f if isinstance(f, Lifted) else lift(f, given)


def function(body: Expr, parameters: int, of: Lifted) -> Lifted:
    """Return an expression that was derived from a callable as a callable."""
    names = of.names if len(of.names) == parameters else ()
    return Lifted(body, names or row_names(parameters), of.origins, parameters)


def names_for_bindings(names: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Return names of `count` bindings; the first have `names`."""
    fresh = [name for name in row_names(count + len(names)) if name not in names]
    return (*names, *fresh)[:count]


def one(body: Expr) -> Lifted:
    """Return a callable of one binding."""
    return Lifted(body, ("row",), (), 1)


def items(of: Expr, count: int) -> tuple[Expr, ...]:
    """Return the `count` bindings of a row that is one value."""
    return (of,) if count == 1 else items_of(of, count)


def tuple_items(body: Expr) -> tuple[Expr, ...] | None:
    """Return the items of a tuple display; None for other expressions."""
    return body.items if isinstance(body, Display) and body.kind == "tuple" else None


def over_row(f: Function, row: tuple[Expr, ...], parameters: int) -> Lifted:
    """Rewrite a callable of a row to bindings of another row."""
    made = as_expression(f)
    return function(over(made.body, row), parameters, made)


def match_of_node(node: Any) -> plan.Match:
    """Return the match of a join; an empty one for a product."""
    found: plan.Match = getattr(node, "match", plan.Match())
    return found


def with_match(node: Any, match: plan.Match) -> plan.Node:
    """Return a join or product with another condition; a product with no condition stays one."""
    if not isinstance(node, plan.Product):
        return replace(node, match=match)  # type: ignore[no-any-return]
    if match == plan.Match():
        return node
    return plan.Join(node.left, node.right, match)


def asked_of_pairs(node: Any, reads: Callable[[Expr], object]) -> plan.Match:
    """Return the match of a join, with keys that satisfy `reads` turned into conditions on
    pairs."""
    match, count = match_of_node(node), bindings(node.inputs()[0])
    if match.left_key is None or match.right_key is None:
        return match
    mine, theirs = as_expression(match.left_key), as_expression(match.right_key)
    if not reads(mine.body) and not reads(theirs.body):
        return match
    other = over_row(theirs, (Parameter(count),), count + 1)
    tests = _tests_of_keys(mine.body, other.body, (*shapes(node.left), row_shape(node.right)))
    tests += [] if match.on is None else [as_expression(match.on).body]
    by = origins(mine, theirs)
    return plan.Match(on=Lifted(conjunction(tuple(tests)), row_names(count + 1), by, count + 1))


def _tests_of_keys(mine: Expr, theirs: Expr, known: Shapes) -> list[Expr]:
    """Return the tests that keys match: they are equal, and no item is NaN."""
    parts, others = tuple_items(mine), tuple_items(theirs)
    if parts and others and len(parts) == len(others):
        if all(total(part, known) for part in (*parts, *others)):
            return [Operation("==", pair) for pair in zip(parts, others, strict=True)]
    elif is_no_tuple(mine, known) or is_no_tuple(theirs, known):
        return [Operation("==", (mine, theirs))]
    return [Operation("==", (mine, theirs)), Call(constant(_has_no_nan), (mine,))]


def _has_no_nan(key: Any) -> bool:
    return type(key) is not tuple or all(item == item for item in key)


@record
class OfGroup:
    """Calls a function with a group's own key and rows, which have the key of an outer group before
    them."""

    function: Callable[[Any, Any], Any]

    def __call__(self, key: Any, rows: Any) -> Any:
        own = type(rows)({row[1]: weight for row, weight in rows.items()})
        return self.function(key[1], own)


@record
class KeptOfGroup:
    """An `OfGroup` of a function that keeps its groups."""

    function: KeepsGroups

    def __call__(self, key: Any, rows: Any) -> Any:
        return OfGroup(self.function)(key, rows)

    @property
    def shape(self) -> Shape:
        return self.function.shape

    @property
    def cost(self) -> Cost:
        return getattr(self.function, "cost", Cost.GROUP)

    def kept(self) -> Callable[[], Any]:
        new = self.function.kept()
        return lambda: _Part(new())

    def limited(self, item: int, most: int) -> KeptOfGroup | None:
        limited = self.function.limited(item, most)
        return None if limited is None else KeptOfGroup(limited)

    def dropping(self) -> KeptOfGroup:
        return KeptOfGroup(self.function.dropping())


class _Part:
    """A kept group of rows that have an outer key before them."""

    __slots__ = ("_group", "commit", "contents", "footprint", "undo")

    def __init__(self, group: Any) -> None:
        self._group = group
        self.undo, self.commit = group.undo, group.commit
        self.contents, self.footprint = group.contents, group.footprint

    @property
    def is_empty(self) -> bool:
        return bool(self._group.is_empty)

    def step(self, changes: Sequence[tuple[Any, int]]) -> Any:
        return self._group.step([(row[1], weight) for row, weight in changes])


def of_group(f: Opaque) -> Opaque:
    """Return the callable that is called with the key and the rows of a group alone."""
    kept = keeper(f)
    made = OfGroup(f.function) if kept is None else KeptOfGroup(kept)
    return replace(f, function=made, identity=("of a group", f.identity))


TIE = "tie"
"""The name of the hidden binding that breaks ties."""


def rows_of_order(order: plan.OrderBy) -> tuple[plan.Node, int]:
    """Return the rows that stand in the order, with every binding that its keys read, and how many
    of the bindings are shown."""
    source: plan.Node = order.input
    if order.limit is not None or order.offset:
        source = replace(order, shown=None)
    count = bindings(source) if order.shown is None else order.shown
    return source, count


def is_lost(order: plan.OrderBy) -> bool:
    """Return True if the order chose no row, so that it has no effect where order is not kept."""
    windows = (n.limit is not None or n.offset for n in nodes(order) if isinstance(n, plan.OrderBy))
    return not any(windows)


def in_no_order(order: plan.OrderBy) -> plan.Node:
    """Return the rows of an order, as a bag.

    A window is unchanged: its order chooses the rows.
    """
    if order.limit is not None or order.offset:
        return order
    source, count = rows_of_order(order)
    return source if order.shown is None else plan.Extend(source, tuple(range(count)), ())


def order_above(node: plan.Node, tie: Callable[[Any], Any]) -> plan.OrderBy | None:
    """Return the order of the rows that `node` makes of ordered rows; None if it keeps no order.

    Parameters
    ----------
    node: a node whose first input is a `plan.OrderBy`.
    tie: the sort key of rows with equal keys.
    """
    order = node.inputs()[0]
    assert isinstance(order, plan.OrderBy)
    source, count = rows_of_order(order)
    match node:
        case plan.Where(_, predicate):
            made: plan.Node = plan.Where(source, _widen_function(predicate, source, count))
        case plan.SemiJoin() | plan.AntiJoin():
            made = replace(node, left=source, match=_widen_match(node.match, source, count))
        case plan.Distinct() if order.shown is None:
            made = plan.Distinct(source)
        case plan.Select(_, function):
            return _bound(order, (), (function,), (), tie)
        case plan.Extend(_, keep, columns, names):
            if order.shown is not None or keep != tuple(range(count)):
                return _bound(order, keep, columns, names, tie)
            made = replace(node, input=source)
        case _:
            return None
    keys = [_widen_sort_key(key, bindings(made)) for key in order.keys]
    return plan.OrderBy(made, tuple(keys), None, 0, order.shown)


def sort_stably(order: plan.Node, keys: tuple[plan.SortKey, ...]) -> plan.OrderBy:
    """Return rows in the order of some keys. The sort is stable, like `sorted`."""
    if not isinstance(order, plan.OrderBy):
        return plan.OrderBy(order, keys, None, 0)
    source, count = rows_of_order(order)
    made = [replace(key, function=_widen_function(key.function, source, count)) for key in keys]
    known = {key.function for key in made}
    for key in order.keys:
        then = _widen_sort_key(key, bindings(source))
        if then.function not in known:  # an equal key does not break ties
            known.add(then.function)
            made.append(then)
    return plan.OrderBy(source, tuple(made), None, 0, order.shown)


def _bound(
    order: plan.OrderBy,
    keep: tuple[int, ...],
    columns: tuple[Function, ...],
    names: tuple[str | None, ...],
    tie: Callable[[Any], Any],
) -> plan.OrderBy:
    """Return the order over other bindings, with its keys beside them."""
    source, count = rows_of_order(order)
    width, shown = bindings(source), len(keep) + len(columns)
    hidden = [key.function for key in order.keys]
    keys = [*order.keys]
    if TIE not in binding_names(source)[count:]:
        row = Call(constant(tie, TIE), (one_value(all_parameters(width)[:count]),))
        hidden.append(Lifted(row, row_names(width), (), width))
        keys.append(plan.SortKey(hidden[-1]))
    shown_names = (*names, *[None] * shown)[:shown]
    unseen = (*[None] * (len(keys) - 1), TIE)
    every = (*[_widen_function(f, source, count) for f in columns], *hidden)
    made = plan.Extend(source, keep, every, (*shown_names, *unseen))
    total = shown + len(hidden)
    by = [replace(k, function=_place(shown + n, total)) for n, k in enumerate(keys)]
    return plan.OrderBy(made, tuple(by), None, 0, shown)


def _place(place: int, count: int) -> Lifted:
    return Lifted(Parameter(place), row_names(count), (), count)


def _widen_sort_key(key: plan.SortKey, width: int) -> plan.SortKey:
    """Return a sort key of rows with `width` bindings; unchanged if it has as many already."""
    if key.function.parameters == width:
        return key
    return replace(key, function=_of_first(key.function, key.function.parameters, width, ()))


def _widen_function(function: Function, source: plan.Node, count: int) -> Function:
    """Return a callable of the `count` shown bindings as a callable of all.

    Return `function` itself if all bindings are shown.
    """
    width = bindings(source)
    return function if width == count else _of_first(function, count, width, shapes(source))


def _widen_match(match: plan.Match, source: plan.Node, count: int) -> plan.Match:
    """Return the condition of a join whose left has hidden bindings behind its own `count`.

    Return `match` unchanged if `source` has no hidden bindings.
    """
    width = bindings(source)
    if width == count:
        return match
    left, on = match.left_key, match.on
    if left is not None:
        left = _widen_function(left, source, count)
    if on is not None:
        pair: tuple[Expr, ...] = (*all_parameters(count), Parameter(width))
        on = over_row(on, pair, width + 1)
    return replace(match, left_key=left, on=on)


def _of_first(function: Function, count: int, width: int, known: Any) -> Lifted:
    made = as_expression(function, known[:count])
    names = (*made.names[:count], *row_names(width)[count:])
    return Lifted(made.body, names, made.origins, width)


def outers(node: plan.Node) -> frozenset[int]:
    """Return the arguments that a plan reads."""
    found: frozenset[int] = fact(node, "outers", _outers)
    return found


def _outers(node: plan.Node) -> frozenset[int]:
    below = [source.known["outers"] for source in node.inputs()]
    own = [read_by(f.body) for f in functions(node) if isinstance(f, Lifted)]
    return frozenset[int]().union(*below, *own)


def read_by(expr: Expr) -> frozenset[int]:
    """Return the arguments that an expression reads."""
    return frozenset(part.index for part in walk(expr) if isinstance(part, Outer))


def replace_arguments(expr: Expr, values: tuple[Expr, ...]) -> Expr:
    """Replace the arguments in an expression by values; unchanged if it reads none."""
    if not read_by(expr):
        return expr
    found = transform(expr, lambda e: values[e.index] if isinstance(e, Outer) else e)
    return transform(found, project_node)


def narrow_query(
    query: plan.Node,
    arguments: tuple[Expr, ...],
    is_calm: Callable[[Expr], bool],
) -> tuple[plan.Node, tuple[Expr, ...]]:
    """Return a query that reads only the needed values of the row around it, and these values.

    `is_calm` returns True for expressions that raise for no row around. Other expressions stay in
    the query, behind its tests.
    """
    if not outers(query):
        return query, ()
    narrowing = _Narrowing(arguments, is_calm)
    made = rebuilt_plan(query, lambda node: with_functions(node, narrowing.function))
    return made, tuple(narrowing.values)


class _Narrowing:
    """Rewrites callables of a query to read only the values that they need of the row around it."""

    def __init__(
        self,
        arguments: tuple[Expr, ...],
        is_calm: Callable[[Expr], bool],
    ) -> None:
        self._arguments = arguments
        self._is_calm = is_calm
        self.values: dict[Expr, Outer] = {}

    def function(self, function: Function) -> Function:
        """Return a callable that reads narrowed values; itself if it reads no arguments."""
        if not isinstance(function, Lifted) or not read_by(function.body):
            return function
        return function.with_body(self._narrow_expr(function.body))

    def _narrow_expr(self, expr: Expr) -> Expr:
        """Return an expression whose largest calm parts over outer rows are read as values.

        New values are recorded in `values`.
        """
        if not read_by(expr):
            return expr
        if _reads_nothing_else(expr):
            value = replace_arguments(expr, self._arguments)
            if isinstance(value, Constant):
                return value
            if isinstance(expr, Outer) or (self._is_calm(value) and not is_container(value)):
                return self.values.setdefault(value, Outer(len(self.values)))
        old = parts(expr)
        new = tuple([self._narrow_expr(part) for part in old])
        return expr if all(map(is_, old, new)) else rebuilt(expr, new)


def _reads_nothing_else(expr: Expr) -> bool:
    """Return True for an expression that reads outer values only, and makes no container."""
    return not is_container(expr) and not any(
        isinstance(part, Parameter | Local | Apply) for part in walk(expr)
    )


# Further bindings of a row, and rows without them again.


def extend_bindings(
    node: plan.Node,
    keep: tuple[int, ...],
    columns: tuple[Expr, ...],
    names: tuple[str, ...] = (),
    origins: tuple[Opaque, ...] = (),
) -> plan.Node:
    """Return some bindings of a node, in that order, and then columns computed of all of them.

    `names` are the names of its bindings.
    """
    count = bindings(node)
    if keep == tuple(range(count)) and not columns:
        return node
    names = names_for_bindings(names, count)
    made = tuple([Lifted(column, names, origins, count) for column in columns])
    return plan.Extend(node, keep, made)


def first_of(node: plan.Node, count: int) -> plan.Node:
    """Return the first `count` bindings of a node."""
    return extend_bindings(node, tuple(range(count)), ())


def row_as_value(count: int) -> Expr:
    """Return the `count` bindings of a row as one value."""
    row = all_parameters(count)
    return row[0] if count == 1 else tuple_of(*row)
