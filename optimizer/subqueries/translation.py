"""Translate a query for one value to a query for all values: the value joins each operator's key.

    g.where(p).group_by(j).aggregate(Count())        aggregate Count() by (k, j)
                                                       where p
                                                         rows of all groups, grouped by k

Every node becomes a node with the rows of all values together. Each of its rows consists of the
value and the row of the query for one value (`KeyedRows`), and of nothing else, so that sets and
counts of rows are separate for each value.

    where, select, unnest       the same, over the expressions that read the row
    distinct, unions, ...       the same, over rows that contain the value
    negate                      the same
    joins with other rows,      the same; two sides that depend on the value must also have
    also as of a time           equal values
    aggregates, top, reduce     by the value, and their own key if they have one
    order with a limit          top of each value
    fixpoint                    the same, over rows that have the value before them
    rows that do not depend     paired with every value, if necessary
    on the value

An equation yields the values itself: for rows `where o.customer == outer[0]` the value is
`o.customer`.

An aggregate of all rows has a result for no rows, too: for values without rows left (`covers`).

Source: *lifting* of operators to streams of streams [dbsp] section 5; flattening of nested queries
        [slender]; dependent joins pushed down [neumann2015].

`translate_join` translates joins.

    rows that depend on the value, with others      the same
    others, with rows that depend on the value      the same, if only pairs count
    two sides that depend on the value              the values must be equal, too
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
    Expr,
    Function,
    Item,
    Lifted,
    Operation,
    Parameter,
    all_parameters,
    conjunction,
    constant,
    one_value,
    reads,
    row_names,
    tuple_of,
)
from optimizer.expressions.knowledge import is_canonical
from optimizer.expressions.text import over, same
from optimizer.plans import explain
from optimizer.plans.join_lists import extend_of
from optimizer.plans.properties import bindings, free, nodes, shapes
from optimizer.plans.strata import check_stratified
from optimizer.record import record
from optimizer.subqueries import keyed_rows
from optimizer.subqueries.correlations import (
    constant_of_no_rows,
    decorrelate,
    equation,
    filter_source,
    of_values,
)
from optimizer.subqueries.keyed_rows import (
    FIRST,
    ONE,
    ZERO,
    KeyedRows,
    as_expression,
    asked_of_pairs,
    function,
    items,
    match_of_node,
    of_group,
    one,
    over_row,
    read_by,
    replace_arguments,
    tuple_items,
    with_match,
)
from optimizer.traverse import with_inputs


@record
class RequestedValues:
    """The values that a query is evaluated for.

    `known` are rows with their value, whose names are used; `groups` has each value once. The value
    is one of `arguments` arguments, or a tuple of `arguments` values, that the query reads as
    `Outer`; None if it reads them otherwise. `canonical` makes all NaN in a value the same object,
    if necessary.
    """

    known: KeyedRows
    groups: plan.Node
    arguments: int | None = None
    canonical: Constant | None = None
    names: tuple[str, ...] = ()
    origins: tuple[Opaque, ...] = ()


@record
class Requirements:
    """Facts that a translation needs from its caller.

    `of_no_rows` returns the result of an aggregate over no rows. `refusal` is the text of an error,
    with a place for the refused operation. With `by_equation` the query raises nothing, so that it
    may be evaluated for values that no row has.
    """

    of_no_rows: Callable[[plan.Folded], Any]
    refusal: str
    by_equation: bool = False


class Translation:
    """A translation of queries to queries for some values.

    `depends` is True for a node that depends on the value, or is above one; `leaf` returns the
    replacement of a node that depends on it by itself.
    """

    def __init__(
        self,
        values: RequestedValues,
        asked: Requirements,
        depends: Callable[[plan.Node], bool],
        leaf: Callable[[plan.Node], KeyedRows | None],
    ) -> None:
        self.values = values
        self.asked = asked
        self.depends = depends
        self._leaf = leaf
        self._made: dict[int, KeyedRows] = {}
        self._fixpoints: dict[int, plan.Fixpoint] = {}

    def of(self, query: plan.Node) -> KeyedRows:
        """Return the rows of a query for all values."""
        for node in nodes(query, until=self._is_recursion):
            if self.depends(node) and id(node) not in self._made:
                self._made[id(node)] = self._by_equation(node) or self._keyed(node)
        return self.side(query)

    def _is_recursion(self, node: plan.Node) -> bool:
        """Return True for a recursion that depends on the value, which is translated as a whole."""
        return isinstance(node, plan.Fixpoint | plan.Iterate) and self.depends(node)

    def bindings_of(self, query: plan.Node) -> plan.Node:
        """Return the rows of a query for all values, with the value as their first binding."""
        x = self.of(query)
        count = len(x.row) + 1
        if (x.key, *x.row) == all_parameters(count) and bindings(x.node) == count:
            return x.node
        made = self.plain(x.key, x)
        return extend_of(x.node, [made.with_body(part) for part in (x.key, *x.row)])

    def side(self, node: plan.Node) -> KeyedRows:
        """Return the translation of a node; a node that does not depend on the value is paired with
        each."""
        if id(node) in self._made:
            return self._made[id(node)]
        row = items(Parameter(1), bindings(node))
        return KeyedRows(plan.Product(self.values.groups, node), Parameter(0), row)

    def _keyed(self, node: plan.Node) -> KeyedRows:
        """Return the translation of a node that depends on the value; raise `PlanError` if there is
        none."""
        found = self._leaf(node)
        if found is not None:
            return found
        match node:
            case plan.Where(source, p):
                x = self.side(source)
                return replace(x, node=plan.Where(x.node, self.callable(p, x)), covers=False)
            case plan.Select(source, f):
                x = self.side(source)
                return self.packed(replace(x, row=(self.callable(f, x).body,)), f)
            case plan.Unnest(source, f) | plan.SelectMany(source, f):
                return self._unnest_rows(node, self.side(source), f)
            case plan.Distinct(source):
                x = self._alone(self.side(source))
                return replace(x, node=plan.Distinct(x.node))
            case plan.Negate(source):
                x = self.side(source)
                return replace(x, node=plan.Negate(x.node), covers=False)
            case plan.Extend(source):
                return self._extend_rows(node, self.side(source))
            case (
                plan.Product() | plan.Join() | plan.OuterJoin() | plan.SemiJoin() | plan.AntiJoin()
            ):
                return translate_join(self, node)
            case plan.Aggregate(source):
                return self._aggregate_rows(node, self.side(source))
            case plan.OrderBy(source, keys, limit, offset, shown):
                if isinstance(limit, plan.Table):
                    raise self._refusal(node, "its limit is a parameter", "give it a number")
                if limit is None:
                    x = self._in_no_order(node)
                else:
                    x = self._top(self.side(source), None, keys, limit, offset)
                return replace(x, row=x.row[:shown])
            case plan.Top(source, own, keys, limit, offset):
                return self._top(self.side(source), own, keys, limit, offset)
            case plan.Reduce(source):
                return self._reduce_groups(node, self.packed(self.side(source)))
            case plan.Fixpoint():
                return self._recursive_rows(self._fixpoint(node))
            case plan.Component(plan.Fixpoint() as defining, index):
                return self._recursive_rows(plan.Component(self._fixpoint(defining), index))
            case plan.Component() | plan.Iterate():
                raise self._of_recursion(node)
            case plan.AsofJoin():
                return _translate_asof(self, node)
            case plan.UnionAll() | plan.SetOperation():
                return self._of_sets(node)
            case _:
                raise self._refusal(node, "it has all rows together", "do it to the result")

    # Callables.

    def callable(self, f: Function, x: KeyedRows, *more: Expr) -> Lifted:
        """Rewrite a callable of the query's row, and of `more`, to the node's bindings."""
        return self.over(f, x.key, (*x.row, *more), bindings(x.node) + len(more))

    def over(self, f: Function, key: Expr, row: tuple[Expr, ...], parameters: int) -> Lifted:
        """Rewrite a callable to bindings; `key` and `row` are the value and the query's row."""
        made = as_expression(f)
        body = over(made.body, row)
        count = self.values.arguments
        if count is not None and read_by(body):
            body = replace_arguments(body, items(key, count))
        return function(body, parameters, made)

    def by(self, x: KeyedRows, key: Function | None) -> Lifted:
        """Return the key of the value, with another key."""
        if key is None:
            return self.plain(x.key, x)
        own = self.callable(key, x)
        return function(tuple_of(x.key, own.body), own.parameters, own)

    def plain(self, body: Expr, x: KeyedRows) -> Lifted:
        """Return an expression as a callable that has no source."""
        whole = self.values.known
        count, known = bindings(x.node), len(whole.row)
        begins = x.key == whole.key and x.row[:known] == whole.row
        names = self.values.names if begins else ()
        names += row_names(count)[len(names) :]
        return Lifted(body, names, self.values.origins, count)

    def packed(self, x: KeyedRows, f: Function | None = None) -> KeyedRows:
        """Return rows with one binding: a tuple of the value, and the row as one value."""
        count = len(x.row)
        row = items(Item(Parameter(0), ONE), count)
        if x.pair == count and (x.key, x.row, bindings(x.node)) == (FIRST, row, 1):
            return x
        made = self.plain(tuple_of(x.key, one_value(x.row)), x)
        if f is not None:
            made = replace(made, origins=as_expression(f).origins)
        return KeyedRows(plan.Select(x.node, made), FIRST, row, x.covers, x.plain, count)

    def compared_parts(self, key: Expr, *, plain: bool) -> tuple[Expr, ...]:
        """Return the parts of a value in a key of a join."""
        if plain:
            return items(key, self.values.arguments or 1)
        canonical = self.values.canonical
        return (same(key if canonical is None else Call(canonical, (key,))),)

    # Nodes.

    def _by_equation(self, node: plan.Node) -> KeyedRows | None:
        """Return the rows of a query that equates each argument with an expression over rows; else
        None."""
        count = self.values.arguments
        if not self.asked.by_equation or not count:
            return None
        found = decorrelate(node)
        if found is None:
            return None
        values: dict[int, Expr] = {}
        rest: list[Expr] = []
        for test in found.conditions:
            equal = equation(test)
            if equal is None or equal[0] in values:
                rest.append(test)
            else:
                values.setdefault(*equal)
        if len(values) < count:
            return None
        by = tuple([values[place] for place in range(count)])
        made = of_values(replace(found, conditions=tuple(rest)), by)
        return KeyedRows(filter_source(made), one_value(by), made.row, plain=True)

    def _unnest_rows(self, node: plan.Node, x: KeyedRows, f: Function) -> KeyedRows:
        """Return the unnested rows with the value: a new binding, or for `select_many` the row."""
        count = bindings(x.node)
        made = plan.Unnest(x.node, self.callable(f, x))
        if isinstance(node, plan.Unnest):
            return KeyedRows(made, x.key, (*x.row, Parameter(count)), plain=x.plain)
        return self.packed(KeyedRows(made, x.key, (Parameter(count),), plain=x.plain))

    def _extend_rows(self, node: plan.Extend, x: KeyedRows) -> KeyedRows:
        """Return the rows with the columns of an extend; all old bindings stay in the node."""
        count = bindings(x.node)
        every = all_parameters(count + len(node.columns))
        columns = tuple(self.callable(column, x) for column in node.columns)
        made = plan.Extend(x.node, tuple(range(count)), columns)
        row = (*[x.row[place] for place in node.keep], *every[count:])
        return replace(x, node=made, row=row)

    def _of_sets(self, node: plan.Node) -> KeyedRows:
        """Return the set operation of both sides, in one layout; a union covers values of either
        side."""
        left, right = [self._alone(self.side(source)) for source in node.inputs()]
        if left.plain != right.plain:
            left, right = self._sound(left), self._sound(right)
        layouts = [(x.key, x.row, bindings(x.node)) for x in (left, right)]
        if layouts[0] != layouts[1]:
            left, right = self.packed(left), self.packed(right)
        covers = isinstance(node, plan.Union | plan.UnionAll) and (left.covers or right.covers)
        return replace(left, node=with_inputs(node, [left.node, right.node]), covers=covers)

    def _alone(self, x: KeyedRows) -> KeyedRows:
        """Return rows that have no bindings but the value and the row."""
        used = frozenset[int]().union(*map(reads, (x.key, *x.row)))
        is_alone = {Parameter(place) for place in used} <= {x.key, *x.row}
        return x if is_alone and len(used) == bindings(x.node) else self.packed(x)

    def _sound(self, x: KeyedRows) -> KeyedRows:
        """Return the rows whose key is a value without NaN."""
        if not x.plain:
            return x
        tests = [Operation("==", (k, k)) for k in self.compared_parts(x.key, plain=True)]
        test = self.plain(conjunction(tuple(tests)), x)
        return replace(x, node=plan.Where(x.node, test), plain=False)

    def _aggregate_rows(self, node: plan.Aggregate, x: KeyedRows) -> KeyedRows:
        """Return the aggregate for each value; without a key, also for values that have no rows."""
        folded = self.rewrite_folded(node, x)
        made = plan.Aggregate(x.node, self.by(x, node.key), folded)
        results = all_parameters(len(folded) + 1)[1:]
        if node.key is not None:
            key, own = items(Parameter(0), 2)
            return KeyedRows(made, key, (own, *results), x.covers, x.plain)
        found = KeyedRows(made, Parameter(0), results, True, x.plain)
        return found if x.covers else self._fill_empty(found, node)

    def rewrite_folded(self, node: plan.Aggregate, x: KeyedRows) -> tuple[plan.Folded, ...]:
        """Return the aggregates of a node, rewritten to the rows of the query."""
        return tuple(replace(a, value=self._value_of(a, x)) for a in node.aggregates)

    def _value_of(self, folded: plan.Folded, x: KeyedRows) -> Function | None:
        """Return the value of an aggregate; without a callable the row, or None for `Count`."""
        if folded.value is not None:
            return self.callable(folded.value, x)
        return None if folded.name == "Count" else self.plain(one_value(x.row), x)

    def _fill_empty(self, x: KeyedRows, node: plan.Aggregate) -> KeyedRows:
        """Add the result for no rows to an aggregate of all rows, for each value without rows."""
        found = self.packed(x)
        match = plan.Match(
            one(tuple_of(*self.compared_parts(Parameter(0), plain=x.plain))),
            one(tuple_of(*self.compared_parts(FIRST, plain=x.plain))),
        )
        missing = plan.AntiJoin(self.values.groups, found.node, match)
        nothing = one_value(
            [constant_of_no_rows(self.asked.of_no_rows(a)) for a in node.aggregates]
        )
        empty = plan.Select(missing, one(tuple_of(Parameter(0), nothing)))
        if x.plain:
            found = self._sound(found)
        return replace(found, node=plan.UnionAll(found.node, empty))

    def _in_no_order(self, node: plan.OrderBy) -> KeyedRows:
        """Return the rows of an order without limit; refuse it if the order is lost, or has an
        offset."""
        if self.values.arguments is None and keyed_rows.is_lost(node):
            raise self._refusal(node, "what each gives has no order", "order_by() the result")
        if not node.offset:
            return self.side(node.input)
        raise self._refusal(node, "an order without a limit has no end", "limit() it")

    def _top(
        self,
        x: KeyedRows,
        own: Function | None,
        keys: tuple[plan.SortKey, ...],
        limit: int,
        offset: int,
    ) -> KeyedRows:
        """Return the first rows by the value, and by a key of their own if they have one."""
        keys = tuple(replace(key, function=self.callable(key.function, x)) for key in keys)
        covers = x.covers and limit > 0 and not offset
        made = plan.Top(x.node, self.by(x, own), keys, limit, offset)
        return replace(x, node=made, covers=covers)

    def _reduce_groups(self, node: plan.Reduce, x: KeyedRows) -> KeyedRows:
        """Return the reduce of the groups of each value."""
        f = node.function
        assert isinstance(f, Opaque)
        key, own = items(Parameter(0), 2)
        reduced = plan.Reduce(x.node, self.by(x, node.key), of_group(f))
        return KeyedRows(reduced, key, (own, Parameter(1)), plain=x.plain)

    def _fixpoint(self, node: plan.Fixpoint) -> plan.Fixpoint:
        """Return the recursion for all values: each row of its relations has the value before it.

        Raises
        ------
        PlanError: a relation is over a lattice.
        StratificationError: the recursion passes through an aggregate of other values.
        """
        if id(node) not in self._fixpoints:
            level = node.level

            def leaf(part: plan.Node) -> KeyedRows | None:
                if not isinstance(part, plan.Recursive) or part.level != level:
                    return self._leaf(part)
                return self._recursive_rows(replace(part, of=(None,)))

            inner = Translation(
                self.values,
                replace(self.asked, by_equation=False),
                lambda part: level in free(part) or self.depends(part),
                leaf,
            )
            bodies = tuple([inner.packed(inner.of(body)).node for body in node.bodies])
            best = tuple([self._best(node, best) for best in node.best])
            made = replace(node, bodies=bodies, best=best)
            check_stratified(made)
            self._fixpoints[id(node)] = made
        return self._fixpoints[id(node)]

    def _recursive_rows(self, node: plan.Node) -> KeyedRows:
        return KeyedRows(node, FIRST, items(Item(Parameter(0), ONE), 1), pair=1)

    def _best(self, node: plan.Fixpoint, best: Any) -> Any:
        """Return the row that a relation keeps, for each value."""
        if best is None:
            return None
        if not isinstance(best, plan.Best):
            raise self._refusal(
                node,
                "a recursion over a lattice joins the values of all of them",
                "have the key in its rows and in by=",
            )
        row = (Item(Parameter(0), ONE),)
        by, value = (self.over(f, FIRST, row, 1) for f in (best.by, best.value))
        return replace(best, by=function(tuple_of(FIRST, by.body), 1, by), value=value)

    def _of_recursion(self, node: plan.Node) -> PlanError:
        """Return the error for a recursion, which cannot be translated."""
        if self.values.arguments is None:
            return self._refusal(
                node,
                "a recursion has the rows of all groups",
                "have the key of the group in its rows, and compare it where it joins",
            )
        return self._refusal(
            node,
            "a recursion has the rows of all of them together",
            "have what it reads of that row in its own rows, and compare it outside",
        )

    def _refusal(self, node: plan.Node, why: str, remedy: str) -> PlanError:
        """Return the error that a node cannot be translated; it is not raised here."""
        what = self.asked.refusal.format(explain.headline(node))
        return PlanError(f"{what}: {why}\n  {remedy}")


def translate_join(all_: Translation, node: plan.Node) -> KeyedRows:
    """Translate a product or join with a side or callable that depends on the value."""
    left, right = node.inputs()
    kind = node.kind if isinstance(node, plan.OuterJoin) else None
    is_inner = isinstance(node, plan.Product | plan.Join)
    if all_.values.arguments is not None:
        node = with_match(node, asked_of_pairs(node, read_by))
    if not all_.depends(right) and kind in (None, "left"):
        return _with_others(all_, node, all_.side(left))
    if not all_.depends(left) and is_inner:
        return _of_others(all_, node, all_.packed(all_.side(right)))
    return _of_two(all_, node, all_.packed(all_.side(left)), all_.packed(all_.side(right)))


def _with_others(all_: Translation, node: plan.Node, x: KeyedRows) -> KeyedRows:
    """Join rows of the value with others."""
    match, count = match_of_node(node), bindings(x.node)
    new = plan.Match(
        None if match.left_key is None else all_.callable(match.left_key, x),
        match.right_key,
        None if match.on is None else all_.callable(match.on, x, Parameter(count)),
    )
    made = with_match(with_inputs(node, [x.node, node.inputs()[1]]), new)
    if isinstance(node, plan.SemiJoin | plan.AntiJoin):
        return replace(x, node=made, covers=False)
    covers = x.covers and isinstance(node, plan.OuterJoin)
    return KeyedRows(made, x.key, (*x.row, Parameter(count)), covers, x.plain)


def _of_others(all_: Translation, node: plan.Node, x: KeyedRows) -> KeyedRows:
    """Join others with rows of the value."""
    left, match = node.inputs()[0], match_of_node(node)
    count = bindings(left)
    group, row = items(Parameter(count), 2)
    mine = all_parameters(count)
    on = None if match.on is None else all_.over(match.on, group, (*mine, row), count + 1)
    new = plan.Match(match.left_key, _of_right(match.right_key), on)
    made = with_match(with_inputs(node, [left, x.node]), new)
    return KeyedRows(made, group, (*mine, row), plain=x.plain)


def _of_two(all_: Translation, node: plan.Node, left: KeyedRows, right: KeyedRows) -> KeyedRows:
    """Join two sides of the value; the value must be equal, besides the keys of the match."""
    match, row = match_of_node(node), Item(Parameter(1), ONE)
    own = None if match.left_key is None else all_.callable(match.left_key, left)
    other = _of_right(match.right_key)
    mine, theirs = _with_value(all_, (own, left), (other, right))
    on = None if match.on is None else all_.over(match.on, FIRST, (*left.row, row), 2)
    new = plan.Match(mine, theirs, on)
    made = with_match(with_inputs(node, [left.node, right.node]), new)
    plain = left.plain or right.plain
    match node:
        case plan.SemiJoin() | plan.AntiJoin():
            return replace(left, node=made, covers=False)
        case plan.OuterJoin(kind=kind):
            return all_.packed(_outer(made, kind, left, right))
        case _:
            return KeyedRows(made, FIRST, (*left.row, row), plain=plain)


def _translate_asof(all_: Translation, node: plan.AsofJoin) -> KeyedRows:
    """Translate an as-of join, whose inputs are tuples `(row, key, time)`.

    The value is put before the row, and before the key if both sides depend on the value.
    """
    count = node.count
    left, other = all_.packed(all_.side(node.left)), node.right
    row, key, time = items(left.row[0], 3)
    plain = left.plain
    if all_.depends(other):
        right = all_.packed(all_.side(other))
        plain = plain or right.plain
        value = all_.compared_parts(FIRST, plain=plain)
        theirs = items(right.row[0], 3)
        made = all_.plain(tuple_of(theirs[0], _spread(*value, theirs[1]), theirs[2]), right)
        other, key = plan.Select(right.node, made), _spread(*value, key)
    valued = tuple_of(tuple_of(left.key, *items(row, count)), key, time)
    mine = plan.Select(left.node, all_.plain(valued, left))
    found = replace(node, left=mine, right=other, count=count + 1)
    return KeyedRows(found, Parameter(0), all_parameters(count + 2)[1:], plain=plain)


def _with_value(
    all_: Translation, left: tuple[Lifted | None, KeyedRows], right: tuple[Lifted | None, KeyedRows]
) -> tuple[Lifted, Lifted]:
    """Return the keys of packed sides, with the value before each."""
    (own, mine), (other, theirs) = left, right
    value = all_.compared_parts(FIRST, plain=mine.plain or theirs.plain)
    if own is None or other is None:
        return one(tuple_of(*value)), one(tuple_of(*value))
    mine_, theirs_ = tuple_items(own.body), tuple_items(other.body)
    if mine_ and theirs_ and len(mine_) == len(theirs_):
        return own.with_body(tuple_of(*value, *mine_)), other.with_body(tuple_of(*value, *theirs_))
    one_is_known = is_canonical(own.body, shapes(mine.node)) or is_canonical(
        other.body, shapes(theirs.node)
    )
    made = tuple_of if one_is_known else _spread
    return own.with_body(made(*value, own.body)), other.with_body(made(*value, other.body))


def _spread(*parts: Expr) -> Expr:
    return Call(constant(with_value, "with_value"), parts)


def with_value(*parts: object) -> tuple[object, ...]:
    """Return a key with the value before it.

    The items of a tuple stay items, so that a NaN among them equals nothing.
    """
    *value, key = parts
    return (*value, tuple, *key) if type(key) is tuple else parts


def _of_right(key: Function | None) -> Lifted | None:
    """Return the key of a packed right side; None without a key."""
    return None if key is None else over_row(key, (Item(Parameter(0), ONE),), 1)


def _outer(made: plan.Node, kind: str, left: KeyedRows, right: KeyedRows) -> KeyedRows:
    """Return the rows of an outer join of two packed sides; either side may be missing."""
    here, there = (Operation("is not", (Parameter(place), NONE)) for place in (0, 1))
    mine = tuple(Conditional(here, part, NONE) for part in left.row)
    key = Conditional(here, FIRST, Item(Parameter(1), ZERO))
    covers = {"left": left.covers, "right": right.covers}
    return KeyedRows(
        made,
        key,
        (*mine, Conditional(there, Item(Parameter(1), ONE), NONE)),
        covers.get(kind, left.covers or right.covers),
        left.plain or right.plain,
    )
