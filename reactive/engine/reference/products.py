"""Products of several inputs below filters, evaluated from scratch: one input after the other.

    where a.k == b.k and b.j == c.j        a, then b by k, then c by j
      product                        ->
        product a b
        c

A combination of rows is left out as soon as some of its rows are known not to agree. That is done
only if no row of any input is an error row (`keys.py`), and no value that rows of several inputs
give together raises or cannot be looked up; otherwise all combinations are made. Each predicate is
asked of the combinations of as many inputs as it has parameters.

Cost: the combinations that agree on what must be equal among their rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import prod
from typing import Any

from optimizer import plan
from optimizer.expr import Function
from optimizer.plans.properties import below_wheres, bindings
from optimizer.record import record
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.equality import is_plain
from reactive.engine.collections.index import ERROR_KEY, FILTERED
from reactive.engine.collections.zset import Row
from reactive.engine.reference.bags import Bag, Of
from reactive.engine.reference.joins import STRIDE, TRIED
from reactive.engine.reference.keys import Conditions, Joint, conditions
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.engine.runtime.progress import SILENT, Progress

Placed = tuple[Any, Row, int]
"""A row with its weight, after what must be equal to that of others."""


@record
class Several:
    """Inputs whose rows are all combined, and what is asked of rows of the first inputs."""

    inputs: tuple[plan.Node, ...]
    predicates: tuple[tuple[int, Function], ...]


def several(node: plan.Node) -> Several | None:
    """Three inputs or more with a product among them, and filters above; None for other nodes."""
    if not isinstance(below_wheres(node), plan.Product | plan.Join):
        return None
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
    if len(inputs) < 2 or not (asked and has_product):
        return None
    first = bindings(node) - 1
    predicates = tuple((bindings(above) - first, asks) for above, asks in reversed(asked))
    return Several((node, *reversed(inputs)), predicates)


def combined(found: Several, of: Of, progress: Progress = SILENT) -> Bag:
    """The combinations of which all predicates are true."""
    first = bindings(found.inputs[0])
    bags = [of(source) for source in found.inputs]
    told = conditions([asks for _, asks in found.predicates], first, len(bags))
    sides = [_placed(bag, place) for bag, place in zip(bags, told.places, strict=True)]
    if not (
        any(place is ERROR_KEY for side in sides for place, _, _ in side)
        or _is_misread(found, told, sides)
    ):
        with suppress(_NotKnown):
            return _Combinations(found, told, sides).rows(progress)
    told = conditions((), first, len(bags))
    sides = [_placed(bag, place) for bag, place in zip(bags, told.places, strict=True)]
    return _Combinations(found, told, sides).rows(progress)


class _NotKnown(Exception):
    """What rows of several inputs give together raises, or cannot be looked up."""


def _placed(bag: Bag, place: Callable[[Row], Any]) -> list[Placed]:
    return [(place(row), row, weight) for row, weight in bag.items()]


def _is_misread(found: Several, told: Conditions, sides: Sequence[list[Placed]]) -> bool:
    """Whether some combination is right that is left out; not all of them are asked."""
    first = bindings(found.inputs[0])
    asks = [(number + first - 1, callable_of(ask)) for number, ask in found.predicates]
    lengths = list(map(len, sides))
    for number in range(min(TRIED, prod(lengths))):
        chosen = [side[number * STRIDE ** (at + 1) % len(side)] for at, side in enumerate(sides)]
        keys, rows = [key for key, _, _ in chosen], [row for _, row, _ in chosen]
        arguments = (rows[0],) if first == 1 else rows[0]
        arguments = (*arguments, *rows[1:])
        if not _agree(told, keys, arguments) and all(
            ask(*arguments[:count]) for count, ask in asks
        ):
            return True
    return False


def _agree(told: Conditions, keys: Sequence[Any], arguments: Row) -> bool:
    """Whether rows with these keys are combined."""
    if FILTERED in keys:
        return False
    if any(keys[e.side][e.part] != keys[e.other][e.other_part] for e in told.equations):
        return False
    try:
        return all(keys[j.side][j.part] == _known(j, arguments) for j in told.joint)
    except _NotKnown:
        return True


def _known(joint: Joint, arguments: Row) -> Any:
    """What rows give together, to be looked up."""
    try:
        value = joint.value(arguments)
        if is_plain(value):
            return value
    except Exception as error:  # what it is shows when the predicate is asked of a combination
        reraise_asynchronous(error)
    raise _NotKnown


class _Combinations:
    """Makes them of one input more at a time."""

    def __init__(self, found: Several, told: Conditions, sides: Sequence[list[Placed]]) -> None:
        self._is_one = bindings(found.inputs[0]) == 1
        self._sides = [[p for p in side if p[0] is not FILTERED] for side in sides]
        self._equations, self._joint = told.equations, told.joint
        self._asks: dict[int, list[Callable[..., object]]] = {}
        for number, asks in found.predicates:
            self._asks.setdefault(number, []).append(callable_of(asks))

    def rows(self, progress: Progress) -> Bag:
        """The rows of all inputs together."""
        so_far: list[tuple[list[Any], Row, int]] = []
        for key, row, weight in self._sides[0]:
            arguments = (row,) if self._is_one else row
            if self._fits(1, arguments):
                so_far.append(([key], arguments, weight))
        for number in range(1, len(self._sides)):
            so_far = self._with(number, so_far, progress)
        return Counter({row: weight for _, row, weight in so_far})

    def _with(self, number: int, so_far: Any, progress: Progress) -> Any:
        """Combinations with the rows of an input more."""
        mine, theirs = self._parts(number)
        joint = [each for each in self._joint if each.side == number]
        mine += [each.part for each in joint]
        index: dict[Any, list[Placed]] = {}
        for placed in self._sides[number]:
            index.setdefault(tuple([placed[0][part] for part in mine]), []).append(placed)
        made = []
        for keys, row, weight in progress.over(so_far):
            sought = [keys[side][part] for side, part in theirs]
            sought += [_known(each, row) for each in joint]
            for key, other, times in index.get(tuple(sought), ()):
                arguments = (*row, other)
                if self._fits(number + 1, arguments):
                    made.append(([*keys, key], arguments, weight * times))
        return made

    def _parts(self, number: int) -> tuple[list[int], list[tuple[int, int]]]:
        """The parts of the key of an input, and those before it that they are equal to."""
        mine, theirs = [], []
        for e in self._equations:
            if max(e.side, e.other) == number and e.side != e.other:
                ends = [(e.side, e.part), (e.other, e.other_part)]
                (before, own) = sorted(ends)
                mine.append(own[1])
                theirs.append(before)
        return mine, theirs

    def _fits(self, number: int, arguments: Row) -> bool:
        return all(asks(*arguments) for asks in self._asks.get(number, ()))
