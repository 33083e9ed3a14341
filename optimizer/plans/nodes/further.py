"""Nodes that stand for one method each: `reduce`, `extend`, `values`, `order_by`, `top`, `previous`
and `negate`.

`Reduce` is the node of `group_by(key).reduce(function)`. A function may keep its groups itself
(`KeepsGroups`): then it is called with inserted and deleted rows, and not with all rows of a group.
The result must be the same.

`Extend` is the node of `extend` and `bind`: it changes the bindings of its rows.

extend total=o.price * o.pieces      customer, order    ->  customer, order, total
bind customer, price=o.price         customer, order    ->  customer, price

`Values` is the node of `db.values(rows)`: rows that are written in the query itself.

values 1, 2, 3                 a relation of three rows, which stay

`Previous` is the node of `relation.previous()`: the rows before the last commit.

    commit      1      2      3
    input       a      a b    b
    previous    -      a      a b

It also changes in a commit that does not change its input: by the changes of the commit before.

`Negate` is the node of `relation.negate()`: each row, with its weight negated.

    negate            a 1, b 2    ->    a -1, b -2

A row of negative weight is not shown. It counts where weights are added: `union_all` cancels it
with a row of positive weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from itertools import islice
from operator import itemgetter
from types import FunctionType
from typing import Any, Literal, Protocol, runtime_checkable

from optimizer.callables.captures import meaning
from optimizer.callables.opaque import Opaque
from optimizer.expr import Constant, Function, Lifted, row_names
from optimizer.expressions.knowledge import Shape, Shapes
from optimizer.expressions.text import written
from optimizer.plans import facts as costs
from optimizer.plans import headlines
from optimizer.plans.facts import (
    Calls,
    Facts,
    Node,
    as_first,
    monotone,
    never,
    of_input,
    same_rows,
    shape_made,
)
from optimizer.plans.headlines import by_name
from optimizer.record import record


def _made(node: Reduce, inputs: Sequence[Shapes]) -> Shapes:
    found = keeper(node.function)
    return (None, None if found is None else found.shape)


def _key_and_rows(inputs: Sequence[Shapes], place: int) -> Shapes:
    """Return the shapes of a key, and of the rows of its group as one value."""
    return (None, None)


@runtime_checkable
class KeepsGroups(Protocol):
    """A function of `reduce` that keeps its groups."""

    def __call__(self, key: Any, rows: Any) -> Any:
        """Return the value for all rows of a group."""
        ...

    @property
    def shape(self) -> Shape:
        """The shape of the rows that the function makes."""
        ...

    def kept(self) -> Callable[[], Any]:
        """Return the function that makes an empty group (`operators/aggregate.py`)."""
        ...

    def limited(self, item: int, most: int) -> Any:
        """Return a function without rows whose `item` is greater than `most`; None if there is
        none."""
        ...

    def dropping(self) -> Any:
        """Return a function that makes no rows of a group that raises."""
        ...


def keeper(function: Function) -> KeepsGroups | None:
    """Return the function itself, if it keeps its groups; else None."""
    called = function.function if isinstance(function, Opaque) else None
    if called is None or called.__class__ is FunctionType:  # a faster test
        return None
    return called if isinstance(called, KeepsGroups) else None


def is_of_whole(node: Reduce) -> bool:
    """Return True if all rows are one group, whose rows the function takes together (`apply`)."""
    is_one = isinstance(node.key, Lifted) and isinstance(node.key.body, Constant)
    return is_one and keeper(node.function) is None


def kept_by(function: Any, name: str) -> Opaque:
    """Return a function that keeps its groups as a callable of a plan; equal functions are
    equal."""
    return Opaque(function, 2, name, None, (), (name, function), "reduce")


def replaced(function: Function, by: Any, more: str = "") -> Opaque:
    """Replace a function that keeps its groups, and append to its name."""
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


def _headline_of_extend(node: Extend) -> str:
    columns = [written(column) for column in node.columns]
    names: list[str | None] = [None] * (len(node.keep) + len(columns))
    names[: len(node.names)] = node.names
    shown = [
        text if name in (None, text.rpartition(".")[2]) else f"{name}={text}"
        for name, text in zip(names[len(node.keep) :], columns, strict=True)
    ]
    if columns and _keeps_all(node):
        return f"extend {', '.join(shown)}"
    old = _names_of_input(node)
    kept = [name or old[place] for place, name in zip(node.keep, names, strict=False)]
    return f"bind {', '.join([*kept, *shown])}".rstrip()


def _names_of_input(node: Extend) -> Sequence[str]:
    """Return the names of the input's bindings in the columns."""
    count = max([*node.keep, -1]) + 1
    read = next((column.names for column in node.columns if isinstance(column, Lifted)), ())
    return read if len(read) >= count else row_names(count)


def _keeps_all(node: Extend) -> bool:
    """Return True if every binding stays in its place; False if that is unknown, without
    columns."""
    return bool(node.columns) and node.keep == tuple(range(node.columns[0].parameters))


def _bindings(node: Extend, inputs: Sequence[Shapes]) -> Shapes:
    (of,) = inputs
    kept = [of[place] for place in node.keep]
    return (*kept, *[shape_made(column, of) for column in node.columns])


@record
class Extend(Node):
    """The bindings at the places `keep`, in that order, and one more for each of the `columns`.

    Columns are called with all bindings of the input. `names` are names of the resulting bindings,
    as far as they have any.
    """

    input: Node
    keep: tuple[int, ...]
    columns: tuple[Function, ...]
    names: tuple[str | None, ...] = field(default=(), compare=False)

    facts = Facts(
        calls=(Calls("columns", of_input),),
        raises=False,
        recursion=monotone,
        shapes=_bindings,
        is_set=lambda node, inputs: inputs[0] and _keeps_all(node),
        costs=costs.constant,
        degree=costs.degree_as_input,
        headline=_headline_of_extend,
    )


SHOWN = 4
LONGEST = 60


def _headline_of_values(node: Values) -> str:
    shown = [f"{row!r:.{LONGEST}}" for row in islice(node.rows, SHOWN)]
    rest = len(node.rows) - len(shown)
    more = [f"... {rest} more"] if rest else []
    return f"values {', '.join([*shown, *more])}".rstrip()


@record
class Values(Node):
    """Written rows, with repetitions; rows of several bindings are tuples.

    `meaning` is the value by which they are compared, `of` the shapes of the bindings. `values`
    makes one.
    """

    rows: tuple[Any, ...] = field(compare=False)
    meaning: Any = field(repr=False)
    of: Shapes

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=lambda node, _: node.of,
        is_set=lambda node, _: len(set(node.rows)) == len(node.rows),
        costs=costs.nothing,
        degree=costs.degree_of_none,
        headline=_headline_of_values,
    )


def values(rows: Iterable[Any], of: Shapes | None = None) -> Values:
    """Return the node of hashable rows.

    Without `of` they have one binding, whose shape is that of the rows.
    """
    kept = tuple(rows)
    return Values(kept, meaning(kept), (shape_of_all(kept),) if of is None else of)


def shape_of_all(rows: tuple[Any, ...]) -> Shape:
    """Return the shape of written rows: no others will be inserted."""
    kinds = set(map(type, rows))
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind is not tuple:
        return kind
    if len(set(map(len, rows))) != 1:
        return None
    return tuple(map(shape_of_all, zip(*rows, strict=True)))


# The node of an order, and its sort keys.


@record
class SortKey:
    """One key of an order, ascending or descending.

    `nulls` is the place of None, as the key or as an item of a tuple; without it, None is compared
    like any value.
    """

    function: Function
    descending: bool = False
    nulls: Literal["first", "last"] | None = None


def _shown(node: OrderBy, inputs: Sequence[Shapes]) -> Shapes:
    return inputs[0][: node.shown]


@record
class OrderBy(Node):
    """Rows in order of at least one key: the `limit` rows (None: all) that follow the first
    `offset`.

    It shows the first `shown` bindings of each row (None: all). The others are sort keys, so that
    two rows that look alike may have different places.
    """

    input: Node
    keys: tuple[SortKey, ...]
    limit: int | None
    offset: int
    shown: int | None = None

    facts = Facts(
        calls=(Calls("keys.function", of_input),),
        raises=True,
        recursion=lambda _: ("order",),
        shapes=_shown,
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
        """The function that returns the shown part of a row; None if that is the row."""
        if self.shown is None:
            return None
        return itemgetter(0) if self.shown == 1 else itemgetter(slice(self.shown))


# The node of `group_by(key).top(n, by)`, and of `first` and `last`.


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
        recursion=lambda _: ("order",),
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


@record
class Previous(Node):
    """The rows of the input before the last commit.

    `moment` is the engine's: it stores the changes of the input in that commit. No rule reaches
    through it.
    """

    input: Node
    moment: Any = field(compare=False, repr=False)

    facts = Facts(
        calls=(),
        raises=False,
        recursion=lambda _: ("past",),
        shapes=same_rows,
        is_set=as_first,
        costs=costs.constant,
        degree=costs.degree_as_input,
        headline=by_name,
    )


@record
class Negate(Node):
    """The rows of the input, with weights negated."""

    input: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=lambda _: ("negation",),
        shapes=same_rows,
        is_set=never,
        costs=costs.constant,
        degree=costs.degree_as_input,
        headline=by_name,
    )
