"""Rows of a query while it is being read: what a comprehension is, before somebody consumes it.

    [(o.id, o.total) for o in orders if not o.paid]

    Rows("list", where not o.paid (orders), row=((o.id, o.total),))

They are an expression, so that names can have them, and are in none that is finished.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.errors import PlanError
from optimizer.expr import (
    Expr,
    Lifted,
    Parameter,
    Within,
    all_parameters,
    items_of,
    one_value,
    row_names,
    walk,
)
from optimizer.expressions.knowledge import total
from optimizer.plans.nodes.values import values
from optimizer.plans.properties import bindings, is_set, shapes
from optimizer.record import record
from optimizer.subqueries import orders
from optimizer.subqueries.keyed import read

Kind: TypeAlias = Literal["list", "set", "iterator", "sorted", "dict", "groups", "items"]


ONE_ROW = values([()])
"""A relation of one row."""


Key: TypeAlias = tuple[Expr, bool, Any]
"""A key over the bindings of rows, its direction, and the place of None."""


@record
class Order:
    """How sorted rows stand, and which of them are taken: `limit` (None: all) after `offset`.

    more: the keys by which the rows stood before they were sorted. `sorted` is stable, so rows with
          equal keys stand by these.
    """

    key: Expr
    descending: bool = False
    offset: int = 0
    limit: int | None = None
    more: tuple[Key, ...] = ()

    @property
    def keys(self) -> tuple[Key, ...]:
        """All keys, the first one first."""
        return ((self.key, self.descending, None), *self.more)

    @property
    def is_window(self) -> bool:
        """True if not all rows are taken."""
        return self.limit is not None or self.offset > 0

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """The keys without their directions."""
        return tuple(key for key, *_ in self.keys)

    def over(self, exprs: Sequence[Expr]) -> Order:
        """Return the order with other expressions as its keys."""
        more = tuple((e, *how) for e, (_, *how) in zip(exprs[1:], self.more, strict=True))
        return replace(self, key=exprs[0], more=more)


@record
class Standing:
    """By what the rows of a list stand: keys over the bindings of `node`. It holds while `node` is
    the plan of the rows; other rows have lost their order, which matters only where they are the
    list that a query gives. Rows of a window may lose it: their order chose them."""

    node: plan.Node
    keys: tuple[Key, ...]
    is_window: bool = False


@record
class Rows(Expr):
    """What a part of a callable gives that is read as a query.

    `row` are expressions over the bindings of `node`: the value, or of a mapping the key and the
    value. Callables of the plan read `Outer(i)`, the value of `arguments[i]` in `scope`. Groups are
    the pairs of a `defaultdict(list)`: the value of a key is the list of all its values.
    """

    kind: Kind
    node: plan.Node
    row: tuple[Expr, ...]
    names: tuple[str, ...]
    scope: Any = None
    arguments: tuple[Expr, ...] = ()
    order: Order | None = None
    standing: Standing | None = None

    @property
    def value(self) -> Expr:
        """What iterating over them gives."""
        return self.row[0]

    @property
    def is_whole(self) -> bool:
        """Whether their value is the row of the plan itself."""
        return self.value == one_value(all_parameters(bindings(self.node)))


def has_rows_within(expr: Expr) -> bool:
    """Whether it makes a row that has the rows of a query in it."""
    return any(isinstance(part, Within) for part in walk(expr))


def check_values(row: tuple[Expr, ...]) -> None:
    """See that no row is asked for as a value that has the rows of a query in it.

    Raises
    ------
    PlanError: one is.
    """
    if any(map(has_rows_within, row)):
        raise PlanError(
            "a row that has others inside is a value only with the bag of them\n"
            "  name what is read of it: (o.id, len(o.lines))"
        )


def relation(node: plan.Node, name: str) -> Rows:
    """The rows of a relation; of an ordered one, with their order."""
    if isinstance(node, plan.OrderBy):
        source, count = orders.rows_of_order(node)
        known = shapes(source)
        keys = [(read(k.function, known).body, k.descending, k.nulls) for k in node.keys]
        row = (one_value(all_parameters(bindings(source))[:count]),)
        names = row_names(bindings(source))
        names = (name, *names[1:]) if count == 1 else names
        return Rows(
            "list",
            source,
            row,
            names,
            standing=Standing(source, tuple(keys), source is not node.input),
        )
    count = bindings(node)
    names = (name,) if count == 1 else row_names(count)
    return Rows("list", node, (one_value(all_parameters(count)),), names)


def selected(rows: Rows, origins: tuple[Opaque, ...]) -> Rows:
    """The rows with their value as the only binding of the plan."""
    if rows.is_whole and bindings(rows.node) == 1:
        return rows
    check_values(rows.row)
    made = Lifted(rows.value, rows.names, origins, bindings(rows.node))
    node = plan.Select(rows.node, made)
    return replace(rows, node=node, row=(Parameter(0),), names=("row",), order=None)


def standing_of(rows: Rows) -> Standing | None:
    """Return by what rows stand, of a list or of what is sorted; None of others, and of rows that
    lost their order."""
    if rows.kind == "sorted" and rows.order is not None:
        return Standing(rows.node, rows.order.keys, rows.order.is_window)
    standing = rows.standing
    is_list = rows.kind in ("list", "iterator")
    return standing if is_list and standing is not None and standing.node is rows.node else None


def may_lose_order(rows: Rows) -> bool:
    """Return True if nobody can see that rows lost their order, or if it chose them."""
    return rows.standing is None or rows.standing.is_window


def evaluated(rows: Rows, origins: tuple[Opaque, ...]) -> Rows:
    """The rows, in whose plan what they are is computed, if computing it may raise."""
    known = shapes(rows.node)
    if rows.order is not None or all(total(each, known) for each in rows.row):
        return rows
    whole = replace(rows, row=(one_value(rows.row),))
    made = selected(whole, origins)
    count = len(rows.row)
    return replace(made, row=made.row if count == 1 else items_of(made.value, count))


def as_set(rows: Rows, origins: tuple[Opaque, ...]) -> Rows:
    """The different values of rows."""
    made = selected(rows, origins) if not rows.is_whole else rows
    node = made.node if is_set(made.node) else plan.Distinct(made.node)
    return replace(made, kind="set", node=node, order=None)


def row_of(node: plan.Node) -> tuple[Expr, ...]:
    """The value of a row of a plan."""
    return (one_value(all_parameters(bindings(node))),)


def taken(rows: Rows, origins: tuple[Opaque, ...]) -> plan.Node:
    """The plan of rows; of those that are a window of what is sorted, with nothing else."""
    order = rows.order
    if order is None or not order.is_window:
        return rows.node
    count = bindings(rows.node)
    names = rows.names if len(rows.names) == count else row_names(count)
    keys = [plan.SortKey(Lifted(e, names, origins, count), *how) for e, *how in order.keys]
    return plan.OrderBy(rows.node, tuple(keys), order.limit, order.offset)
