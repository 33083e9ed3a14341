"""Joins of two streams within an interval of time, beside all pairs of all events in time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reactive import Count, Database, PlanError, tumbling
from tests import budget
from tests.budget import SEED, sampled

START = datetime(2024, 1, 1, tzinfo=UTC)
Pair = tuple[Any, Any]


@dataclass(frozen=True)
class Click:
    user: int
    at: Any


@dataclass(frozen=True)
class Show:
    user: int
    at: Any


class Spelling:
    """Ways to say that a click is at most three steps before a show, and one behind it."""

    def __init__(self, step: Any) -> None:
        three, one = 3 * step, step
        self.ways: dict[str, Callable[[Any, Any], Any]] = {
            "chained": lambda c, s: c.user == s.user and s.at - three <= c.at <= s.at + one,
            "difference": lambda c, s: c.user == s.user and -three <= c.at - s.at <= one,
            "turned": lambda c, s: s.at - c.at <= three and c.at - s.at <= one and s.user == c.user,
            "shifted": lambda c, s: (
                c.user == s.user and c.at + three >= s.at and s.at + one >= c.at
            ),
            "not": lambda c, s: c.user == s.user and not (c.at > s.at + one or c.at + three < s.at),
        }


def _state(*views: Any) -> int:
    """Return the number of rows that the operators hold, without those of views."""
    operators = {id(each): each for view in views for each in view.stats().operators}
    return sum(e.rows for e in operators.values() if not e.name.startswith("rows of"))


class Streams:
    """Two streams, and all their events in time."""

    def __init__(self, db: Database, lateness: Any) -> None:
        self.db = db
        self.clicks = db.stream(Click, at="at", lateness=lateness, name="clicks")
        self.shows = db.stream(Show, at=lambda s: s.at, lateness=lateness, name="shows")
        self.seen: tuple[list[Any], list[Any]] = ([], [])

    def add(self, batches: tuple[list[Click], list[Show]], *, fails: bool = False) -> None:
        """Add events in one commit, or in one that is rolled back."""
        marks = [stream.watermark.first() for stream in (self.clicks, self.shows)]
        try:
            with self.db.transaction():
                self.clicks.add_all(batches[0])
                self.shows.add_all(batches[1])
                if fails:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            return
        each: Any = zip(self.seen, batches, marks, strict=True)
        for seen, batch, mark in each:
            seen += [e for e in batch if mark is None or e.at is None or e.at >= mark]

    def pairs(self, fits: Callable[[Any, Any], bool]) -> list[Pair]:
        return [(c, s) for c in self.seen[0] for s in self.seen[1] if fits(c, s)]


def _drawn(rnd: random.Random, now: int, start: Any, step: Any) -> tuple[list[Any], list[Any]]:
    """Return some events around a moment: late, early, and twice the same."""
    batches: tuple[list[Any], list[Any]] = ([], [])
    for kind, batch, behind in ((Click, batches[0], 0), (Show, batches[1], rnd.choice([0, 0, 6]))):
        for _ in range(rnd.choice([0, 1, 1, 3])):
            event = kind(rnd.randrange(3), start + step * (now - behind - rnd.randrange(7)))
            batch += [event] * rnd.choice([1, 1, 2])
    return batches


AS_RULED = ("where", "not")
"""Queries whose interval is found by rules."""
TIMES: dict[str, tuple[Any, Any, Any]] = {
    "int": (0, 1, 4),
    "float": (0.1, 0.3, 1.2),
    "instant": (START, timedelta(seconds=1), timedelta(seconds=4)),
}


@sampled
@pytest.mark.filterwarnings("ignore::reactive.UnboundedStateWarning")  # as written, none is bounded
@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("optimize", [True, False])
def test_joins_within_an_interval_agree_with_all_pairs(kind: str, optimize: bool) -> None:
    start, step, lateness = TIMES[kind]
    rnd, streams = random.Random(f"{kind} {SEED}"), Streams(Database(optimize=optimize), lateness)
    clicks, shows, now = streams.clicks, streams.shows, 0
    ways = Spelling(step).ways
    fits = ways["chained"]
    views: dict[str, Any] = {
        name: clicks.join(shows, on=way).materialize() for name, way in ways.items()
    }
    views["where"] = clicks.join(shows, on="user").where(fits).materialize()
    views["left"] = clicks.left_join(shows, on=fits).materialize()
    views["full"] = clicks.full_join(shows, on=fits).materialize()
    views["semi"] = clicks.semi_join(shows, on=fits).materialize()
    views["anti"] = clicks.anti_join(shows, on=fits).materialize()
    kept = [view for name, view in views.items() if optimize or name not in AS_RULED]
    most = 0
    for number in range(300 if budget.TIMES else 120):
        now += rnd.choice([0, 1, 1, 2, 15])
        streams.add(_drawn(rnd, now, start, step), fails=rnd.random() < 0.1)
        most = max(most, _state(*kept))
        if number % 10 == 9:
            for name, way in ways.items():  # floats round each in their way
                assert Counter(views[name]) == Counter(streams.pairs(way)), name
            _check(views, streams, fits)
    assert all("dropped when" in str(view.explain()) for view in views.values() if optimize)
    assert most < 400


def _check(views: dict[str, Any], streams: Streams, fits: Callable[[Any, Any], Any]) -> None:
    clicks, shows = streams.seen
    pairs = streams.pairs(fits)
    met = {click for click, _ in pairs}, {show for _, show in pairs}
    alone: list[Any] = [click for click in clicks if click not in met[0]]
    padded = [*pairs, *((click, None) for click in alone)]
    expected = {
        "where": pairs,
        "left": padded,
        "full": [*padded, *((None, show) for show in shows if show not in met[1])],
        "semi": [click for click in clicks if click in met[0]],
        "anti": alone,
    }
    for name, rows in expected.items():
        assert Counter(views[name]) == Counter(rows), name


def test_equal_times_and_windows_are_intervals() -> None:
    streams, rnd, now = Streams(Database(), 4), random.Random(SEED), 0
    clicks, shows = streams.clicks, streams.shows

    def counts(stream: Any) -> Any:
        windows = stream.window(tumbling(10), at=lambda e: e.at)
        return windows.group_by(lambda e, w: (e.user, w)).aggregate(Count())

    at_once = clicks.join(shows, on=lambda c, s: c.at == s.at).materialize()
    by_fields = clicks.join(shows, on=["user", "at"]).materialize()
    both = counts(clicks).full_join(counts(shows), on=lambda k, n, r: k == r[0]).materialize()
    rest = clicks.anti_join(shows, on=["user", "at"]).materialize()
    most = 0
    for _ in range(200):
        now += rnd.choice([0, 1, 1, 9])
        streams.add(_drawn(rnd, now, 0, 1))
        most = max(most, _state(at_once, by_fields, both, rest))
    assert most < 120
    assert Counter(at_once) == Counter(streams.pairs(lambda c, s: c.at == s.at))
    same = streams.pairs(lambda c, s: (c.user, c.at) == (s.user, s.at))
    assert Counter(by_fields) == Counter(same)
    met = {click for click, _ in same}
    assert Counter(rest) == Counter(click for click in streams.seen[0] if click not in met)
    mine, theirs = (Counter((e.user, e.at // 10) for e in seen) for seen in streams.seen)
    assert Counter(
        (None if row[0] is None else row[1], None if row[2] is None else row[2][1]) for row in both
    ) == Counter((mine.get(key), theirs.get(key)) for key in {*mine, *theirs})


def test_groups_above_a_join_close_when_no_pair_comes() -> None:
    streams, rnd, now = Streams(Database(), 4), random.Random(SEED), 0
    near = streams.clicks.join(
        streams.shows, on=lambda c, s: c.user == s.user and abs(c.at - s.at) <= 2
    )
    per_five = near.window(tumbling(5), at=lambda c, s: s.at)
    counts = per_five.group_by(lambda c, s, w: w.start).aggregate(Count()).materialize()
    most = 0
    for _ in range(300):
        now += rnd.choice([0, 1, 1, 9])
        streams.add(_drawn(rnd, now, 0, 1))
        most = max(most, _state(counts))
    assert most < 60
    pairs = streams.pairs(lambda c, s: c.user == s.user and abs(c.at - s.at) <= 2)
    assert dict(counts) == Counter(s.at // 5 * 5 for _, s in pairs)


def test_only_two_bounds_of_times_of_streams_drop_rows() -> None:
    streams = Streams(Database(), 4)
    clicks, shows = streams.clicks, streams.shows
    table = streams.db.table(Show, name="table")
    queries: list[Any] = [
        clicks.join(shows, on=lambda c, s: c.user == s.user),
        clicks.join(shows, on=lambda c, s: c.user == s.user and c.at <= s.at),
        clicks.join(shows, on=lambda c, s: c.user == s.user and abs(c.at - s.user) < 3),
        clicks.join(shows, on=lambda c, s: abs(c.at - 2 * s.at) < 3),
        clicks.join(table, on=lambda c, s: abs(c.at - s.at) < 3),
    ]
    assert not any("dropped" in str(query.explain()) for query in queries)


def test_rows_without_a_time_stay_and_match_nothing() -> None:
    streams = Streams(Database(), 0)
    near = streams.clicks.anti_join(streams.shows, on=lambda c, s: c.at == s.at).materialize()
    streams.add(([Click(1, None), Click(2, float("nan")), Click(3, 5)], [Show(1, None)]))
    streams.add(([Click(4, 90)], [Show(2, 90), Show(3, 91)]))
    assert {click.user for click in near} == {2, 3}


def test_rows_alone_come_once_when_no_partner_can_come() -> None:
    for seed in range(4 if budget.TIMES else 2):
        _check_closed(random.Random(f"{seed} {SEED}"))


def _check_closed(rnd: random.Random) -> None:
    streams, now = Streams(Database(), 4), 0
    clicks, shows = streams.clicks, streams.shows
    fits = Spelling(1).ways["chained"]
    alone = clicks.anti_join(shows, on=fits, emit="closed")
    rows = alone.materialize()
    padded = clicks.left_join(shows, on=fits, emit="closed").materialize()
    per_five = alone.window(tumbling(5), at=lambda c: c.at)
    counts = per_five.group_by(lambda c, w: w.start).aggregate(Count()).materialize()
    first = alone.lookup(streams.db.table(int, name="numbers"), left_key="user", right_key=int)
    removed: list[Any] = []
    told = [each.subscribe(lambda delta: removed.extend(delta.removed)) for each in (rows, padded)]
    most = 0
    for _ in range(150):
        now += rnd.choice([0, 1, 1, 2, 15])
        streams.add(_drawn(rnd, now, 0, 1), fails=rnd.random() < 0.1)
        mark = shows.watermark.first()
        pairs = streams.pairs(fits)
        met = {click for click, _ in pairs}
        expected = [
            click
            for click in streams.seen[0]
            if click not in met and mark is not None and click.at + 3 < mark
        ]
        assert Counter(rows) == Counter(expected)
        assert Counter(padded) == Counter([*((click, None) for click in expected), *pairs])
        assert dict(counts) == Counter(click.at // 5 * 5 for click in expected)
        most = max(most, _state(rows, padded, counts))
    assert not removed and told
    assert most < 200
    assert "lookup" in str(first.explain())


def test_rows_that_are_emitted_when_closed_need_an_interval_of_two_streams() -> None:
    streams = Streams(Database(), 4)
    table = streams.db.table(Show, name="table")
    with pytest.raises(PlanError, match='anti_join with emit="closed" needs two streams'):
        streams.clicks.anti_join(table, on=lambda c, s: c.at == s.at, emit="closed")
    with pytest.raises(PlanError, match="an interval of their times"):
        streams.clicks.left_join(streams.shows, on=lambda c, s: c.at <= s.at, emit="closed")
    with pytest.raises(PlanError, match="left_join takes emit="):
        streams.clicks.left_join(table, on="at", emit="later")  # type: ignore[arg-type]
