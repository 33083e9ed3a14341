"""Parts over streams of events on Spark: equal to the same query in the process, and bounded."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Annotated, Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.sql import types as T

from reactive import (
    Bag,
    Collect,
    Count,
    CountDistinct,
    Database,
    Max,
    Min,
    OffloadError,
    Sum,
    hopping,
    tumbling,
)
from spark_backend.codec.arrow import from_arrow
from spark_backend.codec.values import spark_type
from spark_backend.state import tables
from spark_backend.steps.dropping import Dropping
from tests.budget import SEED, TIMES
from tests.spark.ways import Ways, way

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2024, 10, 26, 22, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Click:
    """An event of a user, with its time as a number, perhaps none, a datetime, and an instant."""

    user: str
    at: int
    perhaps: int | None
    plain: datetime
    instant: Annotated[datetime, BERLIN]


@dataclass(frozen=True, slots=True)
class Sale:
    """An event of another stream."""

    user: str
    at: int
    total: float


def click(user: str, at: int) -> Click:
    """Return a click at a time, in steps of 20 minutes."""
    instant = START + timedelta(minutes=20 * at)
    plain = instant.replace(tzinfo=None)
    return Click(user, at, at if at % 7 else None, plain, instant.astimezone(BERLIN))


class Streams:
    """The streams of a database."""

    def __init__(self, db: Database, *, at: str = "at", lateness: Any = 4) -> None:
        self.db = db
        self.clicks: Any = db.stream(Click, at=at, lateness=lateness, name="clicks")
        self.sales: Any = db.stream(Sale, at="at", lateness=3, name="sales")
        self.users: Any = db.table(tuple[str, int], name="users")
        self.late = [self.clicks.late.materialize(), self.sales.late.materialize()]


def near(c: Click, s: Sale) -> bool:
    return c.user == s.user and s.at - 3 <= c.at <= s.at + 2


def counted(s: Streams) -> Any:
    """Return what several aggregates have of tumbling windows."""
    windows = s.clicks.window(tumbling(5), at=lambda c: c.at)
    return windows.group_by(lambda c, w: (c.user, w)).aggregate(
        *(Count(), Sum(lambda c, w: c.at), Max(lambda c, w: c.at)),
        *(Collect(lambda c, w: c.at), CountDistinct(lambda c, w: c.at)),
    )


def longest(key: object, rows: Bag[tuple[Click, Any]]) -> list[int]:
    return [len(rows)]


IN_TIME = timedelta(minutes=50)
QUERIES: dict[str, Callable[[Streams], Any]] = {
    "tumbling": counted,
    "hopping": lambda s: (
        s.sales.window(hopping(6, every=2), at=lambda e: e.at)
        .group_by(lambda e, w: w)
        .aggregate(Sum(lambda e, w: e.total), Min(lambda e, w: e.total))
    ),
    "by start": lambda s: (
        s.sales.window(tumbling(5), at=lambda e: e.at)
        .group_by(lambda e, w: (w.start, e.user))
        .aggregate(Count())
        .where(lambda key, n: n > 1)
    ),
    "by time": lambda s: s.sales.group_by(lambda e: (e.at, e.user)).aggregate(Count()),
    "by a field": lambda s: s.sales.group_by(lambda e: e.user).aggregate(Count()),
    "distinct": lambda s: s.sales.distinct(),
    "distinct windows": lambda s: (
        s.sales.window(tumbling(5), at=lambda e: e.at)
        .select(lambda e, w: (e.user, w))
        .distinct()
        .group_by(lambda r: r[1])
        .aggregate(Count())
    ),
    "join": lambda s: s.clicks.join(s.sales, on=near).select(lambda c, e: (c.user, c.at, e.total)),
    "counts of pairs": lambda s: (
        s.sales.join(s.clicks, on=lambda e, c: near(c, e))
        .window(tumbling(5), at=lambda e, c: e.at)
        .group_by(lambda e, c, w: (e.user, w))
        .aggregate(Count(), Sum(lambda e, c, w: e.total))
    ),
    "left join": lambda s: s.sales.left_join(s.clicks, on=lambda e, c: near(c, e)),
    "full join": lambda s: s.sales.full_join(s.clicks, on=lambda e, c: near(c, e)),
    "semi join": lambda s: s.sales.semi_join(s.clicks, on=lambda e, c: near(c, e)),
    "anti join": lambda s: s.sales.anti_join(s.clicks, on=lambda e, c: near(c, e)),
    "anti join at the time": lambda s: s.sales.anti_join(
        s.clicks, on=lambda e, c: e.user == c.user and e.at == c.at
    ),
    "join with a table": lambda s: (
        s.sales.join(s.users, on=lambda e, u: e.user == u[0])
        .window(tumbling(5), at=lambda e, u: e.at)
        .group_by(lambda e, u, w: (u[1], w))
        .aggregate(Count())
    ),
    "union": lambda s: (
        s.sales.select(lambda e: (e.user, e.at))
        .union_all(s.clicks.select(lambda c: (c.user, c.at)))
        .window(tumbling(4), at=lambda r: r[1])
        .group_by(lambda r, w: w)
        .aggregate(Count())
    ),
    "first": lambda s: (
        s.sales.window(tumbling(5), at=lambda e: e.at)
        .group_by(lambda e, w: (w.start, e.user))
        .top(2, by=lambda e, w: (e.total, e.at))
    ),
    "reduce": lambda s: (
        s.clicks.window(tumbling(5), at=lambda c: c.at).group_by(lambda c, w: w).reduce(longest)
    ),
    "closed": lambda s: counted(s).when_closed(lambda key, n, total, most, every, some: key[1].end),
    "closed alone": lambda s: s.sales.anti_join(
        s.clicks, on=lambda e, c: near(c, e), emit="closed"
    ),
}
BY_TIMES: dict[str, tuple[str, Callable[[Streams], Any]]] = {
    "datetimes": (
        "plain",
        lambda s: (
            s.clicks.window(tumbling(hours=1), at=lambda c: c.plain)
            .group_by(lambda c, w: (c.user, w))
            .aggregate(Count())
        ),
    ),
    "instants": (
        "instant",
        lambda s: (
            s.clicks.window(tumbling(days=1, zone="Europe/Berlin"), at=lambda c: c.instant)
            .group_by(lambda c, w: w)
            .aggregate(Count())
        ),
    ),
    "times that may be None": (
        "perhaps",
        lambda s: (
            s.clicks.where(lambda c: c.user != "a")
            .group_by(lambda c: (c.perhaps, c.user))
            .aggregate(Count())
        ),
    ),
    "join of instants": (
        "instant",
        lambda s: s.clicks.join(
            s.clicks,
            on=lambda c, d: c.user == d.user and abs(c.instant - d.instant) <= IN_TIME,
        ).select(lambda c, d: (c.at, d.at)),
    ),
}


class History:
    """Events out of order, late, repeated, and with clocks that jump; each commit in all streams
    of some databases."""

    def __init__(self, seed: str, *streams: Streams) -> None:
        self._random, self._streams = Random(seed), streams
        self._now = 0

    def commit(self) -> None:
        """Add a few events, of one or two streams, and change users."""
        draw = self._random
        self._now += draw.choice([0, 1, 1, 2, 2, 3, draw.choice([3, 30])])
        clicks = [click(draw.choice("abc"), self._time()) for _ in range(draw.randrange(4))]
        sales = [self._sale() for _ in range(draw.randrange(4))]
        sales += sales[: draw.randrange(2)]
        users = [(draw.choice("abc"), draw.randrange(3)) for _ in range(draw.randrange(2))]
        is_undone = not draw.randrange(6)
        for s in self._streams:
            if is_undone:
                self._undone(s, clicks, sales)
            with s.db.transaction():
                s.users.add_all(users)
                s.clicks.add_all(clicks)
                s.sales.add_all(sales)

    def _undone(self, s: Streams, clicks: list[Click], sales: list[Sale]) -> None:
        with pytest.raises(ZeroDivisionError), s.db.transaction():
            s.clicks.add_all(clicks)
            s.sales.add_all(sales)
            raise ZeroDivisionError

    def _time(self) -> int:
        return max(self._now - self._random.choice([0, 0, 0, 1, 2, 3, 4, 5, 9]), 0)

    def _sale(self) -> Sale:
        draw = self._random
        return Sale(draw.choice("abc"), self._time(), draw.randrange(8) / 4)


@contextmanager
def merging_soon() -> Iterator[None]:
    """Merge the files of each flush, so that it drops what is closed at once."""
    with patch.object(tables, "MOST_SEGMENTS", 1):
        yield


@pytest.fixture
def db(session: Any, offload: Any) -> Iterator[Database]:
    with Database(offload=offload) as made, merging_soon():
        yield made


def check(db: Database, made: Callable[[Streams], Any], seed: str, **options: Any) -> None:
    """Hold a view that has moved before the first event equal to one in the process."""
    here, there = Streams(Database(), **options), Streams(db, **options)
    expected, view = made(here).materialize(), made(there).materialize("view")
    view.offload()
    assert any("state tables" in each.where for each in db.offload_status())
    history, ways = History(seed, here, there), Ways(seed)
    for _ in range(10):
        for _ in range(history._random.choice([1, 1, 2, 3])):
            history.commit()
        with ways.each():
            found = Counter(view)
        assert found == Counter(expected)
        assert [Counter(each) for each in here.late] == [Counter(each) for each in there.late]


@pytest.mark.filterwarnings("ignore::reactive.UnboundedStateWarning")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.quick] if n == "tumbling" else []) for n in QUERIES]
)
def test_a_part_over_streams_equals_the_query_in_the_process(db: Database, name: str) -> None:
    check(db, QUERIES[name], f"{name} {SEED}")


@pytest.mark.parametrize("name", BY_TIMES)
def test_streams_by_times_of_other_types(db: Database, name: str) -> None:
    at, made = BY_TIMES[name]
    check(db, made, f"{name} {SEED}", at=at, lateness=lateness_of(at))


def lateness_of(at: str) -> Any:
    """Return how late clicks may be, in the unit of a field."""
    return 4 if at in ("at", "perhaps") else timedelta(minutes=90)


@pytest.mark.parametrize("name", ["left join", "datetimes", "join of instants"])
def test_a_job_drops_the_rows_that_the_process_does(db: Database, session: Any, name: str) -> None:
    """A merge in the process drops as a job would, which compares columns if it can."""
    compared, left = list[int](), Dropping.left

    def both(self: Dropping, rows: pa.Table) -> pa.Table:
        found = left(self, rows)
        if len(compared) < 3 and found.num_rows < rows.num_rows:
            column = T.StructType([T.StructField(self.column, spark_type(self.kept))])
            frame = session.outer.createDataFrame(rows.select([self.column]), column)
            by_job = self.left_on_spark(frame, session.paths).toArrow()
            assert decoded(self, by_job) == decoded(self, found)
            compared.append(rows.num_rows)
        return found

    with patch.object(Dropping, "left", both):
        at, made = BY_TIMES.get(name) or ("at", QUERIES[name])
        check(db, made, f"{name} {SEED}", at=at, lateness=lateness_of(at))
    assert compared


def decoded(of: Dropping, rows: pa.Table) -> Counter[str]:
    """Return the values by which rows are dropped, as texts."""
    return Counter(map(repr, from_arrow(of.kept, rows[of.column].combine_chunks())))


def test_groups_above_a_part_close_with_its_flushes(db: Database) -> None:
    """The watermark moves with commits, the rows of the part with flushes."""

    def made(s: Streams) -> tuple[Any, Any]:
        pairs = QUERIES["left join"](s)
        windows = pairs.window(tumbling(5), at=lambda e, c: e.at)
        return pairs, windows.group_by(lambda e, c, w: (e.user, w)).aggregate(Count())

    here, there = Streams(Database()), Streams(db)
    expected, (pairs, groups) = made(here)[1].materialize(), made(there)
    below = pairs.materialize("pairs")
    below.offload()
    view, told = groups.materialize("groups"), Counter[Any]()
    with view.subscribe(lambda delta: told.update(dict(delta.items())), snapshot=True):
        history = History(f"above {SEED}", here, there)
        for _ in range(8):
            for _ in range(4):
                history.commit()
            db.flush()
            assert Counter(view) == Counter(expected)
            assert told == Counter(expected)


def state_of(db: Database) -> dict[str, tuple[int, int]]:
    """Return the rows and files of each state table but that of the result."""
    (node,) = db._engine.graph.remotes
    state = node.operator.remote.shared.tables
    found = {
        name: (sum(state.manifest.rows(name)), sum(len(s.files) for s in segments))
        for name, segments in state.manifest.tables.items()
        if not name.startswith("output")
    }
    assert found
    return found


@pytest.mark.parametrize("is_job", [False, True], ids=["here", "by jobs"])
@pytest.mark.parametrize("name", ["counts", "pairs", "distinct"])
def test_state_stays_as_it_is_over_many_batches(db: Database, name: str, is_job: bool) -> None:
    sales = db.stream(Sale, at="at", lateness=3, name="sales")
    clicks = db.stream(Sale, at="at", lateness=3, name="clicks")
    windows = sales.window(tumbling(5), at=lambda e: e.at)
    by_window = windows.group_by(lambda e, w: (e.user, w))
    made: Any = {
        "counts": lambda: by_window.aggregate(Count(), Max(lambda e, w: e.total)),
        "pairs": lambda: sales.left_join(
            clicks, on=lambda e, c: e.user == c.user and e.at - 3 <= c.at <= e.at + 2
        ),
        "distinct": sales.distinct,
    }
    view = made[name]().materialize("view")
    view.offload()
    assert "; dropped when " in str(view.explain())
    found = []
    with way(is_job=is_job):
        for batch in range((30 if TIMES else 14) if is_job else 60):
            at = 5 * batch
            with db.transaction():
                sales.add_all(Sale(user, at + n % 5, n / 4) for user in "abc" for n in range(8))
                clicks.add_all(Sale(user, at + n % 3, n / 4) for user in "ab" for n in range(4))
            db.flush()
            found.append(state_of(db))
    assert found[9] == found[-1]
    assert max(rows for rows, _ in found[-1].values()) <= 24 * 5
    assert len(view) > len(found)


def test_a_stream_whose_events_have_flowed_stays_where_it_is(db: Database) -> None:
    streams = Streams(db)
    before, view = counted(streams).materialize("before"), QUERIES["join"](streams).materialize()
    view.offload()
    view.recall()
    view.offload()
    streams.clicks.add(click("a", 3))
    for act in (before.offload, view.recall):
        with pytest.raises(OffloadError, match="'clicks' has given out events that it did not"):
            act()
    streams.sales.add(Sale("a", 2, 0.5))
    assert list(view) == [("a", 3, 0.5)]
    assert len(before) == 1


def test_what_a_lookup_reads_stays_in_the_process(db: Database) -> None:
    """On Spark, an event would see the rows of its flush, and not of its commit."""
    streams = Streams(db)
    ages = streams.users.group_by(lambda u: u[0]).aggregate(Max(lambda u: u[1]))
    view = ages.materialize("ages")
    looked_up = streams.sales.lookup(ages, on=lambda e, a: e.user == a[0])
    found = looked_up.select(lambda e, a: (e.at, a[1])).materialize()
    with pytest.raises(OffloadError, match="a lookup reads the rows of each commit"):
        view.offload()
    for age, at in ((1, 1), (7, 2)):
        streams.users.add(("a", age))
        streams.sales.add(Sale("a", at, 0.5))
    assert list(found) == [(1, 1), (2, 7)]


@pytest.mark.kills_the_jvm
@pytest.mark.usefixtures("by_jobs")
def test_no_event_and_no_state_is_lost_when_the_jvm_is_killed_in_a_flush(
    db: Database, offload: Any
) -> None:
    here, there = Streams(Database()), Streams(db)
    made = QUERIES["counts of pairs"]
    expected, view = made(here).materialize(), made(there).materialize("view")
    view.offload()
    history = History(f"killed {SEED}", here, there)
    for step in range(5):
        history.commit()
        if step == 2:
            process = offload.session.spark.sparkContext._gateway.proc
            timer = threading.Timer(0.1, process.kill)
            timer.start()
            db.flush()
            timer.join()
        assert Counter(view) == Counter(expected)
