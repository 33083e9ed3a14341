"""Frames: the rows of a partition that a function reads for a row, and the rows that see a row.

    rows between 1 preceding and current row        [place - 1, place]
    range between unbounded preceding and current   up to the last row with equal keys
    range between 5 preceding and ...               from the first row whose key is not 5 less

The start and the end of a frame move forward from row to row. The rows whose frames contain a row
are therefore contiguous, and are found by bisection.

Cost:   O(log rows) for an edge by key; O(log rows)**2 for the rows that see a row, if a frame has
        an offset by key. An offset in groups counts them one by one.
Source: SQL:2003, window frames.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from optimizer.record import record
from reactive.engine.operators.windows.chunks import places_of_changes
from reactive.engine.operators.windows.entries import Entries
from reactive.engine.operators.windows.sort_keys import SortKeys

Edge: TypeAlias = "tuple[Literal['unbounded', 'current', 'preceding', 'following'], Any]"
UNBOUNDED: Edge = ("unbounded", None)
CURRENT: Edge = ("current", None)
Span = tuple[int, int]
"""From a place up to another."""
Shift = Callable[[Any, Any, bool], Any]
"""Return a key plus an offset if the last argument is true, else minus it."""


def shift_number(key: Any, offset: Any, up: bool) -> Any:
    """Return a number plus an offset if `up`, else minus it."""
    if isinstance(key, float):
        offset = float(offset)
    return key + offset if up else key - offset


@record
class Frame:
    """The rows of a partition that a function reads, from `start` to `end`.

    They are counted in rows, in groups of rows with equal keys, or (`range`) by the key.
    """

    kind: Literal["rows", "range", "groups"]
    start: Edge
    end: Edge
    exclude: Literal["", "current", "group", "ties"] = ""
    shift: Shift = shift_number

    @property
    def is_by_distance(self) -> bool:
        """True if an edge is a distance from the key of the row."""
        is_distance = self.start[1] is not None or self.end[1] is not None
        return self.kind == "range" and is_distance

    @property
    def is_whole(self) -> bool:
        """True if it is the whole partition, for every row."""
        return self.start == self.end == UNBOUNDED and not self.exclude

    @property
    def grows(self) -> bool:
        """True if it begins with the partition."""
        return self.start == UNBOUNDED and not self.exclude

    @property
    def shrinks(self) -> bool:
        """True if it ends with the partition."""
        return self.end == UNBOUNDED and not self.exclude


WHOLE = Frame("rows", UNBOUNDED, UNBOUNDED)
TO_PEERS = Frame("range", UNBOUNDED, CURRENT)


class Order:
    """The rows of a partition in order, and which of them have equal keys."""

    __slots__ = ("entries", "is_single", "keys")

    def __init__(self, entries: Entries, keys: SortKeys, *, is_single: bool) -> None:
        self.entries = entries
        self.keys = keys
        self.is_single = is_single
        """True if the cell of a row is its only argument, not a tuple."""

    def first(self, place: int) -> int:
        """Return the place of the first row that has the same keys."""
        return self.entries.place(self.entries.key(place))

    def behind(self, place: int) -> int:
        """Return the place behind the last row that has the same keys."""
        return self.entries.behind(self.entries.key(place))

    def of_part(self, keys: list[Any], cells: list[Any]) -> Order:
        """Return an order of rows with these sort keys and cells only."""
        return Order(self.entries.of_part(keys, cells), self.keys, is_single=self.is_single)

    # Arguments.

    def value(self, argument: int, place: int) -> Any:
        """Return an argument of the row at a place."""
        cell = self.entries.cell(place)
        return cell if self.is_single else cell[argument]

    def values(self, argument: int | None, start: int, stop: int) -> list[Any]:
        """Return an argument of the rows from a place up to another; 1 for each without one."""
        if argument is None:
            return [1] * (stop - start)
        return self.of_cells(argument, self.entries.cells(start, stop))

    def of_cells(self, argument: int, cells: list[Any]) -> list[Any]:
        """Return an argument of the rows with these cells."""
        return cells if self.is_single else [cell[argument] for cell in cells]

    # Frames.

    def frame(self, frame: Frame, place: int) -> Span:
        """Return the span of a row's frame, within the partition; rows of EXCLUDE are included."""
        size = self.entries.size
        start = min(max(0, self.start(frame, place)), size)
        return start, max(start, min(size, self.end(frame, place)))

    def rows_of_frame(self, frame: Frame) -> Span:
        """Return the first row of a frame by row numbers, and the end, counted from its row."""
        return edge_distance(frame.start), edge_distance(frame.end) + 1

    def parts(self, frame: Frame, place: int) -> tuple[Span, ...]:
        """Return the spans of a row's frame, without the rows of EXCLUDE."""
        start, end = self.frame(frame, place)
        match frame.exclude:
            case "current":
                return _exclude_rows(start, end, place, place + 1)
            case "group":
                return _exclude_rows(start, end, self.first(place), self.behind(place))
            case "ties":
                left = _exclude_rows(start, end, self.first(place), place)
                return (*left[:-1], *_exclude_rows(*left[-1], place + 1, self.behind(place)))
            case _:
                return ((start, end),)

    def start(self, frame: Frame, place: int) -> int:
        """Return the start of a frame, which may be before the partition, or behind it."""
        return self._edge(frame, frame.start, place, is_end=False)

    def end(self, frame: Frame, place: int) -> int:
        """Return the end of a row's frame, exclusive, which may be outside the partition."""
        return self._edge(frame, frame.end, place, is_end=True)

    def all_frames(self, frame: Frame) -> tuple[Sequence[int], Sequence[int]]:
        """Return the start and the end of each row's frame; rows of EXCLUDE are included."""
        size = self.entries.size
        starts = self._all_edges(frame, frame.start, is_end=False)
        ends = self._all_edges(frame, frame.end, is_end=True)
        if starts is None or ends is None:
            spans = [self.frame(frame, place) for place in range(size)]
            return [span[0] for span in spans], [span[1] for span in spans]
        if frame.grows or frame.shrinks or frame.start == frame.end == CURRENT:
            return starts, ends  # no frame ends before its start
        return starts, list(map(max, starts, ends))

    def _all_edges(self, frame: Frame, edge: Edge, *, is_end: bool) -> list[int] | None:
        """Return an edge of all frames, within the partition; None if it needs the keys' values."""
        size = self.entries.size
        if edge == UNBOUNDED:
            return [size if is_end else 0] * size
        if frame.kind == "rows":
            by = (edge_distance(edge) or 0) + is_end
            return [min(max(0, place), size) for place in range(by, size + by)]
        if edge == CURRENT:
            return self.all_lasts() if is_end else self.all_firsts()
        return None

    def all_firsts(self) -> list[int]:
        """Return for each row the place of the first row with equal keys."""
        firsts: list[int] = []
        for start, stop in pairwise([0, *places_of_changes(self.entries.all_keys())]):
            firsts += [start] * (stop - start)
        return firsts

    def all_lasts(self) -> list[int]:
        """Return for each row the place behind the last row with equal keys."""
        lasts: list[int] = []
        for start, stop in pairwise([0, *places_of_changes(self.entries.all_keys())]):
            lasts += [stop] * (stop - start)
        return lasts

    def seeing(self, frame: Frame, place: int) -> Span:
        """Return the rows whose frames contain a row, or move when it is inserted or deleted."""
        if frame.kind == "rows":
            return self._seeing_rows(frame, place)
        return self._seeing_from(frame, place), self._seeing_to(frame, place)

    def rows_within_edge(self, frame: Frame, place: int, *, is_end: bool) -> Span:
        """Return the rows that have the row at `place` between them and an edge of their frame."""
        by, size = edge_distance(frame.end if is_end else frame.start), self.entries.size
        if frame.kind == "rows":
            first, last = sorted((place, place - by))
            return max(0, first + (not is_end)), min(size, last + (not is_end))
        border = self.first if is_end else self.behind
        other = self._group(place, -by)
        beside = 0 if other < 0 else size if other >= size else border(other)
        first, last = sorted((border(place), beside))
        return first, last

    def _edge(self, frame: Frame, edge: Edge, place: int, *, is_end: bool) -> int:
        """Return the place of an edge of a row's frame, which may be outside the partition."""
        kind, (side, offset) = frame.kind, edge
        if side == "unbounded":
            return self.entries.size if is_end else 0
        if kind == "rows":
            return place + (edge_distance(edge) or 0) + is_end
        if side == "current":
            return self.behind(place) if is_end else self.first(place)
        if kind == "groups":
            place = self._group(place, edge_distance(edge) or 0)
            if not 0 <= place < self.entries.size:
                return 0 if place < 0 else self.entries.size
            return self.behind(place) if is_end else self.first(place)
        return self._by_key(frame, place, offset, side == "following", is_end=is_end)

    def _group(self, place: int, by: int) -> int:
        """Return a row `by` groups behind the group of a row, or a place outside the partition."""
        for _ in range(abs(by)):
            if not 0 <= place < self.entries.size:
                break
            place = self.behind(place) if by > 0 else self.first(place) - 1
        return place

    def _by_key(
        self, frame: Frame, place: int, offset: Any, following: bool, *, is_end: bool
    ) -> int:
        """Return the first place whose key reaches an offset from the row's, or the last."""
        key = self.entries.cell(place)[-1]
        if key is None:
            return self.behind(place) if is_end else self.first(place)
        wanted = frame.shift(key, offset, following is not self.keys.is_descending)
        if is_end:
            return self.entries.behind(self.keys.behind(wanted))
        return self.entries.place(self.keys.at(wanted))

    def _seeing_rows(self, frame: Frame, place: int) -> Span:
        """Return the rows whose frame, by row numbers, has this row, or moves without it."""
        start, end, size = edge_distance(frame.start), edge_distance(frame.end), self.entries.size
        first = 0 if end is None else max(0, place - max(0, end))
        return first, size if start is None else min(size, place - min(0, start) + 1)

    def _seeing_from(self, frame: Frame, place: int) -> int:
        """Return the place of the first row whose frame ends behind the row at `place`."""
        by = edge_distance(frame.end)
        if by is None:
            return 0
        if frame.kind == "groups":
            found = self._group(place, -max(0, by))
            return self.first(found) if found >= 0 else 0
        if frame.end == CURRENT:
            return self.first(place)
        return bisect_right(range(self.entries.size), place, key=partial(self.end, frame))

    def _seeing_to(self, frame: Frame, place: int) -> int:
        """Return the place behind the last row whose frame starts at the row or before it."""
        by = edge_distance(frame.start)
        if by is None:
            return self.entries.size
        if frame.kind == "groups":
            found = self._group(place, -min(0, by))
            return self.behind(found) if found < self.entries.size else found
        if frame.start == CURRENT:
            return self.behind(place)
        return bisect_right(range(self.entries.size), place, key=partial(self.start, frame))


def edge_distance(edge: Edge) -> Any:
    """Return the distance of an edge behind the row; None without a bound."""
    side, offset = edge
    if side in ("unbounded", "current"):
        return None if side == "unbounded" else 0
    return offset if side == "following" else -offset


def _exclude_rows(start: int, end: int, first: int, last: int) -> tuple[Span, ...]:
    """Return the parts of a span before `first` and behind `last`, which may be empty."""
    cut, resume = min(end, max(start, first)), max(start, min(end, last))
    return ((start, max(start, cut)), (resume, max(resume, end)))
