"""Combinations of rows of several inputs that satisfy filters, from scratch.

Products and joins of several inputs below filters are joined one input after the other.

    where a.k == b.k and b.j == c.j        a, then b by k, then c by j
      product                        ->
        product a b
        c

So are joins below left joins; filters above on the joined inputs alone are then tested first.

    where a.k == 3                         the rows of a with k == 3, then b by j,
      left_join c on a.i == c.i      ->    then the left join, then the filter again
        join a b on a.j == b.j

A combination of rows is skipped as soon as some of its rows are known to disagree. That requires
that no input has an error row (`keys.py`), and that no value computed from rows of several inputs
raises or cannot be looked up; otherwise all combinations are built. Each predicate is tested on the
combinations of as many inputs as it has parameters.

The next input is the smallest one that an equation joins to an earlier one. It is the next one as
written if a predicate of the first inputs may raise, or equates a value of several inputs.

Cost: the combinations whose equated values are equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import prod
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Expr,
    Function,
    Lifted,
    Operation,
    conjunction,
    conjuncts,
    reads,
    row_names,
    walk,
)
from optimizer.plans.properties import below_wheres, bindings
from optimizer.record import record
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.index import ERROR_KEY, FILTERED
from reactive.engine.collections.values import has_plain_equality
from reactive.engine.collections.zset import Row
from reactive.engine.reference.asking import evaluate_node
from reactive.engine.reference.bags import STRIDE, TRIED, Bag, Of, make_bag, make_row_test
from reactive.engine.reference.keys import ConditionReader, Conditions, Joint, conditions, lift_body
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.engine.runtime.progress import SILENT, Progress

Placed = tuple[Any, Row, int]
"""A key, a row and its weight; rows with different keys are not combined."""
Asked = tuple[int, Function]
"""A predicate, and the number of the first inputs that it reads."""


@record
class Several:
    """Inputs whose rows are all combined, and predicates on the rows of the first inputs.

    Left joins of the combinations follow, and `filters` above the left joins.
    """

    inputs: tuple[plan.Node, ...]
    predicates: tuple[Asked, ...]
    told: Conditions
    is_complete: bool
    """True if all conditions of the predicates are among those that are told."""
    left_joins: tuple[plan.OuterJoin, ...] = ()
    filters: tuple[plan.Where, ...] = ()

    @property
    def sources(self) -> tuple[plan.Node, ...]:
        """The nodes whose rows are read."""
        return (*self.inputs, *[each.right for each in self.left_joins])


def several(node: plan.Node, is_stored: Callable[[plan.Node], bool]) -> Several | None:
    """Return the inputs that are combined for filters above joins; None if it would not pay.

    A stored filter is the only input, unless filters above it may join its inputs.
    """
    if not isinstance(below_wheres(node), plan.Product | plan.Join | plan.OuterJoin):
        return None
    filters: list[plan.Where] = []
    below = node
    while isinstance(below, plan.Where):
        filters.append(below)
        below = below.input
        if is_stored(below) and not any(_may_join(above.predicate) for above in filters):
            asked = [(1, above.predicate) for above in reversed(filters)]
            return None if bindings(below) == 1 else _make_several((below,), asked)
    if filters and isinstance(below, plan.OuterJoin):
        return _above_left_joins(below, filters)
    found = _joined_inputs(node)
    if found is None or not (found[1] and found[2]):
        return None
    return _make_several(*found[:2]) if len(found[0]) > 2 else None


def _joined_inputs(node: plan.Node) -> tuple[Sequence[plan.Node], list[Asked], bool] | None:
    """Return the inputs of products and joins, and the predicates in order of evaluation.

    Also return True if there is a product.
    """
    inputs: list[plan.Node] = []
    asked: list[tuple[plan.Node, Function]] = []
    has_product = False
    while isinstance(node, plan.Where | plan.Product | plan.Join):
        if isinstance(node, plan.Where):
            asked.append((node, node.predicate))
            node = node.input
            continue
        if isinstance(node, plan.Join):
            if node.match.on is None or node.match.left_key is not None:
                break
            asked.append((node, node.match.on))
        has_product |= isinstance(node, plan.Product)
        inputs.append(node.right)
        node = node.left
    if not inputs:
        return None
    first = bindings(node) - 1
    predicates = [(bindings(above) - first, asks) for above, asks in reversed(asked)]
    return (node, *reversed(inputs)), predicates, has_product


def _make_several(inputs: Sequence[plan.Node], predicates: list[Asked]) -> Several:
    told = conditions([asks for _, asks in predicates], bindings(inputs[0]), len(inputs))
    return Several(tuple(inputs), tuple(predicates), told, told.is_complete)


def _above_left_joins(node: plan.OuterJoin, filters: list[plan.Where]) -> Several | None:
    """Return the inputs below left joins, with the filters above on these inputs alone."""
    joins: list[plan.OuterJoin] = []
    below: plan.Node = node
    while isinstance(below, plan.OuterJoin) and below.kind == "left":
        if below.match.left_key is not None or not isinstance(below.match.on, Lifted):
            return None
        joins.append(below)
        below = below.left
    found = _joined_inputs(below) if joins else None
    if found is None:
        return None
    inputs, predicates, _ = found
    joins.reverse()
    reader = ConditionReader(bindings(inputs[0]), len(inputs) + len(joins))
    is_complete = all(
        reader.take(test) for _, asks in predicates for test in conjuncts(lift_body(asks))
    ) and all(
        reader.check(test)
        for each in joins
        if each.match.on is not None
        for test in conjuncts(lift_body(each.match.on))
    )
    first = _tests_of_first(reader, filters, len(inputs)) if is_complete else []
    if not first:
        return None
    count = bindings(below)
    test = Lifted(conjunction(tuple(first)), row_names(count), (), count)
    asked = (*predicates, (len(inputs), test))
    return Several(tuple(inputs), asked, reader.collect(), True, tuple(joins), tuple(filters))


def _tests_of_first(
    reader: ConditionReader, filters: Sequence[plan.Where], count: int
) -> list[Expr]:
    """Return the first conditions of filters, as long as they read only the first `count` sides."""
    found: list[Expr] = []
    for each in reversed(filters):
        for test in conjuncts(lift_body(each.predicate)):
            if max(reader.read_sides(test), default=0) >= count or not reader.take(test):
                return found
            found.append(test)
    return found


def _may_join(predicate: Function) -> bool:
    """Return True if a predicate may equate values of several inputs."""
    return not isinstance(predicate, Lifted) or any(
        isinstance(part, Operation) and part.operator == "==" and len(reads(part)) > 1
        for part in walk(predicate.body)
    )


def combine_rows(found: Several, of: Of, progress: Progress = SILENT) -> Bag | None:
    """Return the combinations that satisfy all predicates.

    Return None if those of left joins cannot be found this way.
    """
    sides = _place_rows(found.sources, found.told, of)
    if not (
        any(place is ERROR_KEY for side in sides for place, _, _ in side)
        or _is_combination_misread(found, sides)
    ):
        with suppress(_NotKnown):
            rows = _Combinations(found, found.told, sides).rows(progress)
            return _finish(found, rows, of, progress)
    if found.left_joins:
        return None
    told = conditions((), bindings(found.inputs[0]), len(found.inputs))
    return _Combinations(found, told, _place_rows(found.inputs, told, of)).rows(progress)


class _NotKnown(Exception):
    """A value computed from rows of several inputs raises, or cannot be looked up."""


def _place_rows(sources: Sequence[plan.Node], told: Conditions, of: Of) -> list[list[Placed]]:
    """Return the rows of each input with their keys."""
    return [
        [(place(row), row, weight) for row, weight in of(source).items()]
        for source, place in zip(sources, told.places, strict=True)
    ]


def _finish(found: Several, rows: Bag, of: Of, progress: Progress) -> Bag:
    """Return combinations after the left joins and the filters above them."""
    for each in found.left_joins:
        rows = evaluate_node(each, partial(_instead, each.left, rows, of))
    for above in reversed(found.filters):
        test = make_row_test(above.predicate, above.input)
        rows = make_bag({row: weight for row, weight in rows.items() if test(row)})
    return rows


def _instead(node: plan.Node, rows: Bag, of: Of, source: plan.Node) -> Bag:
    """Return the rows of a source, which are `rows` for `node`."""
    return rows if source is node else of(source)


def _is_combination_misread(found: Several, sides: Sequence[list[Placed]]) -> bool:
    """Return True if a skipped combination satisfies the predicates; only some are tested."""
    first = bindings(found.inputs[0])
    asks = [(number + first - 1, callable_of(ask)) for number, ask in found.predicates]
    sides = sides[: len(found.inputs)]
    lengths = list(map(len, sides))
    for number in range(min(TRIED, prod(lengths))):
        chosen = [side[number * STRIDE ** (at + 1) % len(side)] for at, side in enumerate(sides)]
        keys, rows = [key for key, _, _ in chosen], [row for _, row, _ in chosen]
        arguments = (rows[0],) if first == 1 else rows[0]
        arguments = (*arguments, *rows[1:])
        if not _is_combination_compared(found.told, keys, arguments) and all(
            ask(*arguments[:count]) for count, ask in asks
        ):
            return True
    return False


def _is_combination_compared(told: Conditions, keys: Sequence[Any], arguments: Row) -> bool:
    """Return True if rows with the given keys are combined."""
    if FILTERED in keys:
        return False
    if any(keys[e.side][e.part] != keys[e.other][e.other_part] for e in told.equations):
        return False
    try:
        return all(keys[j.side][j.part] == _joint_value(j, arguments) for j in told.joint)
    except _NotKnown:
        return True


def _joint_value(joint: Joint, arguments: Row) -> Any:
    """Return a value computed from rows of several inputs, for a look-up."""
    try:
        value = joint.value(arguments)
        if has_plain_equality(value):
            return value
    except Exception as error:  # the predicate will raise it again
        reraise_asynchronous(error)
    raise _NotKnown


class _Combinations:
    """Builds combinations, adding one input at a time."""

    def __init__(self, found: Several, told: Conditions, sides: Sequence[list[Placed]]) -> None:
        self._first = bindings(found.inputs[0])
        sides = sides[: len(found.inputs)]
        self._sides = [[p for p in side if p[0] is not FILTERED] for side in sides]
        self._equations, self._joint = told.equations, told.joint
        self._order = self._choose_order(found)
        self._places = [self._order.index(side) for side in range(1, len(self._order))]
        self._is_moved = self._order != sorted(self._order)
        self._asks: dict[int, list[Callable[..., object]]] = {}
        for number, asks in found.predicates:
            call = callable_of(asks)
            if self._is_moved and number < len(sides):
                self._asks.setdefault(len(sides), []).append(self._of_first(number, call))
            else:
                self._asks.setdefault(number, []).append(call)

    def _of_first(self, number: int, call: Callable[..., object]) -> Callable[..., object]:
        """Return a predicate of the first inputs as one of all inputs."""
        count = self._first + number - 1
        return lambda *arguments: call(*arguments[:count])

    def _choose_order(self, found: Several) -> list[int]:
        """Return the order of the inputs: the next is the smallest with an equation with others.

        An exception that a predicate of the first inputs raises must not depend on other inputs.
        """
        count = len(self._sides)
        is_whole = found.is_complete or all(number == count for number, _ in found.predicates)
        if self._joint or not is_whole:
            return list(range(count))
        order, rest = [0], list(range(1, count))
        pairs = {(e.side, e.other) for e in self._equations}
        pairs |= {(other, side) for side, other in pairs}
        while rest:
            nearest = min(
                rest, key=lambda s: (all((s, o) not in pairs for o in order), len(self._sides[s]))
            )
            rest.remove(nearest)
            order.append(nearest)
        return order

    def rows(self, progress: Progress) -> Bag:
        """Return the combined rows of all inputs."""
        so_far: list[tuple[list[Any], Row, int]] = []
        for key, row, weight in self._sides[0]:
            arguments = (row,) if self._first == 1 else row
            if self._fits(1, arguments):
                so_far.append(([key], arguments, weight))
        for place in range(1, len(self._sides)):
            so_far = self._with(place, so_far, progress)
        return Counter({row: weight for _, row, weight in so_far})

    def _with(self, place: int, so_far: Any, progress: Progress) -> Any:
        """Extend combinations by the rows of one more input, the one at `place` of the order."""
        number = self._order[place]
        mine, theirs = self._parts(number, self._order[:place])
        joint = [each for each in self._joint if each.side == number]
        mine += [each.part for each in joint]
        index: dict[Any, list[Placed]] = {}
        for placed in self._sides[number]:
            index.setdefault(tuple([placed[0][part] for part in mine]), []).append(placed)
        is_last_moved = self._is_moved and place + 1 == len(self._order)
        made = []
        for keys, row, weight in progress.over(so_far):
            sought = [keys[side][part] for side, part in theirs]
            sought += [_joint_value(each, row) for each in joint]
            for key, other, times in index.get(tuple(sought), ()):
                arguments = (*row, other)
                if is_last_moved:
                    arguments = self._arrange(arguments)
                if self._fits(place + 1, arguments):
                    made.append(([*keys, key], arguments, weight * times))
        return made

    def _arrange(self, row: Row) -> Row:
        """Return a combination of all inputs with the inputs as written."""
        before = self._first - 1
        return (*row[: self._first], *[row[before + place] for place in self._places])

    def _parts(self, number: int, before: list[int]) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the parts of the key of an input, and the earlier parts that they are equal to.

        An earlier part is the place of its input in the order, and the part.
        """
        mine, theirs = [], []
        for e in self._equations:
            for own, other in (
                ((e.side, e.part), (e.other, e.other_part)),
                ((e.other, e.other_part), (e.side, e.part)),
            ):
                if own[0] == number and other[0] in before:
                    mine.append(own[1])
                    theirs.append((before.index(other[0]), other[1]))
        return mine, theirs

    def _fits(self, number: int, arguments: Row) -> bool:
        return all(asks(*arguments) for asks in self._asks.get(number, ()))
