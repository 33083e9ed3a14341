"""Find the one comparison of both sides that a semi-join or an anti-join asks of pairs.

    on  a.k == b.k and b.open and a.x < b.y

    key     a.k == b.k        decided by the indexes (`side_conditions.py`)
    left    value a.x
    right   test b.open, value b.y

A left row has a partner if its value is less than the greatest value of the right rows that have
its key: the pairs need not be asked. With `>` it is the least value.

Sound:  the engine compares only values of one family (`reactive.engine.collections.families`), for
        which `<` is total and raises nothing, so that `not a < b` is `a >= b`; for others it asks
        the pairs. A test after the comparison is asked of a row alone, which gives the same where
        the comparison cannot raise.
Needs:  a predicate that was read, whose other parts read one side each; no negative weights on the
        right, which could cancel those of other values.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Expr, Lifted, Operation, conjuncts
from optimizer.plans.properties import bindings, may_be_negative, once
from optimizer.plans.ranges import Comparison, comparison_of
from optimizer.plans.side_conditions import of_left, of_right, residual, side_of
from optimizer.record import record

OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@record
class BoundSide:
    """The value of a row, and the tests that the predicate has before and after the comparison."""

    before: tuple[Lifted, ...]
    value: Lifted
    after: tuple[Lifted, ...]


@record
class Bound:
    """Both sides of the comparison. The value of the left is less than that of the right if
    `is_upper`, else greater; or equal if `closed`."""

    left: BoundSide
    right: BoundSide
    is_upper: bool
    closed: bool


def bound_of(join: plan.SemiJoin | plan.AntiJoin) -> Bound | None:
    """Return the comparison by which a row is known to have a partner, found once."""
    return once(join, "bound", _found)


def _found(join: plan.SemiJoin | plan.AntiJoin) -> Bound | None:
    rest, count = residual(join), bindings(join.left)
    if not isinstance(rest, Lifted) or may_be_negative(join.right):
        return None
    comparison: Comparison | None = None
    tests: dict[tuple[str, bool], list[Lifted]] = {}
    for test in conjuncts(rest.body):
        found, side = comparison_of(_positive(test), count), side_of(test, count)
        if found is not None and comparison is None:
            comparison = found
        elif side is not None:
            made = (of_left if side == "left" else of_right)(rest, test, count)
            tests.setdefault((side, comparison is None), []).append(made)
        else:
            return None
    if comparison is None:
        return None
    values = of_left(rest, comparison.left, count), of_right(rest, comparison.right, count)
    left, right = (
        BoundSide(tuple(tests.get((side, True), ())), value, tuple(tests.get((side, False), ())))
        for side, value in zip(("left", "right"), values, strict=True)
    )
    return Bound(left, right, comparison.left_is_low, comparison.closed)


def _positive(test: Expr) -> Expr:
    """The opposite of a comparison that is negated, which is the same in a total order."""
    match test:
        case Operation("not", (Operation(symbol) as compared,)) if symbol in OPPOSITE:
            return Operation(OPPOSITE[symbol], compared.operands)
        case _:
            return test
