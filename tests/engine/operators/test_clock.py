"""A table of one row that holds the time of now: a tick touches the rows that enter or leave."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database
from tests.budget import examples
from tests.thresholds import thresholds


class Event(NamedTuple):
    id: int
    at: int


class Beat(NamedTuple):
    id: int
    at: datetime


MINUTES = timedelta(minutes=5)
START = datetime(2024, 3, 31)
Make = Callable[[Any, Any, Any], Any]
OF_INTS: dict[str, Make] = {
    "after": lambda db, events, now: events.join(now, on=lambda e, t: e.at > t).select(
        lambda e, t: e.id
    ),
    "age": lambda db, events, now: events.join(now, on=lambda e, t: t - e.at < 300).select(
        lambda e, t: e
    ),
    "old": lambda db, events, now: events.join(now, on=lambda e, t: not t - e.at < 300).select(
        lambda e, t: e.id
    ),
    "within": lambda db, events, now: events.join(now, on=lambda e, t: 0 <= t - e.at < 300).select(
        lambda e, t: e
    ),
    "near": lambda db, events, now: now.join(events, on=lambda t, e: abs(t - e.at) <= 50).aggregate(
        Count()
    ),
    "comprehension": lambda db, events, now: db.query(
        lambda: [e.id for e in events for t in now if t - e.at < 300]
    ),
    "SQL": lambda db, events, now: db.sql("select id from events, now where now.value - at < 300"),
    "SQL, between": lambda db, events, now: db.sql(
        "select count(*) from events, now where at between now.value - 300 and now.value"
    ),
    "SQL, scalar": lambda db, events, now: db.sql(
        "select id from events where (select max(value) from now) - at < 300"
    ),
}
OF_MOMENTS: dict[str, Make] = {
    "after": lambda db, beats, now: beats.join(now, on=lambda b, t: b.at > t).select(
        lambda b, t: b.id
    ),
    "age": lambda db, beats, now: beats.join(now, on=lambda b, t: t - b.at < MINUTES).select(
        lambda b, t: b.id
    ),
    "old": lambda db, beats, now: now.join(beats, on=lambda t, b: not t - b.at <= MINUTES).select(
        lambda t, b: b
    ),
    "near": lambda db, beats, now: beats.join(now, on=lambda b, t: abs(t - b.at) < MINUTES).select(
        lambda b, t: b.id
    ),
    "since": lambda db, beats, now: beats.join(now, on=lambda b, t: b.at >= t - MINUTES).select(
        lambda b, t: b.id
    ),
}
ZONES = [None, UTC, timezone(timedelta(hours=2)), ZoneInfo("Europe/Berlin")]


def seconds(count: int) -> datetime:
    return START + timedelta(seconds=count)


def filled(make: Make, kind: Any, moment: Callable[[int], Any]) -> tuple[Any, Any, Any]:
    db = Database()
    name = "events" if kind is Event else "beats"
    rows, now = db.table(kind, name=name, key="id"), db.table(type(moment(0)), name="now")
    return rows, now, make(db, rows, now)


@pytest.mark.parametrize(
    ("make", "kind", "moment"),
    [
        *(pytest.param(make, Event, int, id=f"{name}, ints") for name, make in OF_INTS.items()),
        *(pytest.param(m, Beat, seconds, id=f"{name}, moments") for name, m in OF_MOMENTS.items()),
    ],
)
def test_a_tick_touches_the_rows_that_enter_or_leave(
    make: Make, kind: Any, moment: Callable[[int], Any]
) -> None:
    rows, now, query = filled(make, kind, moment)
    view = query.materialize()
    now.add(moment(400))
    rows.add_all(kind(n, moment(n // 2)) for n in range(2_000))
    for tick in range(401, 405):
        before = view.stats().touched
        now.update(moment(tick - 1), moment(tick))
        assert view.stats().touched - before <= 40
    view.verify()


HOURS = st.sampled_from(range(6))


@pytest.mark.parametrize("name", OF_MOMENTS)
@examples(40)
@given(st.lists(st.tuples(HOURS, st.sampled_from(ZONES), HOURS), max_size=12), st.booleans())
def test_moments_of_all_kinds_of_zones_are_as_from_scratch(
    name: str, steps: list[tuple[int, Any, int]], drops: bool
) -> None:
    """The hours are around a change of the clock in Berlin; one of six steps is a tick."""
    with thresholds({"reactive.engine.collections.key_orders.MANY": 1}):
        rows, now, query = filled(OF_MOMENTS[name], Beat, seconds)
        zones = {zone for _, zone, _ in steps}
        is_drop = drops or (None in zones and len(zones) > 1)
        view = query.materialize(on_error="drop" if is_drop else "raise")
        current: list[datetime] = []
        for hour, zone, number in steps:
            at = START.replace(tzinfo=zone) + timedelta(minutes=40 * hour)
            if number:
                rows.upsert(Beat(number, at))
            elif current:
                now.update(current.pop(), at)
                current.append(at)
            else:
                now.add(at)
                current.append(at)
            view.verify()
