"""Changes of a node's rows, given the changes of its inputs; a short class per kind of node.

A part holds the rows of its inputs that it needs, and in each round computes its change from the
changes of its inputs, for insertions and deletions alike.

    linear nodes     from the change alone
    joins            from the change of either side and all of the other (`joined_changes.py`)
    groups           changed groups are recomputed (`grouped_changes.py`)
    sets             from the changed rows, before and after
    all others       recomputed, and compared with the previous rows

State: the rows of the inputs, arranged as the node needs them; of linear nodes none.
Source: [dbsp] section 4, semi-naive evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.expr import Function, Lifted, conjuncts
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.zset import Row
from reactive.engine.reference.asking import asks_of, evaluate_node, inputs_of, linear_map, rooms_of
from reactive.engine.reference.bags import (
    Bag,
    PairedInputs,
    apply_changes,
    bag_delta,
    make_bag,
    net,
    pairing,
)
from reactive.engine.reference.grouped_changes import GroupedChange
from reactive.engine.reference.groups import Room, Rooms
from reactive.engine.reference.joined_changes import ByPairs, HalfJoin, JoinChange
from reactive.engine.reference.parts import InputRows, NodeChange

WEIGHTS: dict[type[plan.Node], Callable[..., int]] = {
    plan.View: lambda n: n,
    plan.Distinct: lambda n: int(n > 0),
    plan.Union: lambda n, m: int(n + m > 0),
    plan.UnionAll: lambda n, m: n + m,
    plan.Difference: lambda n, m: int(n > 0 >= m),
    plan.DifferenceAll: lambda n, m: max(0, max(0, n) - max(0, m)),
    plan.Intersection: lambda n, m: int(n > 0 and m > 0),
    plan.IntersectionAll: lambda n, m: max(0, min(n, m)),
}
"""The weight of a row, given its weights in the inputs, of nodes that need no other rows."""

NONE: Mapping[int, Any] = {}
NOTHING = Bag()


def change_of_node(
    node: plan.Node, inputs: Sequence[NodeChange], asked: Mapping[int, NodeChange] = NONE
) -> NodeChange:
    """Return the part of a node that is neither a table nor a recursion.

    `asked` are the relations that sub-queries in its callables read, by the ids of their plans.
    """
    if not asked:
        return _change_without_queries(node, inputs)
    call, found = linear_map(node), pairing(node)
    if found is not None and not any(asks_of(key) for key in found.keys or ()):
        return _by_pairs(node, inputs, _asking_pairs(node, found, inputs, asked))
    if call is None or found is not None:
        return _Asking(node, inputs, asked)
    return _AskingRows(rooms_of(node), call, *inputs, asked=asked)


def _by_pairs(node: plan.Node, inputs: Sequence[NodeChange], pairs: NodeChange) -> NodeChange:
    """Return the part of a join of any kind, given the part of its matching pairs.

    That of a product or inner join is `pairs` itself.
    """
    if isinstance(node, plan.OuterJoin | plan.SemiJoin | plan.AntiJoin):
        return _Chain(pairs, ByPairs(node, inputs, pairs))
    return pairs


def _asking_pairs(
    node: plan.Node,
    found: PairedInputs,
    inputs: Sequence[NodeChange],
    asked: Mapping[int, NodeChange],
) -> NodeChange:
    """Return the part of matching pairs whose conditions ask sub-queries.

    Conditions without sub-queries find the pairs; the others are then tested on each pair. A
    condition that asks is assumed not to raise: an equation after it may find pairs.
    """
    tests = [each for predicate in found.predicates for each in _conditions(predicate)]
    quiet = tuple(each for each in tests if not asks_of(each))
    first = next(n for n, each in enumerate(tests) if asks_of(each))
    pairs = JoinChange(replace(found, predicates=quiet), *inputs, tests=tests[:first])
    calls = [callable_of(each) for each in tests[first:]]

    def matching(bag: Bag) -> Bag:
        return make_bag({row: n for row, n in bag.items() if all(call(*row) for call in calls)})

    return _Chain(pairs, _AskingRows(rooms_of(node), matching, pairs, asked=asked))


def _change_without_queries(node: plan.Node, inputs: Sequence[NodeChange]) -> NodeChange:
    """Return the change of a node whose callables ask no sub-queries."""
    found = pairing(node)
    match node:
        case plan.SemiJoin() | plan.AntiJoin() if found is not None:
            return HalfJoin(node, found, *inputs)
        case plan.OuterJoin() if found is not None:
            return _by_pairs(node, inputs, JoinChange(found, *inputs))
        case plan.Aggregate() | plan.Reduce() | plan.Top():
            return GroupedChange(node, *inputs)
    if found is not None:
        return JoinChange(found, *inputs)
    call = linear_map(node)
    if call is not None:
        return _Linear(call, *inputs)
    weight = WEIGHTS.get(type(node))
    return _RecomputedRows(node, inputs) if weight is None else _Pointwise(weight, inputs)


def _conditions(predicate: Function) -> list[Function]:
    """Return the conditions whose conjunction is the predicate."""
    if not isinstance(predicate, Lifted):
        return [predicate]
    return [replace(predicate, body=each, made=None) for each in conjuncts(predicate.body)]


class _Linear:
    """The part of a node that maps single rows."""

    def __init__(self, call: Callable[[Bag], Bag], source: NodeChange) -> None:
        self.change = Bag()
        self._call = call
        self._source = source

    def step(self) -> None:
        given = self._source.change
        self.change = net(self._call(given)) if given else given


class _Pointwise:
    """The part of a node whose rows depend only on the same rows of its inputs."""

    def __init__(self, weight: Callable[..., int], inputs: Sequence[NodeChange]) -> None:
        self.change = Bag()
        self._weight = weight
        self._inputs = inputs
        self._held = [Bag() for _ in inputs]

    def step(self) -> None:
        """Set `change` from the weights of the changed rows, before and after."""
        changed = {row for source in self._inputs for row in source.change}
        before = {row: self._weight(*self._there(row)) for row in changed}
        for held, source in zip(self._held, self._inputs, strict=True):
            apply_changes(held, source.change)
        after = {row: self._weight(*self._there(row)) for row in changed}
        self.change = make_bag({r: n - before[r] for r, n in after.items() if n != before[r]})

    def _there(self, row: Row) -> list[int]:
        """Return the weight of a row in each input."""
        return [held.get(row, 0) for held in self._held]


class _Chain:
    """A chain of parts, each reading the previous one; the change is that of the last."""

    def __init__(self, *parts: NodeChange) -> None:
        self.change = Bag()
        self._parts = parts

    def step(self) -> None:
        for part in self._parts:
            part.step()
        self.change = self._parts[-1].change


class _AskingRows:
    """The part of a node that maps single rows by sub-queries over relations of a recursion.

    If the relations read for a row change, the row is mapped again.
    """

    def __init__(
        self,
        rooms: Rooms,
        call: Callable[[Bag], Bag],
        source: NodeChange,
        *,
        asked: Mapping[int, NodeChange],
    ) -> None:
        self.change = Bag()
        self._rooms, self._room = rooms, Room()
        self._call, self._source, self._asked = call, source, asked
        self._room.held = {number: Bag() for number in asked}
        self._held = Bag()
        self._made: dict[Row, Bag] = {}
        self._again: set[Row] = set()

    def step(self) -> None:
        """Set `change` by mapping again the changed rows, and rows whose answers changed."""
        for number, part in self._asked.items():
            if part.change:
                self._room.apply_change(number, part.change)
        apply_changes(self._held, self._source.change)
        rows, self._again = self._again | self._source.change.keys(), set()
        self.change = Bag()
        with self._rooms.enter_room(self._room):
            for row in rows:
                before = self._made.pop(row, NOTHING)
                weight = self._held.get(row, 0)
                after = self._map_row(row, weight) if weight else NOTHING
                if dict.__ne__(after, before):  # `Counter.__ne__` is slower
                    apply_changes(self.change, bag_delta(after, before) if before else after)

    def _map_row(self, row: Row, weight: int) -> Bag:
        """Return what a row is mapped to.

        The row is mapped again in a later step if a query that it reads changes.
        """
        one = make_bag({row: weight})
        made, _ = self._room.note_reads(lambda: self._call(one), lambda: self._again.add(row))
        self._made[row] = made = net(made)
        return made


class _Asking:
    """The part of a node whose callables ask sub-queries that read relations of the recursion.

    If these change, all rows may: the node starts again, over the current rows of its inputs.
    """

    def __init__(
        self, node: plan.Node, inputs: Sequence[NodeChange], asked: Mapping[int, NodeChange]
    ) -> None:
        self.change = Bag()
        self._node, self._inputs, self._asked = node, inputs, asked
        self._rooms, self._room = rooms_of(node), Room()
        self._room.held = {number: Bag() for number in asked}
        self._held = [Bag() for _ in inputs]
        self._rows = Bag()
        self._begin()

    def step(self) -> None:
        """Set `change`; if an answer changed, all rows are evaluated again."""
        for held, source in zip(self._held, self._inputs, strict=True):
            apply_changes(held, source.change)
        is_anew = False
        for number, part in self._asked.items():
            apply_changes(self._room.held[number], part.change)
            is_anew = is_anew or bool(part.change)
        if is_anew:
            self._room.forget()
            self._begin()
        following = self._held if is_anew else [source.change for source in self._inputs]
        for given, rows in zip(self._given, following, strict=True):
            given.following = make_bag(rows)
            given.step()
        with self._rooms.enter_room(self._room):
            self._made.step()
        change = self._made.change
        self.change = bag_delta(change, self._rows) if is_anew else change
        apply_changes(self._rows, self.change)

    def _begin(self) -> None:
        self._given = [InputRows() for _ in self._inputs]
        self._made = _change_without_queries(self._node, self._given)


class _RecomputedRows:
    """The part of any other node: recompute its rows."""

    def __init__(self, node: plan.Node, inputs: Sequence[NodeChange]) -> None:
        self.change = Bag()
        self._node = node
        self._inputs = inputs
        self._held = {id(source): Bag() for source in inputs_of(node)}
        self._rows: Bag | None = None

    def step(self) -> None:
        """Set `change` by evaluating the node again, unless no input has changed."""
        sources = inputs_of(self._node)
        changes = {id(s): part.change for s, part in zip(sources, self._inputs, strict=True)}
        if self._rows is not None and not any(changes.values()):
            self.change = Bag()
            return
        for source, change in changes.items():
            apply_changes(self._held[source], change)
        rows = evaluate_node(self._node, lambda source: self._held[id(source)])
        self.change, self._rows = bag_delta(rows, self._rows or Bag()), rows
