"""What of a plan can be done elsewhere: nodes whose rows fall into buckets.

A fragment can be moved if its rows fall into buckets that have nothing to do with each other: those
of a key. The bucket of a row depends on its key alone, and equal keys have the same, whatever they
are made of; that other keys may share it does no harm.

    join by customer            bucket of the customer, of the rows of both sides
    aggregate by region         bucket of the region
    distinct, union, ...        bucket of the row
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import Function, Item, Lifted, Parameter, constant
from optimizer.expressions.knowledge import total
from optimizer.plans.explain import headline
from optimizer.plans.nodes.reduce import is_of_whole
from optimizer.plans.properties import bindings, nodes, shapes
from optimizer.record import record
from optimizer.traverse import functions
from reactive.engine.collections.index import ERROR_KEY, FILTERED, NO_MATCH
from reactive.engine.collections.zset import NAN, Row, canonical
from reactive.engine.operators.accumulators import CountAccumulator
from reactive.engine.operators.plain import Side, by_key_alone, side_key, sides, spread
from reactive.errors import OffloadError

LEVEL = "part"
"""The inputs of a fragment are `plan.Recursive(LEVEL, place, ...)`."""
Prepare = Callable[[Row], tuple[Any, Row] | None]
"""The key of a row, and what is kept of it; None for one that can be of no use."""


@record
class Fragment:
    """A node of a plan over inputs that are given: `Recursive` of the level `LEVEL`.

    `of` are the nodes of the plan that it stands for, from the one on top to the one that reads the
    inputs.
    """

    node: plan.Node
    of: tuple[plan.Node, ...]
    inputs: tuple[plan.Node, ...]
    prepare: tuple[Prepare, ...]
    keys_of: Callable[[Row], list[Any]] | None
    """The keys of a row of the output: all that it was made of has one of them. None: any key."""

    window: plan.OrderBy | None = None
    """What of the rows is wanted in the process: the first ones of an order."""
    is_whole: bool = False
    """Whether it is of all nodes down to tables, of which none needs to be in buckets."""

    apart: str = field(default="", compare=False)
    """Why it is not done together with what is below it, if that was asked for."""

    @property
    def is_never_empty(self) -> bool:
        """Whether there may be rows in the output where there are none in the inputs."""
        inside = nodes(self.node)
        return any(isinstance(node, plan.Aggregate) and node.key is None for node in inside)

    @property
    def is_by_group(self) -> bool:
        """Whether the first value of a row of the output is its key."""
        return self.keys_of is group_of


class Unmovable(Exception):
    """Why a node of a plan has to stay."""


def part_of(node: plan.Node) -> Fragment:
    """What is to be done elsewhere for a node.

    Raises
    ------
    Unmovable: its rows do not fall into buckets.
    """
    match node:
        case plan.Distinct(source):
            return Fragment(
                replace(node, input=_given(0, source)), (node,), (source,), (by_row,), alone
            )
        case (
            plan.Union(left, right)
            | plan.Difference(left, right)
            | plan.DifferenceAll(left, right)
            | plan.Intersection(left, right)
            | plan.IntersectionAll(left, right)
        ):
            return Fragment(
                _over(node, left, right), (node,), (left, right), (by_row, by_row), alone
            )
        case plan.Join() | plan.OuterJoin() | plan.SemiJoin() | plan.AntiJoin():
            return _join_part(node)
        case plan.Aggregate(_, None):
            raise Unmovable("it has one group, which only moves together with what is below it")
        case plan.Aggregate(source, key):
            assert key is not None
            return _aggregate_part(node, source, key)
        case plan.Reduce() if is_of_whole(node):
            raise Unmovable(
                "it is asked of all rows together, at each change, so they stay in the process; "
                "its inputs may be moved, and group_by(key).reduce(function) goes by group"
            )
        case plan.Reduce():
            raise Unmovable("its groups are in the process, or in a whole fragment")
        case plan.Where(source) | plan.Select(source) | plan.SelectMany(source):
            return _chained(node, part_of(source))
        case plan.Extend(source) | plan.Unnest(source):
            return _chained(node, part_of(source))
        case plan.Top():
            raise Unmovable("the orders of its groups are in the process, or in a whole fragment")
        case plan.OrderBy(source, limit=int()):
            return Fragment(_given(0, source), (node,), (source,), (by_row,), alone, node)
        case plan.OrderBy():
            raise Unmovable("its rows are in one order, which cannot be spread")
        case plan.Fixpoint() | plan.Component() | plan.Iterate():
            raise Unmovable(
                "a recursion has no buckets, and goes only together with all that it reads; it "
                "stays in the process, and its inputs may be moved"
            )
        case _:
            raise Unmovable(f"{headline(node)} has no state to move")


def scan_of(node: plan.Node) -> Fragment:
    """The rows of a node as a fragment: for one whose rows are elsewhere, and wanted in the
    process."""
    return Fragment(_given(0, node), (node,), (node,), (by_row,), None)


def _chained(
    node: plan.Where | plan.Select | plan.Extend | plan.SelectMany | plan.Unnest, below: Fragment
) -> Fragment:
    """A node that looks at one row of a fragment after the other, as the end of that fragment."""
    if below.window is not None:
        raise Unmovable("it looks at a few rows only")
    if not raises_nothing(node):
        raise Unmovable("it may raise, which is to stop the commit")
    keys_of = below.keys_of if isinstance(node, plan.Where) else None
    top = replace(node, input=below.node)
    return replace(below, node=top, of=(node, *below.of), keys_of=keys_of)


def raises_nothing(node: plan.Node) -> bool:
    """Whether no callable of a node raises anything, for whatever row it is given."""
    return all(
        isinstance(function, Lifted) and total(function.body, shapes(node.inputs()[0]))
        for function in functions(node)
    )


def _given(index: int, source: plan.Node) -> plan.Recursive:
    return plan.Recursive(LEVEL, index, f"input {index + 1}", False, shapes(source))


def _over(node: Any, left: plan.Node, right: plan.Node) -> plan.Node:
    made: plan.Node = replace(node, left=_given(0, left), right=_given(1, right))
    return made


def by_row(row: Row) -> tuple[Any, Row]:
    """A row that is its own key."""
    return row, row


def _aggregate_part(node: plan.Aggregate, source: plan.Node, key: Function) -> Fragment:
    """The rows that are kept are the key and the values that are aggregated."""
    count = bindings(source)
    of_key = spread(key, count)
    values = [_value(folded, count) for folded in node.aggregates]

    def prepare(row: Row) -> tuple[Any, Row]:
        group = canonical(of_key(row))
        return group, (group, *[value(row) for value in values])

    kept = plan.Recursive(LEVEL, 0, "input 1", False, (None,))
    folded = tuple(replace(f, value=_item(place)) for place, f in enumerate(node.aggregates, 1))
    return Fragment(
        plan.Aggregate(kept, _item(0), folded), (node,), (source,), (prepare,), group_of
    )


def _value(folded: plan.Folded, count: int) -> Callable[[Row], Any]:
    if isinstance(folded.accumulator, CountAccumulator):
        return lambda row: None
    return _itself if folded.value is None else spread(folded.value, count)


def _itself(row: Row) -> Row:
    return row


def alone(row: Row) -> list[Any]:
    """The keys of a row that is its own."""
    return [row]


def group_of(row: Row) -> list[Any]:
    """The keys of a row that begins with its group."""
    return [row[0]] if isinstance(row, tuple) and row else []


def _item(place: int) -> Lifted:
    return Lifted(Item(Parameter(0), constant(place)), ("row",), (), 1)


def _join_part(node: plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin) -> Fragment:
    left, right = sides(node)
    for side in (left, right):
        _check_key(side)
    keeps_left = isinstance(node, plan.AntiJoin) or _keeps(node, "left")
    prepare = (
        _by_key(side_key(left, bindings(node.left)), keeps_alone=keeps_left),
        _by_key(side_key(right, 1), keeps_alone=_keeps(node, "right")),
    )
    inputs = (node.left, node.right)
    keyed = _over(replace(node, match=_keyed(node)), *inputs)
    return Fragment(keyed, (node,), inputs, prepare, _pair_keys(node, *prepare))


def _keyed(node: plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin) -> plan.Match:
    """The same with the keys that were found in its predicate as if they had been written."""
    left, right = sides(node)
    if not (left[1] or right[1]):
        return node.match
    is_all = not isinstance(node, plan.Join) and by_key_alone(node)
    on = None if is_all else node.match.on
    return plan.Match(_found(left, bindings(node.left)), _found(right, 1), on)


def _found(side: Side, count: int) -> Function:
    """The key of a side; those of both are of one class, also where one has no more than its key as
    written."""
    key = FoundKey(side, count)
    return Opaque(key, count, "key", None, (), side, "the key of join")


@record
class _Found:
    """A key of which all has been asked: a NaN in it is not looked for again."""

    key: Any


@dataclass(frozen=True)
class FoundKey:
    """What `plain.side_key` gives, as a callable of the bindings of a row that can be pickled."""

    side: Side
    count: int

    @cached_property
    def _key(self) -> Any:
        return side_key(self.side, self.count)

    def __call__(self, *values: Any) -> Any:
        found = self._key(values if self.count > 1 else values[0])
        return NAN if found is NO_MATCH or found is FILTERED else _Found(found)

    def __reduce__(self) -> Any:
        return FoundKey, (self.side, self.count)


def _keeps(node: plan.Node, side: str) -> bool:
    return isinstance(node, plan.OuterJoin) and node.kind in (side, "full")


def _check_key(side: Any) -> None:
    written, steps = side
    if written is None and not any(step.is_key for step in steps):
        raise Unmovable("it pairs rows without a key")


def _by_key(key: Any, *, keeps_alone: bool) -> Prepare:
    """Rows that can match nothing are of use where those without a partner are kept."""

    def prepare(row: Row) -> tuple[Any, Row] | None:
        found = key(row)
        if found is ERROR_KEY:
            raise OffloadError(
                f"the key of a join raises for {row!r:.80}, so that nobody knows its bucket\n"
                "  view.recall() computes the view in the process again, where it may be unmatched"
            )
        if found is NO_MATCH or found is FILTERED:
            return (row, row) if keeps_alone else None
        return found, row

    return prepare


def _pair_keys(node: plan.Node, left: Prepare, right: Prepare) -> Callable[[Row], list[Any]]:
    """The keys of a row that a join emits: the keys of either side, which may be missing."""
    if isinstance(node, plan.SemiJoin | plan.AntiJoin):
        return lambda row: _keys((left, row))
    assert isinstance(node, plan.Join | plan.OuterJoin)
    count = bindings(node.left)

    def keys_of(row: Row) -> list[Any]:
        if not isinstance(row, tuple) or len(row) != count + 1:
            return []
        return _keys((left, row[0] if count == 1 else row[:-1]), (right, row[-1]))

    return keys_of


def _keys(*sides: tuple[Prepare, Row]) -> list[Any]:
    """The keys of those that have one; what is no row of a side may raise anything."""
    found = []
    for prepare, row in sides:
        with suppress(Exception):
            prepared = prepare(row)
            found.append(row if prepared is None else prepared[0])
    return found
