"""Which comparisons of a join's predicate say that rows of one side lie in ranges of the other.

    on  a.lo <= b.t < a.hi and a.k != b.k

    left:   from a.lo to a.hi, an interval
    right:  from b.t to b.t, a point
    what matches:   left low <= right high,  right low < left high

With intervals on both sides these are those that overlap; one comparison alone is a range without
an end. The comparisons are part of what is left of the predicate (`side_conditions.py`) and are
asked of pairs again: they only tell which pairs need not be asked.

Sound:  what comes before the comparisons cannot raise, or is decided before there are pairs. The
        engine looks up only among values of which it knows that comparing them does not raise
        (`reactive.engine.collections.families`).
Needs:  an inner join without equations. Of these the index by key is as good or better.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import FALSE, Attempt, Expr, Lifted, Operation, conjuncts
from optimizer.expressions.knowledge import total
from optimizer.plans.properties import bindings, once
from optimizer.plans.side_conditions import (
    has_keys,
    of_left,
    of_right,
    pair_shapes,
    residual,
    side_of,
)
from optimizer.record import record


@record
class Span:
    """The ends of the range of a row. One may be missing; the ends of a point are the same."""

    low: Lifted | None
    high: Lifted | None

    @property
    def ends(self) -> tuple[Lifted, ...]:
        """What is computed of a row: a point, or both ends."""
        found = [end for end in (self.low, self.high) if end is not None]
        return tuple(found[:1] if self.low == self.high else found)


@record
class Ranges:
    """The ranges of both sides, and whether they meet where one begins and the other one ends.

    `closed` says it of the low end of the left and the high end of the right, and then of the low
    end of the right and the high end of the left.
    """

    left: Span
    right: Span
    closed: tuple[bool, bool]


@record
class Comparison:
    """A value of one side that is less than one of the other, or not greater."""

    left: Expr
    right: Expr
    left_is_low: bool
    closed: bool


def ranges_of(join: plan.Join) -> Ranges | None:
    """The ranges that a join's predicate names, found once."""
    return once(join, "ranges", _found)


def _found(join: plan.Join) -> Ranges | None:
    rest = residual(join)
    if has_keys(join) or not isinstance(rest, Lifted):
        return None
    tests = _comparisons(join, rest)
    return _ranges(join, rest, *tests) if tests else None


def _comparisons(join: plan.Join, rest: Lifted) -> list[Comparison]:
    """The first comparison of the sides, and one that bounds the same values from the other end."""
    found: list[Comparison] = []
    count, of = bindings(join.left), pair_shapes(join)
    for test in conjuncts(rest.body):
        comparison = comparison_of(test, count)
        if comparison is not None and (not found or _is_other_end(found[0], comparison)):
            found.append(comparison)
        elif not total(test, of):
            break
        if len(found) == 2:
            break
    return found


def comparison_of(test: Expr, count: int) -> Comparison | None:
    """Return the comparison of the sides that a test is; the left one has `count` bindings."""
    if isinstance(test, Attempt) and test.otherwise == FALSE:
        test = test.of
    if not isinstance(test, Operation) or test.operator not in ("<", "<=", ">", ">="):
        return None
    less, greater = test.operands if test.operator[0] == "<" else test.operands[::-1]
    closed = test.operator.endswith("=")
    match side_of(less, count), side_of(greater, count):
        case "left", "right":
            return Comparison(less, greater, left_is_low=True, closed=closed)
        case "right", "left":
            return Comparison(greater, less, left_is_low=False, closed=closed)
        case _:
            return None


def _is_other_end(one: Comparison, other: Comparison) -> bool:
    return one.left_is_low != other.left_is_low


def _ranges(join: plan.Join, on: Lifted, *tests: Comparison) -> Ranges:
    low = next((test for test in tests if test.left_is_low), None)
    high = next((test for test in tests if not test.left_is_low), None)
    count = bindings(join.left)

    def left(test: Comparison | None) -> Lifted | None:
        return None if test is None else of_left(on, test.left, count)

    def right(test: Comparison | None) -> Lifted | None:
        return None if test is None else of_right(on, test.right, count)

    return Ranges(
        Span(left(low), left(high)),
        Span(right(high), right(low)),
        (low is None or low.closed, high is None or high.closed),
    )
