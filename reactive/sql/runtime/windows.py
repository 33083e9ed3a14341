"""Window functions over one partition: its rows in order, and what each function says of every row.

A partition is computed anew where it changes. Frames that begin with the partition and grow are
folded once; of others each is folded alone.

Cost:   O(n log n) of a partition of n rows, and O(n * frame) for frames that move.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from optimizer.record import record
from reactive.sql.runtime import folds

Rows = Sequence[tuple[Any, ...]]
Edge: TypeAlias = "tuple[Literal['unbounded', 'current', 'preceding', 'following'], Any]"
UNBOUNDED: Edge = ("unbounded", None)
CURRENT: Edge = ("current", None)


@record
class Frame:
    """Which rows of a partition a function is asked of: from `start` to `end`, counted in rows, in
    groups of rows with equal keys, or (`range`) by the key."""

    kind: Literal["rows", "range", "groups"]
    start: Edge
    end: Edge
    exclude: Literal["", "current", "group", "ties"] = ""


WHOLE = Frame("rows", UNBOUNDED, UNBOUNDED)
TO_PEERS = Frame("range", UNBOUNDED, CURRENT)


@record
class Asked:
    """One function: its name or what it calls with the values of a frame, the place of its argument
    among those of a row, and more that is constant."""

    function: str | Callable[..., Any]
    argument: int | None
    frame: Frame
    more: tuple[Any, ...] = ()
    ignores_nulls: bool = False
    keeps_nulls: bool = False


@record
class Window:
    """What `reduce` calls for each partition: rows are (bindings, keys, arguments), and get the
    results of the functions behind their bindings."""

    directions: tuple[tuple[bool, bool], ...]
    functions: tuple[Asked, ...]

    def __call__(self, partition: Any, rows: Any) -> list[tuple[Any, ...]]:
        made = Partition(list(rows), self.directions)
        results = [made.answers(asked) for asked in self.functions]
        return [
            (*row[0], *more)
            for row, more in zip(made.rows, zip(*results, strict=True), strict=True)
        ]


class Partition:
    """The rows of a partition in order, and which of them have equal keys."""

    def __init__(self, rows: list[Any], directions: tuple[tuple[bool, bool], ...]) -> None:
        self.directions = directions
        keyed = [(*row[2], row) for row in rows]
        self.rows = [row[-1] for row in folds.sorted_rows(keyed, directions)]
        self.keys = [row[2] for row in self.rows]
        self.starts: list[int] = []
        """Of each row, the place of the first that has the same keys."""
        for place, key in enumerate(self.keys):
            same = place and key == self.keys[place - 1]
            self.starts.append(self.starts[-1] if same else place)
        self.ends: list[int] = [0] * len(self.rows)
        """Of each row, the place behind the last that has the same keys."""
        for place in range(len(self.rows) - 1, -1, -1):
            is_last = place + 1 == len(self.rows) or self.starts[place + 1] != self.starts[place]
            self.ends[place] = place + 1 if is_last else self.ends[place + 1]

    def answers(self, asked: Asked) -> list[Any]:
        """What a function says of each row, in their order."""
        if isinstance(asked.function, str):
            return list(PLACES[asked.function](self, asked))
        return list(self._folded(asked))

    def values(self, asked: Asked) -> list[Any]:
        """The argument of each row."""
        if asked.argument is None:
            return [1] * len(self.rows)
        return [row[3][asked.argument] for row in self.rows]

    def _folded(self, asked: Asked) -> Iterator[Any]:
        values, before = self.values(asked), None
        assert callable(asked.function)
        answer = None
        for place in range(len(self.rows)):
            chosen = self.frame(asked.frame, place)
            if chosen != before:
                frame = [values[n] for part in chosen for n in part]
                if not asked.keeps_nulls:
                    frame = [value for value in frame if value is not None]
                answer = asked.function(frame, *asked.more)
                before = chosen
            yield answer

    # Frames.

    def frame(self, frame: Frame, place: int) -> tuple[range, ...]:
        """The places of a row's frame, in one or two parts."""
        start = self._edge(frame, frame.start, place, is_end=False)
        end = self._edge(frame, frame.end, place, is_end=True)
        start, end = min(max(0, start), len(self.rows)), min(len(self.rows), end)
        match frame.exclude:
            case "current":
                return _without(start, end, place, place + 1)
            case "group":
                return _without(start, end, self.starts[place], self.ends[place])
            case "ties":
                left = _without(start, end, self.starts[place], place)
                last = left[-1]
                return (*left[:-1], *_without(last.start, last.stop, place + 1, self.ends[place]))
            case _:
                return (range(start, max(start, end)),)

    def _edge(self, frame: Frame, edge: Edge, place: int, *, is_end: bool) -> int:
        side, offset = edge
        if side == "unbounded":
            return len(self.rows) if is_end else 0
        if side == "current":
            if frame.kind == "rows":
                return place + is_end
            return self.ends[place] if is_end else self.starts[place]
        if frame.kind == "rows":
            return int(place + (offset if side == "following" else -offset) + is_end)
        if frame.kind == "groups":
            return self._group(place, offset if side == "following" else -offset, is_end=is_end)
        return self._in_range(place, offset, side == "following", is_end=is_end)

    def _group(self, place: int, by: int, *, is_end: bool) -> int:
        for _ in range(abs(by)):
            if by > 0:
                place = self.ends[place] if place < len(self.rows) else place
            else:
                place = self.starts[place] - 1 if place >= 0 else place
            if not 0 <= place < len(self.rows):
                return 0 if place < 0 else len(self.rows)
        return self.ends[place] if is_end else self.starts[place]

    def _in_range(self, place: int, offset: Any, following: bool, *, is_end: bool) -> int:
        """The first key that is not before an offset from the row's, or the last not behind."""
        key = self.keys[place][0]
        if key is None:
            return self.ends[place] if is_end else self.starts[place]
        (descending, _), *_ = self.directions
        wanted = _moved(key, offset, up=following is not descending)
        keys = [k[0] for k in self.keys]
        known = [n for n, k in enumerate(keys) if k is not None]
        first, last = known[0], known[-1] + 1
        there = keys[first:last]
        if descending:
            there.reverse()
            found = bisect_left(there, wanted) if is_end else bisect_right(there, wanted)
            return first + len(there) - found
        return first + (bisect_right(there, wanted) if is_end else bisect_left(there, wanted))


def _moved(key: Any, offset: Any, *, up: bool) -> Any:
    from datetime import date, timedelta

    if isinstance(key, date) and isinstance(offset, timedelta):
        from reactive.sql.runtime.times import earlier, later

        made = later(key, offset) if up else earlier(key, offset)
        return made if hasattr(key, "hour") else made.date()
    if isinstance(key, float):
        offset = float(offset)
    return key + offset if up else key - offset


def _without(start: int, end: int, first: int, behind: int) -> tuple[range, ...]:
    """A range without a part of it."""
    cut, resume = min(end, max(start, first)), max(start, min(end, behind))
    return (range(start, max(start, cut)), range(resume, max(resume, end)))


# Functions of the place of a row.


def _row_numbers(of: Partition, asked: Asked) -> Iterator[int]:
    return iter(range(1, len(of.rows) + 1))


def _ranks(of: Partition, asked: Asked) -> Iterator[int]:
    return (start + 1 for start in of.starts)


def _dense_ranks(of: Partition, asked: Asked) -> Iterator[int]:
    rank = 0
    for place, start in enumerate(of.starts):
        rank += place == start
        yield rank


def _relative_ranks(of: Partition, asked: Asked) -> Iterator[float]:
    others = len(of.rows) - 1
    return (start / others if others else 0.0 for start in of.starts)


def _shares(of: Partition, asked: Asked) -> Iterator[float]:
    return (end / len(of.rows) for end in of.ends)


def _tiles(of: Partition, asked: Asked) -> Iterator[int]:
    """NTILE: the first parts are larger by one if they must be."""
    (count,) = asked.more
    small, larger = divmod(len(of.rows), count)
    for place in range(len(of.rows)):
        if place < larger * (small + 1):
            yield place // (small + 1) + 1
        else:
            yield (place - larger * (small + 1)) // small + larger + 1


def _shifted(of: Partition, asked: Asked) -> Iterator[Any]:
    """LAG and LEAD; an offset of the row itself may be given as an argument of it."""
    offset, default = asked.more
    values = of.values(asked)
    if asked.ignores_nulls:
        yield from _shifted_among(values, offset, default, of)
        return
    for place in range(len(of.rows)):
        other = place + offset
        inside = 0 <= other < len(values)
        yield values[other] if inside else _default(of, place, default)


def _shifted_among(values: list[Any], offset: int, default: Any, of: Partition) -> Iterator[Any]:
    """The same among the values that are not NULL."""
    known = [place for place, value in enumerate(values) if value is not None]
    for place in range(len(values)):
        if not offset:
            yield values[place]
            continue
        at = bisect_right(known, place) if offset > 0 else bisect_left(known, place)
        other = at + offset - 1 if offset > 0 else at + offset
        inside = 0 <= other < len(known)
        yield values[known[other]] if inside else _default(of, place, default)


def _default(of: Partition, place: int, argument: int | None) -> Any:
    return None if argument is None else of.rows[place][3][argument]


def _nth(of: Partition, asked: Asked) -> Iterator[Any]:
    """FIRST_VALUE, LAST_VALUE and NTH_VALUE: the place in the frame, from the end if negative."""
    (nth,) = asked.more
    values = of.values(asked)
    for place in range(len(of.rows)):
        chosen = [n for part in of.frame(asked.frame, place) for n in part]
        if asked.ignores_nulls:
            chosen = [n for n in chosen if values[n] is not None]
        index = nth - 1 if nth > 0 else nth + len(chosen)
        yield values[chosen[index]] if 0 <= index < len(chosen) else None


# Aggregates whose frames often begin with the partition.


def _counts(of: Partition, asked: Asked) -> Iterator[int]:
    sums = [0]
    for value in of.values(asked):
        sums.append(sums[-1] + (value is not None))
    for place in range(len(of.rows)):
        yield sum(sums[part.stop] - sums[part.start] for part in of.frame(asked.frame, place))


def _growing(of: Partition, frame: Frame) -> bool:
    return frame.start == UNBOUNDED and not frame.exclude


def _running(of: Partition, asked: Asked) -> Iterator[Any]:
    """SUM, AVG, MIN and MAX, of frames that grow value by value."""
    name = asked.more[0]
    if not _growing(of, asked.frame):
        plain = Asked(folds.OF_VALUES[name], asked.argument, asked.frame)
        yield from of._folded(plain)
        return
    running = _Running(name)
    values, added = of.values(asked), 0
    for row in range(len(of.rows)):
        (part,) = of.frame(asked.frame, row)
        for value in values[added : part.stop]:
            running.add(value)
        added = max(added, part.stop)
        yield running.answer


class _Running:
    """An aggregate to which values are added."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0
        self._total: Any = None

    def add(self, value: Any) -> None:
        if value is None:
            return
        self._count += 1
        if self._total is None:
            self._total = value
        elif self._name == "min":
            self._total = min(self._total, value)
        elif self._name == "max":
            self._total = max(self._total, value)
        else:
            self._total = self._total + value

    @property
    def answer(self) -> Any:
        if self._total is None or self._name in ("min", "max", "sum"):
            return self._total
        return folds.mean([self._total]) / self._count


PLACES: dict[str, Callable[[Partition, Asked], Iterator[Any]]] = {
    "row_number": _row_numbers,
    "rank": _ranks,
    "dense_rank": _dense_ranks,
    "percent_rank": _relative_ranks,
    "cume_dist": _shares,
    "ntile": _tiles,
    "shifted": _shifted,
    "nth": _nth,
    "count": _counts,
    "running": _running,
}
