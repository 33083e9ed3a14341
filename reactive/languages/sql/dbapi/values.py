"""Constructors of values, by the names that PEP 249 gives them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

Date = date
Time = time
Timestamp = datetime
Binary = bytes


def DateFromTicks(ticks: float) -> date:
    """Return the date, in UTC, of a number of seconds since 1970.

    >>> DateFromTicks(86_400)
    datetime.date(1970, 1, 2)
    """
    return TimestampFromTicks(ticks).date()


def TimeFromTicks(ticks: float) -> time:
    """Return the time of day, in UTC, of a number of seconds since 1970."""
    return TimestampFromTicks(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime:
    """Return the moment, in UTC and without a zone, of a number of seconds since 1970."""
    return datetime.fromtimestamp(ticks, UTC).replace(tzinfo=None)
