"""Windows of time and of rows by their definitions, over lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import reduce
from typing import Any, NamedTuple

from tests.random_queries.folds import folded
from tests.random_queries.nodes import Key
from tests.random_queries.orders import Keyed, in_order, rank
from tests.random_queries.over_time import Call
from tests.random_queries.rows import frozen

ORIGIN = datetime(2000, 1, 3)
Rows = Sequence[Any]


class Span(NamedTuple):
    """A window of time."""

    start: datetime
    end: datetime


def windows(kind: str, minutes: Sequence[int], at: datetime) -> list[Span]:
    """Return the tumbling or hopping windows of a moment: all that it is in, one by one."""
    size, every = timedelta(minutes=minutes[0]), timedelta(minutes=minutes[-1])
    start = ORIGIN.replace(tzinfo=at.tzinfo)
    start += (at - start) // every * every
    found = []
    while start + size > at:
        found.append(Span(start, start + size))
        start -= every
    return found


def sessions(rows: Rows, at: Any, by: Any, gap: timedelta) -> list[tuple[Any, Span]]:
    """Pair each row that has a moment with its session: it grows while a row is near its ends."""
    keyed = [(row, at(row), frozen(by(row))) for row in rows]
    timed = [each for each in keyed if each[1] is not None]
    found = []
    for row, first, key in timed:
        own = [moment for _, moment, other in timed if other == key]
        start = end = first
        while near := [m for m in own if m < start and start - m < gap]:
            start = min(near)
        while near := [m for m in own if m > end and m - end < gap]:
            end = max(near)
        found.append((row, Span(start, end + gap)))
    return found


def over(
    rows: Rows, by: Callable[[Any], Any], keyed: list[Keyed], call: Call, value: Any
) -> list[tuple[Any, Any]]:
    """Pair each row with the value of a function of its window."""
    parts: dict[Any, list[Any]] = {}
    for row in rows:
        parts.setdefault(frozen(by(row)), []).append(row)
    found = []
    for members in parts.values():
        part = _Partition(in_order(members, keyed), keyed, value)
        found += [(row, part.answer(call, place)) for place, row in enumerate(part.rows)]
    return found


class _Partition:
    """The rows of a partition in order, with their keys and values."""

    def __init__(self, rows: list[Any], keyed: list[Keyed], value: Any) -> None:
        self.rows = rows
        self._keyed = keyed
        self._keys = [tuple(rank(of(row), key) for of, key in keyed) for row in rows]
        self._values = [*map(value, rows)]

    def answer(self, call: Call, place: int) -> Any:
        count, own = len(self.rows), self._keys[place]
        peers = [i for i, key in enumerate(self._keys) if key == own]
        match call.name:
            case "rank":
                return peers[0] + 1
            case "dense_rank":
                return len(set(self._keys[: place + 1]))
            case "row_number":
                return place + 1
            case "percent_rank":
                return peers[0] / (count - 1) if count > 1 else 0.0
            case "cume_dist":
                return (peers[-1] + 1) / count
            case "ntile":
                sizes = [count // call.number + (n < count % call.number) for n in range(9)]
                return next(n for n in range(1, 9) if place < sum(sizes[:n]))
            case "lag" | "lead":
                return self._shifted(call, place)
            case "scan":
                steps = self._values[: place + 1]
                return reduce(lambda s, v: 0 if v is None or v > 3 else min(s + 1, 3), steps, 0)
        return self._folded(call, self._frame(call, place, peers))

    def _shifted(self, call: Call, place: int) -> Any:
        values = self._values[place + 1 :]
        if call.name == "lag":
            values = self._values[:place][::-1]
        values = [v for v in values if v is not None or not call.skip_none]
        return values[call.number - 1] if len(values) >= call.number else None

    def _frame(self, call: Call, place: int, peers: list[int]) -> list[int]:
        """Return the places of the rows of the frame."""
        if call.frame is None:
            return [*range(peers[-1] + 1)]
        kind, start, end = call.frame
        places = range(len(self.rows))
        if kind == "rows":
            first, last = (None if e is None else place + e for e in (start, end))
            return [i for i in places if _is_between(first, i, last)]
        of, key = self._keyed[0]
        moments = [of(row) for row in self.rows]
        return [i for i in places if _is_near(moments[place], moments[i], start, end, key)]

    def _folded(self, call: Call, places: list[int]) -> Any:
        values = [self._values[i] for i in places]
        known = [value for value in values if value is not None]
        match call.name:
            case "first" | "last" | "nth":
                numbers = {"first": 1, "last": -1, "nth": call.number}
                number, some = numbers[call.name], known if call.skip_none else values
                index = number - 1 if number > 0 else number
                return some[index] if -len(some) <= index < len(some) else None
            case "count rows":
                return len(values)
            case "count":
                return len(known)
            case "quantile":
                return _quantile(sorted(known), call.number)
        return folded(call.name.title(), known, 0) if known else None


def _is_between(first: int | None, place: int, last: int | None) -> bool:
    return (first is None or first <= place) and (last is None or place <= last)


def _is_near(own: Any, other: Any, start: Any, end: Any, key: Key) -> bool:
    """Return True if the other value is between two distances, in the direction of the order."""
    distance = own - other if key.descending else other - own
    return (start is None or start <= distance) and (end is None or distance <= end)


def _quantile(values: list[Any], at: float) -> Any:
    if not values:
        return None
    place = (len(values) - 1) * at
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)
