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
from datetime import timedelta
from typing import TYPE_CHECKING, Any

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
from optimizer.plans.nodes.groups import kept_by
from optimizer.plans.properties import binding_names, row_shape, shapes
from optimizer.record import record
from optimizer.subqueries.keyed_rows import as_expression
from reactive.api import comprehending
from reactive.api.columns import Live
from reactive.engine.collections.instants import checked_zone, in_elapsed_time
from reactive.engine.collections.time_windows import DAY, TimeWindow, TimeWindows
from reactive.engine.operators import closing
from reactive.engine.operators.aggregate import KeptGroups
from reactive.engine.operators.frontiers import Frontier, frontier_of
from reactive.engine.operators.windows import sessions

if TYPE_CHECKING:
    from reactive.api.relation import AnyRelation


def plan_windows(
    relation: AnyRelation, windows: TimeWindows | SessionWindows, at: Any
) -> plan.Node:
    """Return the plan of the rows of a relation, each with its windows as one more binding."""
    if isinstance(windows, SessionWindows):
        return _plan_with_sessions(windows, relation, at)
    if not isinstance(windows, TimeWindows):
        raise PlanError(
            f"window takes windows of time, not {windows!r:.60}\n"
            "  tumbling(minutes=1), hopping(size, every) or session(gap, by=key)"
        )
    time = as_expression(relation._take(at, "the at of window"), shapes(relation.plan))
    return plan.Unnest(relation.plan, time.with_body(Call(constant(windows), (time.body,))))


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
        2000-01-03, in UTC for datetimes with a zone. A timedelta is a distance from that Monday.
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

    def __repr__(self) -> str:
        return f"session({self.gap})"


def _plan_with_sessions(windows: SessionWindows, relation: AnyRelation, at: Any) -> plan.Node:
    """Return the plan of the rows of a relation, each with its session as one more binding."""
    of = shapes(relation.plan)
    time = as_expression(relation._take(at, "the at of window"), of)
    key = Lifted(constant(()), (), (), len(of))
    if windows.by is not None:
        key = as_expression(relation._take(windows.by, "the by of session"), of)
    return plan_sessions(relation.plan, windows, key, time)


def plan_sessions(
    source: plan.Node, windows: SessionWindows, key: Lifted, time: Lifted
) -> plan.Node:
    """Return the plan of rows, each with its session as one more binding.

    `key` gives whose session it is, in place of the `by` of the windows.
    """
    count = len(shapes(source))
    row = one_value(all_parameters(count))
    names = time.names if len(time.names) == count else row_names(count)
    timed = Lifted(
        tuple_of(row, key.body, Call(constant(in_elapsed_time), (time.body,))),
        names,
        (*key.origins, *time.origins),
        count,
    )
    by_key = Lifted(Item(Parameter(0), constant(1)), ("row",), (), 1)
    frontier = frontier_of(source, time.body)
    kept = Sessions(windows.gap, (row_shape(source), TimeWindow), frontier)
    group = kept_by(kept, repr(windows))
    rows = comprehending.freed(plan.Select(source, timed))
    groups = plan.Reduce(rows, by_key, group)
    shown, window = items_of(Parameter(1), 2)
    columns = (*((shown,) if count == 1 else items_of(shown, count)), window)
    made = tuple(Lifted(column, ("key", "row"), (), 2) for column in columns)
    return plan.Extend(groups, (), made, (*binding_names(source), None))


@record
class Sessions:
    """The function that keeps the sessions of the rows of one key."""

    gap: Any
    shape: Any
    frontier: Frontier | None = None
    """The frontier below which sessions do not change, for the events of a stream."""

    @property
    def is_bounded(self) -> bool:
        """True if sessions are dropped."""
        return self.frontier is not None

    def __call__(self, key: Any, rows: Any) -> Any:
        """Return the rows beside their windows, from scratch."""
        return list(sessions.sessions_of(rows, self.gap, TimeWindow))

    def operator(self, key: Any, new: Callable[[], sessions.SessionGroup]) -> KeptGroups:
        """Return the operator of the groups; it drops sessions that change no more."""
        if self.frontier is None:
            return KeptGroups(key, new)
        return closing.ClosingSessions(key, new, self.frontier)

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
