"""TIMESTAMPTZ against DuckDB and Postgres: each function of 500 instants.

The instants are around the clock changes of five zones; each zone is also the session's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import duckdb
import pytest

from reactive import Database
from reactive.errors import PlanError
from tests.budget import share_of
from tests.postgres_server import PostgresServer

UTC = dt.UTC
CHANGES = {
    "Europe/Berlin": ("2024-03-31 01:00", "2024-10-27 01:00"),
    "America/New_York": ("2024-03-10 07:00", "2024-11-03 06:00"),
    "Australia/Lord_Howe": ("2024-04-06 15:00", "2024-10-05 15:30"),
    "Africa/Casablanca": ("2024-03-10 02:00", "2024-04-14 02:00"),
    "America/St_Johns": ("2024-03-10 05:30", "2024-11-03 04:30"),
}
"""The clock changes of a year, in UTC: by one hour or half of one, also off the hour."""
STEP = dt.timedelta(minutes=7, seconds=30, microseconds=250_000)
INSTANTS = [
    dt.datetime.fromisoformat(change).replace(tzinfo=UTC) + STEP * n
    for changes in CHANGES.values()
    for change in changes
    for n in range(-25, 25)
]
UNITS = ("microseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
PARTS = ("year", "month", "day", "hour", "minute", "dow", "doy", "week", "isoyear", "epoch")
INTERVALS = (
    *("1 day", "24 hours", "1 month", "90 minutes", "3 days", "36 hours", "1 year", "1 second"),
    *("1 month 1 day", "1 week"),
)
EXPRESSIONS = [
    *(f"extract({part} from ts)" for part in (*PARTS, "quarter", "isodow", "century", "decade")),
    *(f"extract({part} from ts)" for part in ("timezone", "timezone_hour", "timezone_minute")),
    *(f"date_part('{part}', ts)" for part in PARTS),
    *(f"date_trunc('{unit}', ts)" for unit in UNITS),
    *(f"ts + interval '{by}'" for by in INTERVALS),
    *(f"ts - interval '{by}'" for by in INTERVALS),
    "interval '1 day' + ts",
    *("ts::date", "ts::timestamp", "cast(ts as timestamp with time zone)"),
    *("ts::text", "n::timestamptz", "ts::date::timestamptz", "n::timestamptz::text"),
    *(f"ts at time zone '{zone}'" for zone in (*CHANGES, "UTC")),
    *(f"n at time zone '{zone}'" for zone in CHANGES),
    *(f"(ts at time zone '{zone}') at time zone '{zone}'" for zone in CHANGES),
    *("timezone('Asia/Tokyo', ts)", "timezone('Asia/Tokyo', n)"),
    "(ts at time zone 'Asia/Tokyo')::date",
    "ts - timestamptz '2024-03-31 01:00+00'",
    "ts - lag_ts",
    *("ts = lag_ts", "ts > lag_ts", "ts between lag_ts and lag_ts + interval '1 hour'"),
    *("ts >= '2024-10-27 02:30'", "ts < '2024-10-27 02:30+01'", "ts = '2024-10-27 00:30:00Z'"),
    *("ts >= timestamp '2024-10-27 02:30'", "ts > date '2024-10-27'"),
    "ts in ('2024-10-27 00:30Z', '2024-10-27 01:30+00')",
    "coalesce(nullif(ts, lag_ts), '2024-01-01 00:00')",
    "case when id % 2 = 0 then ts else '2024-05-05 05:05 Europe/Berlin' end",
    "greatest(ts, lag_ts, '2024-06-01')",
    "make_timestamptz(2024, 10, 27, 2, 30, 1.5, 'Europe/Berlin')",
    "'2024-10-27 02:30 America/New_York'::timestamptz",
    "'2024-10-27 02:30:00.25-0330'::timestamptz",
    "'2024-03-31 02:30'::timestamptz",
    "timestamptz '2024-03-10 02:30+05:30' at time zone 'UTC'",
    "to_timestamp(extract(epoch from ts))",
]
OF_DUCKDB = [
    *("year(ts)", "month(ts)", "hour(ts)", "dayofweek(ts)", "monthname(ts)", "dayname(ts)"),
    *("last_day(ts)", "strftime(ts, '%Y-%m-%d %H:%M')", "epoch(ts)", "epoch_ms(ts)"),
    *("date_diff('day', ts, lag_ts)", "date_diff('month', ts, lag_ts)", "age(ts, lag_ts)"),
    "date_diff('hour', ts, lag_ts)",
    *("time_bucket(interval '2 hours', ts)", "date_add(ts, interval 1 day)"),
]
OF_POSTGRES = [
    *(f"date_trunc('{unit}', ts, '{zone}')" for unit in UNITS[1:6] for zone in CHANGES),
    *("make_timestamptz(2024, 10, 27, 2, 30, 1.5)", "ts at time zone 'utc'"),
    *("ts::time", "d at time zone 'Asia/Tokyo'", "age(ts, lag_ts)", "ts at time zone '-03'"),
]
SPANS = (
    *("25 hours", "1 day", "1 day 1 hour", "-25 hours", "1 month -30 hours", "40 minutes"),
    *("48:00:00", "1 month 2 days 30 hours", "-1 day 1 hour", "23:59:59.5", "-2 days", "0 days"),
)
COMPUTED = [
    *(f"ts + id % 49 * interval '{by}'" for by in ("1 hour", "1 day", "45 minutes")),
    *(f"ts - id % 49 * interval '{by}'" for by in ("1 hour", "1 day", "45 minutes")),
    *("ts + id % 5 * interval '1 month'", "ts - id % 5 * interval '1 month'"),
    *("ts + h", "ts - h", "h + ts", "ts + -h", "ts + h + h", "ts + (h + h)", "ts + (h - h)"),
    *("ts + h * 2", "ts + h / 2", "ts + h * 1.5", "ts - h * 3", "(25 * h)::text", "(ts + h)::text"),
    "ts + (interval '1 day' + id % 49 * interval '1 hour')",
    "ts + (interval '1 day' - id % 49 * interval '1 hour')",
    *("ts + (ts - lag_ts)", "ts + (n - d)", "ts + interval '7 minutes 30 seconds' * (id % 400)"),
    *("h::text", "(h + h)::text", "(h * 2)::text", "(h / 2)::text", "(-h)::text"),
    *("extract(hour from h)", "extract(day from h)", "date_trunc('hour', h)::text"),
    *("ts + cast(h::text as interval)", "case when id % 2 = 0 then ts + h else ts - h end"),
    *("n + h", "d + h", "h = interval '1 day'", "h > interval '24 hours'"),
    *("coalesce(h, interval '1 day')::text", "ts between lag_ts - h and lag_ts + h"),
]
COMPUTED_OF_DUCKDB = [
    *("ts + to_hours(id % 49)", "ts + to_days(id % 49)", "ts - to_minutes(id % 3000)"),
    *("ts + interval (id % 49) hour", "ts + interval (id % 5) day", "date_add(ts, h)"),
]
COMPUTED_OF_POSTGRES = [
    "ts + make_interval(hours => id % 49)",
    "ts + make_interval(days => id % 3, hours => id % 49)",
    *("ts + justify_hours(h)", "ts + justify_days(h)", "ts + justify_interval(h)"),
    *("justify_hours(h)::text", "justify_interval(h)::text", "to_char(h, 'DD HH24:MI:SS')"),
]
SUMS = [
    "select id % 5, sum(h)::text, avg(h)::text from {} group by id % 5",
    "select id % 5, min(ts) + sum(h) from {} group by id % 5",
    "select id, (sum(h) over (partition by id % 5 order by id))::text from {}",
    "select id, ts + avg(h) over (order by id rows 3 preceding) from {}",
]
QUERIES = [
    "select ts::date as day, count(*) from t group by ts::date",
    "select ts, count(*) from t group by ts",
    "select a.id, b.id from t a join t b on a.ts = b.lag_ts",
    "select count(distinct ts), min(ts), max(ts) from t",
    "select id, row_number() over (order by ts, id) from t",
]
Ask = Callable[[str, str], list[Any]]
"""The rows of a query, in a time zone."""


def rows() -> list[tuple[Any, ...]]:
    """Return rows: id, instant, local time without a zone, day, and the instant before."""
    return [
        (n, ts, ts.replace(tzinfo=None), ts.date(), INSTANTS[n - 1])
        for n, ts in enumerate(INSTANTS)
    ]


SPANS_OF = [
    "create table s (k int, h interval)",
    *(f"insert into s values ({n}, '{span}')" for n, span in enumerate(SPANS)),
]
WITH_SPANS = f"(select t.*, s.h from t join s on s.k = t.id % {len(SPANS)}) as t"
TABLE = "create table t (id int, ts timestamptz, n timestamp, d date, lag_ts timestamptz)"


@pytest.fixture(scope="module")
def of_duckdb() -> Iterator[Ask]:
    connection = duckdb.connect(config={"threads": 1})
    for text in (TABLE, *SPANS_OF):
        connection.execute(text)
    connection.executemany("insert into t values (?, ?, ?, ?, ?)", rows())

    def ask(text: str, zone: str) -> list[Any]:
        connection.execute(f"set timezone = '{zone}'")
        return connection.execute(text).fetchall()

    yield ask
    connection.close()


@pytest.fixture(scope="module")
def of_postgres(postgres: PostgresServer) -> Iterator[Ask]:
    import psycopg2

    connection = psycopg2.connect(postgres.new_database())
    connection.autocommit = True
    cursor = connection.cursor()
    for text in (TABLE, *SPANS_OF):
        cursor.execute(text)
    cursor.executemany("insert into t values (%s, %s, %s, %s, %s)", rows())

    def ask(text: str, zone: str) -> list[Any]:
        cursor.execute(f"set timezone = '{zone}'")
        cursor.execute(text)
        found: list[Any] = cursor.fetchall()
        return found

    yield ask
    connection.close()


def plain(value: Any) -> Any:
    """A value as both sides have it: an instant in UTC, a number as a float."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return float(value) if isinstance(value, int | float | Decimal) else value


def answers(found: list[Any]) -> list[Any]:
    return sorted((tuple(map(plain, row)) for row in found), key=str)


def live(dialect: Any, zone: str) -> Database:
    db = Database(dialect=dialect, timezone=zone)
    db.execute(TABLE)
    (table,) = db.tables()
    for text in SPANS_OF:
        db.execute(text)
    table.add_all([table.row_type(*row) for row in rows()])
    return db


def differing(
    db: Database,
    ask: Ask,
    zone: str,
    expressions: Sequence[str],
    queries: Sequence[str] = QUERIES,
    rows: str = "t",
) -> list[str]:
    """Return the expressions and queries with different answers, with the first difference."""
    named = [f"{each} as e{place}" for place, each in enumerate(expressions)]
    text = f"select id, {', '.join(named)} from {rows}"
    view = db.sql(text).materialize()
    assert [str(error) for error in view.errors] == []
    columns = zip(*answers(list(view)), strict=True), zip(*answers(ask(text, zone)), strict=True)
    wrong = [
        f"{called}: {next((a, b) for a, b in zip(ours, theirs, strict=True) if a != b)}"
        for called, ours, theirs in zip(["id", *expressions], *columns, strict=True)
        if ours != theirs
    ]
    for query in queries:
        if answers(list(db.sql(query).materialize())) != answers(ask(query, zone)):
            wrong.append(query)
    return wrong


@pytest.mark.long
@pytest.mark.parametrize("zone", [*CHANGES, "UTC"])
def test_instants_are_those_of_duckdb(zone: str, of_duckdb: Ask) -> None:
    some = share_of([*EXPRESSIONS, *OF_DUCKDB], f"duckdb {zone}", 3)
    assert differing(live("duckdb", zone), of_duckdb, zone, some) == []


@pytest.mark.long
@pytest.mark.parametrize("zone", [*CHANGES, "UTC"])
def test_instants_are_those_of_postgres(zone: str, of_postgres: Ask) -> None:
    some = share_of([*EXPRESSIONS, *OF_POSTGRES], f"postgres {zone}", 3)
    assert differing(live("postgres", zone), of_postgres, zone, some) == []


@pytest.mark.long
@pytest.mark.parametrize("zone", [*CHANGES, "UTC"])
def test_computed_intervals_are_those_of_duckdb(zone: str, of_duckdb: Ask) -> None:
    """25 hours are by the clock, and a day by the calendar, for every source of the interval."""
    some = share_of([*COMPUTED, *COMPUTED_OF_DUCKDB], f"duckdb {zone}", 3)
    assert differing(live("duckdb", zone), of_duckdb, zone, some, [], WITH_SPANS) == []


@pytest.mark.long
@pytest.mark.parametrize("zone", [*CHANGES, "UTC"])
def test_computed_intervals_are_those_of_postgres(zone: str, of_postgres: Ask) -> None:
    some = share_of([*COMPUTED, *COMPUTED_OF_POSTGRES], f"postgres {zone}", 3)
    sums = [query.format(WITH_SPANS) for query in SUMS]
    assert differing(live("postgres", zone), of_postgres, zone, some, sums, WITH_SPANS) == []


@dataclass(frozen=True)
class Call:
    id: int
    t: dt.datetime
    """A datetime with a zone or without."""
    begins: Annotated[dt.datetime, UTC] | None = None


LITERALS = [
    ("t >= '2024-10-27 02:30'", [2, 3]),
    ("t >= timestamp '2024-10-27 02:30'", [2, 3]),
    ("t = '2024-10-27 01:30Z'", [2]),
    ("t = '2024-10-27 02:30'", [2]),
    ("t in ('2024-10-27 01:30:00+00:00', '2024-10-28')", [2, 3]),
    ("t between '2024-10-27' and '2024-10-27 02:30'", [1, 2]),
    ("t > :since", [2, 3]),
    ("begins is null or begins < '2024-10-27 02:30'", [1, 2, 3]),
    ("extract(hour from t) = 2", [1, 2]),
    ("t::date = '2024-10-28'", [3]),
    ("date_trunc('day', t) = '2024-10-27'", [1, 2]),
    ("t + interval '1 day' = '2024-10-28 02:30'", [1, 2]),
]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize(("where", "expected"), LITERALS)
def test_a_field_that_is_declared_as_datetime_is_compared_as_its_values_are(
    where: str, expected: list[int], dialect: Any
) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    first, second = (dt.datetime(2024, 10, 27, 2, 30, fold=f, tzinfo=berlin) for f in (0, 1))
    last = dt.datetime(2024, 10, 28, tzinfo=berlin)
    db = Database(dialect=dialect, timezone="Europe/Berlin")
    calls = db.table(Call, name="calls")
    given = {"since": first} if ":since" in where else {}
    view = db.sql(f"select id from calls where {where}", **given).materialize()
    calls.add_all([Call(n, t) for n, t in enumerate((first, second, last), 1)])
    assert list(view.errors) == []
    assert sorted(row.id for row in view) == expected


def test_naive_times_of_a_field_are_compared_as_they_were() -> None:
    db = Database(timezone="Europe/Berlin")
    calls = db.table(Call, name="calls")
    texts = ("t >= '2024-10-27 02:30'", "date_trunc('hour', t) < '2024-10-27 02:30'")
    views = [db.sql(f"select id from calls where {text}").materialize() for text in texts]
    calls.add_all([Call(n, dt.datetime(2024, 10, 27, n, 30)) for n in range(1, 4)])
    assert [sorted(row.id for row in view) for view in views] == [[2, 3], [1, 2]]
    assert all(row.t.tzinfo is None for row in db.sql("select t from calls").materialize())


@pytest.mark.parametrize(
    "text",
    [
        "select * from t where n < ts",
        "select * from t where ts = d",
        "select * from t a join t b on a.ts = b.n",
        "select coalesce(ts, n) from t",
        "select ts from t union all select n from t",
        "select case when id = 1 then ts else n end from t",
        "select * from t where ts in (select n from t)",
        "select ts - n from t",
        "select * from t where n between ts and ts",
    ],
)
@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_a_time_without_a_zone_beside_an_instant_is_told_when_the_query_is_made(
    text: str, dialect: Any
) -> None:
    db = Database(dialect=dialect)
    db.execute(TABLE)
    with pytest.raises(PlanError, match="AT TIME ZONE 'UTC'"):
        db.sql(text)


def test_texts_of_instants_go_into_a_table_and_come_out_of_it() -> None:
    db = Database(dialect="postgres", timezone="America/New_York")
    db.execute("create table t (id int primary key, ts timestamptz)")
    db.execute("insert into t values (1, '2022-10-01 12:00-08'), (2, '2022-10-01 12:00')")
    db.execute("update t set ts = ts + interval '1 hour' where ts < '2022-10-01 12:00:01'")
    view = db.sql("select id, ts::text as ts from t").materialize()
    assert sorted(view) == [(1, "2022-10-01 16:00:00-04"), (2, "2022-10-01 13:00:00-04")]


def test_a_time_zone_that_there_is_not_is_refused() -> None:
    with pytest.raises(PlanError, match="there is no time zone 'Mars/Base'"):
        Database(timezone="Mars/Base")
    with pytest.raises(PlanError, match="no time zone 'Mars/Base'"):
        Database().sql("select timestamp '2024-01-01' at time zone 'Mars/Base'")
    with pytest.raises(PlanError, match="duckdb has no time zone"):
        Database().sql("select timestamp '2024-01-01' at time zone '+03'")


@pytest.mark.long
@pytest.mark.parametrize(
    "by", ["30 minutes", "3 hours", "1 day", "24 hours", "25 hours", "1 day 1 hour"]
)
@pytest.mark.parametrize("end", ["current row", "interval '{}' following"])
def test_a_frame_by_an_interval_counts_instants(by: str, end: str) -> None:
    """Around the clock change, whatever zone the values have."""
    zone = "Europe/Berlin"
    db, connection = Database(timezone=zone), duckdb.connect(config={"threads": 1})
    connection.execute(f"set timezone = '{zone}'")
    change = dt.datetime(2024, 10, 27, 1, tzinfo=UTC)
    moments = [change + dt.timedelta(minutes=30 * (n * 7 % 60 - 30)) for n in range(60)]
    db.execute("create table w (id int primary key, ts timestamptz)")
    connection.execute("create table w (id int, ts timestamptz)")
    for number, moment in enumerate(moments):
        text = f"insert into w values ({number}, '{moment.isoformat()}')"
        db.execute(text)
        connection.execute(text)
    frame = f"range between interval '{by}' preceding and {end.format(by)}"
    text = f"select id, count(*) over (order by ts {frame}) as n from w"
    view = db.sql(text).materialize()
    assert answers(list(view)) == answers(connection.execute(text).fetchall())
    view.verify()
    connection.close()


def test_a_parameter_is_an_instant() -> None:
    db = Database(timezone="Europe/Berlin")
    db.execute("create table w (id int primary key, ts timestamptz)")
    db.execute("insert into w values (1, '2024-10-27 02:30+02'), (2, '2024-10-27 02:30+01')")
    late = dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    for test in ("ts = :at", "ts in (:at)", "not ts < :at", "ts in (select :at)"):
        view = db.sql(f"select id from w where {test}", at=late).materialize()
        assert [row.id for row in view] == [2], test


@pytest.mark.parametrize("naive", ["timestamp", "date"])
@pytest.mark.parametrize(
    "text",
    [
        "array[t.a] || array[u.a]",
        "array[u.a] || array[t.a]",
        "list_concat(array[t.a], array[u.a])",
        "coalesce(array[t.a], array[u.a])",
        "case when t.id = 1 then array[array[t.a]] else array[array[u.a]] end",
        "array[t.a] = array[u.a]",
        "array[t.a] in (array[u.a])",
        "struct_pack(v := t.a) = struct_pack(v := u.a)",
    ],
)
def test_times_without_a_zone_inside_of_arrays_are_told_beside_instants(
    naive: str, text: str
) -> None:
    db = Database()
    db.execute("create table t (id int, a timestamptz)")
    db.execute(f"create table u (id int, a {naive})")
    with pytest.raises(PlanError, match="without a time zone is compared with instants"):
        db.sql(f"select {text} as x from t, u")
    db.sql(f"select {text.replace('u.a', 't.a')} as x from t, u")


def test_an_item_is_no_array_to_concatenate() -> None:
    db = Database()
    for text in ("array[1] || 2", "'a' || array['b']"):
        with pytest.raises(PlanError, match="duckdb takes two arrays"):
            db.sql(f"select {text} as x")
