"""TUMBLE, HOP and SESSION beside DuckDB, which has them as `time_bucket` and as gaps of LAG."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest

from reactive import Database, PlanError
from tests.budget import SEED, sampled
from tests.engine.operators.test_moved_bounds import touched_by
from tests.languages.sql.oracles import insert_rows

duckdb = pytest.importorskip("duckdb", reason="DuckDB, the oracle, is an extra")
NOON = datetime(2024, 5, 1, 12)


@dataclass(frozen=True)
class Click:
    page: str | None
    at: datetime | None
    n: int | None


@dataclass(frozen=True)
class Visit:
    page: str
    at: Annotated[datetime, UTC]


@dataclass(frozen=True)
class Hit:
    page: str
    at: int
    n: int | None


@dataclass(frozen=True)
class Price:
    page: str
    euros: int


MINUTE, TWO, THREE = "interval '1' minute", "interval '2 minutes'", "interval '3 minutes'"
TUMBLE = f"tumble(table clicks, descriptor(at), {MINUTE})"
BUCKET = f"time_bucket({MINUTE}, at)"
HOPS = f"""(select page, n, at, unnest([{BUCKET} - i * {MINUTE} for i in range(3)]) as s
    from clicks where at is not null)"""
VISITS = f"""(select page, n, at, sum(case when at - before < {TWO} then 0 else 1 end)
    over (partition by page order by at) as number from (select *, lag(at)
    over (partition by page order by at) as before from clicks where at is not null))"""
ENDS = "min(at), max(at) + interval 2 minute"
CASES: dict[str, tuple[str, str]] = {
    "tumble": (
        f"select page, n, window_start, window_end from {TUMBLE}",
        f"select page, n, {BUCKET}, {BUCKET} + {MINUTE} from clicks where at is not null",
    ),
    "grouped": (
        f"""select page, window_start, count(*), sum(n) from {TUMBLE}
        group by page, window_start, window_end""",
        f"select page, {BUCKET}, count(*), sum(n) from clicks where at is not null group by all",
    ),
    "key": (
        f"""select page, tumble_start(at, {MINUTE}) as s, tumble_end(at, interval '60' second),
        max(n) from clicks where n > 2 group by page, tumble(at, {MINUTE}) having count(*) > 1""",
        f"""select page, {BUCKET}, {BUCKET} + {MINUTE}, max(n) from clicks
        where n > 2 and at is not null group by page, {BUCKET} having count(*) > 1""",
    ),
    "offset": (
        f"select n, window_start from tumble(clicks, at, {MINUTE}, interval '20 seconds')",
        f"""select n, time_bucket({MINUTE}, at, interval 20 second)
        from clicks where at is not null""",
    ),
    "hop": (
        f"select page, window_start, window_end, n from hop(clicks, at, {MINUTE}, {THREE})",
        f"select page, s, s + {THREE}, n from {HOPS}",
    ),
    "hop key": (
        f"""select hop_end(at, {MINUTE}, {THREE}) as e, count(n) from clicks
        group by hop(at, {MINUTE}, {THREE}), page""",
        f"select s + {THREE}, count(n) from {HOPS} group by s, page",
    ),
    "session": (
        f"""select page, window_start, window_end, count(*), sum(n)
        from session(table clicks partition by page, descriptor(at), {TWO})
        group by page, window_start, window_end""",
        f"select page, {ENDS}, count(*), sum(n) from {VISITS} group by page, number",
    ),
    "session key": (
        f"""select page, session_start(at, {TWO}), session_end(at, {TWO}), count(*)
        from clicks group by page, session(at, {TWO})""",
        f"select page, {ENDS}, count(*) from {VISITS} group by page, number",
    ),
    "join": (
        f"""select w.n, w.window_start, c.n from {TUMBLE} w
        join clicks c on c.at >= w.window_start and c.at < w.window_end and c.page = w.page""",
        f"""select w.n, w.s, c.n from (select *, {BUCKET} as s from clicks) w
        join clicks c on time_bucket({MINUTE}, c.at) = w.s and c.page = w.page""",
    ),
    "ranks": (
        f"""select n, window_start, r from (select *, row_number() over
        (partition by window_start order by n nulls last, at) as r
        from tumble((select * from clicks where page = 'a'), at, {MINUTE})) t where r <= 2""",
        f"""select n, {BUCKET} as s, row_number() over (partition by s order by n, at) as r
        from clicks where page = 'a' and at is not null qualify r <= 2""",
    ),
}


def held_rows(rnd: random.Random, db: Database, table: Any, count: int) -> Iterator[list[Click]]:
    """Yield the rows of a table after each of some commits, in which rows come and go."""
    held: list[Click] = []
    for _ in range(count):
        with db.transaction():
            for _change in range(rnd.choice([1, 1, 4])):
                if held and rnd.random() < 0.35:
                    table.remove(held.pop(rnd.randrange(len(held))))
                    continue
                at = rnd.choice([None, *[NOON + timedelta(seconds=10 * rnd.randrange(90))] * 6])
                new = Click(rnd.choice(["a", "b", None]), at, rnd.choice([None, 1, 2, 3, 4]))
                held.append(rnd.choice(held) if held and rnd.random() < 0.1 else new)
                table.add(held[-1])
        yield held


@sampled
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_histories_agree_with_duckdb(name: str, dialect: Any) -> None:
    text, oracle = CASES[name]
    oracle = re.sub(r"\bat\b", "tm", oracle)  # AT is reserved in DuckDB
    rnd, db = random.Random(f"{name} {dialect} {SEED}"), Database(dialect=dialect)
    clicks = db.table(Click, name="clicks")
    view = db.sql(text).materialize()
    with duckdb.connect() as other:
        other.execute("create table clicks(page text, tm timestamp, n int)")
        for held in held_rows(rnd, db, clicks, 40):
            other.execute("delete from clicks")
            insert_rows(other, "clicks", [[each.page, each.at, each.n] for each in held])
            expected = other.execute(oracle).fetchall()
            assert Counter(map(tuple, view)) == Counter(expected)
    assert not view.errors
    view.verify()


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
def test_spellings_are_one_window(dialect: Any) -> None:
    """Numbers are times, too, in SQLite as well."""
    db = Database(dialect=dialect)
    clicks = db.table(Hit, name="clicks")
    start, rest = "select page, n, window_start, window_end from", "timecol => descriptor(at)"
    hop = "hop(table clicks, descriptor(at), 5, 10)"
    spellings = [
        ("tumble(table clicks, descriptor(at), 10)", "tumble(clicks, at, 10)"),
        ("tumble(clicks, at, 10)", "TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(at), 10))"),
        ("tumble(clicks, at, 10)", f"tumble(data => table clicks, {rest}, size => 10)"),
        ("tumble(clicks, at, 10)", "tumble(clicks, at, 10, 20) as w"),
        ("tumble(clicks, at, 10)", "hop(clicks, at, 10, 10)"),
        ("tumble(clicks, at, 10)", "tumble((select * from clicks), at, 10)"),
        (hop, f"hop(data => table clicks, size => 10, slide => 5, {rest})"),
        (hop, f"hop(data => table clicks, offset => 5, size => 10, slide => 5, {rest})"),
        (
            "session(table clicks partition by page, descriptor(at), 7)",
            "session(clicks partition by (page), at, gap => 7)",
        ),
        ("session(clicks, at, 7)", "session(data => table clicks, gap => 7, timecol => at)"),
    ]
    views = [[db.sql(f"{start} {each}").materialize() for each in pair] for pair in spellings]
    rnd = random.Random(SEED)
    clicks.add_all(Hit(rnd.choice("ab"), rnd.randrange(99), rnd.randrange(3)) for _ in range(40))
    for pair, (one, other) in zip(spellings, views, strict=True):
        assert Counter(one) == Counter(other), pair
        assert len(one) >= 40
    given = db.sql(f"{start} tumble(events, at, :size)", events=clicks, size=10).materialize()
    assert Counter(given) == Counter(views[0][0])

    named = db.sql("select w.s, w.p from tumble(clicks, at, 10) as w (p, t, n, s)").materialize()
    assert Counter(named) == Counter((row.window_start, row.page) for row in views[0][0])


# Streams.

OF_STREAM = {
    "table": """select page, window_end, count(*) as c, sum(n) as s from tumble(clicks, at, 10)
        group by page, window_start, window_end""",
    "start": "select window_start, max(n) as m from tumble(clicks, at, 10) group by window_start",
    "hop": "select window_end, count(*) as c from hop(clicks, at, 5, 10) group by window_end",
    "key": """select page, tumble_start(at, 10) as s, count(distinct n) as c from clicks
        where n > 1 group by page, tumble(at, 10) having count(*) > 1""",
    "query": """with w as (select page, window_end, at from tumble(clicks, at, 10))
        select page, window_end, max(at) as m from w group by page, window_end""",
    "below": """select page, window_end, count(*) as c from tumble((select upper(page) as page, at
        from clicks where n > 1), at, 10) group by page, window_end""",
    "session": """select page, window_end, count(*) as c
        from session(clicks partition by page, at, 4) group by page, window_start, window_end""",
    "session key": """select page, session_start(at, 4) as s, count(*) as c from clicks
        group by page, session(at, 4)""",
}
LOOKED_UP = """select euros, tumble_end(at, 10) as e, count(*) as c from clicks c
    join prices for system_time as of proctime() p using (page) group by euros, tumble(at, 10)"""


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
def test_the_state_of_closed_windows_goes_and_their_rows_stay(dialect: Any) -> None:
    streaming, storing = Database(dialect=dialect), Database(dialect=dialect)
    prices = streaming.table(Price, name="prices")
    prices.add_all([Price("a", 1), Price("b", 2)])
    clicks = streaming.stream(Hit, at="at", lateness=9, name="clicks")
    stored = storing.table(Hit, name="clicks")
    views = {name: streaming.sql(text).materialize() for name, text in OF_STREAM.items()}
    views["looked up"] = streaming.sql(LOOKED_UP).materialize()
    expected = {name: storing.sql(text).materialize() for name, text in OF_STREAM.items()}
    rnd = random.Random(f"{dialect} {SEED}")
    sizes: dict[str, list[int]] = {name: [] for name in views}
    for number in range(2_000):
        hit = Hit(rnd.choice("abcd"), number - rnd.randrange(9), rnd.choice([None, *range(5)]))
        clicks.add(hit)
        stored.add(hit)
        if number % 250 == 249:
            for name, view in views.items():
                held = [op for op in view.stats().operators if not op.name.startswith("rows of")]
                sizes[name].append(sum(op.rows for op in held))
                if name in expected:
                    assert Counter(view) == Counter(expected[name]), name
    for name, found in sizes.items():
        assert max(found) < 80, name
        assert len(views[name]) > 190, name


def test_groups_without_the_window_stay() -> None:
    db = Database()
    clicks = db.stream(Hit, at="at", lateness=2, name="clicks")
    texts = [
        "select page, count(*) from tumble(clicks, at, 10) group by page",
        "select window_end, count(*) from tumble(clicks, n, 10) group by window_end",
        "select window_start % 7, count(*) from tumble(clicks, at, 10) group by 1",
    ]
    views = [db.sql(text).materialize() for text in texts]
    clicks.add_all(Hit(str(n), n, n) for n in range(200))
    for view in views:
        held = [op.rows for op in view.stats().operators if not op.name.startswith("rows of")]
        assert max(held) >= len(view) > 6


def test_a_late_event_changes_no_window() -> None:
    db = Database()
    clicks = db.stream(Hit, at="at", lateness=5, name="clicks")
    view = db.sql(OF_STREAM["start"]).materialize()
    clicks.add_all([Hit("a", 3, 1), Hit("a", 12, 2)])
    clicks.add(Hit("a", 16, 4))
    clicks.add_all([Hit("a", 9, 9), Hit("a", 13, 5)])
    assert sorted(view) == [(0, 1), (10, 5)]


# Time zones, and costs.


def test_windows_of_instants_are_in_utc_or_days_of_a_zone() -> None:
    db = Database(timezone="Europe/Berlin")
    visits = db.table(Visit, name="visits")
    day = "interval '1 day'"
    utc = db.sql(f"select window_start from tumble(visits, at, {day})").materialize()
    local = db.sql(
        f"""select window_start, window_end, window_end - window_start >= interval '23 hours'
        from tumble(visits, at, {day}, zone => 'Europe/Berlin')"""
    ).materialize()
    moved = db.sql(
        f"select window_start from tumble(visits, at, {day}, interval '6 hours')"
    ).materialize()
    noon = datetime(2024, 3, 31, 12, tzinfo=UTC)
    visits.add(Visit("a", noon))
    assert utc.value.window_start == noon.replace(hour=0)
    assert moved.value.window_start == noon.replace(hour=6)
    assert local.value[:2] == (
        datetime(2024, 3, 30, 23, tzinfo=UTC),
        datetime(2024, 3, 31, 22, tzinfo=UTC),
    )


def test_a_changed_row_touches_its_windows() -> None:
    db = Database()
    clicks = db.table(Hit, name="clicks")
    view = db.sql(OF_STREAM["hop"]).materialize()
    clicks.add_all(Hit("a", n, n) for n in range(5_000))
    assert touched_by(view, lambda: clicks.add(Hit("a", 77, 0))) <= 20
    assert touched_by(view, lambda: clicks.remove(Hit("a", 78, 78))) <= 20


BUCKETS = [
    f"{column}{third}"
    for column in ("a", "b", "d")
    for third in (
        *("", ", interval '3 hours'", ", timestamp '2001-02-03 04:05:06'", ", date '2001-02-03'"),
        *([", 'Asia/Tokyo'", ", timestamptz '2001-02-03 04:05:06+00'"] if column == "b" else []),
    )
]
WIDTHS = ("1 minute", "7 hours", "1 day", "10 days", "1 week", "1 month", "3 months")


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_buckets_with_an_origin_an_offset_or_a_zone_are_those_of_duckdb(zone: str) -> None:
    rnd, db = random.Random(f"{zone} {SEED}"), Database(timezone=zone)
    with duckdb.connect() as other:
        other.execute(f"set timezone = '{zone}'")
        for run in (db.execute, other.execute):
            run("create table t (a timestamp, b timestamptz, d date)")
        for _ in range(20):
            moment = datetime(1998, 1, 1) + timedelta(minutes=rnd.randrange(15_000_000))
            row = f"('{moment}', '{moment}+00', '{moment.date()}')"
            for run in (db.execute, other.execute):
                run(f"insert into t values {row}")
        for given in BUCKETS:
            for width in WIDTHS:
                text = f"select time_bucket(interval '{width}', {given}) as x from t"
                view = db.sql(text).materialize()
                expected = [as_instant(x) for (x,) in other.execute(text).fetchall()]
                assert Counter(as_instant(row.x) for row in view) == Counter(expected), text


def test_date_bin_of_instants_counts_elapsed_time() -> None:
    db = Database(dialect="postgres", timezone="Europe/Berlin")
    visits = db.table(Visit, name="visits")
    origin = "timestamptz '2024-03-30 00:00+00'"
    view = db.sql(f"select date_bin('5 hours', at, {origin}) as x from visits").materialize()
    begin = datetime(2024, 3, 30, tzinfo=UTC)
    visits.add_all(Visit("a", begin + timedelta(hours=hour)) for hour in range(48))
    expected = [begin + timedelta(hours=hour // 5 * 5) for hour in range(48)]
    assert Counter(as_instant(row.x) for row in view) == Counter(expected)


def as_instant(value: Any) -> Any:
    return value.astimezone(UTC) if getattr(value, "tzinfo", None) else value


FRAMES = {
    "hour": "order by at range between interval '1 hour' preceding and current row",
    "around": "order by at range between interval '20 minutes' preceding and interval '10' minute "
    "following",
    "behind": "order by at desc range between current row and interval '90 seconds' following",
    "days": "partition by page order by at range interval '1 day' preceding",
    "ahead": "order by at nulls first range between interval '1 minute' following and unbounded "
    "following",
}
CALLS = ["sum(n)", "count(*)", "avg(n)", "min(n)", "max(n)", "count(distinct n)", "median(n)"]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_frames_of_intervals_are_those_of_duckdb(dialect: Any, frame: str) -> None:
    calls = CALLS if dialect == "duckdb" else CALLS[:2] + CALLS[3:5]
    columns = ", ".join(
        f"{call} over ({FRAMES[frame]}) as c{place}" for place, call in enumerate(calls)
    )
    text = f"select page, at, n, {columns} from clicks"
    chosen = f"{text} where page = 'a' qualify sum(n) over ({FRAMES[frame]}) > 5"
    rnd, db = random.Random(f"{dialect} {frame} {SEED}"), Database(dialect=dialect)
    clicks = db.table(Click, name="clicks")
    texts = [text, chosen] if dialect == "duckdb" else [text]
    views = [db.sql(each).materialize() for each in texts]
    with duckdb.connect() as other:
        other.execute("create table clicks(page text, tm timestamp, n int)")
        for held in held_rows(rnd, db, clicks, 25):
            other.execute("delete from clicks")
            insert_rows(other, "clicks", [[each.page, each.at, each.n] for each in held])
            for asked, view in zip(texts, views, strict=True):
                oracle = re.sub(r"\bat\b", "tm", asked)
                assert Counter(map(tuple, view)) == Counter(other.execute(oracle).fetchall())
    assert not views[0].errors


REFUSED = {
    "select tumble(at, 3) from clicks": "tumble.. is of the windows of a GROUP BY",
    "select tumble_start(at, 3) from clicks": "tumble_start.. is of the windows of a GROUP BY",
    "select tumble_start(at, 4) from clicks group by tumble(at, 3)": "has other arguments",
    "select hop_start(at, 3, 3) from clicks group by tumble(at, 3)": "hop_start.. has other arg",
    "select at from clicks group by tumble(at, 3)": "neither in GROUP BY",
    "select 1 from clicks group by tumble(at, 3), hop(at, 2, 4)": "two calls of windows",
    "select 1 from clicks group by rollup (tumble(at, 3))": "of the windows of a GROUP BY",
    "select 1 from clicks group by grouping sets ((page), (n)), session(at, 3)": "plain keys",
    "select * from tumble()": "lacks its data",
    "select * from tumble(clicks, at)": r"lacks its size(.|\n)*tumble\(table t, descriptor\(at\)",
    "select * from hop(clicks, at, 3)": "hop.. lacks its size",
    "select * from tumble(nothing, at, 3)": "no table or view 'nothing'",
    "select * from tumble(3, at, 3)": "tumble.. reads a table",
    "select * from tumble(clicks, att, 3)": "did you mean 'at'",
    "select * from tumble(clicks, page, 3)": "not VARCHAR",
    "select * from tumble(clicks, descriptor(at, n), 3)": "names one column",
    "select * from tumble(clicks, (select 3), 3)": "not of a query",
    "select * from tumble(clicks, at, n)": "column|constant|cannot be evaluated",
    "select * from tumble(clicks, at, 2.5)": "BIGINT is a whole number",
    "select * from tumble(clicks, at, -1)": "size of a window is above zero, not -1",
    "select * from tumble(clicks, at, 3, slide => 2)": "takes no 'slide'",
    "select * from tumble(clicks, at, 3, size => 2)": "'size' a second time",
    "select * from tumble(clicks, at, 3, 3, 3)": "at most 4 arguments",
    "select * from tumble(clicks partition by page, at, 3)": "no 'partition'",
    f"select * from tumble(clicks, at, {MINUTE})": "BIGINT is a whole number",
    f"select * from tumble(visits, at, {MINUTE}, zone => 'Europe/Rome')": "whole days",
    f"select * from tumble(visits, at::date, {MINUTE})": "dates are whole days",
    "select * from tumble(visits, at, interval '1' month)": "months differ(.|\n)*date_trunc",
    "select * from tumble(visits, at, interval '1 day', zone => 'Berlin')": "no time zone 'Berlin'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_other_forms_are_refused(text: str) -> None:
    db = Database()
    db.table(Hit, name="clicks")
    db.table(Visit, name="visits")
    with pytest.raises(PlanError, match=REFUSED[text]) as error:
        db.sql(text)
    assert "line 1" in str(error.value)
