"""Functions of arrays, which are tuples. Places begin with 1; some elements may be None."""

from __future__ import annotations

import datetime as dt
from typing import Any

from optimizer.record import record

Array = tuple[Any, ...]


def concatenated(one: Any, other: Any) -> Array:
    """Two arrays, or an array and an element, as one.

    >>> concatenated((1,), (2, 3)), concatenated(0, (1,))
    ((1, 2, 3), (0, 1))
    """
    left = one if isinstance(one, tuple) else (one,)
    return left + (other if isinstance(other, tuple) else (other,))


def appended(array: Array | None, item: Any) -> Array:
    """An array with one element more at its end."""
    return (*(array or ()), item)


def prepended(array: Array | None, item: Any) -> Array:
    """An array with one element more at its beginning."""
    return (item, *(array or ()))


def first(array: Array) -> Any:
    """The first element; None of none."""
    return array[0] if array else None


def last(array: Array) -> Any:
    """The last element; None of none."""
    return array[-1] if array else None


def any_value(array: Array) -> Any:
    """The first element that is not NULL."""
    return next((item for item in array if item is not None), None)


def different(array: Array) -> int:
    """Return the number of different elements that are not NULL.

    >>> different((1, None, 1))
    1
    """
    return len({item for item in array if item is not None})


def concatenated_of_all(*arrays: Array | None) -> Array | None:
    """DuckDB's LIST_CONCAT: without those that are NULL."""
    return tuple(item for array in arrays if array is not None for item in array)


def element(array: Any, place: int) -> Any:
    """The element at a place, from the end if that is negative; None if there is none.

    >>> element((1, 2), 1), element((1, 2), -1), element((1, 2), 3), element("abc", 2)
    (1, 2, None, 'b')
    """
    index = place - 1 if place > 0 else place + len(array)
    if place and 0 <= index < len(array):
        return array[index]
    return "" if isinstance(array, str) else None


def slice_of(array: Any, first: int, last: int) -> Any:
    """The elements from one place to another."""
    first, last = (place + len(array) + 1 if place < 0 else place for place in (first, last))
    return array[max(0, first - 1) : max(0, last)]


def contains(array: Array, item: Any) -> bool:
    """Whether an element is equal."""
    return item in array


def contains_all(array: Array, items: Array) -> bool:
    """Return whether an array has all elements of another that are not NULL."""
    return set(items) - {None} <= set(array)


def contained_by(items: Array, array: Array) -> bool:
    """Return whether all elements of an array are in another."""
    return contains_all(array, items)


def contains_any(array: Array, items: Array) -> bool:
    """Whether two arrays have an element in common, other than NULL."""
    return not (set(array) - {None}).isdisjoint(items)


def position(array: Array, item: Any) -> int | None:
    """Return the place where an element is first."""
    return array.index(item) + 1 if item in array else None


def place_of(array: Array | None, item: Any) -> int | None:
    """Return the same of an element that may be NULL, as DuckDB does."""
    return None if array is None else position(array, item)


def is_in(array: Array | None, item: Any) -> bool | None:
    """Return whether an element is equal; of no elements NULL is none."""
    if array is None or (item is None and array):
        return None
    return item in array


def distinct(array: Array) -> Array:
    """The different elements, without NULL."""
    return tuple(dict.fromkeys(item for item in array if item is not None))


def backwards(array: Array) -> Array:
    """The elements from the last to the first."""
    return array[::-1]


def in_order(array: Array, descending: bool = False, nulls_first: bool = False) -> Array:
    """The elements from the least to the greatest or the other way, NULL last or first.

    >>> in_order((2, None, 1)), in_order((2, None, 1), True, True)
    ((1, 2, None), (None, 2, 1))
    """
    found = sorted((item for item in array if item is not None), reverse=descending)
    missing = [item for item in array if item is None]
    return (*missing, *found) if nulls_first else (*found, *missing)


def total(array: Array) -> Any:
    """The sum of the elements that are not NULL."""
    found = [item for item in array if item is not None]
    return sum(found) if found else None


def mean(array: Array) -> Any:
    """The mean of the elements that are not NULL."""
    found = [float(item) for item in array if item is not None]
    return sum(found) / len(found) if found else None


def least(array: Array) -> Any:
    """The least element that is not NULL."""
    return min((item for item in array if item is not None), default=None)


def greatest(array: Array) -> Any:
    """The greatest element that is not NULL."""
    return max((item for item in array if item is not None), default=None)


@record
class Joined:
    """Joins the elements that are not NULL to one text; None if all are."""

    separator: str | None

    def __call__(self, array: Array) -> str | None:
        from reactive.languages.sql.runtime.casts import to_text

        found = [to_text(item) for item in array if item is not None]
        separator = "," if self.separator is None else self.separator
        return separator.join(found) if found or not array else None


MOST_ELEMENTS = 10_000_000
"""The elements of the longest series; a longer one is an error, not a process without memory."""


def numbers(start: int, end: int, step: int = 1, most: int | None = None) -> Array:
    """The numbers from one up to another, without that; `most` of them.

    >>> numbers(5, 1, -2), numbers(1, 5, 0), numbers(0, 10**12, 1, 2)
    ((5, 3), (), (0, 1))
    """
    return _cut(range(start, end, step) if step else range(0), most)


def series(start: int, end: int, step: int = 1, most: int | None = None) -> Array:
    """The numbers from one up to another, with that; `most` of them.

    >>> series(1, 3), series(5, 1, -2)
    ((1, 2, 3), (5, 3, 1))
    """
    return numbers(start, end + (1 if step > 0 else -1), step, most)


def _cut(found: range, most: int | None) -> Array:
    if most is not None:
        found = found[:most]
    try:
        count = len(found)
    except OverflowError:
        count = MOST_ELEMENTS + 1
    if count > MOST_ELEMENTS:
        raise too_long()
    return tuple(found)


def too_long() -> Exception:
    """The error about a series that would fill the memory."""
    return OverflowError(
        f"a series of more than {MOST_ELEMENTS:,} elements: give it a nearer end, or a LIMIT"
    )


def moments(
    start: Any,
    end: Any,
    step: Any,
    most: int | None = None,
    zone: str = "",
    inclusive: bool = False,
) -> Array:
    """The moments from one to another by an interval, `inclusive` with the end; instants by the
    calendar of a zone. An interval of nothing gives none.

    Raises
    ------
    ValueError: the interval has parts before and after.
    """
    from reactive.languages.sql.runtime import intervals, times, zones

    months, rest = intervals.months_of(step), intervals.rest_of(step)
    if months * (rest // MICROSECOND) < 0:
        raise ValueError("a series by an interval with parts before and after is not supported")
    if not months and not rest:
        return ()
    rises = months > 0 or rest > NOTHING
    if not zone:
        start, end = times.as_timestamp(start), times.as_timestamp(end)
    made: list[Any] = []
    while (start < end if rises else start > end) or (inclusive and start == end):
        if most is not None and len(made) >= most:
            break
        if len(made) >= MOST_ELEMENTS:
            raise too_long()
        made.append(start)
        try:
            start = zones.later_of_duckdb(start, step, zone) if zone else times.later(start, step)
        except (OverflowError, ValueError):  # beyond the last year that Python has
            break
    return tuple(made)


NOTHING, MICROSECOND = dt.timedelta(), dt.timedelta(microseconds=1)


def length(of: Any) -> int:
    """How many elements or letters there are."""
    return len(of)
