"""Functions of windows: values of other rows, and totals of frames.

Functions that take a value from another row: LAG, LEAD, FIRST_VALUE, LAST_VALUE and NTH_VALUE.

Cost:   O(1) for each row whose answer changes, O(log rows) for an edge by key; functions that
        ignore NULL are evaluated for all rows that see the changed row.

COUNT, SUM and AVG of frames: values that enter a frame are added, values that leave it subtracted.

    rows    a  b  c  d  e  f
    frames  [a  b  c]                 the total of a chunk that is whole in a frame is cached
               [b  c  d]              until it changes
                  [c  d  e]

Sums are exact, so that the sum of a frame does not depend on earlier values.

Cost:   O(1) for each row that sees the one that changes, beside the edges of its frame; the first
        of them O(rows / 500).
Source: window aggregates by their inverse: Leis et al., *Efficient Processing of Window Functions
        in Analytical SQL Queries*, 2015.

Window functions: their answers, and the rows whose answers a changed row affects.

Spans are places in the order of that moment: with an inserted row, and with a row being deleted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any, Literal, TypeAlias

from optimizer.record import record
from reactive.engine.collections.exact import RunningSum, add_sums, add_value, copy_sum, sum_result
from reactive.languages.sql.partitions.frames import CURRENT, UNBOUNDED, Frame, Order, Span
from reactive.languages.sql.runtime import folds


def make_shift(asked: Asked) -> Function:
    """Return LAG or LEAD: the value a number of rows away, the default beyond the partition."""
    if asked.ignores_nulls:
        return Function(
            partial(_rows_seeing_known_shift, asked), partial(_answer_known_shift, asked)
        )
    return Function(partial(_rows_seeing_shift, asked.more[0]), partial(_answer_shift, asked))


def make_nth_value(asked: Asked) -> Function:
    """Return FIRST_VALUE, LAST_VALUE or NTH_VALUE; a negative number counts from the end."""
    if asked.ignores_nulls or asked.frame.exclude:
        return Function(partial(_rows_seeing_frame, asked), partial(_answer_nth_of_all, asked))
    settles: Any = "always" if asked.frame.is_whole else "never"
    return Function(partial(_rows_seeing_nth, asked), partial(_answer_nth, asked), settles=settles)


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
    yield from values_of(order, asked.argument, first, last)
    yield from _defaults(default, order, max(start, min(stop, order.entries.size - by)), stop)


def _defaults(default: int | None, order: Order, start: int, stop: int) -> Iterable[Any]:
    """Return the default of LAG or LEAD for some rows: None, or an argument of each row."""
    if start >= stop:
        return ()
    return (None,) * (stop - start) if default is None else values_of(order, default, start, stop)


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
        left -= order.entries.row(other)[3][asked.argument] is not None
        other += step
    first, last = sorted((place, other - step))
    return ((first, last + 1),)


def _answer_known_shift(
    asked: Asked, order: Order, start: int, stop: int, told: Told
) -> Iterator[Any]:
    """Yield LAG or LEAD that ignores NULL: only rows with a value are counted."""
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
    """Return the values of the rows and of enough rows to one side, and the first one's place."""
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
            before, value = at, order.entries.row(at)[3][asked.argument]
        yield value


def _answer_nth_of_all(
    asked: Asked, order: Order, start: int, stop: int, told: Told
) -> Iterator[Any]:
    """Yield each row's nth value of a frame with EXCLUDE or IGNORE NULLS; None if there is none."""
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


Total = tuple[int, RunningSum]
"""The number of values, and their sum."""
_INTS = frozenset([int, bool])


def make_total(asked: Asked) -> Function:
    """Return COUNT, SUM or AVG of frames, by the name in `asked.more`."""
    (name,) = asked.more
    frame = asked.frame
    if frame.exclude:
        return make_fold_of_frames(Asked(ALL[name], asked.argument, frame))
    settles: Settles = "always" if frame.is_whole else "never"
    if frame.grows and not frame.is_whole:
        settles = SETTLES[name]
    answer = ANSWERS[name]
    return Function(
        partial(in_frame, frame), partial(_answer_totals, asked, answer), settles=settles
    )


def make_fold_of_frames(asked: Asked) -> Function:
    """Return a callable's function of frames, called again for each row that sees a change."""
    settles: Settles = "always" if asked.frame.is_whole else "never"
    return Function(partial(in_frame, asked.frame), partial(_answer_calls, asked), settles=settles)


def _answer_totals(
    asked: Asked, answer: Callable[[Total], Any], order: Order, start: int, stop: int, told: Told
) -> Iterator[Any]:
    """Yield each row's answer; values that enter or leave its frame change a running total."""
    if start >= stop:
        return
    frame = asked.frame
    first, last = order.frame(frame, start)
    total = _total_of_span(order, asked, first, last)
    entering, leaving = order.entries.from_(last), order.entries.from_(first)
    said = answer(total)
    yield said
    for place in range(start + 1, stop):
        before = first, last
        if not (frame.is_whole or _sees_the_same(order, frame, place)):
            first, last = order.frame(frame, place)
        if (first, last) != before:
            for _ in range(before[1], last):
                total = _add_row(total, asked, next(entering), 1)
            for _ in range(before[0], first):
                total = _add_row(total, asked, next(leaving), -1)
            said = answer(total)
        yield said


def _sees_the_same(order: Order, frame: Frame, place: int) -> bool:
    """Return True if the row at `place` has the keys of the one before, and so its frame."""
    rows = order.entries
    return frame.kind != "rows" and rows.row(place)[2] == rows.row(place - 1)[2]


def _add_row(total: Total, asked: Asked, row: Any, weight: int) -> Total:
    """Return a total with the summand of a row added (weight 1) or subtracted (-1)."""
    count, number = total
    (value,) = _summands([row], asked)
    return total if value is None else (count + weight, add_value(number, value, weight))


def _total_of_span(order: Order, asked: Asked, start: int, stop: int) -> Total:
    """Return the total of some rows; the totals of whole chunks are cached."""
    parts, chunks = order.entries.split_span(start, stop)
    name = (asked.more, asked.argument)
    for chunk in chunks:
        if name not in chunk.known:
            chunk.known[name] = _total_of_values(_summands(chunk.rows, asked))
    totals = [_total_of_values(_summands(rows, asked)) for rows in parts]
    totals += [chunk.known[name] for chunk in chunks]
    count, numbers = sum(each[0] for each in totals), [each[1] for each in totals]
    if set(map(type, numbers)) <= _INTS:
        return count, sum(numbers)
    total: RunningSum = 0
    for number in numbers:
        total = add_sums(total, number)
    return count, copy_sum(total)


def _summands(rows: list[Any], asked: Asked) -> list[Any]:
    """Return the summand of each row: 1 for a count."""
    argument = asked.argument
    if argument is None:
        return [1] * len(rows)
    if asked.more == ("count",):
        return [None if row[3][argument] is None else 1 for row in rows]
    return [row[3][argument] for row in rows]


def _total_of_values(values: list[Any]) -> Total:
    """Return the number and the sum of the values that are not None."""
    found = [value for value in values if value is not None]
    if set(map(type, found)) <= _INTS:
        return len(found), sum(found)
    total: RunningSum = 0
    for value in found:
        total = add_value(total, value, 1)
    return len(found), total


def _count_result(total: Total) -> int:
    return total[0]


def _sum_or_none(total: Total) -> Any:
    return sum_result(total[1]) if total[0] else None


def _mean_or_none(total: Total) -> Any:
    """Return the mean of a total; None without values."""
    count, number = total
    if not count:
        return None
    whole = sum_result(number)
    if hasattr(whole, "days"):
        return whole / count
    return whole / count if isinstance(whole, float) else float(Fraction(whole) / count)


def _answer_calls(asked: Asked, order: Order, start: int, stop: int, told: Told) -> Iterator[Any]:
    """Yield the callable's answer for each row; it is called again only if the frame differs."""
    before, answer = None, None
    assert callable(asked.function)
    for place in range(start, stop):
        spans = order.parts(asked.frame, place)
        if spans != before:
            values = [v for span in spans for v in values_of(order, asked.argument, *span)]
            if not asked.keeps_nulls:
                values = [value for value in values if value is not None]
            answer, before = asked.function(values, *asked.more), spans
        yield answer


ANSWERS: dict[str, Callable[[Total], Any]] = {
    "count": _count_result,
    "sum": _sum_or_none,
    "avg": _mean_or_none,
}
SETTLES: dict[str, Settles] = {"count": "always", "sum": "if whole numbers", "avg": "never"}
ALL: dict[str, Callable[..., Any]] = {"count": len, **folds.OF_VALUES}


Told = Callable[[int], Any]
"""The earlier answer of a function for the row at a place."""
Settles: TypeAlias = "Literal['never', 'always', 'if whole numbers']"


@record
class Asked:
    """A window function.

    It has a name, or a callable of the values of a frame; the place of its argument among the
    arguments of a row; and further constants.
    """

    function: str | Callable[..., Any]
    argument: int | None
    frame: Frame
    more: tuple[Any, ...] = ()
    ignores_nulls: bool = False
    keeps_nulls: bool = False


def never_late(order: Order, before: int, told: Told) -> Iterable[Span]:
    """Return no rows: no answer changes beyond the rows that see a change."""
    return ()


@record
class Function:
    """A function that has been made for a window."""

    seeing: Callable[[Order, int], Iterable[Span]]
    """Return the rows whose answer may change when the row at a place is inserted or deleted."""
    answers: Callable[[Order, int, int, Told], Iterator[Any]]
    """Return the answers for the rows from a place up to another."""
    late: Callable[[Order, int, Told], Iterable[Span]] = never_late
    """Return rows whose answer may change after all changes of a partition of an earlier size."""
    settles: Settles = "never"
    """The answers that, unchanged in one row, are unchanged in all later rows of a span."""
    is_backward: bool = False
    """True if answers are computed from the last row of a span to the first."""

    def is_settled(self, answer: Any) -> bool:
        """Return True if `answer`, unchanged in a row, is unchanged in the later rows."""
        if self.settles == "if whole numbers":
            return answer.__class__ is int
        return self.settles == "always"


def values_of(order: Order, argument: int | None, start: int, stop: int) -> list[Any]:
    """Return the argument of some rows."""
    if argument is None:
        return [1] * (stop - start)
    return [row[3][argument] for row in order.entries.rows(start, stop)]


def in_frame(frame: Frame, order: Order, place: int) -> Iterable[Span]:
    """Return the rows that see a row, for a function that may settle.

    If a frame ends some rows away from its own row, a row inserted between these two moves the
    frame: another row enters or leaves it. An unchanged answer there does not imply unchanged
    answers behind, so each of these rows is a span.
    """
    start, stop = order.seeing(frame, place)
    if frame.is_whole or frame.kind == "range":
        return ((start, stop),)
    if frame.grows:
        near = order.rows_within_edge(frame, place, is_end=True)
        return (*_single_rows(near), (near[1], stop))
    if frame.shrinks:
        near = order.rows_within_edge(frame, place, is_end=False)
        return ((start, near[0]), *_single_rows(near))
    return ((start, stop),)


def _single_rows(span: Span) -> Iterable[Span]:
    """Return a span for each row of a span."""
    return ((place, place + 1) for place in range(*span))
