"""Sessions: rows of one key that follow each other with gaps shorter than a given one.

    times     1 2   5        20 21            gap 10
    session   (1 ........ 15) (20 .... 31)    from the first time to the last one plus the gap
    + 12      (1 ............................ 31)     the two become one

The starts of sessions are kept in order beside the times, so the session of a time is looked up. A
time that comes inside a session changes no other row; one that prolongs, joins or splits sessions
changes the window of all their rows. Instants are in UTC, where differences are elapsed time.

State:  the rows by time; the times and the starts, in order.
Cost:   O(log rows) for a changed row, and the rows of the sessions whose window changes.
Source: SESSION windows of Feldera: breaks between neighbours in time.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from reactive.engine.collections.values import delete_from_order, insert_in_order
from reactive.engine.collections.zset import Pair, Row, canonical, consolidate

Span = tuple[Any, Any]
"""The first and the last time of a session."""


class TimesInOrder:
    """Different times in order."""

    __slots__ = ("order",)

    def __init__(self) -> None:
        self.order: Any = []

    def set(self, time: Any, *, is_there: bool) -> None:
        if is_there:
            self.order = insert_in_order(self.order, time)
        else:
            delete_from_order(self.order, time)

    def place(self, time: Any, *, after: bool) -> int:
        """Return the number of times before a time, or up to it."""
        order = self.order
        if type(order) is list:
            return bisect_right(order, time) if after else bisect_left(order, time)
        return int(order.bisect_right(time) if after else order.bisect_left(time))

    def before(self, time: Any, *, or_at: bool = False) -> Any:
        """Return the last time before another one; None if there is none."""
        place = self.place(time, after=or_at)
        return self.order[place - 1] if place else None

    def after(self, time: Any) -> Any:
        """Return the first time after another one; None if there is none."""
        place = self.place(time, after=True)
        return self.order[place] if place < len(self.order) else None

    def between(self, first: Any, last: Any) -> Any:
        return self.order[self.place(first, after=False) : self.place(last, after=True)]

    def __len__(self) -> int:
        return len(self.order)


class SessionGroup:
    """The sessions of one key; the rows of the input are `(row, key, time)`.

    Parameters
    ----------
    window: start, end -> the window that is shown beside a row.

    >>> group = SessionGroup(10, lambda start, end: (start, end))
    >>> group.step([(("a", 0, 1), 1), (("b", 0, 5), 1)])
    [(('a', (1, 15)), 1), (('b', (1, 15)), 1)]
    >>> group.commit()
    >>> group.step([(("c", 0, 30), 1)])
    [(('c', (30, 40)), 1)]
    """

    __slots__ = ("_gap", "_log", "_rows", "_starts", "_times", "_window")

    def __init__(self, gap: Any, window: Callable[[Any, Any], Any]) -> None:
        self._gap = gap
        self._window = window
        self._rows: dict[Any, dict[Row, int]] = {}
        self._times = TimesInOrder()
        self._starts = TimesInOrder()
        self._log: list[tuple[Any, ...]] = []

    @property
    def is_empty(self) -> bool:
        """True if the group holds no row."""
        return not self._rows

    def step(self, changes: Sequence[Pair]) -> list[Pair]:
        """Apply changes; return those of the rows beside their windows."""
        try:
            return self._apply(changes)
        except BaseException:
            self.undo()
            raise

    def undo(self) -> None:
        """Revert the last step, even one that raised midway."""
        for entry in reversed(self._log):
            match entry:
                case dict() as rows, time, row, weight:
                    self._set_weight(rows, time, row, weight)
                case TimesInOrder() as moments, time, was:
                    moments.set(time, is_there=was)
        self._log = []

    def commit(self) -> None:
        self._log = []

    def first_end(self) -> Any:
        """Return the end of the first session; None if there is none."""
        return self._span(self._starts.order[0])[1] + self._gap if len(self._starts) else None

    def close(self, mark: Any) -> None:
        """Drop the sessions that end at or before a time; nothing is emitted."""
        while len(self._starts) and self.first_end() <= mark:
            start = self._starts.order[0]
            for time in list(self._times.between(*self._span(start))):
                self._times.set(time, is_there=False)
                del self._rows[time]
            self._starts.set(start, is_there=False)

    def contents(self) -> Iterable[Pair]:
        return [pair for start in self._starts.order for pair in self._shown(self._span(start), 1)]

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows, and the bytes of the state."""
        parts = (self._rows, *self._rows.values())
        size = 16 * len(self._times) + sum(map(sys.getsizeof, parts))
        return sum(map(len, self._rows.values())), size

    # A step: weights first, beside the old windows; then the times that came or went.

    def _apply(self, changes: Sequence[Pair]) -> list[Pair]:
        """Apply changes, and return those of the output."""
        out: list[Pair] = []
        changed: dict[Any, None] = {}
        for (row, _, time), weight in changes:
            if is_moment(time := canonical(time)):
                changed[time] = None
                self._change(time, row, weight, out)
        turned = [time for time in changed if self._was_there(time) is not self._is_there(time)]
        if len(turned) == 1 and (span := self._span_around(turned[0])) is not None:
            self._set(self._times, turned[0], is_there=self._is_there(turned[0]))
            out += self._rows_of([turned[0]], self._window_of(span), 1)
        elif turned:
            self._move_windows(turned, out)
        return consolidate(out) if len(out) > 1 else out

    def _change(self, time: Any, row: Row, weight: int, out: list[Pair]) -> None:
        """Change the weight of a row; if its time was there, so that it is shown, emit that."""
        rows = self._rows.setdefault(time, {})
        old = rows.get(row, 0)
        self._log.append((rows, time, row, old))
        self._set_weight(rows, time, row, old + weight)
        shown = max(old + weight, 0) - max(old, 0)
        if shown and self._was_there(time):
            out.append(((row, self._window_of(self._span(time))), shown))

    def _set_weight(self, rows: dict[Row, int], time: Any, row: Row, weight: int) -> None:
        """Set the weight of a row; a time without rows is not held."""
        if weight:
            rows[row] = weight
            self._rows[time] = rows
        else:
            rows.pop(row, None)
        if not rows:
            self._rows.pop(time, None)

    def _is_there(self, time: Any) -> bool:
        return any(weight > 0 for weight in self._rows.get(time, {}).values())

    def _was_there(self, time: Any) -> bool:
        """Return True if the time was there before the step, so that rows have windows."""
        return bool(self._times.before(time, or_at=True) == time)

    def _set(self, moments: TimesInOrder, time: Any, *, is_there: bool) -> None:
        self._log.append((moments, time, not is_there))
        moments.set(time, is_there=is_there)

    def _span_around(self, time: Any) -> Span | None:
        """Return the session of a time that comes or goes inside it; None if a window changes."""
        before, after = self._times.before(time), self._times.after(time)
        if before is None or after is None or not after - before < self._gap:
            return None
        return self._span(before)

    def _move_windows(self, turned: Sequence[Any], out: list[Pair]) -> None:
        """Make the sessions of times that come or go anew, with the sessions that they touch."""
        old = self._touched(turned)
        for span in old:
            out += self._shown(span, -1)
            self._set(self._starts, span[0], is_there=False)
        near = {*turned, *(time for span in old for time in self._times.between(*span))}
        for time in turned:
            self._set(self._times, time, is_there=self._is_there(time))
        new = []
        for time in near:
            before = self._times.before(time)
            if self._was_there(time) and (before is None or not time - before < self._gap):
                new.append(time)
                self._set(self._starts, time, is_there=True)
        for start in new:
            out += self._shown(self._span(start), 1)

    def _touched(self, turned: Sequence[Any]) -> list[Span]:
        """Return the sessions that have a time, or one nearer to it than the gap."""
        starts = dict[Any, None]()
        for time in turned:
            before, after = self._times.before(time, or_at=True), self._times.after(time)
            if before is not None and time - before < self._gap:
                starts[self._starts.before(before, or_at=True)] = None
            if after is not None and after - time < self._gap:
                starts[self._starts.before(after, or_at=True)] = None
        return [self._span(start) for start in starts]

    def _span(self, time: Any) -> Span:
        """Return the session of a time."""
        start, following = self._starts.before(time, or_at=True), self._starts.after(time)
        last = self._times.order[-1] if following is None else self._times.before(following)
        return start, last

    def _window_of(self, span: Span) -> Any:
        return self._window(span[0], span[1] + self._gap)

    def _shown(self, span: Span, sign: int) -> list[Pair]:
        """Return the rows of a session beside its window."""
        return self._rows_of(self._times.between(*span), self._window_of(span), sign)

    def _rows_of(self, times: Iterable[Any], window: Any, sign: int) -> list[Pair]:
        return [
            ((row, window), sign * weight)
            for time in times
            for row, weight in self._rows.get(time, {}).items()
            if weight > 0
        ]


def is_moment(time: Any) -> bool:
    """Return True if a value is a time: not None, NaN or infinite."""
    if time is None:
        return False
    return not isinstance(time, float | Decimal) or math.isfinite(time)


def sessions_of(
    rows: Iterable[Row], gap: Any, window: Callable[[Any, Any], Any]
) -> Iterator[tuple[Row, Any]]:
    """Yield rows `(row, key, time)` beside their windows, from scratch: sorted, and cut at gaps."""
    timed = sorted(((time, row) for row, _, time in rows if is_moment(time)), key=_first)
    first = 0
    for place, (time, _) in enumerate(timed, 1):
        if place == len(timed) or not timed[place][0] - time < gap:
            found = window(timed[first][0], time + gap)
            yield from ((row, found) for _, row in timed[first:place])
            first = place


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]
