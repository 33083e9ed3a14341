"""Windows of time beside a look at each of them, and beside DuckDB's `time_bucket`."""

from __future__ import annotations

import math
import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from reactive import Count, Database, PlanError, Sum, TimeWindow, hopping, session, tumbling
from tests.budget import SEED

NOON = datetime(2024, 3, 29, 12)
BERLIN = ZoneInfo("Europe/Berlin")
TIMES: dict[str, tuple[Any, Any, Any]] = {
    "int": (0, 1, 6),
    "float": (-3.0, 0.1, 0.7),
    "decimal": (Decimal(-3), Decimal("0.1"), Decimal("0.7")),
    "elapsed": (timedelta(), timedelta(seconds=1), timedelta(seconds=6)),
    "local": (NOON, timedelta(minutes=7), timedelta(hours=1)),
    "instant": (NOON.replace(tzinfo=UTC), timedelta(hours=1), timedelta(hours=6)),
    "zone": (NOON.replace(tzinfo=BERLIN), timedelta(hours=1), timedelta(hours=6)),
    "date": (NOON.date(), timedelta(days=1), timedelta(days=7)),
}


@pytest.mark.parametrize("kind", TIMES)
def test_groups_by_window_agree_with_a_look_at_each_window(kind: str) -> None:
    start, step, size = TIMES[kind]
    rnd, db = random.Random(f"{kind} {SEED}"), Database()
    clicks = db.table(tuple, name="clicks")
    every = step * 2
    given = {"tumbling": tumbling(size), "hopping": hopping(size, every)}
    views = {
        name: clicks.window(windows, at=lambda c: c[1])
        .group_by(lambda c, w: (c[0], w))
        .aggregate(Count(), Sum(lambda c, w: c[2]))
        .materialize()
        for name, windows in given.items()
    }
    held: list[Any] = []
    for _ in range(60):
        with db.transaction():
            for _change in range(rnd.choice([1, 1, 6])):
                if held and rnd.random() < 0.4:
                    clicks.remove(held.pop(rnd.randrange(len(held))))
                    continue
                at = rnd.choice([None, start + step * rnd.randrange(40)])
                held.append((rnd.choice("ab"), at, rnd.randrange(9)))
                clicks.add(held[-1])
        for view in views.values():
            found = {key: count for key, count, _ in view}
            _check_groups(found, held)
            view.verify()
    spans = sorted({window for (_, window), *_ in views["tumbling"]})
    assert all(one.end <= other.start for one, other in pairwise(spans))


def _check_groups(found: dict[Any, int], held: list[Any]) -> None:
    """Compare the counts of the windows with the rows inside; each row is in one at least."""
    timed = [row for row in held if row[1] is not None]
    for (page, window), count in found.items():
        inside = [r for r in timed if r[0] == page and window.start <= r[1] < window.end]
        assert count == len(inside), window
    for page, at, _ in timed:
        assert any(of == page and w.start <= at < w.end for of, w in found)


def test_a_hopping_row_is_in_all_its_windows() -> None:
    assert hopping(10, every=5)(12) == ((5, 15), (10, 20))
    assert hopping(10, every=3, origin=1)(12) == ((4, 14), (7, 17), (10, 20))
    assert hopping(2, every=5)(12) == ()
    assert tumbling(10, origin=3)(12) == ((3, 13),)


def test_floats_are_in_the_window_that_is_given() -> None:
    windows = tumbling(0.1)
    ends = set()
    for n in range(-500, 500):
        ((start, end),) = windows(n / 100)
        assert start <= n / 100 < end
        ends |= {start, end}
    assert len(ends) == len({round(end * 10) for end in ends})


@pytest.mark.parametrize("time", [None, math.nan, math.inf, -math.inf, Decimal("NaN")])
def test_times_that_are_none_belong_to_no_window(time: Any) -> None:
    assert tumbling(10)(time) == ()


def test_days_of_a_zone_follow_its_clock_and_others_are_of_24_hours() -> None:
    local, elapsed = tumbling(days=1, zone="Europe/Berlin"), tumbling(days=1)
    for day, hours in ((date(2024, 3, 30), 24), (date(2024, 3, 31), 23), (date(2024, 10, 27), 25)):
        noon = datetime(day.year, day.month, day.day, 12, tzinfo=BERLIN)
        ((start, end),) = local(noon)
        assert (start.hour, start.date(), end.hour) == (0, day, 0)
        assert end.astimezone(UTC) - start.astimezone(UTC) == timedelta(hours=hours)
        ((start, end),) = elapsed(noon)
        assert (start.utcoffset(), start.hour, end - start) == (timedelta(), 0, timedelta(days=1))
    late, early = (datetime(2024, 10, 27, 2, 30, fold=f, tzinfo=BERLIN) for f in (1, 0))
    assert local(late) == local(early)
    assert tumbling(hours=1)(late) != tumbling(hours=1)(early)
    ((start, end),) = tumbling(weeks=1, zone="Europe/Berlin")(late)
    assert (start.weekday(), start.hour, end.hour) == (0, 0, 0)
    assert end.astimezone(UTC) - start.astimezone(UTC) == timedelta(days=7, hours=1)


@pytest.mark.parametrize("name", ["America/Havana", "Asia/Beirut", "Africa/Cairo"])
def test_days_without_a_midnight_or_with_two_meet_at_their_ends(name: str) -> None:
    zone, days = ZoneInfo(name), tumbling(days=1, zone=name)
    time, last = datetime(2024, 1, 1, tzinfo=UTC), None
    while time.year == 2024:
        ((start, end),) = days(time)
        assert start <= time < end
        if last is not None and (start, end) != last:
            assert start == last[1]
        last = (start, end)
        assert time.astimezone(zone).date() == start.astimezone(zone).date()
        time += timedelta(minutes=30)


def test_windows_are_those_of_time_bucket() -> None:
    base = pytest.importorskip("duckdb").connect()
    rnd = random.Random(SEED)
    for unit in ("minutes", "hours", "days", "weeks"):
        for _ in range(20):
            size = timedelta(**{unit: rnd.choice([1, 2, 3, 7, 15])})
            time = datetime(2024, 1, 1) + timedelta(seconds=rnd.randrange(-(10**9), 10**9))
            ((expected,),) = base.execute("select time_bucket(?, ?)", [size, time]).fetchall()
            assert tumbling(size)(time)[0].start == expected
    base.close()
    ((start, _),) = tumbling(weeks=1)(date(2024, 5, 3))
    assert (start, start.weekday()) == (date(2024, 4, 29), 0)


def test_windows_compose_with_comprehensions_joins_and_sql() -> None:
    db = Database()
    clicks = db.table(tuple[str, int], name="clicks")
    pages = db.table(tuple[str, str], name="pages")
    per_ten = clicks.window(tumbling(10), at=lambda c: c[1])
    counts = per_ten.group_by(lambda c, w: (c[0], w)).aggregate(n=Count()).materialize()
    titled = per_ten.join(pages, on=lambda c, w, p: p[0] == c[0]).select(
        lambda c, w, p: (p[1], w.start)
    )
    firsts = db.query(lambda: [(c[0], w) for c, w in per_ten if w.start == 0])
    titles, early = titled.materialize(), firsts.materialize()
    view = per_ten.select(page=lambda c, w: c[0], start=lambda c, w: w.start).materialize()
    by_sql = db.sql("select page, count(*) as n from per_page group by page", per_page=view)
    rows = by_sql.materialize()
    clicks.add_all([("home", 3), ("home", 5), ("home", 12)])
    pages.add(("home", "Welcome"))
    assert {row.key: row.n for row in counts} == {("home", (0, 10)): 2, ("home", (10, 20)): 1}
    assert Counter(titles) == {("Welcome", 0): 2, ("Welcome", 10): 1}
    assert Counter(early) == {("home", TimeWindow(0, 10)): 2}
    assert [tuple(row) for row in rows] == [("home", 3)]


@pytest.mark.parametrize(
    ("windows", "time", "message"),
    [
        (tumbling(10), NOON, "size 10 have no place for datetime"),
        (tumbling(hours=1), NOON.date(), "windows of dates are whole days"),
        (tumbling(days=1, zone="Europe/Berlin"), NOON, "has no zone"),
        (tumbling(hours=1), 5, "unsupported operand"),
    ],
)
def test_windows_of_another_kind_of_time_are_refused(windows: Any, time: Any, message: str) -> None:
    clicks = Database().table(object, name="clicks")
    view = clicks.window(windows, at=lambda c: c).materialize()
    with pytest.raises(TypeError, match=message):
        clicks.add(time)
    assert not list(view)
    assert not list(clicks)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tumbling(),
        lambda: tumbling(0),
        lambda: tumbling(-1),
        lambda: tumbling(math.nan),
        lambda: tumbling(math.inf),
        lambda: tumbling("minute"),
        lambda: tumbling(minutes=-1),
        lambda: hopping(10, every=0),
        lambda: tumbling(hours=1, zone="Europe/Berlin"),
        lambda: tumbling(days=1, zone="Europe/Atlantis"),
        lambda: hopping(10, every=5, zone="UTC"),
    ],
)
def test_sizes_that_mean_nothing_are_refused(make: Any) -> None:
    with pytest.raises(PlanError):
        make()


def test_windows_are_equal_to_their_equals_and_print_as_they_are_made() -> None:
    assert tumbling(10) == tumbling(10) != tumbling(20)
    assert hash(tumbling(minutes=1)) == hash(tumbling(timedelta(minutes=1)))
    assert repr(tumbling(minutes=1)) == "tumbling(0:01:00)"
    assert repr(hopping(10, every=5)) == "hopping(10, every=5)"
    milli = tumbling(milliseconds=500, seconds=1)
    assert milli.size == timedelta(seconds=1.5)
    assert tumbling(weeks=1, days=1).size == timedelta(days=8)


def test_a_change_touches_its_row_only() -> None:
    clicks = Database().table(tuple[str, int], name="clicks")
    counts = (
        clicks.window(hopping(10, every=5), at=lambda c: c[1])
        .group_by(lambda c, w: (c[0], w))
        .aggregate(Count())
        .materialize()
    )
    clicks.add_all([("home", n % 1000) for n in range(5_000)])
    before = counts.stats().touched
    clicks.add(("home", 500))
    assert counts.stats().touched - before <= 4


def _elapsed(time: Any) -> Any:
    is_instant = isinstance(time, datetime) and time.tzinfo is not None
    return time.astimezone(UTC) if is_instant else time


def _sessions(rows: list[Any], gap: Any) -> Counter[Any]:
    """Return the rows beside their sessions: each row looks for others near, as long as it can."""
    found = Counter[Any]()
    timed = [row for row in rows if row[1] is not None]
    for row in timed:
        first = last = _elapsed(row[1])
        own = [_elapsed(at) for user, at, *_ in timed if user == row[0]]
        while near := [at for at in own if at < first and first - at < gap]:
            first = min(near)
        while near := [at for at in own if at > last and at - last < gap]:
            last = max(near)
        found[row, (first, last + gap)] += 1
    return found


@pytest.mark.parametrize("kind", TIMES)
def test_sessions_agree_with_a_look_at_all_rows(kind: str) -> None:
    start, step, _ = TIMES[kind]
    rnd, db = random.Random(f"{kind} {SEED}"), Database()
    clicks = db.table(tuple, name="clicks")
    visits = clicks.window(session(step * 3, by=lambda c: c[0]), at=lambda c: c[1])
    rows = visits.materialize()
    sums = visits.group_by(lambda c, w: (c[0], w)).aggregate(Sum(lambda c, w: c[2])).materialize()
    held: list[Any] = []
    for number in range(120):
        before = list(held)
        try:
            with db.transaction():
                for _ in range(rnd.choice([1, 1, 2, 9])):
                    if held and rnd.random() < 0.47:
                        clicks.remove(held.pop(rnd.randrange(len(held))))
                        continue
                    at = None if rnd.random() < 0.05 else start + step * rnd.randrange(40)
                    if isinstance(at, datetime) and at.tzinfo is not None:
                        at = at.astimezone(UTC).astimezone(at.tzinfo)  # no time that is skipped
                    held.append((rnd.choice("ab"), at, rnd.randrange(3)))
                    clicks.add(held[-1])
                if rnd.random() < 0.15:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            held = before
        expected = _sessions(held, step * 3)
        assert Counter(rows) == expected
        totals = Counter[Any]()
        for (row, window), times in expected.items():
            totals[row[0], window] += row[2] * times
        assert {key: total for key, total in sums if total} == +totals
        if not number % 20:
            rows.verify()
            assert Counter(visits.select(lambda c, w: (c, w)).materialize()) == expected
    clicks.clear()
    assert not rows.stats().rows


def test_a_gap_as_long_as_the_given_one_ends_a_session() -> None:
    clicks = Database().table(int, name="clicks")
    visits = clicks.window(session(10), at=lambda c: c).materialize()
    clicks.add_all([1, 11, 20])
    assert sorted(visits) == [(1, (1, 11)), (11, (11, 30)), (20, (11, 30))]
    clicks.add(10)
    assert {window for _, window in visits} == {(1, 30)}
    clicks.remove(11)
    assert {window for _, window in visits} == {(1, 20), (20, 30)}


def test_sessions_of_several_bindings_keep_them() -> None:
    db = Database()
    clicks = db.table(tuple[str, int], name="clicks")
    users = db.table(tuple[str, str], name="users")
    both = clicks.join(users, on=lambda c, u: c[0] == u[0])
    gap = session(minutes=0, seconds=5, by=lambda c, u: u[1])
    assert gap.gap == timedelta(seconds=5)
    visits = both.window(session(5, by=lambda c, u: u[1]), at=lambda c, u: c[1])
    firsts = visits.select(lambda c, u, w: (c[1], u[1], w.start)).materialize()
    users.add_all([("ann", "Ulm"), ("bob", "Ulm"), ("eve", "Bonn")])
    clicks.add_all([("ann", 1), ("bob", 4), ("eve", 6), ("ann", 20)])
    assert sorted(firsts) == [(1, "Ulm", 1), (4, "Ulm", 1), (6, "Bonn", 6), (20, "Ulm", 20)]


def test_rows_of_negative_weight_begin_no_session() -> None:
    clicks = Database().table(int, name="clicks", stored=False)
    visits = clicks.window(session(10), at=lambda c: c).materialize()
    clicks.remove(5)
    clicks.add(1)
    assert list(visits) == [(1, (1, 11))]
    clicks.add(5, 2)
    assert sorted(visits) == [(1, (1, 15)), (5, (1, 15))]


def test_times_that_do_not_compare_refuse_the_commit() -> None:
    clicks = Database().table(object, name="clicks")
    visits = clicks.window(session(10), at=lambda c: c).materialize()
    clicks.add_all([1, 5])
    with pytest.raises(TypeError):
        clicks.add_all([30, "soon", 2])
    clicks.add(14)
    assert {window for _, window in visits} == {(1, 24)}
    with pytest.raises(PlanError):
        session(0)
    assert repr(session(10)) == "session(10)"
    given: dict[str, Any] = {"days": 1, "hours": 2, "milliseconds": 5}
    assert session(**given).gap == timedelta(**given)


def test_a_session_changes_only_if_its_window_does() -> None:
    clicks = Database().table(tuple[int, int], name="clicks")
    visits = clicks.window(session(10, by=lambda c: c[0]), at=lambda c: c[1]).materialize()
    clicks.add_all([(0, 2 * n) for n in range(5_000)])
    clicks.add_all([(0, 50_000 + n) for n in range(10)])

    def touched(change: Any, row: Any) -> int:
        before = visits.stats().touched
        change(row)
        return visits.stats().touched - before

    touched(clicks.add, (1, 1))
    assert touched(clicks.add, (0, 5_001)) <= 6
    assert touched(clicks.remove, (0, 5_001)) <= 6
    assert touched(clicks.add, (0, 50_015)) <= 80
    assert touched(clicks.add, (1, 5_000)) <= 6
