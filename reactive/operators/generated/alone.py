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
from optimizer.plans.factors import Factors
from reactive.codegen.body import Body, Plan
from reactive.collections.zset import Pair
from reactive.operators.folds import AvgFold, CountFold, ValuesFold
from reactive.operators.generated.both_sides import LEFT, RIGHT, loop_of_one
from reactive.operators.generated.factored import GroupingOfSums, Sides
from reactive.operators.generated.single import GroupingOfOne
from reactive.runtime.interrupts import reraise_asynchronous

Loop = Callable[..., Any]


class GroupingOfOneSum(GroupingOfOne, GroupingOfSums):
    """As `GroupingOfOne`, of terms."""

    def _changed(self, body: Body, place: int, fold: Any, value: str | None, weight: str) -> str:
        often = self._sums.get(value or "")
        if often is None or isinstance(fold, CountFold):
            return super()._changed(body, place, fold, value, weight)
        old, new = f"group[{place}]", f"state_{place}"
        if isinstance(fold, AvgFold):
            body.line(f"{new} = add_sum_to_avg(copied({old}), {value}, {often}, {weight})")
            return new
        body.line(f"{new} = {old}")
        body.line(f"if {new}.__class__ is int and {value}.__class__ is int:")
        body.line(f"    {new} += {value} * {often}")
        body.line("else:")
        kept = f"{new} if {new}.__class__ is int else copied({new})"
        body.line(f"    {new} = plus({kept}, {value}, {often})")
        return new


class Alone:
    """Runs the loop of the side that changed, if it alone did; it is `made` when first needed."""

    __slots__ = ("_left", "_made", "_right", "_sides")

    def __init__(self, sides: Sides, made: Callable[[str], Loop]) -> None:
        self._sides = sides
        self._made = made
        self._left: Loop | None = None
        self._right: Loop | None = None

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
                loop = self._left or self._make_left()
                found = loop(groups, before, left, sides.find_right)
            else:
                loop = self._right or self._make_right()
                found = loop(groups, before, right, sides.find_left)
        except Exception as error:
            reraise_asynchronous(error)
            found = None
        if found is None:
            before.clear()
        return found

    def _make_left(self) -> Loop:
        self._left = self._made(LEFT)
        return self._left

    def _make_right(self) -> Loop:
        self._right = self._made(RIGHT)
        return self._right


def alone(
    names: tuple[str, ...],
    shapes: Shapes,
    factors: Factors,
    taker: Callable[[Plan], GroupingOfOneSum],
    folds: Sequence[Any],
    sides: Sides,
) -> Alone | None:
    """For a join of which no side is kept by group: there a change may meet several sums."""
    by_group = any(of is not None and of.groups for of in (factors.left, factors.right))
    if by_group or any(isinstance(fold, ValuesFold) for fold in folds):
        return None
    return Alone(sides, lambda side: loop_of_one(names, shapes, factors, taker, side))
