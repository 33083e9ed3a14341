"""Windows of time of one size: the windows that a time belongs to.

    windows = TimeWindows(size=10, every=5)
    windows(12)         (5, 15), (10, 20)

Cost: O(1) for each window.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from optimizer.kinds.instants import instant
from reactive.engine.collections.instants import zone_named

DAY = timedelta(days=1)
MONDAY = datetime(2000, 1, 3)
"""The usual start of a window of dates and datetimes: weeks begin on Mondays, as in DuckDB."""
MONDAY_OF_UTC = MONDAY.replace(tzinfo=UTC)


class TimeWindow(NamedTuple):
    """A span of time: from `start`, up to but without `end`.

    >>> window = TimeWindow(0, 10)
    >>> window.end - window.start
    10
    """

    start: Any
    end: Any


@dataclass(frozen=True, slots=True, repr=False)
class TimeWindows:
    """The windows of one size that start at `origin`, and every so often before and after.

    For dates and datetimes an `origin` that is a timedelta is a distance from the usual start.
    `zone` is the time zone whose days they are, for instants.

    >>> TimeWindows(size=10, every=5)(12)
    (TimeWindow(start=5, end=15), TimeWindow(start=10, end=20))
    """

    size: Any
    every: Any
    origin: Any = None
    zone: str | None = None

    def __call__(self, time: Any) -> tuple[TimeWindow, ...]:
        """Return the windows of a time, the earliest first.

        Raises
        ------
        TypeError: the size is not a distance of such times.
        """
        if time is None:
            return ()
        if isinstance(time, date):
            return self._of_date(time)
        if time - time != time - time:  # NaN, or infinite
            return ()
        origin = self.origin
        if origin is None:
            origin = timedelta() if isinstance(time, timedelta) else 0
        return self._from(origin, time)

    def _of_date(self, time: date) -> tuple[TimeWindow, ...]:
        """Return the windows of a date, a datetime without a zone, or an instant."""
        if not isinstance(self.size, timedelta):
            raise TypeError(
                f"windows of size {self.size!r} have no place for {time!r:.60}\n"
                "  give a timedelta, as tumbling(minutes=1)"
            )
        if not isinstance(time, datetime):
            if self.size % DAY or self.every % DAY:
                raise TypeError(
                    f"windows of {self.every} have no place for the date {time}\n"
                    "  windows of dates are whole days"
                )
            return self._from(self._origin(MONDAY.date()), time)
        if self.zone is not None:
            return self._of_days(time)
        return self._from(self._origin(MONDAY if time.tzinfo is None else MONDAY_OF_UTC), time)

    def _origin(self, usual: Any) -> Any:
        """Return the start of one of the windows of dates or datetimes."""
        origin = timedelta() if self.origin is None else self.origin
        return usual + origin if isinstance(origin, timedelta) else origin

    def _of_days(self, time: datetime) -> tuple[TimeWindow, ...]:
        """Return the windows, of whole days of the zone, of an instant."""
        if time.tzinfo is None:
            raise TypeError(
                f"{time} has no zone, and the windows have days of {self.zone}\n"
                "  give instants, or windows without zone="
            )
        assert self.zone is not None
        zone = zone_named(self.zone)

        def midnight(day: date) -> datetime:
            local = datetime(day.year, day.month, day.day, tzinfo=zone)
            return instant(local.astimezone(UTC).astimezone(zone))

        days = self._from(self._origin(MONDAY.date()), time.astimezone(zone).date())
        return tuple(TimeWindow(midnight(each.start), midnight(each.end)) for each in days)

    def _from(self, origin: Any, time: Any) -> tuple[TimeWindow, ...]:
        """Return the windows of a time; the ends are computed like the starts, so that they meet.

        Floats are rounded, and Decimal rounds towards zero, so the last window is sought nearby.
        """
        size, every = self.size, self.every
        number = (time - origin) // every
        if origin + number * every > time:
            number -= 1
        elif origin + (number + 1) * every <= time:
            number += 1
        if size == every:
            return (TimeWindow(origin + number * every, origin + (number + 1) * every),)
        found = []
        while (end := origin + number * every + size) > time:
            found.append(TimeWindow(origin + number * every, end))
            number -= 1
        return tuple(found[::-1])

    def __repr__(self) -> str:
        zone = "" if self.zone is None else f", zone={self.zone!r}"
        if self.size == self.every:
            return f"tumbling({self.size}{zone})"
        return f"hopping({self.size}, every={self.every}{zone})"
