"""Windows of time: `tumbling`, `hopping` and `session` windows, as bindings of rows.

    clicks.window(tumbling(minutes=1), at=lambda c: c.at)       c, w       w = (start, end)
          .group_by(lambda c, w: (c.page, w)).aggregate(n=Count())

    tumbling   |--w--|--w--|--w--|      one window for each time
    hopping    |----w----|              windows that overlap: one starts `every` so often
                  |----w----|
                     |----w----|
    session    |-w--|    |---w----|     from one row to the last that follows without a longer gap

A row belongs to each window with `start <= time < end`. A row whose time is None, NaN or infinite
belongs to none, and is left out.

Cost: O(1) for each window of a changed row. Sessions: `operators/windows/sessions.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import (
    Call,
    Item,
    Lifted,
    Parameter,
    all_parameters,
    constant,
    items_of,
    one_value,
    row_names,
    tuple_of,
)
from optimizer.kinds.instants import instant
from optimizer.plans.nodes.groups import kept_by
from optimizer.plans.properties import binding_names, row_shape, shapes
from optimizer.record import record
from optimizer.subqueries.keyed_rows import as_expression
from reactive.api.columns import Live
from reactive.engine.collections.instants import checked_zone, in_elapsed_time, zone_named
from reactive.engine.operators.windows import sessions

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
            return self._from(MONDAY.date() if self.origin is None else self.origin, time)
        if self.zone is not None:
            return self._of_days(time)
        usual = MONDAY if time.tzinfo is None else MONDAY_OF_UTC
        return self._from(usual if self.origin is None else self.origin, time)

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

        days = self._from(
            MONDAY.date() if self.origin is None else self.origin, time.astimezone(zone).date()
        )
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

    def plan_over(self, relation: Any, at: Any) -> plan.Node:
        """Return the plan of the rows of a relation, each with its windows as one more binding."""
        time = as_expression(relation._take(at, "the at of window"), shapes(relation.plan))
        windows = Call(constant(self), (time.body,))
        return plan.Unnest(relation.plan, time.with_body(windows))

    def __repr__(self) -> str:
        zone = "" if self.zone is None else f", zone={self.zone!r}"
        if self.size == self.every:
            return f"tumbling({self.size}{zone})"
        return f"hopping({self.size}, every={self.every}{zone})"


def tumbling(
    size: Any = None,
    *,
    weeks: float = 0,
    days: float = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    milliseconds: float = 0,
    origin: Any = None,
    zone: str | None = None,
) -> TimeWindows:
    """Return windows that follow each other: each time belongs to one.

    Parameters
    ----------
    size: a timedelta, for dates and datetimes; or a number, for times that are numbers.
    weeks, days, hours, minutes, seconds, milliseconds: the size, in place of `size`.
    origin: the start of one of the windows; by default 0, and for dates and datetimes the Monday
        2000-01-03, in UTC for datetimes with a zone.
    zone: for datetimes with a zone, the time zone whose days the windows are: from midnight to
        midnight there, 23 or 25 hours when its clocks change. The size is then whole days, and
        `origin` a date. Without `zone`, a day is 24 hours.

    Raises
    ------
    PlanError: the size is not positive, or with `zone` not made of whole days.

    >>> from datetime import datetime
    >>> tumbling(minutes=15)(datetime(2024, 5, 1, 12, 20))[0].start.isoformat()
    '2024-05-01T12:15:00'
    >>> tumbling(10)(25)
    (TimeWindow(start=20, end=30),)
    """
    span = timedelta(
        weeks=weeks,
        days=days,
        hours=hours,
        minutes=minutes,
        seconds=seconds,
        milliseconds=milliseconds,
    )
    size = checked_span("tumbling", span if size is None else size)
    return _checked("tumbling", TimeWindows(size, size, origin, zone))


@dataclass(frozen=True, slots=True, repr=False)
class SessionWindows:
    """The sessions of rows of one key: a row begins one if none came within `gap` before it.

    >>> SessionWindows(gap=10)
    session(10)
    """

    gap: Any
    by: Callable[..., Any] | str | None = None

    def plan_over(self, relation: Any, at: Any) -> plan.Node:
        """Return the plan of the rows of a relation, each with its session as one more binding."""
        of = shapes(relation.plan)
        count = len(of)
        time = as_expression(relation._take(at, "the at of window"), of)
        key = Lifted(constant(()), (), (), count)
        if self.by is not None:
            key = as_expression(relation._take(self.by, "the by of session"), of)
        row = one_value(all_parameters(count))
        names = time.names if len(time.names) == count else row_names(count)
        timed = Lifted(
            tuple_of(row, key.body, Call(constant(in_elapsed_time), (time.body,))),
            names,
            (*key.origins, *time.origins),
            count,
        )
        by_key = Lifted(Item(Parameter(0), constant(1)), ("row",), (), 1)
        group = kept_by(Sessions(self.gap, (row_shape(relation.plan), TimeWindow)), repr(self))
        groups = plan.Reduce(plan.Select(relation.plan, timed), by_key, group)
        shown, window = items_of(Parameter(1), 2)
        columns = (*((shown,) if count == 1 else items_of(shown, count)), window)
        made = tuple(Lifted(column, ("key", "row"), (), 2) for column in columns)
        return plan.Extend(groups, (), made, (*binding_names(relation.plan), None))

    def __repr__(self) -> str:
        return f"session({self.gap})"


@record
class Sessions:
    """The function that keeps the sessions of the rows of one key."""

    gap: Any
    shape: Any

    def __call__(self, key: Any, rows: Any) -> Any:
        """Return the rows beside their windows, from scratch."""
        return list(sessions.sessions_of(rows, self.gap, TimeWindow))

    def kept(self) -> Callable[[], sessions.SessionGroup]:
        """Return the maker of an empty group."""
        return lambda: sessions.SessionGroup(self.gap, TimeWindow)

    def limited(self, item: int, most: int) -> Any:
        """Return None: each row may change the windows of others."""
        return None

    def dropping(self) -> Any:
        """Return itself: it has no callables."""
        return self


def session(
    gap: Any = None,
    *,
    by: Callable[..., Any] | str | None = None,
    days: float = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    milliseconds: float = 0,
) -> SessionWindows:
    """Return sessions: rows of one key that follow each other with gaps shorter than `gap`.

    A session is the window from its first time to its last one plus the gap. If a row comes or
    goes, sessions grow, join or split, and the windows of their rows change.

    Parameters
    ----------
    gap: a timedelta, for dates and datetimes; or a number, for times that are numbers.
    days, hours, minutes, seconds, milliseconds: the gap, in place of `gap`.
    by: callable, bindings -> hashable, or the name of a field: whose sessions these are. Without
        it, all rows have their sessions together.

    Raises
    ------
    PlanError: the gap is not positive.

    >>> from reactive import Count, Database
    >>> clicks = Database().table(tuple[str, int], name="clicks")
    >>> visits = clicks.window(session(10, by=lambda c: c[0]), at=lambda c: c[1])
    >>> lengths = visits.group_by(lambda c, w: (c[0], w.start)).aggregate(Count()).materialize()
    >>> clicks.add_all([("ann", 1), ("ann", 9), ("ann", 30), ("bob", 5)])
    >>> dict(lengths)
    {('ann', 1): 2, ('ann', 30): 1, ('bob', 5): 1}
    """
    span = timedelta(
        days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
    )
    return SessionWindows(checked_span("session", span if gap is None else gap), by)


def hopping(size: Any, every: Any, *, origin: Any = None, zone: str | None = None) -> TimeWindows:
    """Return windows of a size that start every so often: those of a time overlap.

    Parameters
    ----------
    size, every: timedeltas, for dates and datetimes; or numbers, for times that are numbers. If
        `every` is greater than `size`, times between two windows belong to none.
    origin, zone: as for `tumbling`.

    Raises
    ------
    PlanError: a distance is not positive, or with `zone` not made of whole days.

    >>> hopping(10, every=5)(12)
    (TimeWindow(start=5, end=15), TimeWindow(start=10, end=20))
    """
    made = TimeWindows(checked_span("hopping", size), checked_span("hopping", every), origin, zone)
    return _checked("hopping", made)


def checked_span(role: str, span: Any) -> Any:
    """Return a distance of times.

    Raises
    ------
    PlanError: it is not positive, or none.
    """
    try:
        is_positive = not isinstance(span, bool | Live) and bool(span > span - span)
        is_finite = not isinstance(span, float) or math.isfinite(span)
    except TypeError:
        is_positive = is_finite = False
    if not is_positive or not is_finite:
        raise PlanError(
            f"{role} takes a distance of times above zero, not {span!r:.60}\n"
            f"  such as {role}(timedelta(minutes=1){', ...' if role != 'tumbling' else ''})"
        )
    return span


def _checked(role: str, windows: TimeWindows) -> TimeWindows:
    """Return windows; refuse a zone that is unknown, or windows of hours in one."""
    if windows.zone is None:
        return windows
    checked_zone(windows.zone)
    for span in (windows.size, windows.every):
        if not isinstance(span, timedelta) or span % DAY:
            raise PlanError(
                f"{role} with zone= takes whole days, not {span}\n"
                "  without zone=, a day is 24 hours, and shorter windows are the same everywhere"
            )
    return windows
