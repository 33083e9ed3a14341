"""Frames: of which rows of its partition a function is asked for a row, and which rows see another.

    rows between 1 preceding and current row        [place - 1, place]
    range between unbounded preceding and current   up to the last row with equal keys
    range between 5 preceding and ...               from the first row whose key is not 5 less

What begins a frame, and what ends it, moves forward from row to row. So the rows in whose frames
another one is are beside each other, and are found by bisection.

Cost:   O(log rows) for an edge by key; O(log rows)**2 for who sees a row, where a frame has an
        offset by key. An offset in groups counts them one by one.
Source: SQL:2003, window frames.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, Literal, TypeAlias

from optimizer.record import record
from reactive.languages.sql.partitions.entries import Entries
from reactive.languages.sql.runtime import zones
from reactive.languages.sql.runtime.sort_keys import behind, prefix
from reactive.languages.sql.runtime.times import earlier, later

Edge: TypeAlias = "tuple[Literal['unbounded', 'current', 'preceding', 'following'], Any]"
UNBOUNDED: Edge = ("unbounded", None)
CURRENT: Edge = ("current", None)
Span = tuple[int, int]
"""From a place up to another."""


@record
class Frame:
    """Which rows of a partition a function is asked of: from `start` to `end`, counted in rows, in
    groups of rows with equal keys, or (`range`) by the key."""

    kind: Literal["rows", "range", "groups"]
    start: Edge
    end: Edge
    exclude: Literal["", "current", "group", "ties"] = ""
    zone: str = "UTC"
    """Time zone whose calendar an offset of days from an instant follows."""

    @property
    def is_whole(self) -> bool:
        """Whether it is the partition, for every row."""
        return self.start == self.end == UNBOUNDED and not self.exclude

    @property
    def grows(self) -> bool:
        """Whether it begins with the partition."""
        return self.start == UNBOUNDED and not self.exclude

    @property
    def shrinks(self) -> bool:
        """Whether it ends with the partition."""
        return self.end == UNBOUNDED and not self.exclude


WHOLE = Frame("rows", UNBOUNDED, UNBOUNDED)
TO_PEERS = Frame("range", UNBOUNDED, CURRENT)


class Order:
    """The rows of a partition in order, and which of them have equal keys."""

    __slots__ = ("entries", "is_descending")

    def __init__(self, entries: Entries, *, is_descending: bool) -> None:
        self.entries = entries
        self.is_descending = is_descending
        """Whether the first key is."""

    def first(self, place: int) -> int:
        """The place of the first row that has the same keys."""
        return self.entries.place(self.entries.key(place)[:-1])

    def behind(self, place: int) -> int:
        """The place behind the last row that has the same keys."""
        return self.entries.place(behind(self.entries.key(place)[:-1]))

    # Frames.

    def frame(self, frame: Frame, place: int) -> Span:
        """From where to where a row's frame is, with what it excludes."""
        size = self.entries.size
        start = min(max(0, self.start(frame, place)), size)
        return start, max(start, min(size, self.end(frame, place)))

    def parts(self, frame: Frame, place: int) -> tuple[Span, ...]:
        """A row's frame without what it excludes."""
        start, end = self.frame(frame, place)
        match frame.exclude:
            case "current":
                return _without(start, end, place, place + 1)
            case "group":
                return _without(start, end, self.first(place), self.behind(place))
            case "ties":
                left = _without(start, end, self.first(place), place)
                return (*left[:-1], *_without(*left[-1], place + 1, self.behind(place)))
            case _:
                return ((start, end),)

    def start(self, frame: Frame, place: int) -> int:
        """Where a frame begins, which may be before the partition, or behind."""
        return self._edge(frame, frame.start, place, is_end=False)

    def end(self, frame: Frame, place: int) -> int:
        """Where it ends."""
        return self._edge(frame, frame.end, place, is_end=True)

    def seeing(self, frame: Frame, place: int) -> Span:
        """The rows in whose frames a row is, or which it moves by coming or going."""
        if frame.kind == "rows":
            return self._seeing_rows(frame, place)
        return self._seeing_from(frame, place), self._seeing_to(frame, place)

    def moved(self, frame: Frame, place: int, *, is_end: bool) -> Span:
        """The rows for which a row is between them and an edge of their frame."""
        by, size = _signed(frame.end if is_end else frame.start), self.entries.size
        if frame.kind == "rows":
            first, last = sorted((place, place - by))
            return max(0, first + (not is_end)), min(size, last + (not is_end))
        border = self.first if is_end else self.behind
        other = self._group(place, -by)
        beside = 0 if other < 0 else size if other >= size else border(other)
        first, last = sorted((border(place), beside))
        return first, last

    def _edge(self, frame: Frame, edge: Edge, place: int, *, is_end: bool) -> int:
        kind, (side, offset) = frame.kind, edge
        if side == "unbounded":
            return self.entries.size if is_end else 0
        if kind == "rows":
            return place + (_signed(edge) or 0) + is_end
        if side == "current":
            return self.behind(place) if is_end else self.first(place)
        if kind == "groups":
            place = self._group(place, _signed(edge) or 0)
            if not 0 <= place < self.entries.size:
                return 0 if place < 0 else self.entries.size
            return self.behind(place) if is_end else self.first(place)
        return self._by_key(place, offset, side == "following", frame.zone, is_end=is_end)

    def _group(self, place: int, by: int) -> int:
        """A row of the group so many behind that of a row, or a place where there is none."""
        for _ in range(abs(by)):
            if not 0 <= place < self.entries.size:
                break
            place = self.behind(place) if by > 0 else self.first(place) - 1
        return place

    def _by_key(self, place: int, offset: Any, following: bool, zone: str, *, is_end: bool) -> int:
        """The first key that is not before an offset from the row's, or the last not behind."""
        key = self.entries.row(place)[2][0]
        if key is None:
            return self.behind(place) if is_end else self.first(place)
        wanted = _moved(key, offset, zone, up=following is not self.is_descending)
        found = prefix(wanted, descending=self.is_descending)
        return self.entries.place(behind(found) if is_end else found)

    def _seeing_rows(self, frame: Frame, place: int) -> Span:
        """A row between another one and its frame moves it too."""
        start, end, size = _signed(frame.start), _signed(frame.end), self.entries.size
        first = 0 if end is None else max(0, place - max(0, end))
        return first, size if start is None else min(size, place - min(0, start) + 1)

    def _seeing_from(self, frame: Frame, place: int) -> int:
        by = _signed(frame.end)
        if by is None:
            return 0
        if frame.kind == "groups":
            found = self._group(place, -max(0, by))
            return self.first(found) if found >= 0 else 0
        if frame.end == CURRENT:
            return self.first(place)
        return bisect_right(range(self.entries.size), place, key=partial(self.end, frame))

    def _seeing_to(self, frame: Frame, place: int) -> int:
        by = _signed(frame.start)
        if by is None:
            return self.entries.size
        if frame.kind == "groups":
            found = self._group(place, -min(0, by))
            return self.behind(found) if found < self.entries.size else found
        if frame.start == CURRENT:
            return self.behind(place)
        return bisect_right(range(self.entries.size), place, key=partial(self.start, frame))


def _signed(edge: Edge) -> Any:
    """How far an edge is behind the row; None without a bound."""
    side, offset = edge
    if side in ("unbounded", "current"):
        return None if side == "unbounded" else 0
    return offset if side == "following" else -offset


def _moved(key: Any, offset: Any, zone: str, *, up: bool) -> Any:
    if isinstance(key, datetime) and key.tzinfo is not None:
        return (zones.later if up else zones.earlier)(key, offset, zone)
    if isinstance(key, date) and isinstance(offset, timedelta):
        made = later(key, offset) if up else earlier(key, offset)
        return made if hasattr(key, "hour") else made.date()
    if isinstance(key, float):
        offset = float(offset)
    return key + offset if up else key - offset


def _without(start: int, end: int, first: int, last: int) -> tuple[Span, ...]:
    """A span without a part of it."""
    cut, resume = min(end, max(start, first)), max(start, min(end, last))
    return ((start, max(start, cut)), (resume, max(resume, end)))
