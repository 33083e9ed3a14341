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
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, ClassVar

from optimizer import plan
from optimizer.expr import Display, Expr, Lifted, row_names
from optimizer.plans.properties import bindings, shapes
from optimizer.record import record
from optimizer.subqueries.keyed_rows import as_expression
from reactive.engine.codegen.functions import callable_of
from reactive.engine.operators.aggregate import GroupAggregates, KeptGroups
from reactive.engine.operators.frontiers import (
    Frontier,
    follow_clocks,
    frontier_of,
    times_of,
)
from reactive.engine.operators.set_operators import Distinct

ValueOf = Callable[[Any], Any]


@record
class Closing:
    """The frontier of a value in the key of a group, and the function that reads the value."""

    frontier: Frontier
    value_of: ValueOf


def closing_of(node: plan.Aggregate | plan.Distinct) -> Closing | None:
    """Return how the groups of an aggregate, or rows of `distinct`, close; None if they do not."""
    if isinstance(node, plan.Distinct):
        return _closing_of_rows(node.input)
    if node.key is None:
        return None
    return closing_by(node.input, as_expression(node.key, shapes(node.input)).body)


def _closing_of_rows(source: plan.Node) -> Closing | None:
    """Return how rows close, by a time or a window in them."""
    found = next(times_of(source), None)
    if found is None:
        return None
    value, frontier = found
    count = bindings(source)
    read: Callable[..., Any] = callable_of(Lifted(value, row_names(count), (), count))
    if count == 1:
        return Closing(frontier, lambda row: frontier.value(read(row)))
    return Closing(frontier, lambda row: frontier.value(read(*row)))


def closing_by(source: plan.Node, key: Expr) -> Closing | None:
    """Return how the groups of the rows of a node by a key close; None if they may not."""
    if not (isinstance(key, Display) and key.kind == "tuple"):
        found = frontier_of(source, key)
        return None if found is None else Closing(found, found.value)
    for place, item in enumerate(key.items):
        found = frontier_of(source, item)
        if found is not None:
            return Closing(found, partial(_value_at, place, found))
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
    __slots__ = ("__weakref__", "_open")

    def __init__(self, *given: Any, closing: Closing, **options: Any) -> None:
        self._open = OpenKeys(closing)
        super().__init__(*given, **options)
        follow_clocks(closing.frontier, self)

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
            self.groups.pop(key, None)


class ClosingDistinct(Distinct):
    """Rows of `distinct` that are dropped when no equal row can come; views hold them."""

    forgets: ClassVar[bool] = True
    __slots__ = ("__weakref__", "_open")

    def __init__(self, closing: Closing) -> None:
        super().__init__()
        self._open = OpenKeys(closing)
        follow_clocks(closing.frontier, self)

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
            self.shown.pop(row, None)


class ClosingSessions(KeptGroups):
    """Sessions that are dropped when they end before the watermark, with keys that have no other;
    views hold their rows."""

    forgets: ClassVar[bool] = True
    __slots__ = ("__weakref__", "_ends", "_frontier", "_numbers", "_waiting")

    def __init__(
        self, key: Callable[[Any], Any], new: Callable[[], Any], frontier: Frontier
    ) -> None:
        super().__init__(key, new)
        self._frontier = frontier
        self._ends: list[tuple[Any, int, Any]] = []
        self._numbers = count()
        self._waiting: set[Any] = set()
        follow_clocks(frontier, self)

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
