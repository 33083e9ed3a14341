"""Rows that change no more: a row is emitted once, when a frontier has passed its value.

    clicks without a view within 10      click at 40: emitted when the watermark of views is beyond
                                         50, if no view has come; never retracted

A row that goes before is not emitted at all.

State:  the rows above the frontier, by value; one watermark per stream.
Cost:   O(log rows) per changed row.
Source: outer interval joins of Apache Flink; append mode of Spark's Structured Streaming.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Any, ClassVar

from optimizer.record import record
from reactive.engine.collections.zset import Pair, Pairs, Row, canonical, is_nan
from reactive.engine.operators.frontiers import Frontier

OF_ROW = -1
"""The place in `(row, value, place)` that tells a row from the watermark of a stream."""


class ClosedRows:
    """Emit the rows `((), row)` whose value is past the frontier.

    The rows of the input are `(row, value, OF_ROW)`, and `(None, watermark, place)` for the
    watermark of the clock at that place of the frontier.

    >>> from reactive.engine.operators.event_time import EventClock
    >>> from reactive.engine.operators.frontiers import DelayedWatermark
    >>> closed = ClosedRows(Frontier((DelayedWatermark(EventClock(0), 10),)))
    >>> closed.step([(("a", 3, OF_ROW), 1), (("b", 7, OF_ROW), 1), ((None, 12, 0), 1)])
    []
    >>> closed.commit()
    >>> closed.step([((None, 12, 0), -1), ((None, 15, 0), 1)])
    [(((), 'a'), 1)]
    """

    forgets: ClassVar[bool] = True
    __slots__ = ("_due", "_frontier", "_gone", "_last", "_marks", "_numbers", "_rows", "touched")

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._rows: dict[Row, int] = {}
        """The weights of the rows that wait."""
        self._due: list[tuple[Any, int, Row]] = []
        self._numbers = count()
        self._marks: list[Any] = [None] * len(frontier.clocks)
        self._last: list[tuple[Row, int]] = []
        """The rows that the last step changed, with their weights before it."""
        self._gone: tuple[list[tuple[Any, int, Row]], list[Any]] = ([], self._marks)
        """The entries that the last step took, and the watermarks before it."""
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        """Change the rows that wait, and return those that are past the frontier now."""
        self.touched += len(delta)
        marks = [*self._marks]
        self._last, self._gone = [], ([], self._marks)
        for (row, value, place), weight in delta:
            if place != OF_ROW:
                if weight > 0:
                    marks[place] = value
                continue
            self._add(row, weight)
            value = self._frontier.value(canonical(value))
            if weight > 0 and value is not None and not is_nan(value):
                heappush(self._due, (value, next(self._numbers), row))
        self._marks = marks
        return self._take_closed()

    def _add(self, row: Row, weight: int) -> None:
        before = self._rows.get(row, 0)
        self._last.append((row, before))
        self._set(row, before + weight)

    def _set(self, row: Row, weight: int) -> None:
        if weight:
            self._rows[row] = weight
        else:
            self._rows.pop(row, None)

    def _take_closed(self) -> list[Pair]:
        low, out = self._frontier.low_at(self._marks), list[Pair]()
        due, is_past = self._due, self._frontier.is_past
        while due and is_past(due[0][0], low):
            entry = heappop(due)
            self._gone[0].append(entry)
            row = entry[2]
            weight = self._rows.get(row, 0)
            if weight > 0:
                self._add(row, -weight)
                out.append((((), row), weight))
        return out

    def undo(self) -> None:
        """Revert the last step; entries of rows that came with it are skipped when they are due."""
        for row, weight in reversed(self._last):
            self._set(row, weight)
        gone, self._marks = self._gone
        for entry in gone:
            heappush(self._due, entry)
        self.commit()

    def commit(self) -> None:
        self._last, self._gone = [], ([], self._marks)

    def contents(self) -> Iterable[Pair]:
        """Return no rows: nobody holds those that were emitted."""
        return ()

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows that wait, and the approximate bytes of the state."""
        return len(self._rows), sys.getsizeof(self._rows) + sys.getsizeof(self._due)


@record
class ClosedGroup:
    """The function of the plan that stands for the rows that a frontier has passed."""

    frontier: Frontier
    shape: Any
    emits_once: ClassVar[bool] = True
    is_bounded: ClassVar[bool] = True

    def __call__(self, key: Any, rows: Any) -> Any:
        """Return the rows past the frontier, from scratch."""
        operator = ClosedRows(self.frontier)
        return [row for (_, row), weight in operator.step([(row, 1) for row in rows])]

    def operator(self, key: Any, new: Callable[[], Any]) -> ClosedRows:
        """Return the operator, in place of groups."""
        return new()  # type: ignore[no-any-return]

    def kept(self) -> Callable[[], ClosedRows]:
        """Return the maker of the operator."""
        return lambda: ClosedRows(self.frontier)

    def limited(self, item: int, most: int) -> Any:
        """Return None: there are no rows to leave out."""
        return None

    def dropping(self) -> Any:
        """Return itself: it has no callables."""
        return self
