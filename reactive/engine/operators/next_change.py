"""The next moment at which a bound that a clock moves meets a row.

    e.at > now() - hour         10:20  10:50  11:30          the rows by their order
    now 11:10                   ^ 10:10 is the bound now: 10:20 is next to it

    next                        11:20, the first moment whose bound is not before 10:20

A bound that never falls as time passes, or never rises, changes the result as it meets the rows
next to it. The moment is found by the comparison itself: steps that double, then halves, to the
microsecond. So it is exact for `<` and `<=`, days, seconds and cuts (`cuts.py`).

Cost:   O(log n), and some 60 comparisons for each end of a range.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from operator import le, lt
from typing import Any

from optimizer.expr import (
    Attribute,
    Call,
    Constant,
    Expr,
    First,
    Lifted,
    Operation,
    Parameter,
    reads,
)
from optimizer.expressions.cuts import CutOf
from optimizer.expressions.knowledge import directions_in
from optimizer.expressions.turns import LAST, MomentOf
from reactive.engine.collections.index import ERROR_KEY, Mark
from reactive.engine.collections.range_index import IntervalTree, Points, RangeIndex
from reactive.engine.runtime.interrupts import reraise_asynchronous

STEP = timedelta(microseconds=1)
MOMENT_METHODS = frozenset({"date", "timestamp"})
"""Methods of moments, without a zone or in UTC, whose results never fall as time passes."""


def first_change(
    index: RangeIndex, key: Callable[[datetime], Any], moment: datetime
) -> datetime | None:
    """Return the first moment after `moment` at which another row of an index is found.

    `key` returns the key of a moment, whose ends are monotone. Return `moment` if it is not known.
    """
    near = _near(index, key(moment))
    if near is None:
        return moment
    found: datetime | None = None
    for place, end in near:
        each = _first_moment(lambda at: _meets(index, place, end, key(at)), moment)
        if each is not None and (found is None or each < found):
            found = each
    return found


def _near(index: RangeIndex, key: Any) -> list[tuple[int, Any]] | None:
    """Return the ends of rows that are next to those of a key of the other side, or equal.

    Each is beside its place: 0 for a low end, 1 for a high end. Return None if there are rows that
    have no place in the order of the key.
    """
    if key.__class__ is Mark or index.pairs(ERROR_KEY):
        return None
    if index._fresh:
        index._order()
    if index._orders.keys() - {index._family(key, index._range.other)}:
        return None
    low, high = index._ends(key)
    found: list[tuple[int, Any]] = []
    for order in index._orders.values():
        for place, end in ((0, high), (1, low)):
            if end is not None:
                found += [(place, own) for own in _around(order, place, end)]
    return found


def _around(order: Points | IntervalTree, place: int, end: Any) -> list[Any]:
    """Return the ends next to an end, and itself if it is there."""
    keys: Any = order.by_end(place)
    if isinstance(order, Points):
        first, last = keys.bisect_left(end), keys.bisect_right(end)
    else:
        first, last = keys.bisect_key_left(end), keys.bisect_key_right(end)
    found = [keys[at] for at in {first - 1, first, last} if 0 <= at < len(keys)]
    return found if isinstance(order, Points) else [key[place] for key in found]


def _meets(index: RangeIndex, place: int, end: Any, key: Any) -> bool:
    """Return True if a low end (place 0) or a high end (1) meets a key of the other side."""
    low, high = index._ends(key)
    starts, ends = (le if closed else lt for closed in index._range.closed)
    return bool(ends(low, end) if place else starts(end, high))


def _first_moment(test: Callable[[datetime], bool], moment: datetime) -> datetime | None:
    """Return the first moment after `moment` at which a monotone test has another result.

    Return None if there is none. If the test raises for moments in the future, it is a moment up to
    which the result is the same.
    """
    was = test(moment)
    if any(
        _is_unchanged(test, was, last.replace(tzinfo=moment.tzinfo))
        for last in (datetime.max, LAST)
    ):
        return None
    before, step = moment, STEP
    while True:
        try:
            after = before + step
            changes = test(after) is not was
        except Exception as error:
            reraise_asynchronous(error)
            return before if before > moment else moment + STEP
        if changes:
            break
        before, step = after, 2 * step
    while after - before > STEP:
        middle = before + (after - before) // 2
        if test(middle) is was:
            before = middle
        else:
            after = middle
    return after


def _is_unchanged(test: Callable[[datetime], bool], was: bool, last: datetime) -> bool:
    try:
        return test(last) is was
    except Exception as error:
        reraise_asynchronous(error)
        return False


def is_monotone(end: Lifted) -> bool:
    """Return True if an end of the range of a moment never falls as time passes, or never rises."""
    return end.parameters == 1 and _is_monotone(end.body)


def _is_monotone(expr: Expr) -> bool:
    match expr:
        case Parameter():
            return True
        case Operation("+" | "-", (one, other)):
            return _is_monotone(one) if not reads(other) else not reads(one) and _is_monotone(other)
        case Call(Attribute(of, name), (), ()):
            return name in MOMENT_METHODS and isinstance(of, Parameter)
        case Call(Constant(CutOf() | MomentOf()), (of,), ()) | First(_, of):
            return _is_monotone(of)
        case Attribute(of, "year"):
            return isinstance(of, Parameter)
        case Call(Constant(function), arguments, ()):
            found = directions_in(function, arguments)
            read = (
                []
                if found is None
                else [pair for pair in zip(*found[1:], strict=True) if reads(pair[0])]
            )
            return len(read) == 1 and read[0][1] != 0 and _is_monotone(read[0][0])
        case _:
            return False
