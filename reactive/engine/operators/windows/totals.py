"""COUNT, SUM and AVG of frames: values that enter a frame are added, values that leave subtracted.

    rows    a  b  c  d  e  f
    frames  [a  b  c]                 the total of a chunk that is whole in a frame is cached
               [b  c  d]              until it changes
                  [c  d  e]

Sums are exact, so that the sum of a frame does not depend on earlier values. For all rows at once,
whole numbers are added up once, and the total of a frame is the difference of two running totals.

Cost:   O(1) for each row that sees the one that changes, beside the edges of its frame; the first
        of them O(rows / 500).
Source: window aggregates by their inverse: Leis et al., *Efficient Processing of Window Functions
        in Analytical SQL Queries*, 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import partial
from itertools import accumulate
from math import fsum, isfinite
from typing import Any

from optimizer.record import record
from reactive.engine.collections.exact import RunningSum, add_sums, add_value, copy_sum, sum_result
from reactive.engine.operators.windows.frames import Frame, Order
from reactive.engine.operators.windows.function import (
    Asked,
    Function,
    Settles,
    Told,
    aggregate_text,
    in_frame,
    make_fold_of_frames,
    near_frame,
    with_near,
)

Total = tuple[int, RunningSum]
"""The number of values, and their sum."""
_INTS = frozenset([int, bool])
_ADDING: dict[Any, Callable[[list[Any]], Any]] = {int: sum, float: fsum}
"""Functions that add up values of one class exactly."""
_INTS_OR_NONE = _INTS | {type(None)}


def make_total(asked: Asked) -> Function:
    """Return COUNT, SUM or AVG of frames, by the name in `asked.more`."""
    (name,) = asked.more
    frame = asked.frame
    if frame.exclude:
        return make_fold_of_frames(Asked(_FoldOfValues(name), asked.argument, frame))
    settles: Settles = "always" if frame.is_whole else "never"
    if frame.grows and not frame.is_whole:
        settles = SETTLES[name]
    answer = ANSWERS[name]
    made = Function(
        partial(in_frame, frame),
        partial(_answer_totals, asked, answer),
        settles=settles,
        of_all=partial(_all_totals, asked, answer),
    )
    form = _FORMS.get(name)
    text = None if form is None else aggregate_text(asked, form)
    near = partial(_totals_near, asked, answer)
    return with_near(made, near_frame(frame), near, text, (frozenset([int]),))


@record
class _FoldOfValues:
    """An aggregate of the values of a frame, by its name."""

    name: str

    def __call__(self, values: list[Any]) -> Any:
        return len(values) if self.name == "count" else ANSWERS[self.name](_total_of_values(values))


def _answer_totals(
    asked: Asked, answer: Callable[[Total], Any], order: Order, start: int, stop: int, told: Told
) -> Iterator[Any]:
    """Yield each row's answer; values that enter or leave its frame change a running total."""
    if start >= stop:
        return
    frame = asked.frame
    first, last = order.frame(frame, start)
    total = _total_of_span(order, asked, first, last)
    entering, leaving = order.entries.cells_from(last), order.entries.cells_from(first)
    said = answer(total)
    yield said
    for place in range(start + 1, stop):
        before = first, last
        if not (frame.is_whole or _sees_the_same(order, frame, place)):
            first, last = order.frame(frame, place)
        if (first, last) != before:
            for _ in range(before[1], last):
                total = _add_row(total, order, asked, next(entering), 1)
            for _ in range(before[0], first):
                total = _add_row(total, order, asked, next(leaving), -1)
            said = answer(total)
        yield said


def _totals_near(
    asked: Asked,
    answer: Callable[[Total], Any],
    order: Order,
    keys: list[Any],
    cells: list[Any],
    start: int,
    stop: int,
) -> list[Any]:
    """Return the answers of some rows from the cells of the rows around them, frame by frame."""
    if asked.argument is None or not order.is_single:
        cells = _summands(order, asked, cells)
    elif asked.more == ("count",):
        cells = [None if value is None else 1 for value in cells]
    first, last = order.rows_of_frame(asked.frame)
    frames = [cells[max(0, place + first) : max(0, place + last)] for place in range(start, stop)]
    add = _ADDING.get(cells[0].__class__) if len({*map(type, cells)}) == 1 else None
    if add is not None:
        with suppress(OverflowError, ValueError):  # beyond the finite floats
            sums = [add(values) for values in frames]
            if add is sum or all(map(isfinite, sums)):
                return _answers_of_sums(answer, frames, sums)
    return [answer(_total_of_values(values)) for values in frames]


def _answers_of_sums(
    answer: Callable[[Total], Any], frames: list[list[Any]], sums: list[Any]
) -> list[Any]:
    """Return the answers of frames without None, from their sums."""
    if answer is _count_result:
        return list(map(len, frames))
    pairs = zip(frames, sums, strict=True)
    if answer is _sum_or_none:
        return [total if values else None for values, total in pairs]
    return [total / len(values) if values else None for values, total in pairs]


def _all_totals(asked: Asked, answer: Callable[[Total], Any], order: Order) -> list[Any]:
    """Return the answers of all rows; of whole numbers by the differences of running totals."""
    size = order.entries.size
    values = _summands(order, asked, order.entries.cells(0, size))
    if not set(map(type, values)) <= _INTS_OR_NONE:
        return list(_answer_totals(asked, answer, order, 0, size, lambda place: None))
    sums = list(accumulate([value or 0 for value in values], initial=0))
    firsts, lasts = order.all_frames(asked.frame)
    found = [sums[last] - sums[first] for first, last in zip(firsts, lasts, strict=True)]
    if answer is _count_result:
        return found
    counts = list(accumulate([value is not None for value in values], initial=0))
    totals = zip(
        [counts[last] - counts[first] for first, last in zip(firsts, lasts, strict=True)],
        found,
        strict=True,
    )
    if answer is _sum_or_none:
        return [total if count else None for count, total in totals]
    return list(map(answer, totals))


def _sees_the_same(order: Order, frame: Frame, place: int) -> bool:
    """Return True if the row at `place` has the keys of the one before, and so its frame."""
    rows = order.entries
    return frame.kind != "rows" and bool(rows.key(place) == rows.key(place - 1))


def _add_row(total: Total, order: Order, asked: Asked, cell: Any, weight: int) -> Total:
    """Return a total with the summand of a row added (weight 1) or subtracted (-1)."""
    count, number = total
    (value,) = _summands(order, asked, [cell])
    return total if value is None else (count + weight, add_value(number, value, weight))


def _total_of_span(order: Order, asked: Asked, start: int, stop: int) -> Total:
    """Return the total of some rows; the totals of whole chunks are cached."""

    def of_cells(cells: list[Any]) -> Total:
        return _total_of_values(_summands(order, asked, cells))

    parts, chunks = order.entries.split_span(start, stop)
    name = (asked.more, asked.argument)
    totals = [of_cells(cells) for cells in parts]
    totals += [chunk.cached(name, of_cells) for chunk in chunks]
    count, numbers = sum(each[0] for each in totals), [each[1] for each in totals]
    if set(map(type, numbers)) <= _INTS:
        return count, sum(numbers)
    total: RunningSum = 0
    for number in numbers:
        total = add_sums(total, number)
    return count, copy_sum(total)


def _summands(order: Order, asked: Asked, cells: list[Any]) -> list[Any]:
    """Return the summand of each row: 1 for a count."""
    argument = asked.argument
    if argument is None:
        return [1] * len(cells)
    values = order.of_cells(argument, cells)
    if asked.more == ("count",):
        return [None if value is None else 1 for value in values]
    return values


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
    if whole.__class__ is int or isinstance(whole, float):
        return whole / count
    return float(Fraction(whole) / count)


ANSWERS: dict[str, Callable[[Total], Any]] = {
    "count": _count_result,
    "sum": _sum_or_none,
    "avg": _mean_or_none,
}
_FORMS = {"sum": "sum({cells})", "avg": "sum(values := {cells}) / len(values)"}
"""Functions of whole numbers as text."""
SETTLES: dict[str, Settles] = {"count": "always", "sum": "if whole numbers", "avg": "never"}
