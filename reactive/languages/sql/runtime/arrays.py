"""Arrays with their elements, and instants in a time zone.

TIMESTAMPTZ: instants, and the local time of a time zone.

    read("2024-10-27 02:30+01", "UTC")         the instant; a text without a zone is in the second
    naive(instant, "Europe/Berlin")            the local time, a TIMESTAMP
    aware(timestamp, "Europe/Berlin")          the instant with this local time

The zone is that of the database, `Database(timezone=...)`, or one that the text names. Functions of
a column declared as `datetime` use a value without a zone as it is.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from optimizer.expressions.knowledge import bare, monotone, monotone_below
from optimizer.record import record
from reactive.engine.collections.instants import in_zone, local_time, of_local_time, zone_named
from reactive.languages.sql.runtime import casts, intervals, times

_MOMENT = re.compile(
    r"\s*(?P<day>\d{1,4}[-/]\d{1,2}[-/]\d{1,2})(?:(?:\s+|[Tt])(?P<time>\d{1,2}:\d{2}(?::\d{2}"
    r"(?:\.\d+)?)?))?\s*(?P<zone>[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?|[A-Za-z][\w/+-]*)?\s*"
)
_OFFSET = re.compile(r"([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?")
BELOW_A_DAY = frozenset(intervals.LENGTHS) - {"day", "week"}


def has_zone(text: str) -> bool:
    """Return True if a text of a timestamp says its zone.

    >>> has_zone("2024-01-02 03:04:05-08"), has_zone("2024-01-02")
    (True, False)
    """
    found = _MOMENT.fullmatch(text)
    return found is not None and found["zone"] is not None


def read(text: str, zone: str) -> dt.datetime:
    """Return the instant of a text, in `zone` if it names none; raise for other texts.

    >>> read("2022-10-01 12:00:00-08:00", "UTC").isoformat()
    '2022-10-01T20:00:00+00:00'
    """
    found = _MOMENT.fullmatch(text)
    if found is None:
        casts.to_timestamp(text)  # raises for values beyond Python's range
        raise ValueError(f"{text!r} is no timestamp")
    local = casts.to_timestamp(f"{found['day']} {found['time'] or '00:00'}")
    return in_zone(_to_instant(local, found["zone"] or zone), zone)


def read_of_duckdb(text: str, zone: str) -> dt.datetime:
    """Return the instant that a text says; refuse a blank behind a day without a time."""
    found = _MOMENT.fullmatch(text)
    if found is not None and not found["time"] and text[found.end("day") :][:1].isspace():
        raise ValueError(f"{text!r} is no timestamp")
    return read(text, zone)


def _to_instant(local: dt.datetime, zone: str) -> dt.datetime:
    """Return a local time as an instant, by a fixed offset such as `+01:30` or a named zone."""
    offset = _OFFSET.fullmatch(zone)
    if offset is None:
        return of_local_time(local, zone)
    parts = [int(part or 0) for part in offset.groups()[1:]]
    length = dt.timedelta(hours=parts[0], minutes=parts[1], seconds=parts[2])
    return local.replace(tzinfo=dt.timezone(-length if offset[1] == "-" else length))


@bare
@monotone(1, 0, units=("UTC",))
def naive(value: dt.datetime, zone: str) -> dt.datetime:
    """Return what clocks of a zone show at an instant; a timestamp without a zone as it is."""
    return value if value.tzinfo is None else local_time(value, zone)


def aware(value: dt.date, zone: str) -> dt.datetime:
    """Return the instant with a local time in a zone, or with the start of a day."""
    if isinstance(value, dt.datetime):
        return of_local_time(value, zone) if value.tzinfo is None else value
    return of_local_time(times.as_timestamp(value), zone)


def in_session(value: dt.datetime, other: str, zone: str) -> dt.datetime:
    """Return the instant with a local time in the zone `other`, in `zone`."""
    return in_zone(_to_instant(value, _check_zone_name(other)), zone)


def shown(value: dt.datetime, other: str) -> dt.datetime:
    """Return what clocks of the zone `other` show at an instant (AT TIME ZONE)."""
    offset = _OFFSET.fullmatch(other)
    if offset is not None:
        return value.astimezone(_to_instant(dt.datetime(2000, 1, 1), other).tzinfo).replace(
            tzinfo=None
        )
    return local_time(value, _check_zone_name(other))


def turned(value: dt.datetime, other: str, zone: str) -> dt.datetime:
    """Return AT TIME ZONE of a value that may or may not have a zone."""
    return in_session(value, other, zone) if value.tzinfo is None else shown(value, other)


def _check_zone_name(name: str) -> str:
    """Return the name of a zone as it is; raise if there is no such zone."""
    if not _OFFSET.fullmatch(name):
        zone_named(name)
    return name


def zoned(value: dt.datetime) -> dt.datetime:
    """Return a datetime that is compared with instants, unchanged.

    Raises
    ------
    ValueError: it has no zone.
    """
    if value.tzinfo is None:
        raise ValueError(f"{value} has no time zone, and is compared with instants")
    return value


def date(value: dt.datetime, zone: str) -> dt.date:
    """Return the day that calendars of a zone show."""
    return naive(value, zone).date()


def time(value: dt.datetime, zone: str) -> dt.time:
    """Return the time of day that clocks of a zone show."""
    return naive(value, zone).time()


def text(value: dt.datetime, zone: str) -> str:
    """Return an instant as it is written, with the offset of the zone.

    >>> text(dt.datetime(2024, 7, 1, tzinfo=dt.timezone.utc), "Europe/Berlin")
    '2024-07-01 02:00:00+02'
    """
    if value.tzinfo is None:
        return casts.to_text(value)
    return casts.to_text(local_time(value, zone)) + _offset_text(value, zone)


def _offset_text(value: dt.datetime, zone: str) -> str:
    """Return the offset of a zone at an instant as text: `+01`, `-03:30` or with seconds."""
    seconds = _offset_seconds(value, zone)
    minutes, rest = divmod(abs(seconds), 60)
    made = f"{'-' if seconds < 0 else '+'}{minutes // 60:02}"
    if minutes % 60 or rest:
        made += f":{minutes % 60:02}"
    return f"{made}:{rest:02}" if rest else made


def _offset_seconds(value: dt.datetime, zone: str) -> int:
    """Return the offset of a zone at an instant, in seconds."""
    offset = value.astimezone(zone_named(zone)).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def part_of_zone(unit: str, value: dt.datetime, zone: str) -> int:
    """Return the offset of a zone at an instant: in seconds, or its hours or minutes.

    >>> part_of_zone("timezone_hour", dt.datetime(2024, 7, 1, tzinfo=dt.timezone.utc), "Asia/Tokyo")
    9
    """
    seconds = _offset_seconds(zoned(value), zone)
    if unit == "timezone":
        return seconds
    sign = -1 if seconds < 0 else 1
    hours, rest = divmod(abs(seconds), 3600)
    return sign * (hours if unit == "timezone_hour" else rest // 60)


def truncated(unit: str, value: dt.datetime, zone: str) -> dt.datetime:
    """Return the start, in a zone, of the hour, day, month, ... that contains an instant."""
    if value.tzinfo is None:
        return times.truncated(unit, value)
    local = local_time(value, zone)
    begin = times.truncated(unit, local)
    if unit in BELOW_A_DAY:
        return in_zone(value - (local - begin), zone)
    return in_zone(of_local_time(begin, zone), zone)


def truncated_of_duckdb(unit: str, value: dt.datetime, zone: str) -> dt.datetime:
    """Return `truncated`; of two hours that clocks show alike, DuckDB has the later one."""
    if unit != "hour" or value.tzinfo is None:
        return truncated(unit, value, zone)
    return in_zone(of_local_time(times.truncated(unit, local_time(value, zone)), zone), zone)


@monotone(0, -1, 1, 0, is_number=True, units=(*intervals.LENGTHS, "UTC"))
def boundaries(unit: str, begin: dt.datetime, end: dt.datetime, zone: str) -> int:
    """Return how many hours, minutes, ... of a zone begin between two instants."""
    if begin.tzinfo is None or end.tzinfo is None:
        return times.boundaries(unit, begin, end)
    first, last = (_utc(truncated_of_duckdb(unit, each, zone)) for each in (begin, end))
    whole = abs(last - first) // intervals.LENGTHS[unit]
    return whole if last >= first else -whole


def bucket(
    width: dt.timedelta, value: dt.datetime, zone: str, origin: dt.datetime | None = None
) -> dt.datetime:
    """Return the start of the bucket that contains an instant; buckets are counted in UTC."""
    start = None if origin is None else naive(origin, "UTC")
    begin = times.bucket(width, naive(value, "UTC"), start)
    assert isinstance(begin, dt.datetime)
    return begin if value.tzinfo is None else in_zone(of_local_time(begin, "UTC"), zone)


def bucket_in(width: dt.timedelta, value: dt.datetime, other: str, zone: str) -> dt.datetime:
    """Return the start of the bucket that contains an instant, by the clocks of `other`."""
    begin = times.bucket(width, naive(value, other))
    assert isinstance(begin, dt.datetime)
    return in_zone(of_local_time(begin, other), zone)


def later(value: dt.datetime, by: dt.timedelta, zone: str) -> dt.datetime:
    """Return the instant that is later by an interval.

    Months and days are added by the calendar of a zone, then hours and less by the clock.

    >>> from reactive.engine.collections.instants import of_local_time
    >>> begin = of_local_time(dt.datetime(2024, 10, 26, 12), "Europe/Berlin")
    >>> later(begin, dt.timedelta(days=1), "Europe/Berlin").isoformat()
    '2024-10-27T12:00:00+01:00'
    """
    if value.tzinfo is None:
        return times.later(value, by)
    months, days, clock = _split_interval(by)
    if days or months:
        month = times.months_later(local_time(value, zone), months)
        value = of_local_time(month + dt.timedelta(days), zone)
    return in_zone(_utc(value) + clock, zone)


def later_of_duckdb(value: dt.datetime, by: dt.timedelta, zone: str) -> dt.datetime:
    """Return the instant that is later by an interval, as DuckDB computes it.

    If days later two instants have one local time, the result has the earlier offset; if a part of
    the interval is negative, the clock part is added first.
    """
    if value.tzinfo is None:
        return times.later(value, by)
    months, days, clock = _split_interval(by)
    if min(months, days) < 0 or clock < dt.timedelta():
        value = _months_later(_utc(value) + clock, months, zone)
        return in_zone(_days_later(value, days, zone), zone)
    value = _days_later(_months_later(value, months, zone), days, zone)
    return in_zone(_utc(value) + clock, zone)


def _months_later(value: dt.datetime, months: int, zone: str) -> dt.datetime:
    """Return the instant some months later, at the same local time of the zone."""
    if not months:
        return value
    return of_local_time(times.months_later(local_time(value, zone), months), zone)


def _days_later(value: dt.datetime, days: int, zone: str) -> dt.datetime:
    """Return the instant some days later, at the same time of day in the zone."""
    if not days:
        return value
    there = zone_named(zone)
    same = _utc(value) + dt.timedelta(days)
    is_valid = same.astimezone(there).utcoffset() == value.astimezone(there).utcoffset()
    return same if is_valid else of_local_time(local_time(value, zone) + dt.timedelta(days), zone)


def earlier_of_duckdb(value: dt.datetime, by: dt.timedelta, zone: str) -> dt.datetime:
    """Return the instant that is earlier by an interval, as DuckDB computes it."""
    return later_of_duckdb(value, intervals.negative(by), zone)


def _split_interval(by: dt.timedelta) -> tuple[int, int, dt.timedelta]:
    """Return the months, the days, and the clock part of an interval."""
    months, days, micros = intervals.interval_parts(by)
    return months, days, dt.timedelta(microseconds=micros)


def earlier(value: dt.datetime, by: dt.timedelta, zone: str) -> dt.datetime:
    """Return the instant that is earlier by an interval."""
    return later(value, intervals.negative(by), zone)


@record
class CalendarShift:
    """The edge of a frame an interval away from a key, whose days follow the calendar of a zone."""

    zone: str

    def __call__(self, key: Any, offset: Any, up: bool) -> Any:
        """Return a moment plus an interval if `up`, else minus it."""
        if isinstance(key, dt.datetime) and key.tzinfo is not None:
            return (later if up else earlier)(key, offset, self.zone)
        made = times.later(key, offset) if up else times.earlier(key, offset)
        return made if hasattr(key, "hour") else made.date()


@monotone(1, -1)
def between(value: dt.datetime, other: dt.datetime) -> dt.timedelta:
    """Return how much later an instant is than another instant."""
    if value.tzinfo is None or other.tzinfo is None:
        return value - other  # of one without a zone, and one with, Python refuses it
    return _utc(value) - _utc(other)


@monotone(1, -1, 0)
def between_of_duckdb(value: dt.datetime, other: dt.datetime, zone: str) -> dt.timedelta:
    """Return the interval between two instants in whole days of a zone's calendar, and the rest."""
    if value.tzinfo is None or other.tzinfo is None:
        return value - other
    one, two = _utc(value), _utc(other)
    if one < two:
        return -between_of_duckdb(other, value, zone)
    days = (local_time(one, zone) - local_time(two, zone)).days
    while days > 0 and later_of_duckdb(two, dt.timedelta(days), zone) > one:
        days -= 1
    days = max(days, 0)
    return dt.timedelta(days) + (one - _utc(later_of_duckdb(two, dt.timedelta(days), zone)))


@monotone_below(dt.timedelta(28))
def age(value: dt.datetime, other: dt.datetime, zone: str) -> dt.timedelta:
    """Return how old something is, in months, days and hours as a zone has them."""
    one, two = naive(value, zone), naive(other, zone)
    if value.tzinfo is None or other.tzinfo is None:
        return times.age(one, two)
    is_later = _utc(value) >= _utc(other)
    return times.age_of(one, two) if is_later else intervals.negative(times.age_of(two, one))


def epoch_milliseconds(value: dt.datetime) -> int:
    """Return the milliseconds since 1970, in UTC."""
    return times.epoch_milliseconds(naive(value, "UTC"))


def posix(name: str) -> str:
    """Return a zone as Postgres reads its name: '+02' is west of Greenwich.

    >>> posix("+02"), posix("2"), posix("Asia/Tokyo")
    ('-02', '-2', 'Asia/Tokyo')
    """
    if name[:1].isdigit() and _OFFSET.fullmatch(f"+{name}"):
        return f"-{name}"
    if not _OFFSET.fullmatch(name):
        return name
    return ("-" if name[0] == "+" else "+") + name[1:]


def offset_of(span: dt.timedelta) -> str:
    """Return the name, for `posix`, of the zone ahead of UTC by an interval; a day or more raises.

    >>> offset_of(dt.timedelta(hours=5, minutes=30))
    '-05:30:00'
    """
    months, days, micros = intervals.interval_parts(span)
    if months or days:
        raise ValueError("an interval that is a time zone must not include months or days")
    seconds = abs(micros) // 1_000_000
    sign = "-" if micros >= 0 else "+"
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _utc(value: dt.datetime) -> dt.datetime:
    return value.astimezone(dt.UTC)


def of_parts(
    year: int, month: int, day: int, hour: int, minute: int, second: Any, other: str, zone: str
) -> dt.datetime:
    """Return MAKE_TIMESTAMPTZ: the instant with the given parts as local time of `other`."""
    local = times.timestamp_of_parts(year, month, day, hour, minute, second)
    return in_session(local, other, zone)


def of_seconds(seconds: Any, zone: str) -> dt.datetime:
    """Return the instant of a number of seconds since 1970 in a zone (TO_TIMESTAMP)."""
    return in_zone(times.timestamp_of_seconds(seconds).replace(tzinfo=dt.UTC), zone)


# Functions of arrays, which are tuples. Places begin with 1; some elements may be None.

Array = tuple[Any, ...]


def concatenated(one: Any, other: Any) -> Array:
    """Concatenate two arrays, or an array and an element.

    >>> concatenated((1,), (2, 3)), concatenated(0, (1,))
    ((1, 2, 3), (0, 1))
    """
    left = one if isinstance(one, tuple) else (one,)
    return left + (other if isinstance(other, tuple) else (other,))


def appended(array: Array | None, item: Any) -> Array:
    """Return an array with one element more at its end."""
    return (*(array or ()), item)


def prepended(array: Array | None, item: Any) -> Array:
    """Return an array with one element more at its beginning."""
    return (item, *(array or ()))


def first(array: Array) -> Any:
    """Return the first element; None if there is none."""
    return array[0] if array else None


def last(array: Array) -> Any:
    """Return the last element; None if there is none."""
    return array[-1] if array else None


def any_value(array: Array) -> Any:
    """Return the first element that is not NULL; None if there is none."""
    return next((item for item in array if item is not None), None)


def different(array: Array) -> int:
    """Return the number of different elements that are not NULL.

    >>> different((1, None, 1))
    1
    """
    return len({item for item in array if item is not None})


def concatenated_of_all(*arrays: Array | None) -> Array | None:
    """Return DuckDB's LIST_CONCAT, which skips NULL arrays."""
    return tuple(item for array in arrays if array is not None for item in array)


def element(array: Any, place: int) -> Any:
    """Return the element at a place, from the end if that is negative; None if there is none.

    >>> element((1, 2), 1), element((1, 2), -1), element((1, 2), 3), element("abc", 2)
    (1, 2, None, 'b')
    """
    index = place - 1 if place > 0 else place + len(array)
    if place and 0 <= index < len(array):
        return array[index]
    return "" if isinstance(array, str) else None


def slice_of(array: Any, first: int, last: int) -> Any:
    """Return the elements from one place to another, both from 1 on, from the end if negative."""
    first, last = (place + len(array) + 1 if place < 0 else place for place in (first, last))
    return array[max(0, first - 1) : max(0, last)]


def contains(array: Array, item: Any) -> bool:
    """Return True if an element is equal."""
    return item in array


def contains_all(array: Array, items: Array) -> bool:
    """Return True if an array has all elements of another that are not NULL."""
    return set(items) - {None} <= set(array)


def contained_by(items: Array, array: Array) -> bool:
    """Return True if all elements of an array that are not NULL are in another."""
    return contains_all(array, items)


def contains_any(array: Array, items: Array) -> bool:
    """Return True if two arrays have an element in common, other than NULL."""
    return not (set(array) - {None}).isdisjoint(items)


def position(array: Array, item: Any) -> int | None:
    """Return the first place of an element, from 1 on; None if it is absent."""
    return array.index(item) + 1 if item in array else None


def place_of(array: Array | None, item: Any) -> int | None:
    """Return the first place, from 1 on, of an element, which may be NULL.

    Return None if the element is absent, or the array is NULL.
    """
    return None if array is None else position(array, item)


def is_in(array: Array | None, item: Any) -> bool | None:
    """Return True if an element equals `item`.

    Return None, for NULL, if the array is NULL, or if `item` is NULL and the array has elements.
    """
    if array is None or (item is None and array):
        return None
    return item in array


def distinct(array: Array) -> Array:
    """Return the different elements, without NULL."""
    return tuple(dict.fromkeys(item for item in array if item is not None))


def backwards(array: Array) -> Array:
    """Return the elements from the last to the first."""
    return array[::-1]


def in_order(array: Array, descending: bool = False, nulls_first: bool = False) -> Array:
    """Return the elements from the least to the greatest or the other way, NULL last or first.

    >>> in_order((2, None, 1)), in_order((2, None, 1), True, True)
    ((1, 2, None), (None, 2, 1))
    """
    found = sorted((item for item in array if item is not None), reverse=descending)
    missing = [item for item in array if item is None]
    return (*missing, *found) if nulls_first else (*found, *missing)


def total(array: Array) -> Any:
    """Return the sum of the elements that are not NULL; None if there are none."""
    found = [item for item in array if item is not None]
    return sum(found) if found else None


def mean(array: Array) -> Any:
    """Return the mean of the elements that are not NULL."""
    found = [float(item) for item in array if item is not None]
    return sum(found) / len(found) if found else None


def least(array: Array) -> Any:
    """Return the least element that is not NULL; None if there is none."""
    return min((item for item in array if item is not None), default=None)


def greatest(array: Array) -> Any:
    """Return the greatest element that is not NULL."""
    return max((item for item in array if item is not None), default=None)


@record
class Joined:
    """Join the elements that are not NULL to one text; None if all are NULL."""

    separator: str | None

    def __call__(self, array: Array) -> str | None:
        from reactive.languages.sql.runtime.casts import to_text

        found = [to_text(item) for item in array if item is not None]
        separator = "," if self.separator is None else self.separator
        return separator.join(found) if found or not array else None


MOST_ELEMENTS = 10_000_000
"""The elements of the longest series; a longer one is an error, not a process without memory."""


def numbers(start: int, end: int, step: int = 1, most: int | None = None) -> Array:
    """Return the numbers from `start` to before `end`, at most `most`; none for a step of 0.

    >>> numbers(5, 1, -2), numbers(1, 5, 0), numbers(0, 10**12, 1, 2)
    ((5, 3), (), (0, 1))
    """
    return _take_elements(range(start, end, step) if step else range(0), most)


def series(start: int, end: int, step: int = 1, most: int | None = None) -> Array:
    """Return the numbers from `start` to `end`, with the end, at most `most`.

    >>> series(1, 3), series(5, 1, -2)
    ((1, 2, 3), (5, 3, 1))
    """
    return numbers(start, end + (1 if step > 0 else -1), step, most)


def _take_elements(found: range, most: int | None) -> Array:
    """Return the first `most` numbers of a range, or all; raise if an array cannot hold them."""
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
    """Return the error about a series that would fill the memory."""
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
    """Return the moments from `start` on, each by the interval `step` after the one before it.

    Return none for an empty interval. The series ends before `end`, or with it if `inclusive`;
    after `most` moments; and at the last year that Python has. Instants follow the calendar of
    `zone`; an empty `zone` means timestamps.

    Raises
    ------
    ValueError: the interval has both positive and negative parts.
    OverflowError: there are more than `MOST_ELEMENTS` moments.
    """
    from reactive.languages.sql.runtime import intervals, times

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
            start = later_of_duckdb(start, step, zone) if zone else times.later(start, step)
        except (OverflowError, ValueError):  # beyond the last year that Python has
            break
    return tuple(made)


NOTHING, MICROSECOND = dt.timedelta(), dt.timedelta(microseconds=1)


def length(of: Any) -> int:
    """Return the number of elements or letters."""
    return len(of)


# The elements of arrays, as rows.


def elements(offset: bool, *arrays: Iterable[Any] | None) -> list[Any]:
    """Return the elements of an array, or of several side by side; a NULL array has none.

    Shorter arrays are filled up with None. If `offset`, the number of each row is appended to it.

    >>> elements(False, (1, 2)), elements(True, (1,), (3, 4))
    ([1, 2], [(1, 3, 1), (None, 4, 2)])
    """
    given = [array or () for array in arrays]
    if len(given) == 1 and not offset:
        return list(given[0])
    rows = zip_longest(*given)
    return [(*row, n) for n, row in enumerate(rows, 1)] if offset else list(rows)


def elements_or_none(offset: bool, *arrays: Iterable[Any] | None) -> list[Any]:
    """Return the elements of arrays side by side; one NULL if there are none."""
    found = elements(offset, *arrays)
    width = len(arrays) + offset
    return found or [None if width == 1 else (None,) * width]
