"""Time zones by name, and local times of instants (`optimizer/kinds`)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any

from optimizer.errors import PlanError
from optimizer.kinds.instants import instant


@lru_cache(maxsize=64)
def zone_named(name: str) -> tzinfo:
    """Return the zone of a name; `timezone.utc` for "UTC".

    Raises
    ------
    ValueError: the time zone database has no such zone.
    """
    from zoneinfo import ZoneInfo

    if name.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(_canonical_name(name))
    except (LookupError, OSError, ValueError):
        raise ValueError(f"there is no time zone {name!r}") from None


def _canonical_name(name: str) -> str:
    """Return the name with the case that the time zone database uses; as is if unknown."""
    from zoneinfo import available_timezones

    known = available_timezones()
    if name in known:
        return name
    folded = name.casefold()
    return next((each for each in known if each.casefold() == folded), name)


def name_of_zone(zone: tzinfo) -> str:
    """Return Arrow's name of a zone: its key, or its offset in hours and minutes.

    >>> from datetime import timezone
    >>> name_of_zone(timezone.utc), name_of_zone(timezone(-timedelta(hours=3, minutes=30)))
    ('UTC', '-03:30')
    """
    key = getattr(zone, "key", None)
    offset = zone.utcoffset(None)
    if key is not None or not offset:
        return key or "UTC"
    sign = "-" if offset < timedelta() else "+"
    minutes = abs(offset) // timedelta(minutes=1)
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}"


def in_zone(value: datetime, name: str) -> datetime:
    """Return the instant as a datetime of a zone."""
    return instant(value.astimezone(zone_named(name)))


def in_elapsed_time(value: Any) -> Any:
    """Return an instant in UTC, where differences are elapsed time; any other value as it is.

    The difference of two datetimes of one zone is that of its clock.

    >>> from zoneinfo import ZoneInfo
    >>> noon = datetime(2024, 3, 31, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    >>> noon - noon.replace(hour=0), in_elapsed_time(noon) - in_elapsed_time(noon.replace(hour=0))
    (datetime.timedelta(seconds=43200), datetime.timedelta(seconds=39600))
    """
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value if value.tzinfo is UTC else value.astimezone(UTC)
    return value


def local_time(value: datetime, name: str) -> datetime:
    """Return the local time of a zone at an instant, without a zone."""
    return value.astimezone(zone_named(name)).replace(tzinfo=None, fold=0)


def of_local_time(local: datetime, name: str) -> datetime:
    """Return the instant of a local time of a zone.

    For a time that occurs twice it is the later instant; a skipped time is read with the offset
    before the change, as in Postgres and DuckDB.

    >>> of_local_time(datetime(2024, 10, 27, 2, 30), "Europe/Berlin").isoformat()
    '2024-10-27T02:30:00+01:00'
    """
    zone = zone_named(name)
    either = [local.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    chosen = min(either, key=datetime.utcoffset)  # type: ignore[arg-type]
    return instant(in_zone(instant(chosen), name))


def checked_zone(name: str) -> str:
    """Return the name of a time zone.

    Raises
    ------
    PlanError: there is no such zone.
    """
    try:
        zone_named(name)
    except (ValueError, AttributeError):
        raise PlanError(
            f"there is no time zone {name!r}\n"
            "  name one of the time zone database, as timezone='Europe/Berlin'; where the system "
            "has no such database: pip install tzdata"
        ) from None
    return name
