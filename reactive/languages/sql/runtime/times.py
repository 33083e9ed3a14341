"""Dates, timestamps and intervals."""

from __future__ import annotations

import calendar
import datetime as dt
import math
from typing import Any, TypeAlias

from optimizer.expressions.knowledge import bare, monotone, monotone_below, rises
from reactive.languages.sql.runtime import units
from reactive.languages.sql.runtime.intervals import (
    DAY,
    LENGTHS,
    MONTHS,
    clock_of,
    interval_of,
    months_of,
    negative,
    rest_of,
)

Moment: TypeAlias = "dt.date | dt.datetime"
EPOCH = dt.datetime(1970, 1, 1)
MIDNIGHT = dt.time()


def _interval(months: int, rest: dt.timedelta) -> dt.timedelta:
    """Return an interval of months and a `timedelta`. Pickled intervals name this function."""
    return interval_of(months, *clock_of(rest))


def later(moment: Moment, by: dt.timedelta) -> dt.datetime:
    """Return a moment after an interval; on the last day of a month that is too short.

    >>> later(dt.date(2024, 1, 31), interval_of(1, 0, 0))
    datetime.datetime(2024, 2, 29, 0, 0)
    """
    month: dt.datetime = months_later(as_timestamp(moment), months_of(by))
    return month + rest_of(by)


def earlier(moment: Moment, by: dt.timedelta) -> dt.datetime:
    """Return a moment before an interval."""
    return later(moment, negative(by))


def months_later(moment: Any, months: int) -> Any:
    """Return the same day of another month, or its last day."""
    if not months:
        return moment
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def time_later(time: dt.time, by: dt.timedelta) -> dt.time:
    """Return a time of a day after the hours of an interval, on whatever day.

    >>> time_later(dt.time(12), dt.timedelta(hours=13))
    datetime.time(1, 0)
    """
    return (dt.datetime.combine(dt.date(2000, 1, 2), time) + rest_of(by) % LENGTHS["day"]).time()


def time_earlier(time: dt.time, by: dt.timedelta) -> dt.time:
    """Return a time of a day before the hours of an interval."""
    return time_later(time, negative(by))


def at_time(day: dt.date, time: dt.time) -> dt.datetime:
    """Return a time of a day as a moment."""
    return dt.datetime.combine(day, time)


def time_of_parts(hour: int, minute: int, second: float) -> dt.time:
    """Return a time of a day; raise if there is none."""
    if not 0 <= second < 60:
        raise ValueError(f"{second} is no second")
    whole, micros = divmod(round(second * 1_000_000), 1_000_000)
    return dt.time(hour, minute, whole, micros)


def days_later(day: dt.date, days: int) -> dt.date:
    """Return a day after some others."""
    return day + dt.timedelta(days)


def days_earlier(day: dt.date, days: int) -> dt.date:
    """Return a day before some others."""
    return day - dt.timedelta(days)


@monotone(1, -1, is_number=True)
def days_between(day: dt.date, other: dt.date) -> int:
    """Return the number of days from `other` to `day`."""
    return (day - other).days


@monotone(1, -1)
def time_between(moment: Moment, other: Moment) -> dt.timedelta:
    """Return the time from `other` to `moment`."""
    return as_timestamp(moment) - as_timestamp(other)


@monotone_below(dt.timedelta(28))
def age(moment: Moment, other: Moment) -> dt.timedelta:
    """Return the time from `other` to `moment` in months and the rest."""
    one, two = as_timestamp(moment), as_timestamp(other)
    return negative(age_of(two, one)) if one < two else age_of(one, two)


def age_of(one: dt.datetime, two: dt.datetime) -> dt.timedelta:
    """Return the months, as spans of 30 days, and the rest between two moments, `one` the later."""
    months = (one.year - two.year) * 12 + one.month - two.month
    days = one.day - two.day
    clock = (one - truncated("day", one)) - (two - truncated("day", two))
    if clock < dt.timedelta():
        days, clock = days - 1, clock + LENGTHS["day"]
    if days < 0:  # borrow the days of the earlier moment's month
        months, days = months - 1, days + calendar.monthrange(two.year, two.month)[1]
    return _interval(months, dt.timedelta(days) + clock)


def as_timestamp(moment: Moment) -> dt.datetime:
    """Return the beginning of a day; a timestamp as it is."""
    if moment.__class__ is dt.date:
        return dt.datetime.combine(moment, MIDNIGHT)
    if isinstance(moment, dt.datetime):
        return moment
    return dt.datetime(moment.year, moment.month, moment.day)


@bare
@rises
def as_date(moment: Moment) -> dt.date:
    """Return the day of a moment."""
    return moment.date() if isinstance(moment, dt.datetime) else moment


@monotone(0, 1, is_number=True, units=("epoch",), of_spans=("day",))
def extracted(unit: str, of: Any) -> Any:
    """Return a part of a date, timestamp, time or interval; raise for an unknown part.

    >>> extracted("quarter", dt.date(2024, 5, 1)), extracted("dow", dt.date(2024, 5, 5))
    (2, 0)
    """
    if isinstance(of, dt.timedelta):
        return _part_of_interval(unit, of)
    made = PARTS.get(unit)
    if made is None:
        raise ValueError(f"there is no part {unit!r} of a time")
    return made(of)


def _seconds_of_moment(of: Any) -> float:
    return float(of.second + of.microsecond / 1e6)


def _epoch(of: Any) -> float:
    """Return the seconds since 1970, or of a time since midnight."""
    if isinstance(of, dt.time):
        return of.hour * 3600 + of.minute * 60 + _seconds_of_moment(of)
    return (as_timestamp(of) - EPOCH).total_seconds()


def _part_of_day(of: Moment) -> float:
    """Return the fraction of the day that has passed at a moment; 0.0 for a date."""
    if not isinstance(of, dt.datetime):
        return 0.0
    return units.microseconds_of_day(of) / DAY


def _day_of_year(of: Any) -> int:
    return units.day_of_year(of) if isinstance(of, dt.date) else of.timetuple().tm_yday


PARTS: dict[str, Any] = {
    "year": lambda of: of.year,
    "month": lambda of: of.month,
    "day": lambda of: of.day,
    "hour": lambda of: getattr(of, "hour", 0),
    "minute": lambda of: getattr(of, "minute", 0),
    "second": lambda of: getattr(of, "second", 0),
    "millisecond": lambda of: (
        getattr(of, "second", 0) * 1000 + getattr(of, "microsecond", 0) // 1000
    ),
    "microsecond": lambda of: getattr(of, "second", 0) * 1_000_000 + getattr(of, "microsecond", 0),
    "quarter": lambda of: (of.month + 2) // 3,
    "week": lambda of: of.isocalendar()[1],
    "weekofyear": lambda of: of.isocalendar()[1],
    "isoyear": lambda of: of.isocalendar()[0],
    "yearweek": lambda of: of.isocalendar()[0] * 100 + of.isocalendar()[1],
    "dow": lambda of: of.isoweekday() % 7,
    "dayofweek": lambda of: of.isoweekday() % 7,
    "weekday": lambda of: of.isoweekday() % 7,
    "isodow": lambda of: of.isoweekday(),
    "doy": _day_of_year,
    "dayofyear": _day_of_year,
    "decade": lambda of: of.year // 10,
    "century": lambda of: (of.year + 99) // 100,
    "millennium": lambda of: (of.year + 999) // 1000,
    "era": lambda of: 1,
    "epoch": _epoch,
    "julian": lambda of: of.toordinal() + 1721425 + _part_of_day(of),
}


def _part_of_interval(unit: str, of: dt.timedelta) -> Any:
    """Return a part of an interval by its unit; refuse a unit that intervals do not have."""
    months, (days, clock) = months_of(of), clock_of(of)
    sign, passed = (1 if clock >= 0 else -1), abs(clock)
    years, month = int(months / 12), int(math.fmod(months, 12))
    match unit:
        case "year":
            return years
        case "month":
            return month
        case "day":
            return days
        case "hour":
            return sign * (passed // 3_600_000_000)
        case "minute":
            return sign * (passed // 60_000_000 % 60)
        case "second":
            return sign * (passed // 1_000_000 % 60)
        case "millisecond":
            return sign * (passed % 60_000_000 // 1000)
        case "microsecond":
            return sign * (passed % 60_000_000)
        case "quarter":
            return int(month / 3) + 1
        case "decade" | "century" | "millennium":
            return int(months / MONTHS[unit])
        case "epoch":
            whole = years * 31_557_600 + month * 2_592_000 + days * 86_400
            return whole + clock / 1_000_000
        case _:
            raise ValueError(f"there is no part {unit!r} of an interval")


PARTS_OF_INTERVALS = frozenset(
    {"year", "month", "day", "hour", "minute", "second", "millisecond", "microsecond"}
    | {"quarter", "decade", "century", "millennium", "epoch"}
)
PARTS_OF_TIMES = frozenset({"hour", "minute", "second", "millisecond", "microsecond", "epoch"})


def truncated_interval(unit: str, of: dt.timedelta) -> dt.timedelta:
    """Return an interval truncated to a unit.

    >>> truncated_interval("hour", dt.timedelta(hours=-1, minutes=-30))
    datetime.timedelta(days=-1, seconds=82800)
    """
    months = months_of(of)
    if unit in MONTHS:
        return interval_of(int(months / MONTHS[unit]) * MONTHS[unit], 0, 0)
    days, clock = clock_of(of)
    if unit in ("day", "week"):
        return interval_of(months, int(days / 7) * 7 if unit == "week" else days, 0)
    width = LENGTHS[unit] // LENGTHS["microsecond"]
    cut = abs(clock) // width * width * (1 if clock >= 0 else -1)
    return interval_of(months, days, cut)


def truncated(unit: str, of: Moment) -> dt.datetime:
    """Return the start of the hour, day, ... of a moment; raise for an unknown unit.

    >>> truncated("quarter", dt.date(2024, 5, 7))
    datetime.datetime(2024, 4, 1, 0, 0)
    """
    start = units.STARTS.get(unit)
    if start is not None and units.is_plain(of):
        return start(of)
    moment = as_timestamp(of)
    if unit in LENGTHS and unit not in ("day", "week"):
        return EPOCH + (moment - EPOCH) // LENGTHS[unit] * LENGTHS[unit]
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "day":
            return day
        case "week":
            return day - dt.timedelta(day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1)
        case _ if unit in MONTHS:
            years = MONTHS[unit] // 12
            return day.replace(day=1, month=1, year=day.year // years * years)
        case _:
            raise ValueError(f"there is no unit of time {unit!r}")


@monotone(0, -1, 1, is_number=True, units=(*LENGTHS, *MONTHS))
def boundaries(unit: str, begin: Moment, end: Moment) -> int:
    """Return DATEDIFF: the number of hours, days, months, ... that begin between two moments.

    As in DuckDB, only whole weeks count.

    >>> boundaries("month", dt.date(2024, 1, 31), dt.date(2024, 2, 1))
    1
    """
    if unit == "week":
        return whole_units("week", as_date(begin), as_date(end))
    if unit in ("decade", "century", "millennium"):
        years = MONTHS[unit] // 12
        return end.year // years - begin.year // years
    one, two = truncated(unit, begin), truncated(unit, end)
    if unit in MONTHS:
        return ((two.year - one.year) * 12 + two.month - one.month) // MONTHS[unit]
    return (two - one) // LENGTHS[unit]


def last_day(of: Moment) -> dt.date:
    """Return the last day of the month."""
    return dt.date(of.year, of.month, calendar.monthrange(of.year, of.month)[1])


def bucket(width: dt.timedelta, of: Moment, origin: Moment | None = None) -> Moment:
    """Return the start of the bucket of a width with a moment; raise for no width, or a mixed one.

    Buckets are counted from the `origin`, by default Monday, 2000-01-03; those of months from the
    month of the origin, by default 2000-01.

    >>> bucket(dt.timedelta(hours=2), dt.datetime(2024, 1, 1, 3, 5))
    datetime.datetime(2024, 1, 1, 2, 0)
    """
    moment, months = as_timestamp(of), months_of(width)
    if width <= dt.timedelta() or (months and rest_of(width)):
        raise ValueError("a bucket has a width above zero, of months or of days and less")
    if months:
        first = dt.datetime(2000, 1, 1) if origin is None else as_timestamp(origin)
        since = (moment.year - first.year) * 12 + moment.month - first.month
        made = months_later(dt.datetime(first.year, first.month, 1), since // months * months)
    else:
        start = MONDAY if origin is None else as_timestamp(origin)
        made = start + (moment - start) // width * width
    return made if isinstance(of, dt.datetime) else as_date(made)


MONDAY = dt.datetime(2000, 1, 3)


def date_of_parts(year: int, month: int, day: int) -> dt.date:
    """Return a day of a month of a year."""
    return dt.date(year, month, day)


def timestamp_of_parts(
    year: int, month: int, day: int, hour: int, minute: int, second: float
) -> dt.datetime:
    """Return a moment of a day."""
    rest = dt.timedelta(seconds=float(second))
    return dt.datetime(year, month, day, hour, minute) + rest


def timestamp_of_seconds(seconds: float) -> dt.datetime:
    """Return the timestamp of a number of seconds since 1970."""
    return EPOCH + dt.timedelta(seconds=float(seconds))


def timestamp_of_milliseconds(milliseconds: int) -> dt.datetime:
    """Return the timestamp of a number of milliseconds since 1970."""
    return EPOCH + dt.timedelta(milliseconds=milliseconds)


def timestamp_of_microseconds(microseconds: int) -> dt.datetime:
    """Return the timestamp of a number of microseconds since 1970."""
    return EPOCH + dt.timedelta(microseconds=microseconds)


def epoch(of: Any) -> float:
    """Return the seconds since 1970, or of an interval."""
    return float(extracted("epoch", of))


def epoch_milliseconds(of: Moment) -> int:
    """Return the milliseconds since 1970, rounded."""
    return ((as_timestamp(of) - EPOCH) // LENGTHS["microsecond"] + 500) // 1000


def epoch_microseconds(of: Moment) -> int:
    """Return the microseconds since 1970."""
    return (as_timestamp(of) - EPOCH) // LENGTHS["microsecond"]


def epoch_nanoseconds(of: Moment) -> int:
    """Return the nanoseconds since 1970; raise if they exceed 64 bits."""
    made = epoch_microseconds(of) * 1000
    if abs(made) >= 1 << 63:
        raise ValueError(f"{of} is too far from 1970")
    return made


def day_name(of: Moment) -> str:
    """Return the name of the day of the week, such as `Monday`."""
    return calendar.day_name[of.weekday()]


def month_name(of: Moment) -> str:
    """Return the name of the month, such as `January`."""
    return calendar.month_name[of.month]


def whole_units(unit: str, begin: Moment, end: Moment) -> int:
    """Return the number of whole hours, days, months, ... between two moments.

    >>> whole_units("month", dt.date(2024, 1, 31), dt.date(2024, 2, 28))
    0
    """
    one, two = as_timestamp(begin), as_timestamp(end)
    if one > two:
        return -whole_units(unit, end, begin)
    if unit in MONTHS:
        months = (two.year - one.year) * 12 + two.month - one.month
        if months_later(one, months) > two:
            months -= 1
        return months // MONTHS[unit]
    return (two - one) // LENGTHS[unit]
