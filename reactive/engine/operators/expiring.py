"""Index of rows that are dropped when no later row of the other side can match them.

    clicks.join(views, on=lambda c, v: c.user == v.user and abs(c.at - v.at) <= 10)

    watermark of views 50:   no view before 50 comes, so clicks before 40 find no partner more

Both sides of such a join are dropped, each by the watermark of the other (`frontiers.Retention`).
The pairs that were made stay in the views.

State:  the rows above the frontier; a reference to each in a heap, by its value.
Cost:   O(log rows) per row, when it comes and when it is dropped.
Source: interval joins of Apache Flink; Srivastava and Widom, *Flexible Time Management in Data
        Stream Systems*, PODS 2004.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any, ClassVar, Protocol

from reactive.engine.collections.index import Key
from reactive.engine.collections.zset import Row, canonical, is_nan
from reactive.engine.operators.frontiers import Frontier, follow_clocks
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.runtime.interrupts import reraise_asynchronous


class ForgetsRows(Protocol):
    """A state beside an index, which has an entry for each of its rows."""

    def forget(self, row: Row) -> None: ...


class ExpiringIndexBy(IndexBy):
    """Maintain an index whose rows are dropped when a frontier has passed their value.

    Parameters
    ----------
    value: row -> value to compare; a row whose value is None, or raises, stays.

    >>> from reactive.engine.operators.event_time import EventClock
    >>> from reactive.engine.operators.frontiers import DelayedWatermark
    >>> clock = EventClock(0)
    >>> times = ExpiringIndexBy(lambda time: time % 2, value=lambda time: time,
    ...                         frontier=Frontier((DelayedWatermark(clock, 10),)))
    >>> _ = times.step([(3, 1), (4, 1), (9, 1)])
    >>> times.commit()
    >>> clock.move_to(15)
    >>> list(times.index.pairs(1)), list(times.index.pairs(0))
    ([(9, 1)], [])
    """

    forgets: ClassVar[bool] = True
    __slots__ = ("_beside", "_due", "_frontier", "_numbers", "_value")

    def __init__(
        self, *given: Any, value: Callable[[Row], Any], frontier: Frontier, **options: Any
    ) -> None:
        super().__init__(*given, **options)
        self._value = value
        self._frontier = frontier
        self._due: list[tuple[Any, int, Key, Row]] = []
        self._numbers = count()
        self._beside: list[weakref.ref[ForgetsRows]] = []
        follow_clocks(frontier, self)

    def beside(self, state: ForgetsRows) -> None:
        """Have a state forget the rows that are dropped, as long as it is used."""
        self._beside = [*(each for each in self._beside if each() is not None), weakref.ref(state)]

    def undo(self) -> None:
        """Undo the last step; its rows have no value noted yet."""
        self.take_back(self._last)
        self._last = ()
        super().commit()

    def commit(self) -> None:
        """Note the values of the rows that came, and drop those below the frontier."""
        last = self._last
        super().commit()
        for key, (row, weight) in last:
            if weight > 0:
                self._note(key, row)
        self.drop_closed()

    def _note(self, key: Key, row: Row) -> None:
        try:
            value = self._frontier.value(canonical(self._value(row)))
        except Exception as error:  # the join raises it, or finds no partner of the row
            reraise_asynchronous(error)
            return
        if value is not None and not is_nan(value):
            heappush(self._due, (value, next(self._numbers), key, row))

    def drop_closed(self) -> None:
        """Drop the rows below the frontier; in a commit that has stepped, when it is finished."""
        due = self._due
        if not due or self._last:
            return
        low = self._frontier.low()
        is_past = self._frontier.is_past
        while due and is_past(due[0][0], low):
            _, _, key, row = heappop(due)
            weight = self._index.weight(key, row)
            if weight:
                self.take_back([(key, (row, weight))])
                for reference in self._beside:
                    state = reference()
                    if state is not None:
                        state.forget(row)
