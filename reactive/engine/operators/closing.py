"""Groups of windows that close: below the watermark their state is dropped, their rows stay.

    clicks.window(tumbling(10), at=...)            time of the stream, so that no event comes
          .group_by(lambda c, w: (c.page, w))      to a window that ends at or before the watermark
          .aggregate(Count())

    watermark 27:   groups of windows up to (10, 20) are dropped, their rows are in the views

Sound:  an event before the watermark is late and does not reach the stream, and the time by which
        the window is chosen is the time of the stream; so no row of a closed group changes.
State:  the groups of open windows, and their keys by the ends of the windows.
Cost:   O(log open windows) for each window; nothing for an event of a known group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, ClassVar

from optimizer import plan
from optimizer.expr import (
    Attempt,
    Attribute,
    Call,
    Constant,
    Display,
    Expr,
    Function,
    Item,
    Lifted,
    Parameter,
    all_parameters,
    constant,
    one_value,
    reads,
)
from optimizer.expressions.text import over
from optimizer.plans.nodes.groups import keeper
from optimizer.plans.properties import bindings, shapes
from optimizer.record import record
from optimizer.rewriting import own_values
from optimizer.subqueries.keyed_rows import as_expression
from reactive.engine.collections.time_windows import TimeWindows
from reactive.engine.operators.aggregate import GroupAggregates, KeptGroups
from reactive.engine.operators.event_time import EventClock

EndOf = Callable[[Any], Any]


@record
class Closing:
    """The clock of the stream below, and the end of the window in the key of a group."""

    clock: EventClock
    end_of: EndOf


@record
class ClosingWindow:
    """A binding with a window that closes; `size` is known unless windows are sessions or days."""

    clock: EventClock
    size: Any


Windows = Mapping[Expr, ClosingWindow]
SESSION = Item(Parameter(1), constant(1))
"""The window beside a row, in the rows of a reduce that keeps sessions."""

# The plan: which groups close.


def closing_of(node: plan.Aggregate) -> Closing | None:
    """Return how the groups of an aggregate close; None if one may change for ever."""
    if node.key is None:
        return None
    windows = _windows_of(node.input)
    key = as_expression(node.key, shapes(node.input)).body
    is_tuple = isinstance(key, Display) and key.kind == "tuple"
    for place, item in enumerate(key.items if isinstance(key, Display) else (key,)):
        found = _end_in(item, windows)
        if found is not None and (is_tuple or item is key):
            clock, end_of = found
            return Closing(clock, partial(_end_at, place, end_of) if is_tuple else end_of)
    return None


def _end_at(place: int, end_of: EndOf, key: Any) -> Any:
    return end_of(key[place])


def _end_in(item: Expr, windows: Windows) -> tuple[EventClock, EndOf] | None:
    """Return the end of the window by a part of a key: the window, its end or its start."""
    if (found := windows.get(item)) is not None:
        return found.clock, lambda window: window[1]
    if not isinstance(item, Attribute) or (found := windows.get(item.of)) is None:
        return None
    if item.name == "end":
        return found.clock, lambda end: end
    size = found.size
    if item.name != "start" or size is None:
        return None
    return found.clock, lambda start: start + size


def _windows_of(node: plan.Node) -> Windows:
    """Return the windows that close in the rows of a node, by the expressions that read them."""
    match node:
        case plan.Where(source) | plan.View(source):
            return _windows_of(source)
        case plan.Unnest(source, function):
            return {**_windows_of(source), **_windows_made(source, function)}
        case plan.Reduce(_, _, function):
            clock = getattr(keeper(function), "clock", None)
            return {} if clock is None else {SESSION: ClosingWindow(clock, None)}
        case plan.Extend(source, keep, columns):
            below = _windows_of(source)
            read = [as_expression(column, shapes(source)).body for column in columns]
            made = [*map(Parameter, keep), *read]
            return {Parameter(n): below[of] for n, of in enumerate(made) if of in below}
        case plan.Lookup(plan.Select(source) as beside) if _is_row_beside(beside):
            return _windows_of(source)
        case _:
            return {}


def _windows_made(source: plan.Node, function: Function) -> Windows:
    """Return the windows that an `unnest` appends, if they are of the time of a stream."""
    made = as_expression(function, shapes(source))
    match _without_policy(made.body):
        case Call(Constant() as called, (time,), ()) if isinstance(called.value, TimeWindows):
            clock = clock_of(source, made.with_body(time))
            size = called.value.size if called.value.zone is None else None
            place = Parameter(bindings(source))
            return {} if clock is None else {place: ClosingWindow(clock, size)}
    return {}


def _without_policy(several: Expr) -> Expr:
    """Return the call that gives several values, without what drops rows for which it raises."""
    match several:
        case Attempt(Call(Constant() as called, (found,), ())) if called.value in OF_POLICY:
            return found
        case _:
            return several


OF_POLICY = (own_values.elements, own_values.elements_apart)


def clock_of(node: plan.Node, time: Lifted) -> EventClock | None:
    """Return the clock of the stream whose time an expression over a node is; None for others."""
    while max(reads(time.body), default=0) < bindings(node):
        match node:
            case plan.Table() if node.time is not None and node.clock is not None:
                own = as_expression(node.time, shapes(node)).body
                clock: EventClock = node.clock
                return clock if own == time.body else None
            case plan.Where(source) | plan.View(source) | plan.Unnest(source):
                node = source
            case plan.Extend(source, keep, columns):
                made = [as_expression(column, shapes(source)).body for column in columns]
                time = time.with_body(over(time.body, (*map(Parameter, keep), *made)))
                node = source
            case plan.Select(source, function):
                row = as_expression(function, shapes(source)).body
                time = time.with_body(over(time.body, (row,)))
                node = source
            case plan.Lookup(plan.Select(source) as beside) if _is_row_beside(beside):
                node = source
            case _:
                return None
    return None  # it reads what a node below has appended


def _is_row_beside(node: plan.Select) -> bool:
    """Return True if a select puts the whole row beside a key, as below a look-up."""
    body = as_expression(node.function, shapes(node.input)).body
    row = one_value(all_parameters(bindings(node.input)))
    return isinstance(body, Display) and body.items[0] == row


# The operators.


class ClosingAggregates(GroupAggregates):
    """Groups that are dropped when their window closes; views hold their rows."""

    forgets: ClassVar[bool] = True
    __slots__ = ("_closing", "_ends", "_keys")

    def __init__(self, *given: Any, closing: Closing, **options: Any) -> None:
        self._closing = closing
        self._ends: list[Any] = []
        self._keys: dict[Any, list[Any]] = {}
        super().__init__(*given, **options)

    def commit(self) -> None:
        """Note the groups that the step made, and drop those whose window is closed."""
        for key, before in self._before.items():
            if before is None and key in self.groups:
                end = self._closing.end_of(key)
                keys = self._keys.get(end)
                if keys is None:
                    keys = self._keys[end] = []
                    heappush(self._ends, end)
                keys.append(key)
        super().commit()
        mark = self._closing.clock.watermark
        while mark is not None and self._ends and self._ends[0] <= mark:
            for key in self._keys.pop(heappop(self._ends)):
                self.groups.pop(key, None)


class ClosingSessions(KeptGroups):
    """Sessions that are dropped when they end before the watermark, with keys that have no other;
    views hold their rows."""

    forgets: ClassVar[bool] = True
    __slots__ = ("_clock", "_ends", "_numbers", "_waiting")

    def __init__(
        self, key: Callable[[Any], Any], new: Callable[[], Any], clock: EventClock
    ) -> None:
        super().__init__(key, new)
        self._clock = clock
        self._ends: list[tuple[Any, int, Any]] = []
        self._numbers = count()
        self._waiting: set[Any] = set()

    def commit(self) -> None:
        """Commit the touched groups, and drop the sessions that are over."""
        stepped = list(self._stepped)
        super().commit()
        for key in stepped:
            self._wait(key)
        mark = self._clock.watermark
        while mark is not None and self._ends and self._ends[0][0] <= mark:
            _, _, key = heappop(self._ends)
            self._waiting.discard(key)
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
