"""A single change of one side of a join, of which sums are kept: its group is replaced.

    for key, (times_left, left_sum0) in left:       what the row adds
        row1 = find_right(key, NOTHING)             the only row of the right, or its sums
        ...                                         as `single.py`
        return [(old, -1), (new, 1)]

Where several rows of the right have the key, the loops for many do it (`factored.py`).

State:  the groups of the plain operator.
Cost:   O(1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer.expressions.knowledge import Shapes
from optimizer.plans.factorization import Factorization
from reactive.engine.codegen.emitter import Emitter, RowPipeline
from reactive.engine.codegen.recalled import Recall
from reactive.engine.codegen.running_sums import write_plus
from reactive.engine.collections.zset import Pair
from reactive.engine.operators.accumulators import (
    AvgAccumulator,
    CountAccumulator,
    ValuesAccumulator,
)
from reactive.engine.operators.in_line import InLine
from reactive.engine.operators.loops.factored import Factored, GroupingOfSums, Sides
from reactive.engine.operators.loops.grouped import NONE_BEFORE
from reactive.engine.operators.loops.nests import LEFT, RIGHT, loop_of_one
from reactive.engine.operators.loops.single import GroupingOfOne
from reactive.engine.runtime.interrupts import reraise_asynchronous

Loop = Callable[..., Any]


class GroupingOfOneSum(GroupingOfOne, GroupingOfSums):
    """As `GroupingOfOne`, of terms."""

    def _changed(
        self, emitter: Emitter, place: int, accumulator: Any, value: str | None, weight: str
    ) -> str:
        often = self._sums.get(value or "")
        if often is None or isinstance(accumulator, CountAccumulator):
            return super()._changed(emitter, place, accumulator, value, weight)
        old, new = f"group[{place}]", f"state_{place}"
        if isinstance(accumulator, AvgAccumulator):
            emitter.line(f"total, count = {old}")
            emitter.line(f"{new} = (plus(copied(total), {value}, {often}), count + {weight})")
            return new
        emitter.line(f"{new} = {old}")
        for line in write_plus(new, value or "", often, is_own=False):
            emitter.line(line)
        return new


class Alone:
    """Runs the loop of the side that changed, if it alone did."""

    __slots__ = ("_left", "_right", "_sides")

    def __init__(self, sides: Sides, left: Loop, right: Loop) -> None:
        self._sides = sides
        self._left = left
        self._right = right

    def step(
        self, groups: dict[Any, Any], before: dict[Any, Any], deltas: Sequence[Sequence[Any]]
    ) -> Sequence[Pair] | None:
        """What a single change changes; None if it takes the loops for many."""
        left, right = deltas
        sides = self._sides
        if len(left) + len(right) != 1 or not sides.is_plain:
            return None
        found: Sequence[Pair] | None
        try:
            if left:
                loop = self._left
                found = loop(groups, before, left, sides.find_right)
            else:
                loop = self._right
                found = loop(groups, before, right, sides.find_left)
        except Exception as error:
            reraise_asynchronous(error)
            found = None
        if found is None:
            before.clear()
        return found

    def in_line(self, own: Factored) -> InLine:
        """The same as lines of a commit."""
        sides = self._sides
        by_name = {"own": own, "groups": own.groups, "none": NONE_BEFORE, "sides": sides}
        by_name |= {"left": self._left, "right": self._right, "reraise": reraise_asynchronous}
        by_name |= {"find_left": sides.find_left, "find_right": sides.find_right}
        by_name |= {f"index_{place}": index for place, index in enumerate(sides.indexes)}
        is_plain = "sides_{n}.is_filled"
        for place, _ in enumerate(sides.indexes):
            is_plain += f" and not index_{place}_{{n}}.poisoned"
        return InLine(
            _IN_LINE.replace("{is_plain}", is_plain), "own_{n}._before = none_{n}", by_name
        )


def alone(
    names: tuple[str, ...],
    shapes: Shapes,
    factors: Factorization,
    sink_of: Callable[[RowPipeline], GroupingOfOneSum],
    accumulators: Sequence[Any],
    sides: Sides,
    recall: Recall,
) -> Alone | None:
    """For a join of which no side is kept by group: there a change may meet several sums."""
    by_group = any(of is not None and of.groups for of in (factors.left, factors.right))
    if by_group or any(isinstance(accumulator, ValuesAccumulator) for accumulator in accumulators):
        return None

    def loop(side: str) -> Loop:
        made = recall(f"{side} alone", lambda: loop_of_one(names, shapes, factors, sink_of, side))
        return made[0]

    return Alone(sides, loop(LEFT), loop(RIGHT))


_IN_LINE = """\
if len({left}) + len({right}) == 1 and {is_plain}:
    own_{n}.touched += 1
    own_{n}._before = before = {{}}
    {out} = None
    try:
        if {left}: {out} = left_{n}(groups_{n}, before, {left}, find_right_{n})
        else: {out} = right_{n}(groups_{n}, before, {right}, find_left_{n})
    except Exception as error: reraise_{n}(error)
    if {out} is None:
        before.clear()
        {out} = own_{n}.of_many({left}, {right})
else: {out} = step_{n}({left}, {right})"""
