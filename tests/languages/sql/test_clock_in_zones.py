"""Conditions of now() in time zones: DuckDB's rows at each tick, and work for rows that cross."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import pytest

from reactive import Database, now
from reactive.engine.collections.zset import UnorderedError, family_of
from tests.budget import SEED, sampled
from tests.engine.operators.test_moved_bounds import touched_by
from tests.languages.sql.oracles import insert_rows
from tests.thresholds import thresholds

duckdb = pytest.importorskip("duckdb", reason="DuckDB, the oracle, is an extra")
BERLIN = ZoneInfo("Europe/Berlin")
ZONES = ["UTC", "Europe/Berlin", "America/New_York"]
CHANGES = [datetime(2024, 3, 31, 1), datetime(2024, 10, 27, 1), datetime(2024, 11, 3, 6)]
"""Instants at which the clocks of Berlin go forward and back, and those of New York go back."""


@dataclass(frozen=True)
class Beat:
    id: int
    tm: Annotated[datetime, UTC]


CONDITIONS = [
    "tm > now() - interval '5 minutes'",
    "tm > now() - interval '1 day'",
    "tm >= current_timestamp - interval '1 month'",
    "tm > now() - interval '2 hours' * 2",
    "tm + interval '5 minutes' > now()",
    "tm + interval '1 day' <= now()",
    "tm + id * interval '1 second' > now()",
    "tm between now() - interval '1 day' and now()",
    "now() - tm < interval '5 minutes'",
    "now() - tm <= interval '12 hours'",
    "now() - tm > interval '-90 minutes'",
    "now() - tm between interval '1 minute' and interval '5 hours'",
    "(select value from shown) - tm < interval '5 minutes'",
    "tm::date = current_date",
    "tm::date >= current_date - 1",
    "current_date - tm::date <= 1",
    "tm::timestamp > localtimestamp - interval '36 hours'",
    "localtimestamp - tm::timestamp < interval '25 hours'",
    "date_trunc('hour', tm) = date_trunc('hour', now())",
    "tm >= date_trunc('day', now())",
]
BY_DAYS = [
    "now() - tm < interval '1 day'",
    "now() - tm < interval '24 hours'",
    "now() - tm > interval '36 hours'",
    "now() - tm < interval '1 month'",
]
"""In zones of DuckDB these are days of the calendar, which may be shorter."""


def at_moment(condition: str, moment: datetime, zone: str) -> str:
    """Return a condition with the moment of the clock written out."""
    local = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    words = {
        "now()": f"timestamptz '{moment.isoformat(' ')}'",
        "current_timestamp": f"timestamptz '{moment.isoformat(' ')}'",
        "localtimestamp": f"timestamp '{local.isoformat(' ')}'",
        "current_date": f"date '{local.date()}'",
        "(select value from shown)": f"timestamptz '{moment.isoformat(' ')}'",
    }
    for word, written in words.items():
        condition = condition.replace(word, written)
    return condition


def filled(dialect: Any, zone: str, condition: str) -> tuple[Database, Any, Any, Any]:
    db = Database(dialect=dialect, timezone=zone)
    beats, shown = db.table(Beat, name="beats", key="id"), db.table(datetime, name="shown")
    db.clock.advance(CHANGES[0].replace(tzinfo=UTC) - timedelta(days=2))
    shown.add(db.clock.now)
    return db, beats, shown, db.sql(f"select id from beats where {condition}").materialize()


def advance(db: Database, shown: Any, by: timedelta) -> None:
    with db.transaction():
        shown.update(db.clock.now, db.clock.now + by)
        db.clock.advance(db.clock.now + by)


def ticks(rnd: random.Random, db: Database, beats: Any, shown: Any, count: int) -> Iterator[None]:
    """Change rows and advance the clock over the next clock changes."""
    zones = [UTC, BERLIN, ZoneInfo("America/New_York")]
    for change in CHANGES:
        start = change.replace(tzinfo=UTC) - timedelta(hours=26)
        advance(db, shown, start - db.clock.now)
        for _ in range(count):
            if rnd.random() < 0.4:
                advance(db, shown, timedelta(minutes=rnd.choice([1, 15, 60, 400])))
            else:
                tm = db.clock.now + timedelta(minutes=15 * rnd.randrange(-120, 12))
                beats.upsert(Beat(rnd.randrange(9), tm.astimezone(rnd.choice(zones))))
            yield


@sampled
@pytest.mark.parametrize("condition", [*CONDITIONS, *BY_DAYS])
@pytest.mark.parametrize("zone", ZONES)
def test_rows_at_each_tick_are_those_of_duckdb(zone: str, condition: str) -> None:
    rnd = random.Random(f"{zone} {condition} {SEED}")
    with thresholds({"reactive.engine.collections.key_orders.MANY": 1}):
        db, beats, shown, view = filled("duckdb", zone, condition)
        with duckdb.connect() as other:
            other.execute(f"set timezone = '{zone}'")
            other.execute("create table beats (id int, tm timestamptz)")
            for _ in ticks(rnd, db, beats, shown, 14):
                other.execute("delete from beats")
                insert_rows(other, "beats", [[each.id, each.tm] for each in beats])
                asked = at_moment(condition, db.clock.now, zone)
                found = other.execute(f"select id from beats where {asked}").fetchall()
                assert sorted(map(tuple, view)) == sorted(found), db.clock.now
        assert not view.errors


@pytest.mark.parametrize("condition", CONDITIONS)
def test_postgres_follows_clock_changes(condition: str) -> None:
    rnd = random.Random(f"{condition} {SEED}")
    with thresholds({"reactive.engine.collections.key_orders.MANY": 1}):
        db, beats, shown, view = filled("postgres", "Europe/Berlin", condition)
        for _ in ticks(rnd, db, beats, shown, 10):
            view.verify()


@sampled
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_a_tick_touches_the_rows_that_cross(dialect: Any, zone: str, condition: str) -> None:
    """The first tick makes the order of the rows."""
    db, beats, shown, view = filled(dialect, zone, condition)
    start = db.clock.now + timedelta(days=1, hours=3)
    beats.add_all(Beat(n, start - timedelta(seconds=n - 500)) for n in range(2_000))
    advance(db, shown, start - db.clock.now)
    for _ in range(3):
        assert touched_by(view, lambda: advance(db, shown, timedelta(seconds=1))) <= 50
    view.verify()


def test_methods_compare_rows_of_zones_with_the_clock() -> None:
    db = Database()
    beats = db.table(Beat, name="beats", key="id")
    start = datetime(2024, 10, 26, 12, tzinfo=UTC)
    db.clock.advance(start)
    recent = beats.where(lambda beat: beat.tm > now() - timedelta(minutes=5)).materialize()
    beats.add_all(
        Beat(n, (start + timedelta(seconds=60 * n)).astimezone(BERLIN)) for n in range(2_000)
    )
    db.clock.advance(start + timedelta(hours=1))
    for hour in (11.5, 12, 12.5, 13, 30):
        moment = start + timedelta(hours=hour)
        db.clock.advance(moment)
        assert touched_by(recent, lambda: db.clock.advance(moment + timedelta(minutes=3))) < 60
        recent.verify()


def test_local_times_that_occur_twice_have_no_place_among_instants() -> None:
    """Python compares those of one zone by their local times."""
    twice = datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN)
    for fold in (0, 1):
        with pytest.raises(UnorderedError):
            family_of(twice.replace(fold=fold))
    assert family_of(twice.replace(hour=4)) == family_of(twice.astimezone(UTC))
