"""Starts and fields of plain dates and timestamps: a short function for each unit.

    STARTS["quarter"](dt.date(2024, 5, 7))      datetime.datetime(2024, 4, 1, 0, 0)
    numeric_field("doy", dt.date(2024, 5, 7))   Decimal('128')

Times, intervals and instants with a zone are left to the readers of these tables.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

FIRST = dt.date(1970, 1, 1).toordinal()
"""The day that epochs are counted from."""


def is_plain(moment: Any) -> bool:
    """Return True for a date, or for a timestamp that has no zone and was not shown before.

    >>> is_plain(dt.date(2024, 1, 1)), is_plain(dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc))
    (True, False)
    """
    kind = moment.__class__
    return kind is dt.date or (kind is dt.datetime and moment.tzinfo is None and not moment.fold)


def start_of_week(of: Any) -> dt.datetime:
    """Return the Monday of a week, at midnight."""
    return dt.datetime.fromordinal(of.toordinal() - of.weekday())


def day_of_year(of: Any) -> int:
    """Return the number of a day in its year, from 1.

    >>> day_of_year(dt.date(2024, 12, 31))
    366
    """
    return int(of.toordinal()) - dt.date(of.year, 1, 1).toordinal() + 1


def microseconds_of_day(of: Any) -> int:
    """Return the microseconds of a timestamp since midnight."""
    seconds = (of.hour * 60 + of.minute) * 60 + of.second
    return int(seconds * 1_000_000 + of.microsecond)


def microseconds_since_1970(of: Any) -> int:
    """Return the microseconds from 1970 to a timestamp."""
    return (int(of.toordinal()) - FIRST) * 86_400_000_000 + microseconds_of_day(of)


def _start_of_years(count: int, shift: int = 0) -> Callable[[Any], dt.datetime]:
    """Return the function to the start of a number of years, the first of them `shift`."""
    return lambda of: dt.datetime((of.year - shift) // count * count + shift, 1, 1)


def _start_of_clock(begin: Callable[[Any], dt.datetime]) -> Callable[[Any], dt.datetime]:
    """Return `begin` for timestamps; the function returns the midnight of a date."""
    return lambda of: begin(of) if of.__class__ is dt.datetime else _start_of_day(of)


def _start_of_day(of: Any) -> dt.datetime:
    return dt.datetime(of.year, of.month, of.day)


STARTS: dict[str, Callable[[Any], dt.datetime]] = {
    "microsecond": _start_of_clock(lambda of: of),
    "millisecond": _start_of_clock(
        lambda of: dt.datetime(
            *(of.year, of.month, of.day, of.hour, of.minute, of.second),
            of.microsecond // 1000 * 1000,
        )
    ),
    "second": _start_of_clock(
        lambda of: dt.datetime(of.year, of.month, of.day, of.hour, of.minute, of.second)
    ),
    "minute": _start_of_clock(
        lambda of: dt.datetime(of.year, of.month, of.day, of.hour, of.minute)
    ),
    "hour": _start_of_clock(lambda of: dt.datetime(of.year, of.month, of.day, of.hour)),
    "day": _start_of_day,
    "week": start_of_week,
    "month": lambda of: dt.datetime(of.year, of.month, 1),
    "quarter": lambda of: dt.datetime(of.year, (of.month - 1) // 3 * 3 + 1, 1),
    "year": lambda of: dt.datetime(of.year, 1, 1),
    "decade": _start_of_years(10),
    "century": _start_of_years(100),
    "millennium": _start_of_years(1000),
}
"""The starts of units of DuckDB."""
STARTS_OF_POSTGRES = {
    **{name: STARTS[name] for name in ("second", "minute", "hour", "day", "week", "month")},
    **{name: STARTS[name] for name in ("quarter", "year", "decade")},
    "microseconds": STARTS["microsecond"],
    "milliseconds": STARTS["millisecond"],
    "century": _start_of_years(100, 1),
    "millennium": _start_of_years(1000, 1),
}
"""The starts of units of Postgres, where a century begins with its year 1."""
OF_DAYS: dict[str, Callable[[Any], int]] = {
    "day": lambda of: of.day,
    "month": lambda of: of.month,
    "year": lambda of: of.year,
    "quarter": lambda of: (of.month + 2) // 3,
    "decade": lambda of: of.year // 10,
    "century": lambda of: (of.year + 99) // 100,
    "millennium": lambda of: (of.year + 999) // 1000,
    "dow": lambda of: of.isoweekday() % 7,
    "isodow": lambda of: of.isoweekday(),
    "doy": day_of_year,
    "week": lambda of: of.isocalendar()[1],
    "isoyear": lambda of: of.isocalendar()[0],
}
"""Fields of dates and timestamps, whole numbers."""
OF_CLOCKS: dict[str, Callable[[Any], tuple[int, int]]] = {
    "hour": lambda of: (of.hour, 0),
    "minute": lambda of: (of.minute, 0),
    "second": lambda of: (of.second * 1_000_000 + of.microsecond, -6),
    "milliseconds": lambda of: (of.second * 1_000_000 + of.microsecond, -3),
    "microseconds": lambda of: (of.second * 1_000_000 + of.microsecond, 0),
    "epoch": lambda of: (microseconds_since_1970(of), -6),
}
"""Fields of timestamps: a number, and the power of ten that it is scaled by."""


def numeric_field(name: str, of: Any) -> Decimal | None:
    """Return a field of a plain date or timestamp as a numeric; None of others, or if unknown.

    >>> numeric_field("second", dt.datetime(2024, 1, 1, 1, 2, 3, 500))
    Decimal('3.000500')
    """
    if not is_plain(of):
        return None
    whole = OF_DAYS.get(name)
    if whole is not None:
        return Decimal(whole(of))
    scaled = OF_CLOCKS.get(name)
    if scaled is None or of.__class__ is dt.date:
        return None
    number, power = scaled(of)
    return Decimal(number).scaleb(power) if power else Decimal(number)


def float_field(name: str, of: Any) -> float | None:
    """Return a field of a plain date or timestamp as a float; None of others, or if unknown.

    >>> float_field("second", dt.datetime(2024, 1, 1, 1, 2, 3, 500))
    3.0005
    """
    if not is_plain(of):
        return None
    whole = OF_DAYS.get(name)
    if whole is not None:
        return float(whole(of))
    scaled = OF_CLOCKS.get(name)
    if scaled is None or of.__class__ is dt.date:
        return None
    number, power = scaled(of)
    return number / 1_000_000 if power == -6 else number / 1000 if power else float(number)
