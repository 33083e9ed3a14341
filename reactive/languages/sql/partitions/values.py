"""Functions that take a value from another row: LAG, LEAD, FIRST_VALUE, LAST_VALUE and NTH_VALUE.

Cost:   O(1) for each row of which a function says something else, O(log rows) for an edge by key;
        of those that ignore NULL all rows are asked that see the one that changes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from reactive.languages.sql.partitions.frames import CURRENT, UNBOUNDED, Frame, Order, Span
from reactive.languages.sql.partitions.function import Asked, Function, Told, values_of


def shifted(asked: Asked) -> Function:
    """LAG and LEAD: the value so many rows behind, and which argument is said without one."""
    if asked.ignores_nulls:
        return Function(partial(_near_known, asked), partial(_shifted_among, asked))
    return Function(partial(_near, asked.more[0]), partial(_shifted, asked))


def nth(asked: Asked) -> Function:
    """The value of a row of the frame by its place in it, from the end if negative."""
    if asked.ignores_nulls or asked.frame.exclude:
        return Function(partial(_in_frame, asked), partial(_nth_of_all, asked))
    settles: Any = "always" if asked.frame.is_whole else "never"
    return Function(partial(_seeing_nth, asked), partial(_nth, asked), settles=settles)


# LAG and LEAD.


def _near(by: int, order: Order, place: int) -> Iterable[Span]:
    return ((max(0, place - max(0, by)), min(order.entries.size, place - min(0, by) + 1)),)


def _shifted(asked: Asked, order: Order, start: int, stop: int, told: Told) -> Iterator[Any]:
    by, default = asked.more
    first, last = (
        min(max(start + by, 0), order.entries.size),
        min(max(stop + by, 0), order.entries.size),
    )
    yield from _defaults(default, order, start, min(stop, max(start, -by)))
    yield from values_of(order, asked.argument, first, last)
    yield from _defaults(default, order, max(start, min(stop, order.entries.size - by)), stop)


def _defaults(default: int | None, order: Order, start: int, stop: int) -> Iterable[Any]:
    if start >= stop:
        return ()
    return (None,) * (stop - start) if default is None else values_of(order, default, start, stop)


def _near_known(asked: Asked, order: Order, place: int) -> Iterable[Span]:
    """Rows up to so many with a value, to the one side."""
    by, _ = asked.more
    if not by:
        return ()
    left = abs(by)
    step = -1 if by > 0 else 1
    other = place + step
    while 0 <= other < order.entries.size and left:
        left -= order.entries.row(other)[3][asked.argument] is not None
        other += step
    first, last = sorted((place, other - step))
    return ((first, last + 1),)


def _shifted_among(asked: Asked, order: Order, start: int, stop: int, told: Told) -> Iterator[Any]:
    by, default = asked.more
    if not by:
        yield from values_of(order, asked.argument, start, stop)
        return
    values, first = _with_known_beside(asked, order, start, stop)
    known = [place for place, value in enumerate(values, first) if value is not None]
    for place in range(start, stop):
        at = bisect_right(known, place) if by > 0 else bisect_left(known, place)
        other = at + by - 1 if by > 0 else at + by
        if 0 <= other < len(known):
            yield values[known[other] - first]
        else:
            yield from _defaults(default, order, place, place + 1)


def _with_known_beside(asked: Asked, order: Order, start: int, stop: int) -> tuple[list[Any], int]:
    """The values of some rows, and on as far as there are enough; the place of the first."""
    by, _ = asked.more
    values = values_of(order, asked.argument, start, stop)
    left = abs(by)
    first, other = start, stop if by > 0 else start - 1
    beside: list[Any] = []
    while 0 <= other < order.entries.size and left:
        beside.append(order.entries.row(other)[3][asked.argument])
        left -= beside[-1] is not None
        other += 1 if by > 0 else -1
    if by > 0:
        return values + beside, first
    return beside[::-1] + values, first - len(beside)


# Values of a frame.


def _in_frame(asked: Asked, order: Order, place: int) -> Iterable[Span]:
    return (order.seeing(asked.frame, place),)


def _seeing_nth(asked: Asked, order: Order, place: int) -> Iterable[Span]:
    """Who sees a row at this place of its frame, or before it."""
    (wanted,), frame = asked.more, asked.frame
    if frame.start == UNBOUNDED if wanted > 0 else frame.end == UNBOUNDED:
        is_near = place < wanted if wanted > 0 else place >= order.entries.size + wanted
        if is_near or frame.is_whole or frame.kind == "range":
            return (order.seeing(frame, place),) if is_near else ()
        return (order.moved(frame, place, is_end=wanted > 0),)
    if wanted < 0 and frame.kind == "range":
        start = order.seeing(frame, place)[0]
        end = partial(order.end, frame)
        return ((start, bisect_right(range(order.entries.size), place - wanted, key=end)),)
    if frame.kind == "rows":
        return (
            order.seeing(_shortened(frame, wanted), place),
            _cut_off(frame, wanted, order, place),
        )
    return (order.seeing(frame, place),)


def _cut_off(frame: Frame, wanted: int, order: Order, place: int) -> Span:
    """The rows whose frames are cut by an end of the partition, if a row is so near to it."""
    side, offset = frame.end if wanted < 0 else frame.start
    size = order.entries.size
    if wanted < 0:
        is_near = side == "following" and place >= size + wanted
        return (max(0, size - offset), size) if is_near else (0, 0)
    is_near = side == "preceding" and place < wanted
    return (0, min(size, offset)) if is_near else (0, 0)


def _shortened(frame: Frame, wanted: int) -> Frame:
    """The rows of a frame by number up to a place in it."""
    side, offset = frame.end if wanted < 0 else frame.start
    edge = 0 if (side, offset) == CURRENT else offset if side == "following" else -offset
    other = edge + (wanted + 1 if wanted < 0 else wanted - 1)
    ends: Any = (("following", other), ("following", edge))
    return Frame("rows", *(ends if wanted < 0 else ends[::-1]))


def _nth(asked: Asked, order: Order, start: int, stop: int, told: Told) -> Iterator[Any]:
    (wanted,) = asked.more
    before, value = -1, None
    for place in range(start, stop):
        first, last = order.frame(asked.frame, place)
        at = first + wanted - 1 if wanted > 0 else last + wanted
        if not first <= at < last:
            yield None
            continue
        if at != before:
            before, value = at, order.entries.row(at)[3][asked.argument]
        yield value


def _nth_of_all(asked: Asked, order: Order, start: int, stop: int, told: Told) -> Iterator[Any]:
    (wanted,) = asked.more
    index = wanted - 1 if wanted > 0 else wanted
    for place in range(start, stop):
        spans = order.parts(asked.frame, place)
        found = (value for span in spans for value in values_of(order, asked.argument, *span))
        if asked.ignores_nulls:
            found = (value for value in found if value is not None)
        if index >= 0:
            yield next(islice(found, index, None), None)
        else:
            values = list(found)
            yield values[index] if -index <= len(values) else None
