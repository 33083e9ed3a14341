"""A query of one group becomes one of all groups: the key of the group joins each operator's key.

    g.where(p).group_by(j).aggregate(Count())        aggregate Count() by (k, j)
                                                       where p
                                                         rows of all groups, grouped by k

Every node becomes one that has the rows of all groups together. In each of its rows one can read
the key of the group and the row that the query of one group has (`Keyed`), and in no other way do
two of its rows differ, so that sets and counts of them are those of each group.

    where, select, unnest       the same, of what is read as the row
    distinct, unions, ...       the same, of rows that have the key in them
    joins with other rows       the same; of two parts of the group, the keys must be equal besides
    aggregates, top, reduce     by the key, and their own key if they have one
    order with a limit          top of each group
    rows of others, by          beside the key of every group; only where it makes a difference
    themselves

A group exists while it has a row. What shows something of no rows, an aggregate of all, does so for
groups of which nothing is left where it stands (`covers`).

Source: *lifting* of operators to streams of streams [dbsp] section 5; flattening of nested queries
        [slender].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.errors import PlanError
from optimizer.expr import (
    NONE,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    Function,
    Item,
    Lifted,
    Operation,
    Parameter,
    all_parameters,
    constant,
    items_of,
    one_value,
    row_names,
    tuple_of,
)
from optimizer.expressions.compose import over, projected
from optimizer.expressions.knowledge import Shapes, is_canonical, total
from optimizer.lifting.lift import lift
from optimizer.plans import explain
from optimizer.plans.properties import bindings, free, nodes, shapes
from optimizer.record import record
from optimizer.traverse import with_inputs


@record
class Keyed:
    """The rows of all groups: where a row of the node has the key of its group, and the bindings
    that it has in the query of one. `covers` says that every group has a row."""

    node: plan.Node
    key: Expr
    row: tuple[Expr, ...]
    covers: bool = False


def per_group(
    query: plan.Node,
    level: object,
    source: plan.Node,
    key: Function,
    *,
    of_no_rows: Callable[[plan.Folded], Any],
    canonical: Callable[[Any], Any],
) -> plan.Node:
    """The plan of a query for each group of `source`, in which it is `Recursive` of the level.

    `of_no_rows` gives what an aggregate shows of no rows, `canonical` a value in which every NaN is
    the same. Rows are the key of the group, and the bindings of the query.

    Raises
    ------
    PlanError: something in the query cannot be asked of all groups together.
    """
    read = _read(key, shapes(source))
    same = None if is_canonical(read.body, shapes(source)) else constant(canonical, "canonical")
    translation = _PerGroup(level, source, read, of_no_rows, same)
    return translation.bindings_of(query)


class _PerGroup:
    def __init__(
        self,
        level: object,
        source: plan.Node,
        key: Lifted,
        of_no_rows: Callable[..., Any],
        canonical: Constant | None,
    ) -> None:
        self._canonical = canonical
        self._level = level
        self._of_no_rows = of_no_rows
        row: tuple[Expr, ...] = all_parameters(bindings(source))
        self._names, self._origins = key.names, key.origins
        self._whole = Keyed(source, key.body, row, covers=True)
        if not total(key.body, shapes(source)):  # it is asked of all rows, once
            made = key.with_body(tuple_of(key.body, one_value(row)))
            row = _items(Item(Parameter(0), ONE), len(row))
            self._whole = Keyed(plan.Select(source, made), FIRST, row, covers=True)
            self._names = ("row",)
        self._groups = plan.Distinct(
            plan.Select(self._whole.node, self._plain(self._whole.key, self._whole))
        )
        """The keys of all groups."""
        self._made: dict[int, Keyed] = {}

    def of(self, query: plan.Node) -> Keyed:
        for node in nodes(query):
            if self._level in free(node):
                self._made[id(node)] = self._keyed(node)
        return self._side(query)

    def bindings_of(self, query: plan.Node) -> plan.Node:
        """The rows of all groups, with the key of the group as their first binding."""
        x = self.of(query)
        count = len(x.row) + 1
        if (x.key, *x.row) == all_parameters(count) and bindings(x.node) == count:
            return x.node
        return plan.Each(plan.Select(x.node, self._plain(tuple_of(x.key, *x.row), x)), count)

    def _side(self, node: plan.Node) -> Keyed:
        """What stands for a node; for one that knows nothing of groups, its rows in each."""
        if id(node) in self._made:
            return self._made[id(node)]
        row = _items(Parameter(1), bindings(node))
        return Keyed(plan.Product(self._groups, node), Parameter(0), row)

    def _keyed(self, node: plan.Node) -> Keyed:
        match node:
            case plan.Recursive():
                return self._whole
            case plan.Where(source, p):
                x = self._side(source)
                return replace(x, node=plan.Where(x.node, self._of(p, x)), covers=False)
            case plan.Select(source, f):
                x = self._side(source)
                return self._packed(replace(x, row=(self._of(f, x).body,)), f)
            case plan.Unnest(source, f) | plan.SelectMany(source, f):
                return self._unnested(node, self._side(source), f)
            case plan.Distinct(source):
                x = self._side(source)
                return replace(x, node=plan.Distinct(x.node))
            case plan.Each(source, width):
                x = self._side(source)
                return replace(x, row=tuple(map(projected, _items(x.row[0], width))))
            case (
                plan.Product() | plan.Join() | plan.OuterJoin() | plan.SemiJoin() | plan.AntiJoin()
            ):
                return self._joined(node)
            case plan.Aggregate(source):
                return self._aggregated(node, self._side(source))
            case plan.OrderBy(source, keys, limit, offset):
                if limit is None:
                    raise _refusal(node, "what each gives has no order", "order_by() the result")
                return self._top(self._side(source), None, keys, limit, offset)
            case plan.Top(source, own, keys, limit, offset):
                return self._top(self._side(source), own, keys, limit, offset)
            case plan.Reduce(source):
                return self._reduced(node, self._packed(self._side(source)))
            case plan.Fixpoint() | plan.Component() | plan.Iterate():
                raise _refusal(
                    node,
                    "a recursion has the rows of all groups",
                    "have the key of the group in its rows, and compare it where it joins",
                )
            case _ if len(node.inputs()) == 2:
                return self._of_sets(node)
            case _:
                raise _refusal(node, "it has the rows of all groups", "do it to the result")

    # Callables.

    def _of(self, f: Function, x: Keyed, *more: Expr) -> Lifted:
        """A callable of the query's row, and of more, as one of the node's."""
        return _over(f, (*x.row, *more), bindings(x.node) + len(more))

    def _by(self, x: Keyed, key: Function | None) -> Lifted:
        """The key of the group, with another one."""
        if key is None:
            return self._plain(x.key, x)
        own = self._of(key, x)
        return _function(tuple_of(x.key, own.body), own.parameters, own)

    def _plain(self, body: Expr, x: Keyed) -> Lifted:
        count, known = bindings(x.node), len(self._whole.row)
        begins = x.key == self._whole.key and x.row[:known] == self._whole.row
        names = self._names if begins else ()
        names += row_names(count)[len(names) :]
        return Lifted(body, names, self._origins, count)

    def _packed(self, x: Keyed, f: Function | None = None) -> Keyed:
        """The same with rows of one binding: the key, and the row as one value."""
        row = _items(Item(Parameter(0), ONE), len(x.row))
        if (x.key, x.row, bindings(x.node)) == (FIRST, row, 1):
            return x
        made = self._plain(tuple_of(x.key, one_value(x.row)), x)
        if f is not None:
            made = replace(made, origins=_read(f, ()).origins)
        return Keyed(plan.Select(x.node, made), FIRST, row, x.covers)

    # Nodes.

    def _unnested(self, node: plan.Node, x: Keyed, f: Function) -> Keyed:
        count = bindings(x.node)
        made = plan.Unnest(x.node, self._of(f, x))
        if isinstance(node, plan.Unnest):
            return Keyed(made, x.key, (*x.row, Parameter(count)))
        return self._packed(Keyed(made, x.key, (Parameter(count),)))

    def _of_sets(self, node: plan.Node) -> Keyed:
        left, right = map(self._side, node.inputs())
        layouts = [(x.key, x.row, bindings(x.node)) for x in (left, right)]
        if layouts[0] != layouts[1]:
            left, right = self._packed(left), self._packed(right)
        covers = isinstance(node, plan.Union | plan.UnionAll) and (left.covers or right.covers)
        return replace(left, node=with_inputs(node, [left.node, right.node]), covers=covers)

    def _aggregated(self, node: plan.Aggregate, x: Keyed) -> Keyed:
        folded = tuple(replace(a, value=self._value_of(a, x)) for a in node.aggregates)
        made = plan.Aggregate(x.node, self._by(x, node.key), folded)
        results = all_parameters(len(folded) + 1)[1:]
        if node.key is not None:
            key, own = _items(Parameter(0), 2)
            return Keyed(made, key, (own, *results), x.covers)
        found = Keyed(made, Parameter(0), results, covers=True)
        return found if x.covers else self._filled(found, node)

    def _value_of(self, folded: plan.Folded, x: Keyed) -> Function | None:
        """What an aggregate reads; without a callable of its own, the row."""
        if folded.value is not None:
            return self._of(folded.value, x)
        return None if folded.name == "Count" else self._plain(one_value(x.row), x)

    def _filled(self, x: Keyed, node: plan.Aggregate) -> Keyed:
        """The rows of an aggregate of all, and the rows of groups for which it had none."""
        found = self._packed(x)
        match = plan.Match(_one(_same(Parameter(0))), _one(_same(FIRST)))
        missing = plan.AntiJoin(self._groups, found.node, match)
        nothing = one_value([constant(self._of_no_rows(a)) for a in node.aggregates])
        empty = plan.Select(missing, _one(tuple_of(Parameter(0), nothing)))
        return replace(found, node=plan.UnionAll(found.node, empty))

    def _top(
        self,
        x: Keyed,
        own: Function | None,
        keys: tuple[plan.SortKey, ...],
        limit: int,
        offset: int,
    ) -> Keyed:
        """The first rows by the key of the group, and one of their own if they have one."""
        keys = tuple(replace(key, function=self._of(key.function, x)) for key in keys)
        covers = x.covers and limit > 0 and not offset
        made = plan.Top(x.node, self._by(x, own), keys, limit, offset)
        return replace(x, node=made, covers=covers)

    def _reduced(self, node: plan.Reduce, x: Keyed) -> Keyed:
        f = node.function
        assert isinstance(f, Opaque)
        made = replace(f, function=OfGroup(f.function), identity=("of a group", f.identity))
        key, own = _items(Parameter(0), 2)
        reduced = plan.Reduce(x.node, self._by(x, node.key), made)
        return Keyed(reduced, key, (own, Parameter(1)))

    # Joins.

    def _joined(self, node: plan.Node) -> Keyed:
        left, right = node.inputs()
        kind = node.kind if isinstance(node, plan.OuterJoin) else None
        is_inner = isinstance(node, plan.Product | plan.Join)
        if id(right) not in self._made and kind in (None, "left"):
            return self._with_others(node, self._side(left))
        if id(left) not in self._made and is_inner:
            return self._of_others(node, self._packed(self._side(right)))
        return self._of_two(node, self._packed(self._side(left)), self._packed(self._side(right)))

    def _with_others(self, node: plan.Node, x: Keyed) -> Keyed:
        """Rows of the group, with those of others."""
        match, count = _match(node), bindings(x.node)
        new = plan.Match(
            None if match.left_key is None else self._of(match.left_key, x),
            match.right_key,
            None if match.on is None else self._of(match.on, x, Parameter(count)),
        )
        made = _with_match(with_inputs(node, [x.node, node.inputs()[1]]), new)
        if isinstance(node, plan.SemiJoin | plan.AntiJoin):
            return replace(x, node=made, covers=False)
        covers = x.covers and isinstance(node, plan.OuterJoin)
        return Keyed(made, x.key, (*x.row, Parameter(count)), covers)

    def _of_others(self, node: plan.Node, x: Keyed) -> Keyed:
        """Rows of others, with those of the group."""
        left, match = node.inputs()[0], _match(node)
        count = bindings(left)
        group, row = _items(Parameter(count), 2)
        mine = all_parameters(count)
        new = plan.Match(
            match.left_key, _of_right(match.right_key), _asked(match.on, (*mine, row), count + 1)
        )
        made = _with_match(with_inputs(node, [left, x.node]), new)
        return Keyed(made, group, (*mine, row))

    def _of_two(self, node: plan.Node, left: Keyed, right: Keyed) -> Keyed:
        """Two parts of the group, whose keys must be equal besides."""
        match, row = _match(node), Item(Parameter(1), ONE)
        own = None if match.left_key is None else self._of(match.left_key, left)
        other = _of_right(match.right_key)
        mine, theirs = self._in_group((own, left), (other, right))
        new = plan.Match(mine, theirs, _asked(match.on, (*left.row, row), 2))
        made = _with_match(with_inputs(node, [left.node, right.node]), new)
        match node:
            case plan.SemiJoin() | plan.AntiJoin():
                return replace(left, node=made, covers=False)
            case plan.OuterJoin(kind=kind):
                return self._packed(_outer(made, kind, left, right))
            case _:
                return Keyed(made, FIRST, (*left.row, row))

    def _in_group(
        self, left: tuple[Lifted | None, Keyed], right: tuple[Lifted | None, Keyed]
    ) -> tuple[Lifted, Lifted]:
        """The keys of packed sides, with that of the group before each."""
        group = _same(FIRST if self._canonical is None else Call(self._canonical, (FIRST,)))
        (own, mine), (other, theirs) = left, right
        if own is None or other is None:
            return _one(tuple_of(group)), _one(tuple_of(group))
        items, others = _tuple_items(own.body), _tuple_items(other.body)
        if items and others and len(items) == len(others):
            return own.with_body(tuple_of(group, *items)), other.with_body(tuple_of(group, *others))
        one_is_known = is_canonical(own.body, shapes(mine.node)) or is_canonical(
            other.body, shapes(theirs.node)
        )
        made = tuple_of if one_is_known else _spread
        return own.with_body(made(group, own.body)), other.with_body(made(group, other.body))


def _spread(group: Expr, key: Expr) -> Expr:
    return Call(constant(in_group, "in_group"), (group, key))


def in_group(group: Any, key: Any) -> tuple[Any, ...]:
    """A key with that of its group before it, where a NaN in a key that is a tuple is an item
    still, and so equals nothing."""
    return (group, tuple, *key) if type(key) is tuple else (group, key)


def _tuple_items(body: Expr) -> tuple[Expr, ...] | None:
    return body.items if isinstance(body, Display) and body.kind == "tuple" else None


@record
class OfGroup:
    """What a callable makes of a part of a group, where the key and the rows have that of the group
    before them."""

    function: Callable[[Any, Any], Any]

    def __call__(self, key: Any, rows: Any) -> Any:
        own = type(rows)({row[1]: weight for row, weight in rows.items()})
        return self.function(key[1], own)


ZERO, ONE = constant(0), constant(1)
FIRST = Item(Parameter(0), ZERO)


def _read(f: Function, given: Shapes) -> Lifted:
    return f if isinstance(f, Lifted) else lift(f, given)


def _function(body: Expr, parameters: int, of: Lifted) -> Lifted:
    names = of.names if len(of.names) == parameters else ()
    return Lifted(body, names or row_names(parameters), of.origins, parameters)


def _one(body: Expr) -> Lifted:
    return Lifted(body, ("row",), (), 1)


def _items(of: Expr, count: int) -> tuple[Expr, ...]:
    """The bindings of a row that is one value."""
    return (of,) if count == 1 else items_of(of, count)


def _match(node: Any) -> plan.Match:
    found: plan.Match = getattr(node, "match", plan.Match())
    return found


def _with_match(node: Any, match: plan.Match) -> plan.Node:
    if not isinstance(node, plan.Product):
        return replace(node, match=match)  # type: ignore[no-any-return]
    if match == plan.Match():
        return node
    return plan.Join(node.left, node.right, match)


def _of_right(key: Function | None) -> Lifted | None:
    """The key of a right side that is packed."""
    return None if key is None else _asked(key, (Item(Parameter(0), ONE),), 1)


def _asked(f: Function | None, row: tuple[Expr, ...], parameters: int) -> Lifted | None:
    return None if f is None else _over(f, row, parameters)


def _over(f: Function, row: tuple[Expr, ...], parameters: int) -> Lifted:
    read = _read(f, ())
    return _function(over(read.body, row), parameters, read)


def _same(key: Expr) -> Expr:
    """A key that is equal to itself if it is NaN: of a key, only its items may be none."""
    return tuple_of(tuple_of(key))


def _outer(made: plan.Node, kind: str, left: Keyed, right: Keyed) -> Keyed:
    """The rows of an outer join of two packed sides, either of which may be missing."""
    here, there = (Operation("is not", (Parameter(place), NONE)) for place in (0, 1))
    mine = tuple(Conditional(here, part, NONE) for part in left.row)
    key = Conditional(here, FIRST, Item(Parameter(1), ZERO))
    covers = {"left": left.covers, "right": right.covers}
    return Keyed(
        made,
        key,
        (*mine, Conditional(there, Item(Parameter(1), ONE), NONE)),
        covers.get(kind, left.covers or right.covers),
    )


def _refusal(node: plan.Node, why: str, remedy: str) -> PlanError:
    return PlanError(f"each cannot do {explain.headline(node)} for every group: {why}\n  {remedy}")
