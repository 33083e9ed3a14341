"""Intervals: months, days and microseconds that stay apart.

    interval(25, "hours")        25 hours, by the clock      later on a day of 23 hours: 25 hours
    interval(1, "day")           a day of the calendar       later on a day of 23 hours: 23 hours

They are compared as lengths, of months of 30 days and days of 24 hours.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

DAYS_OF_MONTH = 30
"""The days of a month when intervals are compared."""
MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}
LENGTHS = {
    "microsecond": dt.timedelta(microseconds=1),
    "millisecond": dt.timedelta(milliseconds=1),
    "second": dt.timedelta(seconds=1),
    "minute": dt.timedelta(minutes=1),
    "hour": dt.timedelta(hours=1),
    "day": dt.timedelta(days=1),
    "week": dt.timedelta(weeks=1),
}
SHORT = {
    "y": "year",
    "yr": "year",
    "mon": "month",
    "d": "day",
    "h": "hour",
    "hr": "hour",
    "m": "minute",
    "min": "minute",
    "s": "second",
    "sec": "second",
    "ms": "millisecond",
    "us": "microsecond",
    "msec": "millisecond",
    "usec": "microsecond",
    "w": "week",
    "centuries": "century",
    "mm": "month",
    "dd": "day",
    "yyyy": "year",
    "yy": "year",
    "dayofmonth": "day",
    "centurie": "century",
    "dec": "decade",
    "millennia": "millennium",
}


DAY = 86_400_000_000
"""Microseconds."""


class Interval(dt.timedelta):
    """An interval with separate months, days and microseconds.

    In comparisons a month has 30 days and a day 24 hours. `interval_of` returns a plain `timedelta`
    for an interval without months and with less than a day of microseconds.

    >>> interval_of(1, 0, 0) == dt.timedelta(days=30)
    True
    >>> interval_parts(interval_of(0, 0, 25 * 3_600_000_000)), interval_parts(dt.timedelta(days=1))
    ((0, 0, 90000000000), (0, 1, 0))
    """

    months: int
    micros: int
    """Beside its months and days."""

    def __new__(cls, months: int, days: int, micros: int) -> Interval:
        whole = months * DAYS_OF_MONTH + days
        made = super().__new__(cls, days=whole, microseconds=micros)
        made.months = months
        made.micros = micros
        return made

    @property
    def rest(self) -> dt.timedelta:
        """The days and microseconds, without the months."""
        return dt.timedelta(
            self.days - self.months * DAYS_OF_MONTH, self.seconds, self.microseconds
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return interval_of, interval_parts(self)


def interval_of(months: int, days: int, micros: int) -> dt.timedelta:
    """Return the interval of some months, days and microseconds."""
    if months:
        return Interval(months, days, micros)
    made = dt.timedelta(days, microseconds=micros)
    return made if clock_of(made) == (days, micros) else Interval(0, days, micros)


def interval_parts(interval: dt.timedelta) -> tuple[int, int, int]:
    """Return the months, days and microseconds of an interval."""
    return months_of(interval), *clock_of(interval)


def months_of(interval: dt.timedelta) -> int:
    """Return the months of an interval."""
    return interval.months if isinstance(interval, Interval) else 0


def rest_of(interval: dt.timedelta) -> dt.timedelta:
    """Return an interval without its months."""
    return interval.rest if isinstance(interval, Interval) else interval


def clock_of(interval: dt.timedelta) -> tuple[int, int]:
    """Return the days and the microseconds of an interval beside its months.

    Those of a plain `timedelta` have one sign.

    >>> clock_of(dt.timedelta(seconds=-1)), clock_of(dt.timedelta(hours=-25))
    ((0, -1000000), (-1, -3600000000))
    """
    whole = rest_of(interval) // LENGTHS["microsecond"]
    if isinstance(interval, Interval):
        return (whole - interval.micros) // DAY, interval.micros
    days, rest = divmod(abs(whole), DAY)
    return (days, rest) if whole >= 0 else (-days, -rest)


def days_of(interval: dt.timedelta) -> int:
    """Return the days of an interval."""
    return clock_of(interval)[0]


def micros_of(interval: dt.timedelta) -> int:
    """Return the microseconds of an interval beside its months and days."""
    return clock_of(interval)[1]


def unit_named(name: str) -> str:
    """Return the one name of a unit of time that has several."""
    folded = name.lower()
    folded = SHORT.get(folded, folded)
    return SHORT.get(folded.rstrip("s"), folded.rstrip("s")) if folded != "s" else "second"


@lru_cache(1024)
def interval(amount: float, unit: str) -> dt.timedelta:
    """Return an interval of a number of units of time; an unknown unit raises.

    >>> interval(2, "days"), interval(1, "year").days, interval_parts(interval(36, "hours"))
    (datetime.timedelta(days=2), 360, (0, 0, 129600000000))
    """
    unit = unit_named(unit)
    if unit in MONTHS:
        return interval_of(int(amount * MONTHS[unit]), 0, 0)
    if unit not in LENGTHS:
        raise ValueError(f"there is no unit of time {unit!r}")
    made = LENGTHS[unit] * amount
    return made if unit in ("day", "week") else of_clock(made)


def of_clock(time: dt.timedelta) -> dt.timedelta:
    """Return an interval of no days, but of hours and less, however many these are."""
    return interval_of(0, 0, time // LENGTHS["microsecond"])


def interval_of_text(text: str) -> dt.timedelta:
    """Return an interval written out; raise for other texts.

    >>> interval_of_text("1 day 2 hours"), interval_of_text("01:30")
    (datetime.timedelta(days=1, seconds=7200), datetime.timedelta(seconds=5400))
    """
    made = dt.timedelta()
    left = re.sub(r"([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]+)|[+-]?\d+:\d+(:\d+(\.\d+)?)?", "", text)
    if left.strip():
        raise ValueError(f"{text!r:.100} is no interval")
    for amount, unit in re.findall(r"([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]+)", text):
        made = sum_of_intervals(made, interval(float(amount), unit))
    clock = re.search(r"([+-]?)(\d+):(\d+)(?::(\d+(?:\.\d+)?))?", text)
    if clock is not None:
        hours, minutes, seconds = int(clock[2]), int(clock[3]), float(clock[4] or 0)
        time = of_clock(dt.timedelta(hours=hours, minutes=minutes, seconds=seconds))
        made = sum_of_intervals(made, negative(time) if clock[1] == "-" else time)
    elif not re.search(r"\d\s*[a-zA-Z]", text):
        raise ValueError(f"{text!r} is no interval")
    return made


def sum_of_intervals(a: dt.timedelta, b: dt.timedelta) -> dt.timedelta:
    """Add intervals: months to months, days to days."""
    if type(a) is type(b) is dt.timedelta and a.days == b.days == 0:
        return of_clock(a + b)
    one, two = interval_parts(a), interval_parts(b)
    return interval_of(one[0] + two[0], one[1] + two[1], one[2] + two[2])


def negative(a: dt.timedelta) -> dt.timedelta:
    """Return an interval backwards."""
    months, days, micros = interval_parts(a)
    return interval_of(-months, -days, -micros)


def difference_of_intervals(a: dt.timedelta, b: dt.timedelta) -> dt.timedelta:
    """Subtract intervals: months from months, days from days."""
    return sum_of_intervals(a, negative(b))


def multiple_with_days(a: dt.timedelta, times: Any) -> dt.timedelta:
    """Return a multiple of an interval; parts of a month are of 30 days, of a day of 24 hours.

    >>> multiple_with_days(Interval(1, 0, 0), 1.5).days
    45
    >>> interval_parts(multiple_with_days(of_clock(dt.timedelta(hours=1)), 25))
    (0, 0, 90000000000)
    """
    factor = float(times)
    months, days, _ = interval_parts(a)
    of_month = math.fmod(months * factor, 1) * DAYS_OF_MONTH
    rest = rest_of(a) * factor + dt.timedelta(of_month)
    parts = (days * factor, of_month)
    whole = sum(map(int, parts)) + int(sum(math.fmod(part, 1) for part in parts))
    micros = rest // LENGTHS["microsecond"] - whole * DAY
    return interval_of(int(months * factor), whole, micros)


def part_of_interval(a: dt.timedelta, count: int) -> dt.timedelta:
    """Return one of `count` equal parts; the rest of months is days, that of days hours.

    >>> interval_parts(part_of_interval(interval_of(1, 3, 0), 2))
    (0, 16, 43200000000)
    """
    months, days, micros = (Fraction(part, count) for part in interval_parts(a))
    of_month = round((months - int(months)) * DAYS_OF_MONTH, 6)  # as Postgres does
    left = days - int(days) + of_month - int(of_month)
    whole = int(days) + int(of_month) + int(left)
    return interval_of(int(months), whole, round(micros + (left - int(left)) * DAY))


def mean_of_intervals(months: int, days: int, micros: int, count: int) -> dt.timedelta:
    """Return the mean of intervals, by the sums of their parts."""
    return part_of_interval(interval_of(months, days, micros), count)
