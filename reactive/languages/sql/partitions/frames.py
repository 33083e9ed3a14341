"""Rows of a partition in order, and the frames that they see.

Rows of a partition in the order of their sort keys, found by key or by place.

    keys    [k0 k1 k2] [k3 k4]      chunks of sort keys
    rows    [r0 r1 r2] [r3 r4]      the row of each
    shown   [s0 s1 s2] [s3 HIDDEN]  its answer, or its answers in a tuple

Each chunk caches what functions computed from all its rows, until one of them changes.

State:  24 bytes per row, beside the rows and their keys.
Cost:   O(log rows) to find a key; to insert or delete, moving some hundred references, and
        O(rows / 500) to count places anew.
Source: the lists of lists of G. Jenks, *sortedcontainers*.

Frames: the rows of the partition that a function reads for a row, and the rows that see a row.

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

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from itertools import accumulate, chain, islice
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from optimizer.record import record
from reactive.languages.sql.runtime import arrays
from reactive.languages.sql.runtime.rows import SortKey, behind, prefix
from reactive.languages.sql.runtime.times import earlier, later

HIDDEN: Any = object()
"""In the place of the answers of a row that is new, or beyond a limit."""
LOAD = 256
"""The rows of a chunk after a split; a chunk with more than twice as many is split."""
Row = tuple[Any, ...]
Pieces = Iterator[tuple["Chunk", int, int]]


class Chunk:
    """Some rows that stand beside each other."""

    __slots__ = ("keys", "known", "rows", "shown")

    def __init__(self, keys: list[SortKey], rows: list[Row], shown: list[Any]) -> None:
        self.keys = keys
        self.rows = rows
        self.shown = shown
        self.known: dict[Any, Any] = {}
        """Values that functions computed from all rows, by the name of the function."""


class Entries:
    """The rows of a partition, with their keys and answers.

    >>> entries = Entries()
    >>> for key, row in [((3,), "c"), ((1,), "a"), ((2,), "b")]:
    ...     entries.insert(entries.behind(key), key, row)
    >>> entries.rows(0, 3), entries.place((2,)), len(entries)
    (['a', 'b', 'c'], 1, 3)
    """

    __slots__ = ("_chunks", "_maxes", "_sizes", "_starts", "size")
    size: int
    """The number of rows."""
    _starts: list[int] | None
    """The number of rows before each chunk, if that is known."""

    def __init__(self) -> None:
        self._hold([])

    def __len__(self) -> int:
        return self.size

    def place(self, key: SortKey) -> int:
        """Return the number of rows before a key."""
        chunk = bisect_left(self._maxes, key)
        if chunk == len(self._maxes):
            return self.size
        offset = bisect_left(self._chunks[chunk].keys, key)
        return self._count_before(chunk) + offset if chunk else offset

    def find(self, key: SortKey, row: Row) -> int:
        """Return the place of a row; -1 if it is absent."""
        for place in range(self.place(key), self.size):
            chunk, offset = self.at(place)
            if chunk.rows[offset] == row:
                return place
            if chunk.keys[offset] != key:
                break
        return -1

    def at(self, place: int) -> tuple[Chunk, int]:
        """Return the chunk of the row at a place, and the row's offset in it."""
        if len(self._chunks) == 1:
            return self._chunks[0], place
        starts = self._all_starts()
        number = bisect_right(starts, place) - 1
        return self._chunks[number], place - starts[number]

    def key(self, place: int) -> SortKey:
        """Return the sort key of the row at a place."""
        chunk, offset = self.at(place)
        return chunk.keys[offset]

    def row(self, place: int) -> Row:
        """Return the row at a place."""
        chunk, offset = self.at(place)
        return chunk.rows[offset]

    def answers(self, place: int) -> Any:
        """Return the answers at a place."""
        chunk, offset = self.at(place)
        return chunk.shown[offset]

    def by_chunk(self, places: Sequence[int]) -> Iterable[tuple[Chunk, Sequence[int]]]:
        """Return the chunks of the rows at places, which ascend, and the offsets in each."""
        if len(self._chunks) == 1:
            return ((self._chunks[0], places),)
        return self._offsets(places)

    def _offsets(self, places: Sequence[int]) -> Iterator[tuple[Chunk, Sequence[int]]]:
        starts, done = self._all_starts(), 0
        while done < len(places):
            number = bisect_right(starts, places[done]) - 1
            first, stop = starts[number], bisect_left(places, starts[number + 1], done)
            yield self._chunks[number], [place - first for place in places[done:stop]]
            done = stop

    def rows(self, start: int, stop: int) -> list[Row]:
        """Return the rows from a place up to another."""
        if len(self._chunks) == 1:
            return self._chunks[0].rows[start:stop]
        found = [chunk.rows[first:last] for chunk, first, last in self.pieces(start, stop)]
        return found[0] if len(found) == 1 else list(chain.from_iterable(found))

    def from_(self, start: int) -> Iterator[Row]:
        """Yield the rows from a place on, lazily."""
        for chunk, first, last in self.pieces(start, self.size):
            yield from islice(chunk.rows, first, last)

    def all_shown(self, start: int, stop: int) -> Iterator[Any]:
        """Return the answers from a place up to another."""
        if len(self._chunks) == 1:
            return islice(self._chunks[0].shown, start, stop)
        pieces = self.pieces(start, stop)
        return chain.from_iterable(islice(c.shown, first, last) for c, first, last in pieces)

    def all_shown_back(self, start: int, stop: int) -> Iterator[Any]:
        """Yield the answers from `stop` back to `start`."""
        for chunk, first, last in reversed(list(self.pieces(start, stop))):
            yield from reversed(chunk.shown[first:last])

    def pieces(self, start: int, stop: int) -> Pieces:
        """Yield the chunks with the rows from a place up to another, and the places in them."""
        if start >= stop:
            return
        number = self._chunk_of(start)
        before = self._count_before(number)
        while before < stop:
            chunk = self._chunks[number]
            size = len(chunk.rows)
            yield chunk, max(0, start - before), min(size, stop - before)
            before, number = before + size, number + 1

    def split_span(self, start: int, stop: int) -> tuple[list[list[Row]], list[Chunk]]:
        """Return the rows from a place up to another: rows of partial chunks, and whole chunks."""
        if start >= stop:
            return [], []
        starts = self._all_starts()
        first = bisect_left(starts, start)  # the first chunk that may be whole
        last = bisect_right(starts, stop) - 1
        if first > last:
            return [self.rows(start, stop)], []
        edges = (start, starts[first]), (starts[last], stop)
        return [self.rows(*edge) for edge in edges if edge[0] < edge[1]], self._chunks[first:last]

    def behind(self, key: SortKey) -> int:
        """Return the number of rows with a key up to `key`."""
        chunk = bisect_right(self._maxes, key)
        if chunk == len(self._maxes):
            return self.size
        return self._count_before(chunk) + bisect_right(self._chunks[chunk].keys, key)

    def insert(self, place: int, key: SortKey, row: Row, shown: Any = HIDDEN) -> None:
        """Insert a row at a place; an interrupt can occur only before or after."""
        if not self._chunks:
            self._hold([Chunk([key], [row], [shown])])
            return
        number = self._chunk_of(place) if place < self.size else len(self._chunks) - 1
        offset, chunk = place - self._count_before(number), self._chunks[number]
        keys = chunk.keys
        keys[offset:offset] = (key,)  # no call from here on
        chunk.rows[offset:offset] = (row,)
        chunk.shown[offset:offset] = (shown,)
        chunk.known = {}
        self._maxes[number] = keys[-1]
        self._sizes[number] += 1
        self.size += 1
        self._starts = None
        if self._sizes[number] > 2 * LOAD:
            self._cut(number)

    def delete(self, place: int) -> None:
        """Delete the row at a place; an interrupt can occur only before or after."""
        number = self._chunk_of(place)
        chunk, offset = self._chunks[number], place - self._count_before(number)
        del chunk.keys[offset], chunk.rows[offset], chunk.shown[offset]
        chunk.known = {}
        if chunk.keys:
            self._maxes[number] = chunk.keys[-1]
            self._sizes[number] -= 1
        else:
            del self._chunks[number], self._maxes[number], self._sizes[number]
        self.size -= 1
        self._starts = None
        if len(chunk.keys) < LOAD // 4 and number and chunk.keys:
            self._merge(number - 1)

    def with_more(self, more: Sequence[tuple[SortKey, Row]]) -> Entries:
        """Return a copy with more rows, which are hidden; the entries stay."""
        triples = [(key, row, HIDDEN) for key, row in more]
        for chunk in self._chunks:
            triples += zip(chunk.keys, chunk.rows, chunk.shown, strict=True)
        triples.sort(key=itemgetter(0))
        made = Entries()
        made._hold(
            [
                Chunk(*(list(column) for column in zip(*triples[n : n + LOAD], strict=True)))
                for n in range(0, len(triples), LOAD)
            ]
        )
        return made

    def bytes(self) -> int:
        """Return the size of the lists in bytes, without the rows."""
        lists = [self._maxes, self._chunks]
        lists += [each for c in self._chunks for each in (c.keys, c.rows, c.shown)]
        keys = sum(sys.getsizeof(key) for chunk in self._chunks for key in chunk.keys)
        return keys + sum(map(sys.getsizeof, lists))

    def _hold(self, chunks: list[Chunk]) -> None:
        """Replace all chunks; each is in order, and has a row."""
        maxes, sizes = [c.keys[-1] for c in chunks], [len(c.keys) for c in chunks]
        size = sum(sizes)
        self._chunks, self._maxes, self._sizes, self.size = chunks, maxes, sizes, size
        self._starts = None

    def _count_before(self, number: int) -> int:
        """Return the number of rows before a chunk."""
        return self._all_starts()[number] if number else 0

    def _chunk_of(self, place: int) -> int:
        """Return the number of the chunk that has the row at a place."""
        return bisect_right(self._all_starts(), place) - 1 if len(self._chunks) > 1 else 0

    def _all_starts(self) -> list[int]:
        """Return the number of rows before each chunk, then of all; cached until rows change."""
        starts = self._starts
        if starts is None:
            starts = self._starts = list(accumulate(self._sizes, initial=0))
        return starts

    def _cut(self, number: int) -> None:
        """Split a chunk behind its first `LOAD` rows."""
        chunk = self._chunks[number]
        parts = [
            Chunk(chunk.keys[part], chunk.rows[part], chunk.shown[part])
            for part in (slice(None, LOAD), slice(LOAD, None))
        ]
        self._replace(number, number + 1, parts)

    def _merge(self, number: int) -> None:
        """Merge a chunk with the next one."""
        one, other = self._chunks[number : number + 2]
        made = Chunk(one.keys + other.keys, one.rows + other.rows, one.shown + other.shown)
        self._replace(number, number + 2, [made])
        if len(made.keys) > 2 * LOAD:
            self._cut(number)

    def _replace(self, start: int, stop: int, chunks: list[Chunk]) -> None:
        """Replace the chunks from `start` up to `stop`; the number of all rows stays."""
        maxes, sizes = [c.keys[-1] for c in chunks], [len(c.keys) for c in chunks]
        self._chunks[start:stop] = chunks
        self._maxes[start:stop] = maxes
        self._sizes[start:stop] = sizes
        self._starts = None


Edge: TypeAlias = "tuple[Literal['unbounded', 'current', 'preceding', 'following'], Any]"
UNBOUNDED: Edge = ("unbounded", None)
CURRENT: Edge = ("current", None)
Span = tuple[int, int]
"""From a place up to another."""


@record
class Frame:
    """The rows of a partition that a function reads, from `start` to `end`.

    They are counted in rows, in groups of rows with equal keys, or (`range`) by the key.
    """

    kind: Literal["rows", "range", "groups"]
    start: Edge
    end: Edge
    exclude: Literal["", "current", "group", "ties"] = ""
    zone: str = "UTC"
    """Time zone whose calendar an offset of days from an instant follows."""

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

    __slots__ = ("entries", "is_descending")

    def __init__(self, entries: Entries, *, is_descending: bool) -> None:
        self.entries = entries
        self.is_descending = is_descending
        """True if the first key is descending."""

    def first(self, place: int) -> int:
        """Return the place of the first row that has the same keys."""
        return self.entries.place(self.entries.key(place)[:-1])

    def behind(self, place: int) -> int:
        """Return the place behind the last row that has the same keys."""
        return self.entries.place(behind(self.entries.key(place)[:-1]))

    # Frames.

    def frame(self, frame: Frame, place: int) -> Span:
        """Return the span of a row's frame, within the partition; rows of EXCLUDE are included."""
        size = self.entries.size
        start = min(max(0, self.start(frame, place)), size)
        return start, max(start, min(size, self.end(frame, place)))

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

    def seeing(self, frame: Frame, place: int) -> Span:
        """Return the rows whose frames contain a row, or move when it is inserted or deleted."""
        if frame.kind == "rows":
            return self._seeing_rows(frame, place)
        return self._seeing_from(frame, place), self._seeing_to(frame, place)

    def rows_within_edge(self, frame: Frame, place: int, *, is_end: bool) -> Span:
        """Return the rows that have the row at `place` between them and an edge of their frame."""
        by, size = _edge_distance(frame.end if is_end else frame.start), self.entries.size
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
            return place + (_edge_distance(edge) or 0) + is_end
        if side == "current":
            return self.behind(place) if is_end else self.first(place)
        if kind == "groups":
            place = self._group(place, _edge_distance(edge) or 0)
            if not 0 <= place < self.entries.size:
                return 0 if place < 0 else self.entries.size
            return self.behind(place) if is_end else self.first(place)
        return self._by_key(place, offset, side == "following", frame.zone, is_end=is_end)

    def _group(self, place: int, by: int) -> int:
        """Return a row `by` groups behind the group of a row, or a place outside the partition."""
        for _ in range(abs(by)):
            if not 0 <= place < self.entries.size:
                break
            place = self.behind(place) if by > 0 else self.first(place) - 1
        return place

    def _by_key(self, place: int, offset: Any, following: bool, zone: str, *, is_end: bool) -> int:
        """Return the first place whose key reaches an offset from the row's, or the last."""
        key = self.entries.row(place)[2][0]
        if key is None:
            return self.behind(place) if is_end else self.first(place)
        wanted = _shift_key(key, offset, zone, up=following is not self.is_descending)
        found = prefix(wanted, descending=self.is_descending)
        return self.entries.place(behind(found) if is_end else found)

    def _seeing_rows(self, frame: Frame, place: int) -> Span:
        """Return the rows whose frame, by row numbers, has this row, or moves without it."""
        start, end, size = _edge_distance(frame.start), _edge_distance(frame.end), self.entries.size
        first = 0 if end is None else max(0, place - max(0, end))
        return first, size if start is None else min(size, place - min(0, start) + 1)

    def _seeing_from(self, frame: Frame, place: int) -> int:
        """Return the place of the first row whose frame ends behind the row at `place`."""
        by = _edge_distance(frame.end)
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
        by = _edge_distance(frame.start)
        if by is None:
            return self.entries.size
        if frame.kind == "groups":
            found = self._group(place, -min(0, by))
            return self.behind(found) if found < self.entries.size else found
        if frame.start == CURRENT:
            return self.behind(place)
        return bisect_right(range(self.entries.size), place, key=partial(self.start, frame))


def _edge_distance(edge: Edge) -> Any:
    """Return the distance of an edge behind the row; None without a bound."""
    side, offset = edge
    if side in ("unbounded", "current"):
        return None if side == "unbounded" else 0
    return offset if side == "following" else -offset


def _shift_key(key: Any, offset: Any, zone: str, *, up: bool) -> Any:
    """Return a key plus an offset if `up`, else minus it; days follow the calendar of the zone."""
    if isinstance(key, datetime) and key.tzinfo is not None:
        return (arrays.later if up else arrays.earlier)(key, offset, zone)
    if isinstance(key, date) and isinstance(offset, timedelta):
        made = later(key, offset) if up else earlier(key, offset)
        return made if hasattr(key, "hour") else made.date()
    if isinstance(key, float):
        offset = float(offset)
    return key + offset if up else key - offset


def _exclude_rows(start: int, end: int, first: int, last: int) -> tuple[Span, ...]:
    """Return the parts of a span before `first` and behind `last`, which may be empty."""
    cut, resume = min(end, max(start, first)), max(start, min(end, last))
    return ((start, max(start, cut)), (resume, max(resume, end)))
