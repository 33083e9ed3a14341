"""Dates, times and intervals that texts of Postgres say.

    moment("Jan 2, 2024")       the timestamp
    interval("1 day -2:30")     the interval

A date that Python has no place for raises `ValueError`: an infinite one, one before the year 1.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

from reactive.languages.sql.postgres.numbers import OutOfRangeError
from reactive.languages.sql.postgres.numerics import EXACT
from reactive.languages.sql.runtime.intervals import interval_of

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY = (
    (re.compile(r"(\d{4,})-(\d{1,2})-(\d{1,2})"), "ymd"),
    (re.compile(r"(\d{3,4})/(\d{1,2})/(\d{1,2})"), "ymd"),
    (re.compile(r"(\d{4})(\d{2})(\d{2})"), "ymd"),
    (re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})"), "mdy"),
    (re.compile(r"([A-Za-z]{3,9})\.?[ -](\d{1,2}),?[ -]+(\d{4})"), "Mdy"),
    (re.compile(r"(\d{1,2})[ -]([A-Za-z]{3,9})[ -](\d{4})"), "dMy"),
    (re.compile(r"(\d{4})-([A-Za-z]{3,9})-(\d{1,2})"), "yMd"),
)
CLOCK = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(\.\d*)?)?\s*(am|pm)?", re.IGNORECASE)


def moment(text: str) -> dt.datetime:
    """Read a timestamp; raise for other texts."""
    plain = text.strip()
    if plain.lower() == "epoch":
        return dt.datetime(1970, 1, 1)
    matches = ((form.match(plain), order) for form, order in _DAY)
    found, order = next((each for each in matches if each[0] is not None), (None, ""))
    if found is None:
        raise ValueError(f"{text!r} is no date")
    day = _read_day(found.groups(), order)
    rest = plain[found.end() :]
    if not rest.strip():
        return dt.datetime(day.year, day.month, day.day)
    clock = re.fullmatch(r"(?:\s+|[Tt])(\S.*?)(\s*[zZ]|\s*[+-]\d{1,2}(?::?\d{2})?)?", rest)
    if clock is None:
        raise ValueError(f"{text!r} is no timestamp")
    return dt.datetime(day.year, day.month, day.day) + _of_day(clock[1])


def _read_day(parts: tuple[str, ...], order: str) -> dt.date:
    """Return the date of three parts in an order such as `dmy`; refuse an unknown month."""
    found = dict(zip(order.lower(), parts, strict=True))
    month = found["m"]
    if not month.isdigit():
        if month[:3].lower() not in MONTHS:
            raise ValueError(f"there is no month {month!r}")
        month = str(MONTHS.index(month[:3].lower()) + 1)
    return dt.date(int(found["y"]), int(month), int(found["d"]))


def _of_day(text: str) -> dt.timedelta:
    """Read a time of a day, 24:00 included; raise for other texts."""
    found = CLOCK.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no time")
    hours, minutes, seconds = (int(found[n] or 0) for n in (1, 2, 3))
    half = (found[5] or "").lower()
    if half:
        if not 1 <= hours <= 12:
            raise ValueError(f"{text!r} is no time")
        hours = hours % 12 + (12 if half == "pm" else 0)
    micros = _read_fraction(found[4])
    made = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=micros)
    if hours > 24 or minutes > 59 or seconds > 60 or made > dt.timedelta(days=1):
        raise ValueError(f"{text!r} is out of range")
    return made


def _read_fraction(fraction: str | None) -> int:
    """Return the microseconds of `.123`, rounded to the even one."""
    return round(Decimal("0" + fraction) * 1_000_000) if fraction and len(fraction) > 1 else 0


def day(text: str) -> dt.date:
    """Read a date; the time of a timestamp is left out, also 24:00."""
    return moment(re.sub(r"([ T])24:00(:00)?$", r"\g<1>00:00", text.strip())).date()


def time(text: str) -> dt.time:
    """Read a time, also that of a timestamp; raise for other texts, and 24:00."""
    plain = text.strip()
    try:
        made = dt.datetime(2000, 1, 1) + _of_day(plain)
    except ValueError:
        digits = re.fullmatch(r"(\d{2})(\d{2})(\d{2})?", plain)
        if digits is not None:
            made = dt.datetime(2000, 1, 1) + _of_day(":".join(d for d in digits.groups() if d))
        else:
            made = moment(plain)
            if not re.search(r" \d+:\d", plain) or " 24:" in plain:
                raise ValueError(f"{text!r} is no time") from None
    if made == dt.datetime(2000, 1, 2):
        raise OutOfRangeError("a time of 24:00 has no place in Python")
    return made.time()


# Intervals.

UNITS: dict[str, tuple[int, Decimal]] = {}
"""The months, and the microseconds, of a unit by all of its names."""
for _names, _months, _micros_of in (
    ("microsecond microseconds us usec usecs microsecon", 0, 1),
    ("millisecond milliseconds ms msec msecs", 0, 1_000),
    ("second seconds s sec secs", 0, 1_000_000),
    ("minute minutes m min mins", 0, 60_000_000),
    ("hour hours h hr hrs", 0, 3_600_000_000),
    ("day days d", 0, 86_400_000_000),
    ("week weeks w", 0, 7 * 86_400_000_000),
    ("month months mon mons", 1, 0),
    ("year years y yr yrs", 12, 0),
    ("decade decades dec decs", 120, 0),
    ("century centuries c cent", 1200, 0),
    ("millennium millennia mil mils", 12000, 0),
):
    UNITS |= {_name: (_months, Decimal(_micros_of)) for _name in _names.split()}
DAY = 86_400_000_000
_FIELD = re.compile(
    r"([+-]?)(\d+):(\d+)(?::(\d+(?:\.\d*)?))?|([+-]?)(\d+)-(\d+)(?![\d.-])"
    r"|([+-]?(?:\d+\.?\d*|\.\d+))\s*([A-Za-z]*)",
    re.ASCII,
)


def interval(text: str, unit: str = "second") -> dt.timedelta:
    """Read an interval; a number alone has the unit. Raise for other texts.

    >>> interval("1 day 2 hours"), interval("-1:30")
    (datetime.timedelta(days=1, seconds=7200), datetime.timedelta(days=-1, seconds=81000))
    """
    plain = text.strip()
    if plain[:1] in "Pp" and plain:
        return _iso_interval(plain)
    plain = re.sub(r"^@\s*", "", plain)
    ago = re.search(r"\sago$", plain, re.IGNORECASE)
    plain = plain[: ago.start()] if ago else plain
    months, days, micros = Decimal(0), Decimal(0), Decimal(0)
    place = 0
    if not plain:
        raise ValueError(f"{text!r} is no interval")
    while place < len(plain):
        found = _FIELD.match(plain, place)
        if found is None:
            raise ValueError(f"{text!r} is no interval")
        parts = _field_of_interval(found, plain, unit)
        months, days, micros = months + parts[0], days + parts[1], micros + parts[2]
        place = found.end()
        place += len(plain[place:]) - len(plain[place:].lstrip(" ,\t"))
    return span(-months, -micros, -days) if ago else span(months, micros, days)


def _field_of_interval(
    found: re.Match[str], text: str, unit: str
) -> tuple[Decimal, Decimal, Decimal]:
    """Return the months, days and microseconds of one field; raise for unknown units."""
    none = Decimal(0)
    if found[2] is not None:
        if int(found[3]) > 59 or Decimal(found[4] or 0) >= 61:
            raise ValueError(f"{text!r} is out of range")
        seconds = int(found[2]) * 3600 + int(found[3]) * 60 + Decimal(found[4] or 0)
        return none, none, seconds * (-1_000_000 if found[1] == "-" else 1_000_000)
    if found[6] is not None:
        months = int(found[6]) * 12 + int(found[7])
        return Decimal(-months if found[5] == "-" else months), none, none
    name = found[9].lower()
    rest = text[found.end() :]
    if not name and re.match(r"\s+[+-]?\d+:", rest):
        name = "day"
    elif not name and rest.strip():
        raise ValueError(f"{text!r} is no interval")
    name = name or unit
    if name not in UNITS:
        raise ValueError(f"there is no unit of time {name!r}")
    amount = Decimal(found[8])
    per_month, per_micro = UNITS[name]
    if not per_month and per_micro < DAY:
        return none, none, amount * per_micro
    if not per_month:
        return none, *_whole_days(amount * per_micro / DAY)
    found_months = amount * per_month
    if per_month > 1:  # a year has whole months
        return Decimal(round(found_months)), none, none
    return Decimal(int(found_months)), *_whole_days((found_months - int(found_months)) * 30)


def _whole_days(days: Decimal) -> tuple[Decimal, Decimal]:
    """Return the integral part of days, and the microseconds of their fraction."""
    return Decimal(int(days)), (days - int(days)) * DAY


_ISO = re.compile(
    r"P(?:([+-]?[\d.]+)Y)?(?:([+-]?[\d.]+)M)?(?:([+-]?[\d.]+)W)?(?:([+-]?[\d.]+)D)?"
    r"(?:T(?:([+-]?[\d.]+)H)?(?:([+-]?[\d.]+)M)?(?:([+-]?[\d.]+)S)?)?",
    re.IGNORECASE,
)


def _iso_interval(text: str) -> dt.timedelta:
    """Return the interval of a text such as `P1DT2H`; refuse other texts."""
    found = _ISO.fullmatch(text)
    if found is None or not any(found.groups()):
        raise ValueError(f"{text!r} is no interval")
    names = ("years", "mons", "weeks", "days", "hours", "minutes", "seconds")
    parts = (f"{n} {name}" for n, name in zip(found.groups(), names, strict=True) if n)
    return interval(" ".join(parts))


def span(months: Any, micros: Any, days: Any = None) -> dt.timedelta:
    """Return the interval of some months, days and microseconds; raise if it is out of range.

    Without `days`, whole days are taken from the microseconds.
    """
    try:
        rest = int(Decimal(micros).quantize(Decimal(1), context=EXACT))
        if days is None:
            days = rest // DAY if rest >= 0 else -(-rest // DAY)
            rest -= days * DAY
        return interval_of(int(months), int(days), rest)
    except OverflowError:
        raise OutOfRangeError("interval out of range") from None
