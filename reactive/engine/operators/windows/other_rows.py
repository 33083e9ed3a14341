"""Functions that take a value from another row: LAG, LEAD, FIRST_VALUE, LAST_VALUE and NTH_VALUE.

Cost:   O(1) for each row whose answer changes, O(log rows) for an edge by key; functions that
        ignore NULL are evaluated for all rows that see the changed row.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from reactive.engine.operators.windows.frames import CURRENT, UNBOUNDED, Frame, Order, Span
from reactive.engine.operators.windows.function import Asked, Function, Told, near_frame, with_near


def make_shift(asked: Asked) -> Function:
    """Return LAG or LEAD: the value a number of rows away, the default beyond the partition."""
    if asked.ignores_nulls:
        return Function(
            partial(_rows_seeing_known_shift, asked), partial(_answer_known_shift, asked)
        )
    by = asked.more[0]
    made = Function(partial(_rows_seeing_shift, by), partial(_answer_shift, asked))
    reach, text = (max(0, -by), max(0, by)), partial(_shift_text, asked)
    return with_near(
        made, reach, partial(_shift_near, asked), None if asked.argument is None else text
    )


def make_nth_value(asked: Asked) -> Function:
    """Return FIRST_VALUE, LAST_VALUE or NTH_VALUE; a negative number counts from the end."""
    if asked.ignores_nulls or asked.frame.exclude:
        made = Function(partial(_rows_seeing_frame, asked), partial(_answer_nth_of_all, asked))
        return with_near(made, near_frame(asked.frame))
    settles: Any = "always" if asked.frame.is_whole else "never"
    made = Function(
        partial(_rows_seeing_nth, asked),
        partial(_answer_nth, asked),
        settles=settles,
        of_all=partial(_nth_of_all, asked),
    )
    return with_near(made, near_frame(asked.frame))


# LAG and LEAD.


def _rows_seeing_shift(by: int, order: Order, place: int) -> Iterable[Span]:
    """Return the rows whose LAG or LEAD reads a row at `place`, or moves with it."""
    return ((max(0, place - max(0, by)), min(order.entries.size, place - min(0, by) + 1)),)


def _answer_shift(asked: Asked, order: Order, start: int, stop: int, told: Told) -> Iterator[Any]:
    """Yield LAG or LEAD for the rows from `start` up to `stop`, with the default at the ends."""
    by, default = asked.more
    first, last = (
        min(max(start + by, 0), order.entries.size),
        min(max(stop + by, 0), order.entries.size),
    )
    yield from _defaults(default, order, start, min(stop, max(start, -by)))
    yield from order.values(asked.argument, first, last)
    yield from _defaults(default, order, max(start, min(stop, order.entries.size - by)), stop)


def _defaults(default: int | None, order: Order, start: int, stop: int) -> Iterable[Any]:
    """Return the default of LAG or LEAD for some rows: None, or an argument of each row."""
    if start >= stop:
        return ()
    return (None,) * (stop - start) if default is None else order.values(default, start, stop)


def _shift_near(
    asked: Asked, order: Order, keys: list[Any], cells: list[Any], start: int, stop: int
) -> list[Any]:
    """Return LAG or LEAD of some rows, from the cells of the rows around them."""
    by, default = asked.more
    first, last = start + by, stop + by
    if asked.argument is None:
        values = [1] * len(cells)
    else:
        values = cells if order.is_single else order.of_cells(asked.argument, cells)
    if first >= 0 and last <= len(cells):
        return values[first:last]
    found = values[max(0, first) : max(0, last)]
    missing = range(start, min(stop, -by)) if by < 0 else range(max(start, len(cells) - by), stop)
    if default is None:
        defaults: list[Any] = [None] * len(missing)
    else:
        defaults = order.of_cells(default, [cells[place] for place in missing])
    return defaults + found if by < 0 else found + defaults


def _shift_text(asked: Asked, is_single: bool) -> str:
    """Return LAG or LEAD as text of generated code."""
    by, default = asked.more
    item, other = ("", "") if is_single else (f"[{asked.argument}]", f"[{default}]")
    missing = "None" if default is None else f"cells[at]{other}"
    if by < 0:
        return f"(cells[at - {-by}]{item} if at >= {-by} else {missing})"
    return f"(cells[at + {by}]{item} if at + {by} < size else {missing})"


def _rows_seeing_known_shift(asked: Asked, order: Order, place: int) -> Iterable[Span]:
    """Return the rows from the one at `place` to the one `by` values other than NULL away.

    Return () if `by` is 0.
    """
    by, _ = asked.more
    if not by:
        return ()
    left = abs(by)
    step = -1 if by > 0 else 1
    other = place + step
    while 0 <= other < order.entries.size and left:
        left -= _value(asked, order, other) is not None
        other += step
    first, last = sorted((place, other - step))
    return ((first, last + 1),)


def _answer_known_shift(
    asked: Asked, order: Order, start: int, stop: int, told: Told
) -> Iterator[Any]:
    """Yield LAG or LEAD that ignores NULL: only rows with a value are counted."""
    by, default = asked.more
    if not by:
        yield from order.values(asked.argument, start, stop)
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
    """Return the values of the rows and of enough rows to one side, and the first one's place."""
    by, _ = asked.more
    values = order.values(asked.argument, start, stop)
    left = abs(by)
    first, other = start, stop if by > 0 else start - 1
    beside: list[Any] = []
    while 0 <= other < order.entries.size and left:
        beside.append(_value(asked, order, other))
        left -= beside[-1] is not None
        other += 1 if by > 0 else -1
    if by > 0:
        return values + beside, first
    return beside[::-1] + values, first - len(beside)


# Values of a frame.


def _rows_seeing_frame(asked: Asked, order: Order, place: int) -> Iterable[Span]:
    """Return the rows in whose frames the row at `place` is."""
    return (order.seeing(asked.frame, place),)


def _rows_seeing_nth(asked: Asked, order: Order, place: int) -> Iterable[Span]:
    """Return the rows that see a row at this place of their frame, or before it."""
    (wanted,), frame = asked.more, asked.frame
    if frame.start == UNBOUNDED if wanted > 0 else frame.end == UNBOUNDED:
        is_near = place < wanted if wanted > 0 else place >= order.entries.size + wanted
        if is_near or frame.is_whole or frame.kind == "range":
            return (order.seeing(frame, place),) if is_near else ()
        return (order.rows_within_edge(frame, place, is_end=wanted > 0),)
    if wanted < 0 and frame.kind == "range":
        start = order.seeing(frame, place)[0]
        end = partial(order.end, frame)
        return ((start, bisect_right(range(order.entries.size), place - wanted, key=end)),)
    if frame.kind == "rows":
        return (
            order.seeing(_shorten_frame(frame, wanted), place),
            _cut_off(frame, wanted, order, place),
        )
    return (order.seeing(frame, place),)


def _cut_off(frame: Frame, wanted: int, order: Order, place: int) -> Span:
    """Return the rows whose frames an end of the partition cuts.

    Return an empty span if the row at `place` is not near that end.
    """
    side, offset = frame.end if wanted < 0 else frame.start
    size = order.entries.size
    if wanted < 0:
        is_near = side == "following" and place >= size + wanted
        return (max(0, size - offset), size) if is_near else (0, 0)
    is_near = side == "preceding" and place < wanted
    return (0, min(size, offset)) if is_near else (0, 0)


def _shorten_frame(frame: Frame, wanted: int) -> Frame:
    """Return the rows of a frame by number up to a place in it."""
    side, offset = frame.end if wanted < 0 else frame.start
    edge = 0 if (side, offset) == CURRENT else offset if side == "following" else -offset
    other = edge + (wanted + 1 if wanted < 0 else wanted - 1)
    ends: Any = (("following", other), ("following", edge))
    return Frame("rows", *(ends if wanted < 0 else ends[::-1]))


def _answer_nth(asked: Asked, order: Order, start: int, stop: int, told: Told) -> Iterator[Any]:
    """Yield for each row a value by its place in the row's frame; None if there is none."""
    (wanted,) = asked.more
    before, value = -1, None
    for place in range(start, stop):
        first, last = order.frame(asked.frame, place)
        at = first + wanted - 1 if wanted > 0 else last + wanted
        if not first <= at < last:
            yield None
            continue
        if at != before:
            before, value = at, _value(asked, order, at)
        yield value


def _answer_nth_of_all(
    asked: Asked, order: Order, start: int, stop: int, told: Told
) -> Iterator[Any]:
    """Yield each row's nth value of a frame with EXCLUDE or IGNORE NULLS; None if there is none."""
    (wanted,) = asked.more
    index = wanted - 1 if wanted > 0 else wanted
    for place in range(start, stop):
        spans = order.parts(asked.frame, place)
        found = (value for span in spans for value in order.values(asked.argument, *span))
        if asked.ignores_nulls:
            found = (value for value in found if value is not None)
        if index >= 0:
            yield next(islice(found, index, None), None)
        else:
            values = list(found)
            yield values[index] if -index <= len(values) else None


def _value(asked: Asked, order: Order, place: int) -> Any:
    """Return the argument of the row at a place."""
    return 1 if asked.argument is None else order.value(asked.argument, place)


def _nth_of_all(asked: Asked, order: Order) -> list[Any]:
    """Return the answers of `_answer_nth` for all rows."""
    (wanted,) = asked.more
    values = order.values(asked.argument, 0, order.entries.size)
    found = []
    for first, last in zip(*order.all_frames(asked.frame), strict=True):
        at = first + wanted - 1 if wanted > 0 else last + wanted
        found.append(values[at] if first <= at < last else None)
    return found
