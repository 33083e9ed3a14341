"""Dates, times and timestamps of texts, as DuckDB reads them.

    to_date("2024/2/3")              separators are one of - / \\ and a blank
    to_timestamp("2024-2-3 4:05Z")   a zone is read over; 24:00 is the next day
    to_time("4:5")                   also of the text of a timestamp

What Python has no place for raises `Unrepresentable`, so that no attempt makes NULL of it.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from reactive.sql.runtime.nulls import Unrepresentable
from reactive.sql.runtime.times import EPOCH

_DAY = re.compile(r"\s*(-?\d+)([-/\\ ])(\d{1,2})\2(\d{1,2})( \(BC\))?")
_CLOCK = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?")
_SHIFT = r"Z|[+-]\d\d(?::?\d\d)?"
_AFTER_TIMESTAMP = re.compile(rf"(?:{_SHIFT})?(?:\s.*)?")
_AFTER_TIME = re.compile(rf"(?:{_SHIFT})?")
_INFINITE = frozenset({"inf", "infinity", "-inf", "-infinity"})


def to_date(value: Any) -> dt.date:
    """The day of a timestamp or of a text.

    >>> to_date(" 2024-2-3 "), to_date("2024-02-03 24:00")
    (datetime.date(2024, 2, 3), datetime.date(2024, 2, 3))
    """
    if not isinstance(value, str):
        return value.date() if isinstance(value, dt.datetime) else value
    day, rest = _day(value)
    if rest.strip():
        _clock(value, rest)
    return day


def to_timestamp(value: Any) -> dt.datetime:
    """The beginning of a day, or what a text says.

    >>> to_timestamp("2024-2-3 4:05"), to_timestamp("2024/02/03T24:00:00")
    (datetime.datetime(2024, 2, 3, 4, 5), datetime.datetime(2024, 2, 4, 0, 0))
    """
    if isinstance(value, dt.datetime):
        return value
    if not isinstance(value, str):
        return dt.datetime(value.year, value.month, value.day)
    day, rest = _day(value)
    clock = _clock(value, rest) if rest else dt.timedelta()
    try:
        return dt.datetime(day.year, day.month, day.day) + clock
    except OverflowError:
        raise Unrepresentable(f"{value!r} is after 9999") from None


def to_time(value: Any) -> dt.time:
    """The time of a timestamp or of a text.

    >>> to_time("1:5"), to_time("2024-02-03 04:05:06.7"), to_time("2024-02-03")
    (datetime.time(1, 5), datetime.time(4, 5, 6, 700000), datetime.time(0, 0))
    """
    if not isinstance(value, str):
        return value.time() if isinstance(value, dt.datetime) else value
    found = _CLOCK.match(value)
    if found is None and value.lower() in _INFINITE:
        raise ValueError(f"{value!r} has no time")
    if found is None:
        return to_timestamp(value).time()
    clock = _since_midnight(value, found, _AFTER_TIME)
    if clock == _WHOLE_DAY:
        raise Unrepresentable(f"{value!r} is after 23:59:59")
    return (EPOCH + clock).time()


_WHOLE_DAY = dt.timedelta(1)


def _day(text: str) -> tuple[dt.date, str]:
    """The day that a text begins with, and what follows it."""
    if text.lower() == "epoch":
        return EPOCH.date(), ""
    found = _DAY.match(text)
    if found is None:
        if text.lower() in _INFINITE:
            raise Unrepresentable(f"{text!r} is before the year 1 or after 9999")
        raise ValueError(f"{text!r} is no date")
    year, month, day = int(found[1]), int(found[3]), int(found[4])
    if not 0 < year < 10000 or found[5]:
        dt.date(2000 + year % 400, month, day)
        raise Unrepresentable(f"{text!r} is before the year 1 or after 9999")
    return dt.date(year, month, day), text[found.end() :]


def _clock(text: str, rest: str) -> dt.timedelta:
    """What a text says behind its day, as the time since midnight."""
    begins = re.match(r"T|\s+", rest)
    found = begins and _CLOCK.match(rest, begins.end())
    if not found:
        raise ValueError(f"{text!r} is no timestamp")
    return _since_midnight(text, found, _AFTER_TIMESTAMP)


def _since_midnight(text: str, found: re.Match[str], after: re.Pattern[str]) -> dt.timedelta:
    hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
    micros = int((found[4] or "").ljust(6, "0")[:6])
    is_end = hour == 24 and not (minute or second or micros)
    follows = found.string[found.end() :]
    if not (is_end or hour < 24) or minute > 59 or second > 59 or not after.fullmatch(follows):
        raise ValueError(f"{text!r} is no time")
    return dt.timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micros)
