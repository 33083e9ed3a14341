"""The rows of a query for many values together, and what one reads of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    Call,
    Display,
    Expr,
    Function,
    Item,
    Lifted,
    Operation,
    Parameter,
    conjunction,
    constant,
    items_of,
    origins,
    row_names,
)
from optimizer.expressions.compose import over
from optimizer.expressions.declared import is_no_tuple
from optimizer.expressions.knowledge import Shape, Shapes, total
from optimizer.lifting.lift import lift
from optimizer.plans.nodes.reduce import KeepsGroups, keeper
from optimizer.plans.properties import bindings, row_shape, shapes
from optimizer.record import record


@record
class Keyed:
    """The rows of a query for many values: where a row of the node has the value, which is its key,
    and the bindings that it has in the query of one.

    `covers` says that there is a row for every value; `plain`, that keys are equal as values of the
    rows are, so that those with a NaN are none: otherwise each is one of the values that are asked
    for, and equal to itself.

    `pair` is not 0 if each row of the node was made here as a tuple of the key and a row of `pair`
    bindings. Only the code that makes such rows can say so: a tuple of the user's own may be read
    by the same expressions, `row[0]` and `row[1]`, and have more in it.
    """

    node: plan.Node
    key: Expr
    row: tuple[Expr, ...]
    covers: bool = False
    plain: bool = False
    pair: int = 0


ZERO, ONE = constant(0), constant(1)
FIRST = Item(Parameter(0), ZERO)
"""The key of a row that is packed: it has one binding, a tuple of the key and the row."""


def read(f: Function, given: Shapes = ()) -> Lifted:
    """A callable as an expression."""
    return f if isinstance(f, Lifted) else lift(f, given)


def function(body: Expr, parameters: int, of: Lifted) -> Lifted:
    """An expression that was made of a callable."""
    names = of.names if len(of.names) == parameters else ()
    return Lifted(body, names or row_names(parameters), of.origins, parameters)


def names_of(names: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Names of `count` bindings, the first of which have some already."""
    fresh = [name for name in row_names(count + len(names)) if name not in names]
    return (*names, *fresh)[:count]


def one(body: Expr) -> Lifted:
    """A callable of one binding."""
    return Lifted(body, ("row",), (), 1)


def items(of: Expr, count: int) -> tuple[Expr, ...]:
    """The bindings of a row that is one value."""
    return (of,) if count == 1 else items_of(of, count)


def tuple_items(body: Expr) -> tuple[Expr, ...] | None:
    """The items of a tuple that is written out."""
    return body.items if isinstance(body, Display) and body.kind == "tuple" else None


def over_row(f: Function, row: tuple[Expr, ...], parameters: int) -> Lifted:
    """A callable of a row that is read somewhere in the bindings of another."""
    made = read(f)
    return function(over(made.body, row), parameters, made)


def match_of(node: Any) -> plan.Match:
    """When rows of a join match; of a product, always."""
    found: plan.Match = getattr(node, "match", plan.Match())
    return found


def with_match(node: Any, match: plan.Match) -> plan.Node:
    """A join or product with another condition."""
    if not isinstance(node, plan.Product):
        return replace(node, match=match)  # type: ignore[no-any-return]
    if match == plan.Match():
        return node
    return plan.Join(node.left, node.right, match)


def asked_of_pairs(node: Any, reads: Callable[[Expr], object]) -> plan.Match:
    """When rows of a join match, without keys in which something is read that pairs alone have."""
    match, count = match_of(node), bindings(node.inputs()[0])
    if match.left_key is None or match.right_key is None:
        return match
    mine, theirs = read(match.left_key), read(match.right_key)
    if not reads(mine.body) and not reads(theirs.body):
        return match
    other = over_row(theirs, (Parameter(count),), count + 1)
    tests = _tests_of_keys(mine.body, other.body, (*shapes(node.left), row_shape(node.right)))
    tests += [] if match.on is None else [read(match.on).body]
    by = origins(mine, theirs)
    return plan.Match(on=Lifted(conjunction(tuple(tests)), row_names(count + 1), by, count + 1))


def _tests_of_keys(mine: Expr, theirs: Expr, known: Shapes) -> list[Expr]:
    """Whether keys match: they are equal, and no NaN is an item of them."""
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
    """What a callable makes of a part of a group, where the key and the rows have that of the group
    before them."""

    function: Callable[[Any, Any], Any]

    def __call__(self, key: Any, rows: Any) -> Any:
        own = type(rows)({row[1]: weight for row, weight in rows.items()})
        return self.function(key[1], own)


@record
class KeptOfGroup:
    """The same of one that keeps its groups."""

    function: KeepsGroups

    def __call__(self, key: Any, rows: Any) -> Any:
        return OfGroup(self.function)(key, rows)

    @property
    def shape(self) -> Shape:
        return self.function.shape

    def kept(self) -> Callable[[], Any]:
        new = self.function.kept()
        return lambda: _Part(new())

    def limited(self, item: int, most: int) -> KeptOfGroup | None:
        limited = self.function.limited(item, most)
        return None if limited is None else KeptOfGroup(limited)

    def dropping(self) -> KeptOfGroup:
        return KeptOfGroup(self.function.dropping())


class _Part:
    """A kept group, of rows that have something before them."""

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
    """The callable that is called with the key and the rows of a group alone."""
    kept = keeper(f)
    made = OfGroup(f.function) if kept is None else KeptOfGroup(kept)
    return replace(f, function=made, identity=("of a group", f.identity))
