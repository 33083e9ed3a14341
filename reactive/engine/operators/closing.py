"""Groups that close: below a frontier their state is dropped, their rows stay.

    clicks.window(tumbling(10), at=...)            time of the stream, so that no event comes
          .group_by(lambda c, w: (c.page, w))      to a window that ends at or before the watermark
          .aggregate(Count())

    watermark 27:   groups of windows up to (10, 20) are dropped, their rows are in the views

A group closes if a part of its key has a frontier (`frontiers.py`): a window, its end or start, or
the time of the events itself.

Sound:  no row of a closed group changes; so no row of the group is read again.
State:  the groups that are open, and their keys by the values that close them.
Cost:   O(log open values) for each value; nothing for an event of a known group.

Rows that change no more: a row is emitted once, when a frontier has passed its value.

    clicks without a view within 10      click at 40: emitted when the watermark of views is beyond
                                         50, if no view has come; never retracted

A row that goes before is not emitted at all.

State:  the rows above the frontier, by value; one watermark per stream.
Cost:   O(log rows) per changed row.
Source: outer interval joins of Apache Flink; append mode of Spark's Structured Streaming.

Index of rows that are dropped when no later row of the other side can match them.

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

import sys
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, ClassVar, Protocol, TypeAlias

from optimizer import plan
from optimizer.expr import Display, Item, Lifted, Parameter, constant, row_names
from optimizer.plans.properties import bindings, shapes
from optimizer.record import record
from optimizer.subqueries.keyed_rows import as_expression
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.index import Key
from reactive.engine.collections.zset import Pair, Pairs, Row, canonical, is_nan
from reactive.engine.operators.aggregate import GroupAggregates, KeptGroups
from reactive.engine.operators.event_time import DropsClosed
from reactive.engine.operators.frontiers import (
    Frontier,
    follow_clocks,
    frontier_of,
    times_of,
)
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.set_operators import Distinct
from reactive.engine.runtime.interrupts import reraise_asynchronous

ValueOf = Callable[[Any], Any]


@record
class Closing:
    """The frontier of a value in the key of a group, and the function that reads the value."""

    frontier: Frontier
    value_of: ValueOf


Closeable: TypeAlias = plan.Aggregate | plan.Distinct | plan.SetOperation
"""Nodes whose groups, or rows, may close."""


def closing_of(node: Closeable) -> Closing | None:
    """Return how the groups of an aggregate, or rows of `distinct` and of set operations, close;
    None if they do not."""
    if isinstance(node, plan.Distinct):
        return _closing_of_rows(node.input)
    if isinstance(node, plan.SetOperation):
        return _closing_of_rows(node)
    found = _part_that_closes(node)
    if found is None:
        return None
    place, frontier = found
    if place is None:
        return Closing(frontier, frontier.value)
    return Closing(frontier, partial(_value_at, place, frontier))


def _closing_of_rows(source: plan.Node) -> Closing | None:
    """Return how rows close, by a time or a window in them."""
    found = _value_that_closes(source)
    if found is None:
        return None
    value, frontier = found
    read: Callable[..., Any] = callable_of(value)
    if value.parameters == 1:
        return Closing(frontier, lambda row: frontier.value(read(row)))
    return Closing(frontier, lambda row: frontier.value(read(*row)))


def closing_value(node: plan.Aggregate | plan.Distinct) -> tuple[Lifted, Frontier] | None:
    """Return the value of the key of a group, or of the bindings of a row of `distinct`, by which
    it closes, and the frontier; None if it does not."""
    if isinstance(node, plan.Distinct):
        return _value_that_closes(node.input)
    found = _part_that_closes(node)
    if found is None:
        return None
    place, frontier = found
    key = Parameter(0)
    value = key if place is None else Item(key, constant(place))
    return Lifted(value, ("key",), (), 1), frontier


def _value_that_closes(source: plan.Node) -> tuple[Lifted, Frontier] | None:
    """Return a time or a window in the rows of a node, and its frontier."""
    found = next(times_of(source), None)
    if found is None:
        return None
    count = bindings(source)
    return Lifted(found[0], row_names(count), (), count), found[1]


def _part_that_closes(node: plan.Aggregate) -> tuple[int | None, Frontier] | None:
    """Return the place in the key of groups of a value with a frontier, and the frontier.

    The place is None if that is the key itself.
    """
    if node.key is None:
        return None
    source, key = node.input, as_expression(node.key, shapes(node.input)).body
    if not (isinstance(key, Display) and key.kind == "tuple"):
        found = frontier_of(source, key)
        return None if found is None else (None, found)
    for place, item in enumerate(key.items):
        found = frontier_of(source, item)
        if found is not None:
            return place, found
    return None


def _value_at(place: int, frontier: Frontier, key: Any) -> Any:
    return frontier.value(key[place])


class OpenKeys:
    """The keys of groups that are open, by the values that close them.

    >>> from reactive.engine.operators.event_time import EventClock
    >>> from reactive.engine.operators.frontiers import DelayedWatermark
    >>> clock = EventClock(0)
    >>> keys = OpenKeys(Closing(Frontier((DelayedWatermark(clock),)), lambda key: key[1]))
    >>> keys.add(("a", 3)), keys.add(("b", 5)), clock.move_to(4)
    (None, None, None)
    >>> list(keys.take_closed())
    [('a', 3)]
    """

    __slots__ = ("_closing", "_keys", "_values")

    def __init__(self, closing: Closing) -> None:
        self._closing = closing
        self._values: list[Any] = []
        self._keys: dict[Any, list[Any]] = {}

    def wait_for_flushes(self, operator: DropsClosed) -> None:
        """Close keys by the watermarks of flushes, which call the operator, from now on."""
        closing = self._closing
        self._closing = Closing(closing.frontier.at_flush(), closing.value_of)
        follow_clocks(self._closing.frontier, operator)

    def add(self, key: Any) -> None:
        """Add a key; one whose value is None or NaN never closes."""
        value = self._closing.value_of(key)
        keys = self._keys.get(value)
        if keys is None:
            if value is None or value != value:
                return
            keys = self._keys[value] = []
            heappush(self._values, value)
        keys.append(key)

    def take_closed(self) -> Iterable[Any]:
        """Remove and yield the keys that are closed."""
        values = self._values
        if not values:
            return
        frontier = self._closing.frontier
        low = frontier.low()
        while values and frontier.is_past(values[0], low):
            yield from self._keys.pop(heappop(values))


# The operators.


class ClosingAggregates(GroupAggregates):
    """Groups that are dropped when they close; views hold their rows."""

    forgets: ClassVar[bool] = True
    __slots__ = ("__weakref__", "_open", "has_dropped")

    def __init__(self, *given: Any, closing: Closing, **options: Any) -> None:
        self._open, self.has_dropped = OpenKeys(closing), False
        super().__init__(*given, **options)
        follow_clocks(closing.frontier, self)

    def wait_for_flushes(self) -> None:
        """Drop what is closed as of the last flush, as changes come with flushes."""
        self._open.wait_for_flushes(self)

    def commit(self) -> None:
        """Note the groups that the step made, and drop those that are closed."""
        for key, before in self._before.items():
            if before is None and key in self.groups:
                self._open.add(key)
        super().commit()
        self.drop_closed()

    def drop_closed(self) -> None:
        """Drop the closed groups; in a commit that has stepped them, when it is finished."""
        if self._before:
            return
        for key in self._open.take_closed():
            self.has_dropped = True
            self.groups.pop(key, None)


class ClosingDistinct(Distinct):
    """Rows of `distinct` that are dropped when no equal row can come; views hold them."""

    forgets: ClassVar[bool] = True
    __slots__ = ("__weakref__", "_open", "has_dropped")

    def __init__(self, closing: Closing) -> None:
        super().__init__()
        self._open, self.has_dropped = OpenKeys(closing), False
        follow_clocks(closing.frontier, self)

    def wait_for_flushes(self) -> None:
        """Drop what is closed as of the last flush, as changes come with flushes."""
        self._open.wait_for_flushes(self)

    def commit(self) -> None:
        """Note the rows that the step added, and drop those that are closed."""
        net: dict[Any, int] = {}
        for row, change in self._last:  # which may have a row several times
            net[row] = net.get(row, 0) + change
        for row, change in net.items():
            if change > 0 and self.shown.get(row) == change:
                self._open.add(row)
        super().commit()
        self.drop_closed()

    def drop_closed(self) -> None:
        """Drop the closed rows; in a commit that has stepped, when it is finished."""
        if self._last:
            return
        for row in self._open.take_closed():
            self.has_dropped = True
            self.shown.pop(row, None)


class ClosingSessions(KeptGroups):
    """Sessions that are dropped when they end before the watermark, with keys that have no other;
    views hold their rows."""

    forgets: ClassVar[bool] = True
    __slots__ = ("__weakref__", "_ends", "_frontier", "_numbers", "_waiting", "has_dropped")

    def __init__(
        self, key: Callable[[Any], Any], new: Callable[[], Any], frontier: Frontier
    ) -> None:
        super().__init__(key, new)
        self._frontier, self.has_dropped = frontier, False
        self._ends: list[tuple[Any, int, Any]] = []
        self._numbers = count()
        self._waiting: set[Any] = set()
        follow_clocks(frontier, self)

    def wait_for_flushes(self) -> None:
        """Drop what is closed as of the last flush, as changes come with flushes."""
        self._frontier = self._frontier.at_flush()
        follow_clocks(self._frontier, self)

    def commit(self) -> None:
        """Commit the touched groups, and drop the sessions that are over."""
        stepped = list(self._stepped)
        super().commit()
        for key in stepped:
            self._wait(key)
        self.drop_closed()

    def drop_closed(self) -> None:
        """Drop the sessions that are over; in a commit that has stepped some, at its end."""
        if self._stepped:
            return
        mark = self._frontier.low()
        while mark is not None and self._ends and self._ends[0][0] <= mark:
            _, _, key = heappop(self._ends)
            self._waiting.discard(key)
            self.has_dropped = True
            group: Any = self._groups.get(key)
            if group is not None:
                group.close(mark)
                if group.is_empty:
                    del self._groups[key]
                self._wait(key)

    def _wait(self, key: Any) -> None:
        """Note when the first session of a key ends, unless an earlier time is noted."""
        group: Any = self._groups.get(key)
        end = None if group is None or key in self._waiting else group.first_end()
        if end is not None:
            self._waiting.add(key)
            heappush(self._ends, (end, next(self._numbers), key))


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
    __slots__ = (
        *("_due", "_first", "_frontier", "_gone", "_last", "_marks", "_numbers", "_rows"),
        *("_was_first", "_had_dropped", "has_dropped", "touched"),
    )

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
        self._first: list[Pair] = []
        """The rows that a step emitted, while no other one has emitted any."""
        self.has_dropped = False
        """True if rows that were emitted are held no more."""
        self._was_first, self._had_dropped = self._first, False
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
        out = self._take_closed()
        self._was_first, self._had_dropped = self._first, self.has_dropped
        if out:
            self.has_dropped |= bool(self._first)
            self._first = [] if self.has_dropped else out
        return out

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
        self._first, self.has_dropped = self._was_first, self._had_dropped
        gone, self._marks = self._gone
        for entry in gone:
            heappush(self._due, entry)
        self.commit()

    def commit(self) -> None:
        self._last, self._gone = [], ([], self._marks)
        self._was_first, self._had_dropped = self._first, self.has_dropped

    def contents(self) -> Iterable[Pair]:
        """Return the rows that were emitted; none of them once some are held no more."""
        return self._first

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
    __slots__ = ("_beside", "_due", "_frontier", "_numbers", "_value", "has_dropped")

    def __init__(
        self, *given: Any, value: Callable[[Row], Any], frontier: Frontier, **options: Any
    ) -> None:
        super().__init__(*given, **options)
        self._value = value
        self._frontier, self.has_dropped = frontier, False
        self._due: list[tuple[Any, int, Key, Row]] = []
        self._numbers = count()
        self._beside: list[weakref.ref[ForgetsRows]] = []
        follow_clocks(frontier, self)

    def beside(self, state: ForgetsRows) -> None:
        """Have a state forget the rows that are dropped, as long as it is used."""
        self._beside = [*(each for each in self._beside if each() is not None), weakref.ref(state)]

    def wait_for_flushes(self) -> None:
        """Drop what is closed as of the last flush, as changes come with flushes."""
        self._frontier = self._frontier.at_flush()
        follow_clocks(self._frontier, self)

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
                self.has_dropped = True
                self.take_back([(key, (row, weight))])
                for reference in self._beside:
                    state = reference()
                    if state is not None:
                        state.forget(row)
