"""Windows of time over tables on Spark: fragments, equal to the same query in the process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import pytest

pytest.importorskip("pyspark")

from reactive import Count, Database, Max, OffloadError, Sum, hopping, session, tumbling
from tests.budget import SEED
from tests.spark.ways import way

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2024, 3, 29, 21)


@dataclass(frozen=True, slots=True)
class Event:
    """An event with times of several kinds."""

    id: int
    user: str
    number: int | None
    real: float
    plain: datetime
    instant: Annotated[datetime, BERLIN]
    day: date
    after: timedelta


@dataclass(frozen=True, slots=True)
class User:
    """A user; events of others are left out."""

    name: str


def event(random: Random, number: int) -> Event:
    """Return an event at a time that is drawn, the same in each field."""
    hours = random.randrange(80)
    plain = START + timedelta(hours=hours)
    return Event(
        number,
        random.choice("abc"),
        random.choice([None, hours - 40]),
        hours / 4 - 9,
        plain,
        plain.replace(tzinfo=UTC).astimezone(BERLIN),
        plain.date(),
        timedelta(hours=hours - 40),
    )


HOURS = timedelta(hours=5)
WINDOWS: dict[str, tuple[Any, Any]] = {
    "numbers": (tumbling(10), lambda e: e.number),
    "numbers by reals": (tumbling(2.5, origin=1), lambda e: e.id),
    "reals": (hopping(2.5, every=0.75), lambda e: e.real),
    "datetimes": (hopping(HOURS, every=timedelta(hours=2)), lambda e: e.plain),
    "instants": (tumbling(hours=7), lambda e: e.instant),
    "instants with an origin": (
        tumbling(HOURS, origin=START.replace(tzinfo=UTC)),
        lambda e: e.instant,
    ),
    "days of a zone": (tumbling(days=1, zone="Europe/Berlin"), lambda e: e.instant),
    "dates": (tumbling(days=2), lambda e: e.day),
    "timedeltas": (tumbling(hours=4), lambda e: e.after),
}


def counted(events: Any, users: Any, name: str) -> Any:
    """Return the counts of the windows of a name."""
    windows, at = WINDOWS[name]
    of_users = events.join(users, on=lambda e, u: e.user == u.name).select(lambda e, u: e)
    keyed = of_users.window(windows, at=at).group_by(lambda e, w: (e.user, w))
    return keyed.aggregate(Count(), Sum(lambda e, w: e.id), Max(lambda e, w: e.id))


@pytest.fixture
def db(session: Any, offload: Any) -> Iterator[Database]:
    with Database(offload=offload) as made:
        yield made


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.quick] if n == "instants" else []) for n in WINDOWS]
)
def test_a_window_over_a_table_on_spark_is_a_fragment(
    db: Database, offload: Any, name: str
) -> None:
    random, rows = Random(f"{name} {SEED}"), Counter[Event]()
    rows.update(event(random, number) for number in range(60))
    events = db.table(Event, name="events")
    view = counted(events, _users(db, offload), name).materialize(name)
    events.add_all(rows.elements())
    other = Database()
    beside, users = other.table(Event, name="events"), other.table(User, name="users")
    users.add_all(map(User, "ab"))
    beside.add_all(rows.elements())
    expected = counted(beside, users, name).materialize()
    view.offload()
    (status,) = [each for each in db.offload_status() if name in each.view]
    assert "state tables, one job per flush" in status.where
    for step, is_job in enumerate((True, False, False, True)):
        with way(is_job=is_job), db.transaction():
            for number in range(random.randrange(1, 6)):
                new = event(random, 100 * step + number)
                events.add(new)
                beside.add(new)
                rows[new] += 1
            gone = random.choice(sorted(rows.elements(), key=lambda e: e.id))
            events.remove(gone)
            beside.remove(gone)
            rows -= Counter([gone])
        with way(is_job=is_job):
            db.flush()
            found = Counter(view)
        assert found == Counter(expected)
        assert sorted(map(repr, found)) == sorted(map(repr, Counter(expected)))


def _users(db: Database, offload: Any) -> Any:
    """Return a table on Spark of users."""
    users: Any = db.spark_table(
        offload.session.spark.createDataFrame([], "name string"), User, name="users"
    )
    users.add_all(map(User, "ab"))
    return users


def test_sessions_and_windows_over_rows_say_why_they_stay(db: Database, offload: Any) -> None:
    users = _users(db, offload)
    visits = users.window(session(3, by="name"), at=lambda u: len(u.name)).materialize("visits")
    ranks = users.over(order="name").select(lambda u, w: (u.name, w.rank()))
    for view in (visits, ranks.materialize("ranks")):
        with pytest.raises(OffloadError, match="its groups are in the process"):
            view.offload()
        assert "its groups are in the process" in str(view.explain())
        assert len(view) == 2


def test_windows_of_a_stream_stay_in_the_process_after_an_event(db: Database) -> None:
    clicks = db.stream(tuple[str, int], at=lambda c: c[1], lateness=2, name="clicks")
    per_ten = clicks.window(tumbling(10), at=lambda c: c[1]).group_by(lambda c, w: w.start)
    view = per_ten.aggregate(Count()).materialize("clicks per ten")
    clicks.add(("a", 1))
    with pytest.raises(
        OffloadError, match="stream 'clicks' has given out events that it did not keep"
    ):
        view.offload()
    clicks.add_all([("a", 2), ("b", 13)])
    assert sorted(view) == [(0, 2), (10, 1)]
