"""COUNT, SUM and AVG of frames: what enters a frame is added, and what leaves it is taken away.

    rows    a  b  c  d  e  f
    frames  [a  b  c]                 of a chunk that is in a frame as a whole its total is known,
               [b  c  d]              until it changes
                  [c  d  e]

Sums are exact, so that a frame's is the same whatever was in it before.

Cost:   O(1) for each row that sees the one that changes, beside the edges of its frame; the first
        of them O(rows / 500).
Source: window aggregates by their inverse: Leis et al., *Efficient Processing of Window Functions
        in Analytical SQL Queries*, 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

from reactive.engine.collections.running_sum import RunningSum, copied, plus, plus_value, shown
from reactive.languages.sql.partitions.frames import Frame, Order
from reactive.languages.sql.partitions.function import (
    Asked,
    Function,
    Settles,
    Told,
    in_frame,
    values_of,
)
from reactive.languages.sql.runtime import folds

Total = tuple[int, RunningSum]
"""How many values there are, and their sum."""
_INTS = frozenset([int, bool])


def totalled(asked: Asked) -> Function:
    """The function of a name."""
    (name,) = asked.more
    frame = asked.frame
    if frame.exclude:
        return folded(Asked(ALL[name], asked.argument, frame))
    settles: Settles = "always" if frame.is_whole else "never"
    if frame.grows and not frame.is_whole:
        settles = SETTLES[name]
    answer = ANSWERS[name]
    return Function(partial(in_frame, frame), partial(_slid, asked, answer), settles=settles)


def folded(asked: Asked) -> Function:
    """A callable of the values of a frame, asked anew for every row that sees a change."""
    settles: Settles = "always" if asked.frame.is_whole else "never"
    return Function(partial(in_frame, asked.frame), partial(_folded, asked), settles=settles)


def _slid(
    asked: Asked, answer: Callable[[Total], Any], order: Order, start: int, stop: int, told: Told
) -> Iterator[Any]:
    if start >= stop:
        return
    frame = asked.frame
    first, last = order.frame(frame, start)
    total = _of_span(order, asked, first, last)
    entering, leaving = order.entries.from_(last), order.entries.from_(first)
    said = answer(total)
    yield said
    for place in range(start + 1, stop):
        before = first, last
        if not (frame.is_whole or _sees_the_same(order, frame, place)):
            first, last = order.frame(frame, place)
        if (first, last) != before:
            for _ in range(before[1], last):
                total = _added(total, asked, next(entering), 1)
            for _ in range(before[0], first):
                total = _added(total, asked, next(leaving), -1)
            said = answer(total)
        yield said


def _sees_the_same(order: Order, frame: Frame, place: int) -> bool:
    """Whether a row has the keys of the one before it, by which its frame is found."""
    rows = order.entries
    return frame.kind != "rows" and rows.row(place)[2] == rows.row(place - 1)[2]


def _added(total: Total, asked: Asked, row: Any, weight: int) -> Total:
    count, number = total
    (value,) = _values([row], asked)
    return total if value is None else (count + weight, plus_value(number, value, weight))


def _of_span(order: Order, asked: Asked, start: int, stop: int) -> Total:
    """The total of some rows, that of whole chunks as it is known."""
    parts, chunks = order.entries.apart(start, stop)
    name = (asked.more, asked.argument)
    for chunk in chunks:
        if name not in chunk.known:
            chunk.known[name] = _of_values(_values(chunk.rows, asked))
    totals = [_of_values(_values(rows, asked)) for rows in parts]
    totals += [chunk.known[name] for chunk in chunks]
    count, numbers = sum(each[0] for each in totals), [each[1] for each in totals]
    if set(map(type, numbers)) <= _INTS:
        return count, sum(numbers)
    total: RunningSum = 0
    for number in numbers:
        total = plus(total, number)
    return count, copied(total)


def _values(rows: list[Any], asked: Asked) -> list[Any]:
    """What is added of each row: of what is counted, whatever it is, one."""
    argument = asked.argument
    if argument is None:
        return [1] * len(rows)
    if asked.more == ("count",):
        return [None if row[3][argument] is None else 1 for row in rows]
    return [row[3][argument] for row in rows]


def _of_values(values: list[Any]) -> Total:
    found = [value for value in values if value is not None]
    if set(map(type, found)) <= _INTS:
        return len(found), sum(found)
    total: RunningSum = 0
    for value in found:
        total = plus_value(total, value, 1)
    return len(found), total


def _counted(total: Total) -> int:
    return total[0]


def _sum(total: Total) -> Any:
    return shown(total[1]) if total[0] else None


def _mean(total: Total) -> Any:
    count, number = total
    if not count:
        return None
    whole = shown(number)
    if hasattr(whole, "days"):
        return whole / count
    return whole / count if isinstance(whole, float) else float(Fraction(whole) / count)


def _folded(asked: Asked, order: Order, start: int, stop: int, told: Told) -> Iterator[Any]:
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


ANSWERS: dict[str, Callable[[Total], Any]] = {"count": _counted, "sum": _sum, "avg": _mean}
SETTLES: dict[str, Settles] = {"count": "always", "sum": "if whole numbers", "avg": "never"}
ALL: dict[str, Callable[..., Any]] = {"count": len, **folds.OF_VALUES}
