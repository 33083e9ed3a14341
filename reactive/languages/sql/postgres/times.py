"""Dates, times and intervals of Postgres: their fields, truncation, and arithmetic.

    extracted("second", moment)      Decimal('9.123456'), as EXTRACT is numeric
    field("second", moment)          9.123456, as DATE_PART is a float
    truncated_interval("hour", span)

An interval has months, days and microseconds (`reactive.languages.sql.runtime.times.Interval`): 25
hours are no day and an hour, but equal to them.
"""

from __future__ import annotations

import calendar
import datetime as dt
from decimal import Decimal
from typing import Any

from optimizer.expressions.knowledge import monotone, monotone_below
from reactive.engine.collections.instants import in_elapsed_time
from reactive.languages.sql.postgres.forms import MICROSECOND
from reactive.languages.sql.postgres.moments import span
from reactive.languages.sql.postgres.numbers import OutOfRangeError
from reactive.languages.sql.postgres.numerics import numeric_cut, numeric_quotient, numeric_sum
from reactive.languages.sql.runtime import units
from reactive.languages.sql.runtime.arrays import later as later_instant
from reactive.languages.sql.runtime.intervals import interval_parts, months_of, rest_of
from reactive.languages.sql.runtime.times import EPOCH, as_timestamp, later

DAY = 86_400_000_000
OF_TIME = frozenset({"hour", "minute", "second", "milliseconds", "microseconds", "epoch"})
FIELDS = (
    *("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month"),
    *("quarter", "year", "decade", "century", "millennium", "dow", "isodow", "doy", "isoyear"),
    *("julian", "epoch"),
)
OF_INTERVAL = frozenset(FIELDS) - {"week", "dow", "isodow", "doy", "isoyear", "julian"}
SHORT = {
    **dict.fromkeys(("us", "usec", "usecs", "microsecond", "microsec"), "microseconds"),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "millisec"), "milliseconds"),
    **dict.fromkeys(("s", "sec", "secs", "seconds"), "second"),
    **dict.fromkeys(("m", "min", "mins", "minutes"), "minute"),
    **dict.fromkeys(("h", "hr", "hrs", "hours"), "hour"),
    **dict.fromkeys(("d", "days", "dayofmonth"), "day"),
    **dict.fromkeys(("w", "weeks"), "week"),
    **dict.fromkeys(("mon", "mons", "months"), "month"),
    **dict.fromkeys(("qtr",), "quarter"),
    **dict.fromkeys(("y", "yr", "yrs", "years"), "year"),
    **dict.fromkeys(("decades", "dec", "decs"), "decade"),
    **dict.fromkeys(("centuries", "c", "cent"), "century"),
    **dict.fromkeys(("millennia", "mil", "mils", "millenniums"), "millennium"),
    "dayofweek": "dow",
    "dayofyear": "doy",
    "j": "julian",
    "jd": "julian",
}
"""Other names of fields."""


def field_name(name: str) -> str:
    """Return the one name of a field that has several."""
    folded = name.lower()
    return SHORT.get(folded, folded)


@monotone(0, 1, is_number=True, units=("epoch",), of_spans=("day",))
def extracted(name: str, of: Any) -> Decimal:
    """Return a field as a numeric (EXTRACT).

    >>> extracted("second", dt.time(1, 2, 3, 500)), extracted("year", dt.date(2024, 1, 1))
    (Decimal('3.000500'), Decimal('2024'))
    """
    known = units.numeric_field(name, of)
    if known is not None:
        return known
    found = _exact_field(name, of)
    return found if isinstance(found, Decimal) else Decimal(found)


@monotone(0, 1, is_number=True, units=("epoch",), of_spans=("day",))
def field(name: str, of: Any) -> float:
    """Return a field as a float (DATE_PART)."""
    known = units.float_field(name, of)
    if known is not None:
        return known
    return float(_exact_field(name, of))


def _exact_field(name: str, of: Any) -> int | Decimal:
    """Return a field of a time or an interval as an exact number; refuse one it does not have."""
    if isinstance(of, dt.timedelta):
        return _interval_field(name, of)
    if isinstance(of, dt.time):
        if name not in OF_TIME:
            raise ValueError(f"a time has no field {name!r}")
        micros = ((of.hour * 60 + of.minute) * 60 + of.second) * 1_000_000 + of.microsecond
        return _to_seconds(micros) if name == "epoch" else _of_clock(name, micros)
    if name in OF_TIME:
        if not isinstance(of, dt.datetime) and name != "epoch":
            raise ValueError(f"a date has no field {name!r}")
        since = (as_timestamp(of) - EPOCH) // MICROSECOND
        if name == "epoch":
            return _to_seconds(since) if isinstance(of, dt.datetime) else since // 1_000_000
        return _of_clock(name, since % DAY)
    return _of_date(name, of)


def _to_seconds(number: int) -> Decimal:
    """Convert microseconds to seconds, with six digits."""
    return Decimal(number).scaleb(-6)


def _of_clock(name: str, micros: int) -> int | Decimal:
    """Return a field of a time of day in microseconds; negative if that is."""
    sign = -1 if micros < 0 else 1
    micros = abs(micros)
    match name:
        case "hour":
            return sign * (micros // 3_600_000_000)
        case "minute":
            return sign * (micros // 60_000_000 % 60)
        case "second":
            return _to_seconds(sign * (micros % 60_000_000))
        case "milliseconds":
            return Decimal(sign * (micros % 60_000_000)).scaleb(-3)
        case _:
            return sign * (micros % 60_000_000)


def _of_date(name: str, of: Any) -> int | Decimal:
    """Return a field of a date or a timestamp; refuse an unknown one."""
    match name:
        case "day" | "month" | "year":
            return int(getattr(of, name))
        case "quarter":
            return (of.month + 2) // 3  # type: ignore[no-any-return]
        case "decade":
            return int(of.year // 10)
        case "century":
            return (of.year + 99) // 100  # type: ignore[no-any-return]
        case "millennium":
            return (of.year + 999) // 1000  # type: ignore[no-any-return]
        case "dow":
            return of.isoweekday() % 7  # type: ignore[no-any-return]
        case "isodow":
            return of.isoweekday()  # type: ignore[no-any-return]
        case "doy":
            return of.timetuple().tm_yday  # type: ignore[no-any-return]
        case "week":
            return of.isocalendar()[1]  # type: ignore[no-any-return]
        case "isoyear":
            return of.isocalendar()[0]  # type: ignore[no-any-return]
        case "julian":
            return _julian(of)
        case _:
            raise ValueError(f"there is no field {name!r} of a time")


def _julian(of: Any) -> int | Decimal:
    """Return the Julian day, with the part of the day that has passed at a timestamp."""
    number = of.toordinal() + 1721425
    if not isinstance(of, dt.datetime):
        return number  # type: ignore[no-any-return]
    micros = (of - dt.datetime(of.year, of.month, of.day)) // MICROSECOND
    return numeric_sum(number, numeric_quotient(micros, DAY))


def _interval_field(name: str, of: dt.timedelta) -> int | Decimal:
    """Return a field of an interval; refuse one that intervals do not have."""
    (months, days, clock), years = (interval_parts(of), _truncate_quotient(months_of(of), 12))
    match name:
        case "year":
            return years
        case "month":
            return months - years * 12
        case "day":
            return days
        case "quarter":
            return _truncate_quotient(months - years * 12, 3) + 1
        case "decade" | "century" | "millennium":
            return _truncate_quotient(years, {"decade": 10, "century": 100}.get(name, 1000))
        case "epoch":
            rest = months - years * 12
            return _to_seconds(years * 31_557_600_000_000 + (rest * 30 + days) * DAY + clock)
        case "hour" | "minute" | "second" | "milliseconds" | "microseconds":
            return _of_clock(name, clock)
        case _:
            raise ValueError(f"an interval has no field {name!r}")


def _truncate_quotient(value: int, by: int) -> int:
    """Return a quotient of integers, truncated towards 0 (`by` is positive)."""
    return value // by if value >= 0 else -(-value // by)


# Truncation.

TRUNCATED = FIELDS[: FIELDS.index("millennium") + 1]
STEPS = {"microseconds": 1, "milliseconds": 1000, "second": 1_000_000, "minute": 60_000_000}
STEPS |= {"hour": 3_600_000_000, "day": DAY}
YEARS = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}


def truncated(name: str, of: Any) -> dt.datetime:
    """Truncate a date or a timestamp (DATE_TRUNC)."""
    start = units.STARTS_OF_POSTGRES.get(name)
    if start is not None and units.is_plain(of):
        return start(of)
    moment = as_timestamp(of)
    if name in STEPS:
        since = (moment - EPOCH) // MICROSECOND
        return EPOCH + dt.timedelta(microseconds=since // STEPS[name] * STEPS[name])
    day = dt.datetime(moment.year, moment.month, moment.day)
    if name == "week":
        return day - dt.timedelta(day.weekday())
    if name in ("month", "quarter"):
        month = day.month if name == "month" else (day.month - 1) // 3 * 3 + 1
        return day.replace(day=1, month=month)
    size = YEARS[name]
    shift = int(size > 10)
    return dt.datetime((day.year - shift) // size * size + shift, 1, 1)


def truncated_interval(name: str, of: dt.timedelta) -> dt.timedelta:
    """Truncate an interval (DATE_TRUNC); a week raises."""
    months, days, micros = interval_parts(of)
    if name == "week":
        raise ValueError("unit week of an interval is not supported, because months have days")
    if name == "day":
        return span(months, 0, days)
    if name in STEPS:
        return span(months, _truncate_quotient(micros, STEPS[name]) * STEPS[name], days)
    if name in ("month", "quarter"):
        size = 1 if name == "month" else 3
        years = _truncate_quotient(months, 12)
        return span(years * 12 + _truncate_quotient(months - years * 12, size) * size, 0)
    return span(_truncate_quotient(months, 12 * YEARS[name]) * 12 * YEARS[name], 0)


# Arithmetic.


def day_later(day: dt.date, days: int) -> dt.date:
    """Return the day after some others."""
    return day + dt.timedelta(days)


def day_earlier(day: dt.date, days: int) -> dt.date:
    """Return the day before some others."""
    return day - dt.timedelta(days)


def multiple(of: dt.timedelta, factor: Any) -> dt.timedelta:
    """Multiply an interval; parts of months are days of a month of 30, parts of days hours."""
    factor = Decimal(str(factor)) if isinstance(factor, float) else Decimal(factor)
    if not factor.is_finite():
        raise OutOfRangeError("interval out of range")
    return _sum_interval_parts(*(each * factor for each in interval_parts(of)))


def part(of: dt.timedelta, divisor: Any) -> dt.timedelta:
    """Divide an interval; zero and NaN raise."""
    divisor = Decimal(str(divisor)) if isinstance(divisor, float) else Decimal(divisor)
    if divisor.is_nan():
        raise OutOfRangeError("interval out of range")
    if not divisor:
        raise ZeroDivisionError("division by zero")
    if divisor.is_infinite():
        return dt.timedelta()
    return _sum_interval_parts(*(each / divisor for each in interval_parts(of)))


def _sum_interval_parts(months: Decimal, days: Decimal, micros: Decimal) -> dt.timedelta:
    """Return the interval of months, days and microseconds; fractions go to the smaller units."""
    parts = (days, Decimal(round((months - numeric_cut(months)) * 30, 6)))
    whole_days = numeric_cut(Decimal(sum(parts) - sum(map(numeric_cut, parts)))) + sum(
        map(numeric_cut, parts)
    )
    micros += round(Decimal(sum(parts) - whole_days) * 86400, 6) * 1_000_000
    return span(numeric_cut(months), micros, whole_days)


def moment_of(day: dt.date, time: dt.time) -> dt.datetime:
    """Put a time to a date."""
    return dt.datetime.combine(day, time)


def clock_later(time: dt.time, by: dt.timedelta) -> dt.time:
    """Return the time after an interval, around midnight."""
    return (dt.datetime.combine(dt.date(2000, 1, 1), time) + _of_one_day(by)).time()


def clock_earlier(time: dt.time, by: dt.timedelta) -> dt.time:
    """Return the time before an interval, around midnight."""
    return (dt.datetime.combine(dt.date(2000, 1, 2), time) - _of_one_day(by)).time()


def _of_one_day(by: dt.timedelta) -> dt.timedelta:
    """Return the part of an interval that moves a clock: less than a day."""
    return dt.timedelta(microseconds=rest_of(by) // MICROSECOND % DAY)


def clock_between(time: dt.time, other: dt.time) -> dt.timedelta:
    """Return how much later a time is."""
    one, two = (dt.datetime.combine(dt.date(2000, 1, 1), each) for each in (time, other))
    return one - two


def interval_of_time(time: dt.time) -> dt.timedelta:
    """Return the time since midnight."""
    return clock_between(time, dt.time())


def time_of_interval(of: dt.timedelta) -> dt.time:
    """Return an interval as a time, without its days."""
    return (dt.datetime(2000, 1, 1) + _of_one_day(of)).time()


@monotone_below(dt.timedelta(28))
def age(moment: Any, other: Any) -> dt.timedelta:
    """Return the years, months, days and time from one to another (AGE)."""
    one, two = as_timestamp(moment), as_timestamp(other)
    if one < two:
        made = age(two, one)
        return span(-months_of(made), -(rest_of(made) // MICROSECOND))
    months = (one.year - two.year) * 12 + one.month - two.month
    days = one.day - two.day
    clock = _microseconds_of_day(one) - _microseconds_of_day(two)
    if clock < 0:
        days, clock = days - 1, clock + DAY
    if days < 0:
        months, days = months - 1, days + _days_of_month(two)
    return span(months, days * DAY + clock)


def _microseconds_of_day(moment: dt.datetime) -> int:
    """Return the microseconds of a timestamp since midnight."""
    return (moment - dt.datetime(moment.year, moment.month, moment.day)) // MICROSECOND


def _days_of_month(moment: dt.datetime) -> int:
    return calendar.monthrange(moment.year, moment.month)[1]


def bucket(width: dt.timedelta, of: Any, origin: Any) -> dt.datetime:
    """Return DATE_BIN: the start of the stride that contains a moment; months raise.

    >>> bucket(dt.timedelta(hours=2), dt.datetime(2024, 1, 1, 3, 5), dt.datetime(2001, 1, 1))
    datetime.datetime(2024, 1, 1, 2, 0)
    """
    if months_of(width):
        raise ValueError("timestamps cannot be binned into intervals with months or years")
    if width <= dt.timedelta():
        raise ValueError("stride must be greater than zero")
    moment, begin = as_timestamp(of), as_timestamp(origin)
    return begin + (moment - begin) // width * width


def bucket_of_instant(width: dt.timedelta, of: dt.datetime, origin: dt.datetime) -> dt.datetime:
    """Return the start of the bucket that contains an instant, in elapsed time."""
    return bucket(width, in_elapsed_time(of), in_elapsed_time(origin))


def justified_days(of: dt.timedelta) -> dt.timedelta:
    """Convert 30 days to a month (JUSTIFY_DAYS)."""
    months, days, clock = interval_parts(of)
    whole = _truncate_quotient(days, 30)
    months, days = months + whole, days - whole * 30
    if months > 0 > days:
        months, days = months - 1, days + 30
    elif months < 0 < days:
        months, days = months + 1, days - 30
    return span(months, clock, days)


def justified_hours(of: dt.timedelta) -> dt.timedelta:
    """Convert 24 hours to a day, with one sign (JUSTIFY_HOURS)."""
    return span(months_of(of), rest_of(of) // MICROSECOND)


def justified(of: dt.timedelta) -> dt.timedelta:
    """Convert days to months and hours to days, with one sign (JUSTIFY_INTERVAL)."""
    months, micros = months_of(of), rest_of(of) // MICROSECOND
    whole = _truncate_quotient(micros, 30 * DAY)
    months, micros = months + whole, micros - whole * 30 * DAY
    if months > 0 > micros:
        months, micros = months - 1, micros + 30 * DAY
    elif months < 0 < micros:
        months, micros = months + 1, micros - 30 * DAY
    return span(months, micros)


def date_of(year: int, month: int, day: int) -> dt.date:
    """Return the date of a year, month and day (MAKE_DATE)."""
    return dt.date(year, month, day)


def time_of(hour: int, minute: int, second: float) -> dt.time:
    """Return the time of an hour, minute and second (MAKE_TIME); raise if there is none."""
    if not 0 <= second < 60:
        raise ValueError(f"time field value out of range: {hour}:{minute}:{second}")
    return dt.time(hour, minute, int(second), round((second - int(second)) * 1_000_000))


def timestamp_of(
    year: int, month: int, day: int, hour: int, minute: int, second: float
) -> dt.datetime:
    """Return the timestamp of its parts (MAKE_TIMESTAMP)."""
    return dt.datetime.combine(dt.date(year, month, day), time_of(hour, minute, second))


def interval_of(
    years: int = 0,
    months: int = 0,
    weeks: int = 0,
    days: int = 0,
    hours: int = 0,
    mins: int = 0,
    secs: float = 0.0,
) -> dt.timedelta:
    """Return the interval of its parts (MAKE_INTERVAL)."""
    seconds = Decimal(str(secs)) + hours * 3600 + mins * 60
    return span(years * 12 + months, seconds * 1_000_000, weeks * 7 + days)


def timestamp_of_seconds(seconds: float) -> dt.datetime:
    """Convert the seconds since 1970 (TO_TIMESTAMP)."""
    return EPOCH + dt.timedelta(microseconds=round(Decimal(str(seconds)) * 1_000_000))


def overlap(one: Any, two: Any, three: Any, four: Any) -> bool | None:
    """Return True if two periods share a moment (OVERLAPS); an end may be a length, or NULL.

    Return NULL if an end that is NULL could decide.
    """
    first, second = _period(one, two), _period(three, four)
    if first[0] is None or second[0] is None:
        return None
    if first[0] == second[0]:
        return None if first[1] is None or second[1] is None else True
    early, late = (first, second) if first[0] < second[0] else (second, first)
    if early[1] is None:
        return None
    if late[0] < early[1]:
        return True
    return None if late[1] is None else False


def _period(begin: Any, end: Any) -> tuple[Any, Any]:
    """Return the earlier and the later end; one that is NULL is the later."""
    if isinstance(end, dt.timedelta) and begin is not None:
        end = later(begin, end)
    found = [_end(each) for each in (begin, end) if each is not None]
    return (*sorted(found), None, None)[:2]


def _end(of: Any) -> Any:
    """Return an end of a period: a time as it is, a date or a timestamp as a timestamp."""
    return of if isinstance(of, dt.time) else as_timestamp(of)


def series(start: Any, end: Any, step: Any = 1) -> tuple[Any, ...]:
    """Return a series of numbers or moments (GENERATE_SERIES); a step of zero raises."""
    if isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        if not step:
            raise ValueError("step size cannot equal zero")
        return tuple(range(start, end + (1 if step > 0 else -1), step))
    if isinstance(start, int | Decimal):
        return _number_series(Decimal(start), Decimal(end), Decimal(step))
    moment, last = as_timestamp(start), as_timestamp(end)
    up = step > dt.timedelta()
    if step == dt.timedelta() or ((months_of(step) > 0) != up and months_of(step)):
        raise ValueError("step size cannot equal zero")
    made = []
    while moment <= last if up else moment >= last:
        made.append(moment)
        moment = later(moment, step)
    return tuple(made)


def series_of_instants(
    start: dt.datetime, end: dt.datetime, step: dt.timedelta, zone: str
) -> tuple[dt.datetime, ...]:
    """Return a series of instants, whose days follow the calendar of a zone."""
    up = step > dt.timedelta()
    if step == dt.timedelta() or ((months_of(step) > 0) != up and months_of(step)):
        raise ValueError("step size cannot equal zero")
    made = []
    while start <= end if up else start >= end:
        made.append(start)
        start = later_instant(start, step, zone)
    return tuple(made)


def _number_series(start: Decimal, end: Decimal, step: Decimal) -> tuple[Decimal, ...]:
    """Return the numbers from `start` to `end` by `step`; refuse NaN, infinity and a step of 0."""
    if not (start.is_finite() and end.is_finite() and step.is_finite()) or not step:
        raise ValueError("a series has a start, an end and a step other than zero or NaN")
    made = []
    while start <= end if step > 0 else start >= end:
        made.append(start)
        start += step
    return tuple(made)
