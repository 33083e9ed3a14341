"""Values and dictionaries that a query computes from the rows of a sub-query.

Slices of sorted rows, and sorted rows as a value:

    sorted(rows, key=f)[:3]             the first three, as rows
    sorted(rows, key=f)[-3:]            the last three, in the order of f
    sorted(rows, key=f)[::2]            a slice of the tuple of all rows

Dictionaries over relations: comprehensions with one value for each key, and groups of a loop:

    {c.id: c.name for c in customers}       one value for each key, or `DuplicateKeyError`
    d = defaultdict(list)                   pairs of a key and a value; a key has the values
    for o in orders:                        of its pairs
        d[o.cid].append(o.total)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol

from optimizer import plan
from optimizer.comprehensions.rows import UNIQUE, Rows, as_set, plan_of_window, refusal_at
from optimizer.errors import DuplicateKeyError
from optimizer.expr import (
    NONE,
    TRUE,
    Call,
    Constant,
    Expr,
    Function,
    Item,
    Operation,
    Outer,
    Parameter,
    constant,
    tuple_of,
)
from optimizer.expressions.knowledge import Pure
from optimizer.plans.properties import find_groups
from optimizer.record import record
from optimizer.subqueries.error_freedom import kinds, known_of


def window(rows: Rows, key: ast.expr, node: ast.expr, reader: Any, reading: Any) -> Expr:
    """Read `sorted(...)[a:b]` or `sorted(...)[i]`.

    Windows with constant ends stay rows, also if they count from the end of the order. Others are
    parts of a tuple.
    """
    if isinstance(key, ast.Slice):
        ends = [NONE if e is None else reader.expr(e) for e in (key.lower, key.upper, key.step)]
        known = all(map(_is_integer, ends))
        made = _slice_rows(rows, [_integer(e) for e in ends], reading) if known else None
        if made is not None:
            return made
        return Call(constant(part), (as_sorted_tuple(rows, node, reader, reading), *ends))
    place = reader.expr(key)
    if _is_integer(place) and (count := _integer(place)) is not None and count >= 0:
        rows = cut(rows, 0, count + 1, reading)
    return Item(as_sorted_tuple(rows, node, reader, reading), place)


def _is_integer(expr: Expr) -> bool:
    """Return True for a constant integer or None."""
    return isinstance(expr, Constant) and type(expr.value) in (int, type(None))


def _integer(expr: Expr) -> int | None:
    return expr.value if isinstance(expr, Constant) else None


def _slice_rows(rows: Rows, ends: list[int | None], reading: Any) -> Rows | None:
    """Return the rows of a slice; None if the slice depends on the number of rows, or has a
    step."""
    start, stop, step = ends
    if step == -1 and start is None and stop is None:
        return _reverse_rows(rows, reading)
    if step not in (None, 1):
        return None
    start = start or 0
    if stop is not None and stop < 0:
        limit = max(0, stop - start) if start < 0 else None
        rows = _reverse_rows(cut(_reverse_rows(rows, reading), -stop, limit, reading), reading)
        return rows if start <= 0 else cut(rows, start, None, reading)
    if start >= 0:
        return cut(rows, start, None if stop is None else max(0, stop - start), reading)
    if stop is not None:
        return None
    return _reverse_rows(cut(_reverse_rows(rows, reading), 0, -start, reading), reading)


def _take_whole_window(rows: Rows, reading: Any) -> Rows:
    """Return the rows of a window as all rows, in the window's order; other rows unchanged."""
    assert rows.order is not None
    if not rows.order.is_window:
        return rows
    order = replace(rows.order, offset=0, limit=None)
    return replace(rows, node=plan_of_window(rows, reading.origins), order=order)


def _reverse_rows(rows: Rows, reading: Any) -> Rows:
    """Return the rows in reversed order."""
    rows = _take_whole_window(rows, reading)
    assert rows.order is not None
    order = rows.order
    more = tuple((e, not descending, nulls) for e, descending, nulls in order.more)
    return replace(rows, order=replace(order, descending=not order.descending, more=more))


def cut(rows: Rows, offset: int, limit: int | None, reading: Any) -> Rows:
    """Return the rows of a window of ordered rows: `limit` rows (None: all) after `offset`."""
    rows = _take_whole_window(rows, reading)
    assert rows.order is not None
    return replace(rows, order=replace(rows.order, offset=offset, limit=limit))


PLAINLY_ORDERED = (frozenset({int}), frozenset({str}), frozenset({bytes}))
"""Classes of values that `sorted` sorts in the order of `order_by`."""


def as_sorted_tuple(rows: Rows, node: ast.expr, reader: Any, reading: Any) -> Expr:
    """Return sorted rows as a tuple; refuse rows that are sorted in two directions."""
    order = rows.order
    assert order is not None
    if any(how != [order.descending, None] for _, *how in order.keys):
        raise refusal_at(
            node,
            reader,
            "is sorted in two directions, as a value",
            "sort it once, by one key: sorted(rows, key=lambda row: (row.a, -row.b))",
        )
    key = tuple_of(*order.exprs) if order.more else order.key
    is_own = key == rows.value
    collected = rows.value if is_own else tuple_of(key, rows.value)
    found = reading.fold_rows(rows, "Collect", collected)
    if is_own and kinds(rows.value, known_of(rows.node)) in PLAINLY_ORDERED:
        direction = (("reverse", TRUE),) if order.descending else ()
        return Call(constant(tuple), (Call(constant(sorted), (found,), direction),))
    engine = reading.engine
    made = InOrder(engine.by_themselves if is_own else engine.in_order, order.descending)
    return Call(constant(made, "sorted"), (found,))


PAIR = (Parameter(0), Parameter(1))
ITEMS = "for key, values in groups.items()"


def group_rows(rows: Rows, reading: Any, fold: Any = "Only") -> Rows:
    """Return a row for each key, with its value; with all values of a group.

    `fold` names the aggregate that makes the value. Return `rows` unchanged if they are groups
    already.
    """
    if rows.joined is UNIQUE or (rows.row == PAIR and find_groups(rows.node) is not None):
        return rows
    fold = fold if rows.joined is None else rows.joined
    key, value = (reading.function(part, rows) for part in rows.row)
    node = plan.Aggregate(rows.node, key, (reading.engine.fold(fold, value),))
    return replace(rows, kind="dict", node=node, row=PAIR, names=("key", "value"), joined=None)


def keys_of(rows: Rows, reading: Any) -> Rows:
    """Return the different keys."""
    if rows.kind == "dict":
        found = group_rows(rows, reading)
        return replace(found, kind="list", row=(found.row[0],))
    key = replace(rows, kind="list", row=(rows.row[0],))
    return replace(as_set(key, reading.origins), kind="list")


def item(rows: Rows, key: Expr, node: ast.expr, reader: Any, reading: Any) -> Expr:
    """Read `mapping[key]`."""
    found = _of_key(rows, key, reading)
    if rows.kind == "groups":
        return replace(found, kind="list", row=(rows.row[1],))
    values = reading.fold_rows(found, "Collect", found.row[1])
    return Call(constant(found_by, "item"), (values, key))


def method(rows: Rows, name: str, node: ast.Call, reader: Any, reading: Any) -> Expr:
    """Read a method of a mapping or of groups: `items`, `keys`, `values` or `get`; refuse all
    others."""
    is_groups = rows.kind == "groups"
    if name == "items" and not node.args:
        if is_groups:
            return replace(rows, kind="items")
        found = group_rows(rows, reading)
        return replace(found, kind="list", row=(tuple_of(*found.row),))
    if name == "keys" and not node.args:
        return replace(keys_of(rows, reading), kind="set")
    if name == "values" and not node.args and not is_groups:
        found = group_rows(rows, reading)
        return replace(found, kind="list", row=(found.row[1],))
    if name == "get" and node.args and not is_groups and not node.keywords:
        key = reader.expr(node.args[0])
        default = reader.expr(node.args[1]) if len(node.args) > 1 else NONE
        found = _of_key(rows, key, reading)
        values = reading.fold_rows(found, "Collect", found.row[1])
        return Call(constant(found_or, "get"), (values, key, default))
    remedy = ITEMS if is_groups else "mappings have items, keys, values, get, [] and in"
    raise refusal_at(node, reader, "is not read over relations", remedy)


def _of_key(rows: Rows, key: Expr, reading: Any) -> Rows:
    """Return the rows of a key."""
    one = replace(rows, row=(rows.row[0],))
    found: Rows = reading.equal_to(one, key)
    return replace(found, row=rows.row)


def bind_group(
    target: ast.expr, key: Expr, rows: Rows, reader: Any, reading: Any, inside: Any
) -> None:
    """Bind the names in `for key, values in groups.items()` to the key and its values; refuse other
    targets."""
    if not isinstance(target, ast.Tuple | ast.List) or len(target.elts) != 2:
        raise refusal_at(target, reader, "takes groups as one value", ITEMS)
    first, second = target.elts
    if not isinstance(second, ast.Name):
        raise refusal_at(second, reader, "takes the values of a group apart", ITEMS)
    inside._bind(first, key)
    scope = inside.scope
    arguments = tuple(scope.adopt(e, rows.scope) for e in rows.arguments)
    given = replace(rows, scope=scope, arguments=(*arguments, key), order=None)
    test = Operation("==", (rows.row[0], Outer(len(arguments))))
    found = reading.where(replace(given, kind="list", row=(rows.row[1],)), test)
    reader.bound[second.id] = found


# Functions of the value of a sub-query, with the results of Python's own functions.

Sorted = Callable[[Iterable[Any], bool], tuple[Any, ...]]
"""Sorts collected rows; the second argument is True for descending order."""


@record
class Needed(Pure):
    """Return the result of the function `name`; None is the result for no rows, and raises."""

    name: str

    def __call__(self, found: Any) -> Any:
        if found is None:
            raise ValueError(f"{self.name}() of no rows")
        return found


def value_or(found: Any, default: Any) -> Any:
    """Return a result, or the default if it is None, the result for no rows."""
    return default if found is None else found


@record
class Only:
    """Returns the only row, which the function `name` has found."""

    name: str

    def __call__(self, rows: Iterable[Any]) -> Any:
        for row in rows:
            return row
        raise ValueError(f"{self.name}() of no rows")


def only_or(rows: Iterable[Any], default: Any) -> Any:
    """Return the only row, or a default if there is none."""
    return next(iter(rows), default)


def found_by(values: Iterable[Any], key: Any) -> Any:
    """Return the value that a dictionary has for a key; raise `KeyError` if there is none."""
    found = list(values)
    if not found:
        raise KeyError(key)
    return _single_value(found, key)


def found_or(values: Iterable[Any], key: Any, default: Any) -> Any:
    """Return the value that a dictionary has for a key, or a default."""
    found = list(values)
    return _single_value(found, key) if found else default


def _single_value(found: list[Any], key: Any) -> Any:
    """Return the one value of a key; raise `DuplicateKeyError` if its rows have several."""
    first = found[0]
    if any(other is not first and other != first for other in found):
        raise DuplicateKeyError(
            f"{len(found)} rows have the key {key!r:.100}, with values that differ\n"
            "  a dictionary would keep the last; have one value for each key"
        )
    return first


def numbered(values: Iterable[Any]) -> tuple[tuple[int, Any], ...]:
    """Return the values with their places."""
    return tuple(enumerate(values))


def part(values: tuple[Any, ...], start: Any, stop: Any, step: Any) -> tuple[Any, ...]:
    """Return a slice of a tuple."""
    return values[start:stop:step]


@record
class InOrder:
    """Makes a tuple of the collected values, in order."""

    order: Sorted
    descending: bool

    def __call__(self, found: Iterable[Any]) -> tuple[Any, ...]:
        return self.order(found, self.descending)


# The interface of an engine for the reader of comprehensions.


class Engine(Protocol):
    """Relations as plans, aggregates, and sub-queries as joins."""

    bag: type
    """The class of lists in the rows of a query."""

    def plan_of(self, value: Any) -> plan.Node | None:
        """Return the plan of a relation, a table or a view; None for other values.

        Raises
        ------
        PlanError: it is of another database.
        """
        ...

    def is_relation(self, value: Any) -> bool:
        """Return True for a relation, a table or a view of any database."""
        ...

    def is_unread(self, value: Any) -> bool:
        """Return True for a query that will be read when it is used for the first time."""
        ...

    def is_parameter(self, value: Any) -> bool:
        """Return True for a value that a query reads by a call."""
        ...

    def finds_keys(self, value: Any) -> bool:
        """Return True for a table or view whose keys `in` tests."""
        ...

    def text_of(self, value: Any) -> Callable[[], Any] | None:
        """Return the function that a query was made of; None for other values."""
        ...

    def is_lattice(self, value: Any) -> bool:
        """Return True for a lattice, which a query calls to join values."""
        ...

    def fold(self, name: Any, value: Function | None) -> plan.Folded:
        """Return an aggregate of the engine, by its name, or of a lattice.

        `"Only"` is the one value of a group.
        """
        ...

    def freed(self, node: plan.Node) -> plan.Node:
        """Return the node without sub-queries in its callables."""
        ...

    def lateral(self, left: plan.Node, query: plan.Node, arguments: tuple[Expr, ...]) -> plan.Node:
        """Return rows joined with the rows of a query for each of them, as one binding more."""
        ...

    def fixpoint(self, body: plan.Node, level: object, name: str, joined: Any) -> plan.Node:
        """Return the smallest relation that contains the rows of its body."""
        ...

    def in_order(self, pairs: Iterable[tuple[Any, Any]], descending: bool) -> tuple[Any, ...]:
        """Return the rows of pairs of a key and a row, sorted by keys as by `order_by`."""
        ...

    def by_themselves(self, values: Iterable[Any], descending: bool) -> tuple[Any, ...]:
        """Return values sorted as by `order_by`."""
        ...
