"""As-of join of streams: rows are dropped when no later row of the other side can change a pair.

    left   10       25     40         watermarks of both sides: 27
    right    12  20    26     30
                        |             left 10, 25: quotes before 27 come no more, so that their
                        27            partners stay: dropped
                                      right 12, 20: a trade from 27 on finds 26 or a later one

Of each key the newest right row below both watermarks stays, as the next left row may find it. If
partners may be ahead, which needs a tolerance, a left row waits that much longer.

State:  the rows above the watermarks, one right row per key, and a reference to each in a heap.
Cost:   O(log rows) per row, when it comes and when it is dropped.
Source: temporal joins of Apache Flink.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, ClassVar

from optimizer import plan
from optimizer.expr import Item, Parameter, constant
from optimizer.record import record
from reactive.engine.collections.timed_rows import TimedRows
from reactive.engine.collections.zset import Row
from reactive.engine.operators.asof_join import AsofJoin, Nearest
from reactive.engine.operators.frontiers import (
    Frontier,
    follow_clocks,
    frontier_of,
    merge_frontiers,
    only_comes,
)

TIME = Item(Parameter(0), constant(2))
"""The time of a row `(row, key, time)`."""


@record
class AsofFrontiers:
    """The frontier of left rows whose partners stay, and that of right rows found by no later left
    row but the newest."""

    left: Frontier
    right: Frontier


def asof_frontiers(node: plan.AsofJoin) -> AsofFrontiers | None:
    """Return when the rows of an as-of join are dropped; None if they stay."""
    is_ahead = node.direction != "backward"
    mine, theirs = frontier_of(node.left, TIME), frontier_of(node.right, TIME)
    if mine is None or theirs is None or (is_ahead and node.tolerance is None):
        return None
    settled = theirs.less(node.tolerance) if is_ahead else theirs
    both = merge_frontiers(mine, settled)
    if both is None:
        return None
    return AsofFrontiers(settled if only_comes(node.left) else both, both)


class ClosingAsofJoin(AsofJoin):
    """An as-of join that drops the rows below its frontiers; views hold its pairs.

    >>> from reactive.engine.operators.event_time import EventClock
    >>> from reactive.engine.operators.frontiers import DelayedWatermark
    >>> clock = EventClock(0)
    >>> low = Frontier((DelayedWatermark(clock),))
    >>> pair, nearest = lambda row, other: (row, other), Nearest("backward")
    >>> join = ClosingAsofJoin(pair, nearest, frontiers=AsofFrontiers(low, low))
    >>> quotes = [(("old", "A", 12), 1), (("new", "A", 20), 1), (("newest", "A", 26), 1)]
    >>> join.step([(("trade", "A", 25), 1)], quotes)
    [(('trade', 'new'), 1)]
    >>> join.commit()
    >>> clock.move_to(27)
    >>> join.footprint()[0]
    1
    """

    forgets: ClassVar[bool] = True
    __slots__ = ("__weakref__", "_due", "_frontiers", "_newest", "_numbers", "has_dropped")

    def __init__(
        self,
        pair: Callable[[Row, Any], Row],
        nearest: Nearest,
        *,
        frontiers: AsofFrontiers,
        is_left: bool = False,
    ) -> None:
        super().__init__(pair, nearest, is_left=is_left)
        self._frontiers, self.has_dropped = frontiers, False
        self._due: dict[bool, list[tuple[Any, int, Any]]] = {True: [], False: []}
        """Times with their keys, of the left and of the right."""
        self._newest: dict[Any, Any] = {}
        """The time of the newest right row of a key that is below the frontier."""
        self._numbers = count()
        for frontier in dict.fromkeys((frontiers.left, frontiers.right)):
            follow_clocks(frontier, self)

    def commit(self) -> None:
        """Note the times of the rows that came, and drop those below the frontiers."""
        changes = self._changes
        super().commit()
        for is_left, key, time, _, weight in changes:
            if time is None:
                self.has_dropped |= bool(self._timeless)
                self._timeless.clear()
            elif weight > 0:
                heappush(self._due[is_left], (time, next(self._numbers), key))
        self.drop_closed()

    def drop_closed(self) -> None:
        """Drop the rows below the frontiers; in a commit that has stepped, when it is finished."""
        if self._changes:
            return
        for key, time in self._take_due(self._frontiers.left, is_left=True):
            self._drop(self._left, key, time)
        for key, time in self._take_due(self._frontiers.right, is_left=False):
            rows = self._right.get(key)
            if rows is None or not rows.has_time(time):
                continue
            newest = self._newest.get(key, time)
            self._newest[key] = time
            if newest != time:
                self._drop(self._right, key, newest)

    def _take_due(self, frontier: Frontier, *, is_left: bool) -> list[tuple[Any, Any]]:
        """Remove and return the keys and times of a side that a frontier has passed."""
        due, low, found = self._due[is_left], frontier.low(), []
        while due and frontier.is_past(due[0][0], low):
            time, _, key = heappop(due)
            found.append((key, time))
        return found

    def _drop(self, side: dict[Any, TimedRows], key: Any, time: Any) -> None:
        """Drop the rows of a key at a time, if there are any."""
        rows = side.get(key)
        if rows is not None and rows.drop(time):
            self.has_dropped = True
            if rows.is_zero:
                del side[key]


def kind_of(node: plan.AsofJoin) -> Callable[..., AsofJoin]:
    """Return the maker of the operator of an as-of join: of rows that are dropped, or of others."""
    found = asof_frontiers(node)
    return AsofJoin if found is None else partial(ClosingAsofJoin, frontiers=found)
