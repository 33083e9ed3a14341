"""Dates, times and timestamps of texts, as DuckDB reads and writes them.

    to_date("2024/2/3")              separators are one of - / \\ and a blank
    to_timestamp("2024-2-3 4:05Z")   a zone is read over; 24:00 is the next day
    to_time("4:5")                   also of the text of a timestamp

What Python has no place for raises `Unrepresentable`, so that no attempt makes NULL of it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

from optimizer.expressions.knowledge import pure, rises, skips_none
from reactive.languages.sql.runtime.times import EPOCH, Moment, as_timestamp

_DAY = re.compile(r"\s*(-?\d+)([-/\\ ])(\d{1,2})\2(\d{1,2})( \(BC\))?", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?", re.ASCII)
_SHIFT = r"Z|[+-]\d\d(?::?\d\d)?"
_AFTER_TIMESTAMP = re.compile(rf"(?:{_SHIFT})?(?:\s.*)?", re.ASCII)
_AFTER_TIME = re.compile(rf"(?:{_SHIFT})?", re.ASCII)
_INFINITE = frozenset({"inf", "infinity", "-inf", "-infinity"})


def to_date(value: Any) -> dt.date:
    """Return the day of a timestamp or of a text.

    >>> to_date(" 2024-2-3 "), to_date("2024-02-03 24:00")
    (datetime.date(2024, 2, 3), datetime.date(2024, 2, 3))
    """
    if not isinstance(value, str):
        return value.date() if isinstance(value, dt.datetime) else value
    day, rest = _split_day(value)
    if rest.strip():
        _read_clock(value, rest)
    return day


def to_timestamp(value: Any) -> dt.datetime:
    """Return the beginning of a day, or the moment of a text; raise for other texts.

    >>> to_timestamp("2024-2-3 4:05"), to_timestamp("2024/02/03T24:00:00")
    (datetime.datetime(2024, 2, 3, 4, 5), datetime.datetime(2024, 2, 4, 0, 0))
    """
    if isinstance(value, dt.datetime):
        return value
    if not isinstance(value, str):
        return dt.datetime(value.year, value.month, value.day)
    day, rest = _split_day(value)
    clock = _read_clock(value, rest) if rest else dt.timedelta()
    try:
        return dt.datetime(day.year, day.month, day.day) + clock
    except OverflowError:
        raise Unrepresentable(f"{value!r} is after 9999") from None


def to_time(value: Any) -> dt.time:
    """Return the time of a timestamp or of a text; raise for other texts, and 24:00.

    >>> to_time("1:5"), to_time("2024-02-03 04:05:06.7"), to_time("2024-02-03")
    (datetime.time(1, 5), datetime.time(4, 5, 6, 700000), datetime.time(0, 0))
    """
    if not isinstance(value, str):
        return value.time() if isinstance(value, dt.datetime) else value
    found = _CLOCK.match(value)
    if found is None and value.lower() in _INFINITE:
        raise ValueError(f"{value!r} has no time")
    if found is None:
        return to_timestamp(_in_known_years(value)).time()
    clock = _since_midnight(value, found, _AFTER_TIME)
    if clock == _WHOLE_DAY:
        raise Unrepresentable(f"{value!r} is after 23:59:59")
    return (EPOCH + clock).time()


_WHOLE_DAY = dt.timedelta(1)
_YEARS = range(-290_307, 294_247)
"""The years that a timestamp has in DuckDB."""


def _in_known_years(text: str) -> str:
    """Return a text with a year that Python has and that has the same days."""
    day = _DAY.match(text)
    if day is None or 0 < int(day[1]) < 10000 or int(day[1]) not in _YEARS:
        return text
    return f"{2000 + int(day[1]) % 400}{text[day.end(1) :]}"


def _split_day(text: str) -> tuple[dt.date, str]:
    """Return the day that a text begins with, and what follows it; raise without one."""
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


def _read_clock(text: str, rest: str) -> dt.timedelta:
    """Return the time since midnight that a text has behind its day; raise without one."""
    begins = re.match(r"T|\s+", rest)
    found = begins and _CLOCK.match(rest, begins.end())
    if not found:
        raise ValueError(f"{text!r} is no timestamp")
    return _since_midnight(text, found, _AFTER_TIMESTAMP)


def _since_midnight(text: str, found: re.Match[str], after: re.Pattern[str]) -> dt.timedelta:
    """Return a matched time as a duration; refuse it if what follows does not match `after`."""
    hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
    micros = int((found[4] or "").ljust(6, "0")[:6])
    is_end = hour == 24 and not (minute or second or micros)
    follows = found.string[found.end() :]
    if not (is_end or hour < 24) or minute > 59 or second > 59 or not after.fullmatch(follows):
        raise ValueError(f"{text!r} is no time")
    return dt.timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micros)


def written(of: Moment, form: str) -> str:
    """Return a moment in the form of `strftime`.

    >>> written(dt.date(2024, 2, 3), "%-d.%-m.%Y")
    '3.2.2024'
    """
    moment = as_timestamp(of)

    def part(found: re.Match[str]) -> str:
        made = _WRITTEN.get(found[1])
        return moment.strftime(found[0]) if made is None else made(moment)

    return re.sub(r"%(-?.)", part, form, flags=re.DOTALL)


_WRITTEN: dict[str, Any] = {
    "Y": lambda of: f"{of.year:04}",
    "G": lambda of: f"{of.isocalendar()[0]:04}",
    "c": lambda of: f"{of.year:04}-{of:%m-%d %H:%M:%S}",
    "x": lambda of: f"{of.year:04}-{of:%m-%d}",
    "X": lambda of: f"{of:%H:%M:%S}",
    "z": lambda of: "+00",
    "g": lambda of: f"{of.microsecond // 1000:03}",
    "n": lambda of: f"{of.microsecond * 1000:09}",
    "-d": lambda of: str(of.day),
    "-m": lambda of: str(of.month),
    "-H": lambda of: str(of.hour),
    "-I": lambda of: str(of.hour % 12 or 12),
    "-M": lambda of: str(of.minute),
    "-S": lambda of: str(of.second),
    "-y": lambda of: str(of.year % 100),
    "-j": lambda of: str(of.timetuple().tm_yday),
}
"""Format parts that differ between DuckDB and Python, or that some systems lack."""


def read(text: str, form: str) -> dt.datetime:
    """Return a moment from the form of `strptime`."""
    return dt.datetime.strptime(text.strip(), form)


# Functions that know NULL, which is None.


class Unrepresentable(ValueError):
    """A value that SQL has and Python has not, as a date after 9999: never NULL, an error."""


@pure
@skips_none
def strict_call(function: Callable[..., Any], *values: Any) -> Any:
    """Return the function of the values, or None if one is None.

    >>> strict_call(max, 1, 2), strict_call(max, 1, None)
    (2, None)
    """
    for value in values:
        if value is None:
            return None
    return function(*values)


@pure
def attempt(function: Callable[..., Any], *values: Any) -> Any:
    """Call a function as `strict_call` does; return None if it raises."""
    try:
        return strict_call(function, *values)
    except Unrepresentable:
        raise
    except (ArithmeticError, ValueError, LookupError, TypeError):
        return None


@pure
@rises
def coalesce(*values: Any) -> Any:
    """Return the first that is not None."""
    return next((value for value in values if value is not None), None)


@pure
def null_if(value: Any, other: Any) -> Any:
    """Return the value, or None if it is equal to the other."""
    return None if value == other else value


@pure
def greatest(*values: Any) -> Any:
    """Return the greatest value that is not None.

    >>> greatest(1, None, 3), greatest(None)
    (3, None)
    """
    return max((value for value in values if value is not None), default=None)


@pure
def least(*values: Any) -> Any:
    """Return the least value that is not None."""
    return min((value for value in values if value is not None), default=None)


def is_among(value: Any, items: Any) -> bool | None:
    """Return True if an item equals the value; None if only an item that is None might.

    >>> is_among(1, (1, None)), is_among(2, (1, None)), is_among(2, (1,))
    (True, None, False)
    """
    if value in items:
        return True
    return None if None in items else False


def first_match(value: Any, *branches: Any) -> Any:
    """Return the `b` of the first `a` that is equal, or the last (CASE value WHEN a THEN b ...).

    >>> first_match(2, 1, "one", 2, "two", "many")
    'two'
    """
    for place in range(0, len(branches) - 1, 2):
        if value is not None and value == branches[place]:
            return branches[place + 1]
    return branches[-1]
