"""Rows, refusals and positions of a Postgres source."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import make_dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import psycopg2
import pytest

from reactive import (
    Database,
    Ingestion,
    NotifySource,
    PlanError,
    PostgresSource,
    SourceError,
    Sum,
    Table,
)
from reactive.borders.sources.postgres import feed
from reactive.borders.sources.postgres.values import frozen_json
from tests.postgres_server import PostgresServer, running_or_skipped

PATIENCE = 30
QUICK: dict[str, Any] = {"backoff": (0.02, 0.2)}


class User(NamedTuple):
    """A row."""

    id: int
    name: str | None


class Server:
    """A database with a table of users."""

    def __init__(self, postgres: PostgresServer, dsn: str) -> None:
        self.postgres = postgres
        self.dsn = dsn

    def __call__(self, statement: str, *values: Any) -> list[Any]:
        return self.postgres.execute(self.dsn, statement, values or None)


@pytest.fixture
def sql(postgres: PostgresServer, database: str) -> Server:
    made = Server(postgres, database)
    made("create table users (id int primary key, name text, age int)")
    made("insert into users values (1, 'ann', 30), (2, 'bob', 40)")
    return made


def table_of(db: Database, kind: Any = User, key: Any = "id") -> Table[Any, Any]:
    return db.table(kind, key=key, name="users") if key else db.table(kind, name="users")


@contextmanager
def following(
    dsn: str, table: Table[Any, Any], db: Database, **options: Any
) -> Iterator[tuple[PostgresSource, Ingestion[Any]]]:
    source = PostgresSource(dsn, "users", **{**QUICK, **options})
    with db.ingest(source, table) as reading:
        until(lambda: reading.state == "failed" or source.position != "0/0")
        yield source, reading


def until(holds: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def error_of(dsn: str, kind: Any = User, key: Any = "id", **options: Any) -> str:
    """Why a source stops."""
    db = Database()
    source = PostgresSource(dsn, "users", **options)
    with pytest.raises(SourceError) as caught:
        db.ingest(source, table_of(db, kind, key)).wait(timeout=PATIENCE)
    return str(caught.value)


def test_rows_come_change_and_go(sql: Server) -> None:
    db = Database()
    users = table_of(db)
    with following(sql.dsn, users, db) as (source, reading):
        assert sorted(users) == [(1, "ann"), (2, "bob")]
        sql("update users set id = 7 where id = 1; delete from users where id = 2")
        source.catch_up(PATIENCE)
        assert list(users) == [User(7, "ann")]
        assert reading.token["lsn"] <= source.position
        assert abs(reading.lag.seconds or 0) < PATIENCE
        assert (reading.lag.waiting, reading.lag.bytes) == (0, 0)
        sql("truncate users; insert into users values (3, 'eve')")
        source.catch_up(PATIENCE)
        assert list(users) == [User(3, "eve")]
    assert repr(source) == "PostgresSource('users', stopped)"


def test_a_transaction_is_one_commit_over_all_tables(sql: Server) -> None:
    class Order(NamedTuple):
        number: int
        total: int

    sql("create table orders (number int primary key, total int not null)")
    db = Database()
    users, orders = table_of(db), db.table(Order, key="number")
    total = orders.aggregate(Sum(lambda o: o.total)).materialize()
    source = PostgresSource(sql.dsn, {"users": User, "orders": Order})
    seen = []
    with db.ingest(source, {User: users, Order: orders}):
        source.catch_up(PATIENCE)
        version = db.version
        with total.subscribe(lambda delta: seen.append((delta.version, len(users)))):
            sql(
                "begin; insert into users values (5); insert into orders values (1, 10), (2, 5); "
                "savepoint s; delete from orders; rollback to s; commit; "
                "begin; delete from users; rollback"
            )
            source.catch_up(PATIENCE)
    assert seen == [(version + 1, 3)]
    assert total.value == 15


class Mood(Enum):
    """A text of an enum."""

    HAPPY = "happy"


class Typed(NamedTuple):
    """A field of each type."""

    id: int
    truth: bool | None
    small: int | None
    real: float
    exact: Decimal
    as_float: float
    text: str | None
    padded: str | None
    data: bytes | None
    day: date | None
    hour: time_of_day | None
    moment: datetime | None
    instant: datetime | None
    length: timedelta | None
    uid: UUID | None
    doc: Any
    raw_doc: str | None
    numbers: tuple[int | None, ...] | None
    texts: tuple[Any, ...] | None
    mood: Mood | None
    mood_text: str | None
    email: str | None
    address: str | None
    none: int | None


TYPED = """
create type mood as enum ('happy', 'sad');
create domain email as text check (value like '%@%');
drop table users;
create table users (id int8 primary key, truth bool, small int2, real float4 not null,
    exact numeric not null, as_float numeric not null, text varchar(20),
    padded char(4), data bytea, day date, hour time,
    moment timestamp, instant timestamptz, length interval, uid uuid, doc jsonb, raw_doc json,
    numbers int[], texts text[][], mood mood, mood_text mood, email email, address inet, none int)
"""
VALUES = """
insert into users values (%s, true, -3, 0.1, 12345678901234567890.10, 1.5, E'a''b\\n', 'ab',
    '\\x00ff', '2024-02-29', '23:59:59.5', '2024-02-29 12:00:00.25', '2024-02-29 12:00:00+02',
    '-1 day 02:03:04.5', '6ecd8c99-4036-403d-bf84-cf8400f67836', '{"a": [1, {"b": null}]}',
    '{"a":  1}', '{1,NULL,3}', '{{"a,b","\\\\"},{NULL,"NULL"}}', 'happy', 'sad', 'a@b',
    '10.0.0.1/8', null)
"""


def test_values_are_the_same_from_the_snapshot_and_from_changes(sql: Server) -> None:
    sql(TYPED)
    sql(VALUES, 1)
    db = Database()
    users = table_of(db, Typed)
    with following(sql.dsn, users, db) as (source, _):
        sql(VALUES, 2)
        sql(
            "insert into users (id, real, exact, as_float) values "
            "(3, 'NaN', 'NaN', 'Infinity'), (4, '-Infinity', 'Infinity', 'NaN')"
        )
        source.catch_up(PATIENCE)
        found = users.get(2)
        first = users.get(1)
        assert first is not None and first._replace(id=2) == found
        assert found == Typed(
            2, True, -3, 0.1, Decimal("12345678901234567890.10"), 1.5, "a'b\n", "ab  ", b"\0\xff",
            date(2024, 2, 29), time_of_day(23, 59, 59, 500000),
            datetime(2024, 2, 29, 12, 0, 0, 250000), datetime(2024, 2, 29, 10, tzinfo=UTC),
            timedelta(days=-1, hours=2, minutes=3, seconds=4.5),
            UUID("6ecd8c99-4036-403d-bf84-cf8400f67836"), {"a": (1, {"b": None})}, '{"a":  1}',
            (1, None, 3), (("a,b", "\\"), (None, "NULL")), Mood.HAPPY, "sad", "a@b", "10.0.0.1/8",
            None,
        )  # fmt: skip
        third, fourth = users.get(3), users.get(4)
        assert third is not None and fourth is not None
        assert math.isnan(third.real) and third.exact.is_nan() and third.as_float == math.inf
        assert fourth.real == -math.inf and fourth.exact == Decimal("Infinity")
        made = source.row_class()
    assert made.__name__ == "Users"
    assert made.__annotations__["id"] is int
    assert made.__annotations__["numbers"] == tuple[int, ...] | None
    again: Any = PostgresSource(sql.dsn, "users").row_class("users")
    assert again._fields == Typed._fields


class Priced(NamedTuple):
    """A row with a column that Postgres computes."""

    id: int
    price: int
    with_tax: int | None


@pytest.fixture
def priced(sql: Server) -> Server:
    sql("""create table priced (id int primary key, price int not null,
        with_tax int generated always as (price * 2) stored,
        "tax alone" int generated always as (price * 3) stored)""")
    sql("insert into priced values (1, 10)")
    return sql


def test_a_generated_column_is_left_out_when_that_is_said(priced: Server) -> None:
    source = PostgresSource(priced.dsn, "priced", **QUICK)
    with pytest.raises(SourceError, match="'with_tax', 'tax alone' is generated, and Postgres"):
        source.row_class()
    with pytest.raises(SourceError, match=r"without=\['price', 'with_tax', 'tax alone'\]"):
        source.row_class("priced", without=["price"])
    kind: Any = source.row_class(without=["with_tax", "tax alone"])
    assert kind._fields == ("id", "price")
    db = Database()
    rows = db.table(kind, key="id")
    with db.ingest(source, rows):
        priced("insert into priced values (2, 20)")
        source.catch_up(PATIENCE)
        assert sorted(rows) == [(1, 10), (2, 20)]


@pytest.mark.parametrize("field", ["with_tax", "tax_alone"])
def test_a_field_of_a_generated_column_is_refused(priced: Server, field: str) -> None:
    kind: Any = NamedTuple("Sold", [("id", int), (field, int | None)])  # type: ignore[misc]
    db = Database()
    source = PostgresSource(priced.dsn, "priced", **QUICK)
    with pytest.raises(SourceError, match=f"cannot follow column '{field}' .* is generated"):
        db.ingest(source, db.table(kind, key="id")).wait(timeout=PATIENCE)


def test_a_source_that_reads_by_queries_has_generated_columns(priced: Server) -> None:
    db = Database()
    rows = db.table(Priced, key="id")
    source = NotifySource(priced.dsn, "priced", backoff=QUICK["backoff"])
    priced(source.trigger_sql())
    with db.ingest(source, rows):
        priced("insert into priced values (2, 20)")
        until(lambda: sorted(rows) == [(1, 10, 20), (2, 20, 40)])
        priced("update priced set price = 7 where id = 1")
        until(lambda: sorted(rows) == [(1, 7, 14), (2, 20, 40)])


@pytest.mark.parametrize(
    ("without", "said"),
    [
        (["agee"], "no column of 'users', which has id, name, age"),
        ("age", "without takes names of columns"),
        (["id", "name", "age"], "cannot leave out all columns"),
    ],
)
def test_what_cannot_be_left_out_is_told(sql: Server, without: Any, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        PostgresSource(sql.dsn, "users").row_class(without=without)


@pytest.mark.parametrize("is_there", [True, False], ids=["snapshot", "change"])
@pytest.mark.parametrize(
    "value", ["infinity", "4000-01-01 BC", "10000-01-01"], ids=["inf", "bc", "far"]
)
def test_a_date_that_python_has_not_is_told(sql: Server, value: str, is_there: bool) -> None:
    class Dated(NamedTuple):
        id: int
        born: date | None

    sql("alter table users add born date")
    if is_there:
        sql("insert into users values (5, 'x', 1, %s)", value)
        assert "column 'born' of 'users', row id=5: " in error_of(sql.dsn, Dated)
        return
    db = Database()
    with following(sql.dsn, table_of(db, Dated), db) as (_, reading):
        sql("insert into users values (5, 'x', 1, %s)", value)
        with pytest.raises(SourceError, match="declare the field as str"):
            reading.wait(timeout=PATIENCE)


class Day(NamedTuple):
    """A row that some texts do not fit."""

    id: int
    day: date | None


DAYS = "drop table users; create table users (id int primary key, day date, text text)"


@pytest.mark.long
@pytest.mark.parametrize("key", ["id", None])
@pytest.mark.parametrize("is_new", [True, False])
def test_rows_that_cannot_be_made_are_left_out_until_they_are_replaced(
    sql: Server, tmp_path: Path, key: Any, is_new: bool
) -> None:
    sql(DAYS)
    if key is None:
        sql("alter table users replica identity full")
    rows = "(1, 'infinity'), (2, '2026-01-01'), (3, '10000-01-01'), (4, 'infinity')"
    if is_new:
        sql(f"insert into users values {rows}")
    source = PostgresSource(sql.dsn, "users", **QUICK)
    with Database(path=tmp_path / "a.db") as db, following_days(source, db, key) as reading:
        if not is_new:
            sql(f"insert into users values {rows}")
        assert_days(sql, source, reading, {1, 3, 4})
        assert "column 'day' of 'users', row id=" in next(iter(reading.errors)).error.message
        sql("update users set day = '2026-01-02' where id = 1; delete from users where id = 3")
        assert_days(sql, source, reading, {4})
        sql("update users set day = 'infinity' where id = 2; update users set id = 5 where id = 4")
        assert_days(sql, source, reading, {2, 5})
        sql("update users set text = 'same' where id = 2; insert into users values (6, null)")
        assert_days(sql, source, reading, {2, 5})
    with Database(path=tmp_path / "a.db") as db, following_days(source, db, key) as reading:
        assert_days(sql, source, reading, {2, 5})
        sql("update users set day = '2026-01-03' where id = 5")
        assert_days(sql, source, reading, {2})
        sql("truncate users; insert into users values (7, 'infinity')")
        assert_days(sql, source, reading, {7})
    sql("delete from users; insert into users values (8, 'infinity'), (9, null)")
    source = PostgresSource(sql.dsn, "users", resnapshot=True, **QUICK)
    with Database(path=tmp_path / "a.db") as db, following_days(source, db, key) as reading:
        assert_days(sql, source, reading, {8})
    source.drop()


@contextmanager
def following_days(source: PostgresSource, db: Database, key: Any) -> Iterator[Ingestion[Any]]:
    with db.ingest(source, table_of(db, Day, key), on_error="drop") as reading:
        until(lambda: reading.state == "failed" or source.position != "0/0")
        yield reading


def assert_days(
    sql: Server, source: PostgresSource, reading: Ingestion[Any], left_out: set[int]
) -> None:
    """Check that the rows equal the server's, without `left_out`, which are each reported once."""
    source.catch_up(PATIENCE)
    assert reading.error is None
    (table,) = source._into.values()
    wanted = sql("select id, day from users where id <> all(%s) order by id", list(left_out))
    assert sorted(table) == wanted
    told = sorted(error.row for error in reading.errors)
    assert [row.partition(",")[0] for row in told] == [f"id={id}" for id in sorted(left_out)]


def test_a_key_that_cannot_be_made_is_told_until_its_row_goes(sql: Server) -> None:
    class Mark(NamedTuple):
        day: date
        id: int

    sql("drop table users; create table users (id int, day date, primary key (day, id))")
    sql("insert into users values (1, 'infinity'), (2, '2026-01-01')")
    db = Database()
    users = db.table(Mark, key=lambda mark: (mark.day, mark.id), name="users")
    source = PostgresSource(sql.dsn, "users", **QUICK)
    with db.ingest(source, users, on_error="drop") as reading:
        until(lambda: reading.state == "failed" or source.position != "0/0")
        assert [error.row for error in reading.errors] == ["day='infinity', id=1"]
        sql("update users set id = 3 where id = 1")
        source.catch_up(PATIENCE)
        assert [error.row for error in reading.errors] == ["day='infinity', id=3"]
        sql("delete from users where id = 3")
        source.catch_up(PATIENCE)
        assert (list(reading.errors), len(users)) == ([], 1)


def test_a_class_that_does_not_fit_is_refused(sql: Server) -> None:
    class Other(NamedTuple):
        id: int
        nmae: str

    class Wrong(NamedTuple):
        id: int
        name: bytes

    class Aged(NamedTuple):
        id: int
        age: int

    assert "field 'nmae' of Other is no column of 'users', which has id, name, age" in error_of(
        sql.dsn, Other
    )
    assert "field 'name' of Wrong is declared as <class 'bytes'>" in error_of(sql.dsn, Wrong)
    assert "which has no fields" in error_of(sql.dsn, tuple, None)
    refused = error_of(sql.dsn, Aged)
    assert "column 'age' of 'users' may be NULL, and field 'age' of Aged is declared int" in refused
    assert "declare `age: int | None`, or ALTER TABLE" in refused
    sql("alter table users alter age set not null")
    assert "the key of table 'users' reads age" in error_of(sql.dsn, Aged, "age")
    assert "has no key, and changes of 'users' tell only id" in error_of(sql.dsn, key=None)
    sql("alter table users replica identity full")
    assert "may have several rows with one key" in error_of(sql.dsn, Aged, "age")
    sql("drop table users")
    assert "there is no table 'users'" in error_of(sql.dsn)
    sql("create view users as select 1 as id, 'x' as name")
    assert "is no table of rows that are stored" in error_of(sql.dsn)
    assert "cannot read Postgres" in error_of(sql.dsn + "x")


def test_a_table_without_identity_is_refused_with_the_remedy(sql: Server) -> None:
    sql("alter table users replica identity nothing")
    assert "REPLICA IDENTITY FULL" in error_of(sql.dsn)
    sql("alter table users replica identity default; alter table users drop constraint users_pkey")
    assert "ADD PRIMARY KEY" in error_of(sql.dsn)
    sql("delete from users")  # nothing was published
    sql("create unique index names on users (name); alter table users alter name set not null")
    sql("alter table users replica identity using index names")
    assert "tell name of the row that was" in error_of(sql.dsn)
    db = Database()
    users = table_of(db, key="name")
    with following(sql.dsn, users, db) as (source, _):
        sql("insert into users values (1, 'a', 2); update users set name = 'b'")
        source.catch_up(PATIENCE)
        assert list(users) == [User(1, "b")]


def test_arguments_that_make_no_sense_are_refused() -> None:
    for tables in ("", {}, {"users": "User"}, 7):
        with pytest.raises(PlanError, match="names no tables"):
            PostgresSource("dbname=x", tables)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="rows of one class"):
        PostgresSource("dbname=x", {"a": User, "b": User})
    with pytest.raises(PlanError, match="number of rows"):
        PostgresSource("dbname=x", "users", size=0)
    with pytest.raises(PlanError, match="pair of seconds"):
        PostgresSource("dbname=x", "users", backoff=(2, 1))
    with pytest.raises(PlanError, match="is no text"):
        PostgresSource(7, "users")  # type: ignore[arg-type]
    db = Database()
    with pytest.raises(PlanError, match="a table for each class"):
        db.ingest(PostgresSource("dbname=x", {"a": User, "b": int}), table_of(db))


def test_changes_of_columns_are_told(sql: Server) -> None:
    db = Database()
    users = table_of(db)
    with following(sql.dsn, users, db) as (source, reading):
        sql("alter table users add mail text; insert into users values (3, 'eve', 1, 'e@e')")
        sql("alter table users drop age; insert into users values (4, 'joe', 'j@j')")
        source.catch_up(PATIENCE)
        assert sorted(users)[2:] == [(3, "eve"), (4, "joe")]
        assert source.schema_changes == [
            "users: column 'mail' was added",
            "users: column 'age' is gone, or renamed",
        ]
        sql("alter table users rename name to called; insert into users values (5, 'x')")
        with pytest.raises(SourceError, match=r"'name', a field of User, is not there any more"):
            reading.wait(timeout=PATIENCE)
        assert len(users) == 4


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [
        "drop table users",
        "alter table users rename to people; insert into people values (3, 'eve')",
        "drop table users; create table users (id int primary key, name text)",
    ],
)
def test_a_table_that_is_dropped_or_renamed_stops_it(
    sql: Server, tmp_path: Path, change: str
) -> None:
    with Database(tmp_path / "users.db") as db:
        users = table_of(db)
        with following(sql.dsn, users, db) as (source, reading):
            sql(change)
            with pytest.raises(SourceError, match="not the table any more that was followed"):
                reading.wait(timeout=PATIENCE)
        if "create" in change:
            sql("insert into users values (7, 'joe')")
            with pytest.raises(SourceError, match=r"does not tell of .* any more"):
                db.ingest(source, users).wait(timeout=PATIENCE)
            source.drop()
            with following(sql.dsn, users, db, resnapshot=True) as (source, reading):
                source.catch_up(PATIENCE)
                assert list(users) == [User(7, "joe")]
        source.drop()


def test_the_hour_that_clocks_repeat_is_two_instants(sql: Server) -> None:
    sql("create table calls (id int not null, begins timestamptz primary key)")
    sql("insert into calls values (1, '2024-10-27 02:30+02'), (2, '2024-10-27 02:30+01')")
    source, db = PostgresSource(sql.dsn, "calls", **QUICK), Database(timezone="Europe/Berlin")
    calls: Any = db.table(source.row_class(), name="calls", key="begins")
    view = db.sql("select id from calls where begins > '2024-10-27 02:30+02'").materialize()
    naive = datetime(2024, 10, 27)
    with pytest.raises(PlanError, match="is an instant"):
        calls.where(lambda c: c.begins > naive)
    with db.ingest(source, calls):
        source.catch_up(PATIENCE)
        sql("update calls set id = 3 where begins = '2024-10-27 00:30Z'")
        source.catch_up(PATIENCE)
        assert sorted(calls) == sorted(sql("select * from calls"))
        assert list(view) == [(2,)]
    source.drop()


def test_what_is_in_use_is_not_dropped(sql: Server) -> None:
    db = Database()
    with following(sql.dsn, table_of(db), db) as (source, reading):
        with pytest.raises(SourceError, match=r"is running, .*\n  stop\(\)"):
            source.drop()
        reading.stop()
        source.drop()


@pytest.mark.parametrize("name", ["My table", "a.b.c.d", 'x"', "nothing"])
def test_what_is_no_table_is_told(sql: Server, name: str) -> None:
    with pytest.raises(SourceError, match="there is no table"):
        PostgresSource(sql.dsn, name).row_class()


def test_a_column_of_another_type_stops_it(sql: Server) -> None:
    db = Database()
    with following(sql.dsn, table_of(db), db) as (_, reading):
        sql("alter table users alter id type bigint; insert into users values (5000000000, 'x')")
        until(lambda: reading.batches > 1 or reading.state == "failed")
        assert reading.state == "running"  # an integer all the same
        sql("alter table users alter name type bytea using 'x'; insert into users values (6, 'y')")
        with pytest.raises(SourceError, match=r"'name', a field of User, has another type"):
            reading.wait(timeout=PATIENCE)


def test_it_goes_on_after_its_connections_are_ended(sql: Server) -> None:
    db = Database()
    users = table_of(db)
    with following(sql.dsn, users, db, temporary=False) as (source, reading):
        for number in range(10, 13):
            sql(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where application_name = 'reactive' and datname = current_database()"
            )
            sql("insert into users values (%s, 'new')", number)
            source.catch_up(PATIENCE)
            assert len(users) == number - 7
        token = reading.token
    assert sql("select count(*) from pg_replication_slots where slot_name = %s", token["slot"]) == [
        (1,)
    ]
    sql("delete from users")
    reading.start()
    source.catch_up(PATIENCE)
    assert not users
    reading.stop()
    source.drop()
    assert sql("select count(*) from pg_replication_slots where slot_name = %s", token["slot"]) == [
        (0,)
    ]
    assert sql("select count(*) from pg_publication") == [(0,)]


def test_a_temporary_slot_leaves_nothing_and_what_differs_is_one_commit(sql: Server) -> None:
    db = Database()
    users = table_of(db)
    heard: list[Any] = []
    with following(sql.dsn, users, db, size=1) as (source, reading):
        slots = "select count(*) from pg_replication_slots where database = current_database()"
        assert sql(slots) == [(1,)]
        with users.subscribe(heard.append):
            sql("begin; insert into users values (3, 'eve')")  # rolled back
            reading.stop()
            assert sql(slots) == [(0,)]
            sql("delete from users where id = 1; update users set name = 'rob'")
            sql("insert into users values (4, 'joe')")
            reading.start()
            source.catch_up(PATIENCE)
        assert len(heard) == 1
        assert sorted(users) == [(2, "rob"), (4, "joe")]


def test_a_slot_that_is_gone_is_told_and_read_anew(sql: Server) -> None:
    db = Database()
    users = table_of(db)
    with following(sql.dsn, users, db, temporary=False) as (_, reading):
        token = reading.token
    sql("select pg_drop_replication_slot(%s)", token["slot"])
    sql("update users set name = 'rob' where id = 2; insert into users values (9, 'new')")
    reading.start()
    with pytest.raises(SourceError, match=r"start\(anew=True\)"):
        reading.wait(timeout=PATIENCE)
    heard: list[Any] = []
    with (
        users.subscribe(heard.append),
        following(sql.dsn, users, db, temporary=False, resnapshot=True) as (source, _),
    ):
        source.catch_up(PATIENCE)
        assert sorted(users) == [(1, "ann"), (2, "rob"), (9, "new")]
        assert len(heard) == 1
    source.drop()


def test_a_slot_has_one_reader(sql: Server) -> None:
    db, other = Database(), Database()
    with following(sql.dsn, table_of(db), db, temporary=False) as (source, reading):
        again = PostgresSource(sql.dsn, "users", temporary=False, give_up=0.1, **QUICK)
        second = other.ingest(again, table_of(other), since=reading.token)
        with pytest.raises(SourceError, match="read by another process"):
            second.wait(timeout=PATIENCE)
    source.drop()


def test_a_server_without_logical_log_is_told_and_one_that_is_killed_is_waited_for() -> None:
    with running_or_skipped(wal_level="replica") as server:
        database = server.new_database()
        server.execute(database, "create table users (id int primary key, name text)")
        assert "wal_level = replica" in error_of(database)
        server.kill()
        assert "cannot read Postgres" in error_of(database, give_up=0.1)


def test_nothing_is_lost_or_doubled_when_the_server_is_killed(tmp_path: Path) -> None:
    with running_or_skipped() as server:
        sql = Server(server, server.new_database())
        sql("create table users (id int primary key, name text)")
        db = Database()
        users = table_of(db)
        seen: list[Any] = []
        with (
            following(sql.dsn, users, db, temporary=False) as (source, _),
            users.subscribe(lambda delta: seen.extend(delta.items())),
        ):
            for number in range(3):
                sql("insert into users values (%s, 'x')", number)
                server.kill()
                server.start()
            source.catch_up(PATIENCE)
        assert seen == [(User(number, "x"), 1) for number in range(3)]


def test_it_stops_while_it_waits(sql: Server) -> None:
    db = Database()
    source = PostgresSource(sql.dsn, "users", **QUICK)
    with closing(psycopg2.connect(sql.dsn)) as other, other.cursor() as cursor:
        cursor.execute("insert into users values (5)")  # a slot waits for its end
        reading = db.ingest(source, table_of(db))
        until(lambda: "snapshot" in repr(source))
        reading.stop(timeout=PATIENCE)
    assert reading.state == "stopped"
    sql("drop publication reactive_users")


def test_a_snapshot_that_is_broken_off_is_taken_again(sql: Server, tmp_path: Path) -> None:
    """Rows of its first batches that were deleted meanwhile must disappear."""
    path = tmp_path / "live.db"
    db = Database(path)
    users = table_of(db)
    source = PostgresSource(sql.dsn, "users", size=1)
    reading = db.ingest(source, users, start=False)
    batches = source.batches(None, threading.Event())
    for _ in range(2):
        reading.take(next(batches))
    batches.close()  # type: ignore[attr-defined]
    slot = reading.token["slot"]
    assert reading.token["lsn"] is None and len(users) == 1
    db.close()
    sql("delete from users where id = 1")
    db = Database(path)
    users = table_of(db)
    with following(sql.dsn, users, db) as (source, reading):
        source.catch_up(PATIENCE)
        assert list(users) == [User(2, "bob")]
        assert sql("select 1 from pg_replication_slots where slot_name = %s", slot) == []
    db.close()
    db = Database(path)
    users = table_of(db)
    sql("insert into users values (8, 'new')")
    with following(sql.dsn, users, db) as (source, reading):
        source.catch_up(PATIENCE)
        assert sorted(users) == [(2, "bob"), (8, "new")] and reading.batches == 1
    db.close()
    source.drop()


def test_the_server_hears_of_what_is_kept_only(sql: Server, tmp_path: Path) -> None:
    """A commit that is not stored yet is sent again."""
    db = Database(tmp_path / "live.db", durability="exit")
    users = table_of(db)
    confirmed = "select confirmed_flush_lsn::text from pg_replication_slots where slot_name = %s"
    with following(sql.dsn, users, db) as (source, reading):
        before = sql(confirmed, reading.token["slot"])
        sql("insert into users values (8, 'new')")
        source.catch_up(PATIENCE)
        reading.stop()
        assert sql(confirmed, reading.token["slot"]) == before
        db.flush()
        reading.start()
        sql("insert into users values (9, 'new')")
        source.catch_up(PATIENCE)
        assert reading.batches == 5 and len(users) == 4
    db.close()
    source.drop()


def test_a_publication_with_a_condition_is_heeded_by_the_snapshot(sql: Server) -> None:
    assert "CREATE PUBLICATION" in error_of(sql.dsn, publication="young")
    sql("create publication young for table users where (id < 2)")
    db = Database()
    users = table_of(db)
    with following(sql.dsn, users, db, publication="young") as (source, _):
        assert list(users) == [User(1, "ann")]
        sql("insert into users values (0, 'kim'), (9, 'old')")
        source.catch_up(PATIENCE)
        assert sorted(users) == [(0, "kim"), (1, "ann")]
    source.drop()
    assert sql("select count(*) from pg_publication") == [(1,)]


def test_a_user_without_the_right_is_told(sql: Server) -> None:
    sql("create role guest login")
    assert "must be superuser or replication role" in error_of(
        sql.dsn.replace("user=postgres", "user=guest")
    )
    sql("drop role guest")


def test_large_values_that_an_update_leaves_are_kept(sql: Server) -> None:
    """Postgres does not send them. They are read again for a row that was deleted here."""

    class Letter(NamedTuple):
        id: int
        text: str
        size: int | None

    sql("drop table users; create table users (size int, text text not null, id int primary key)")
    sql("alter table users alter text set storage external")
    long = "x" * 100_000
    sql("insert into users values (1, %s, 1), (2, %s, 2), (3, %s, 3)", long, long, long)
    db = Database()
    letters = table_of(db, Letter)
    with following(sql.dsn, letters, db) as (source, _):
        sql("update users set size = 7 where id = 1")
        sql("update users set id = 9 where id = 2")
        source.catch_up(PATIENCE)
        assert letters.get(1) == (1, long, 7) and letters.get(9) == (9, long, 2)
        letters.delete(3)
        sql("update users set size = 8 where id = 3")
        source.catch_up(PATIENCE)
        assert letters.get(3) == (3, long, 8)
        sql("alter table users replica identity full; update users set id = id + 10")
        source.catch_up(PATIENCE)
        letters.delete(11)
        sql("update users set size = 0")
        source.catch_up(PATIENCE)
        assert sorted(letters) == [(number, long, 0) for number in (11, 13, 19)]


def test_another_identity_stops_it_if_rows_cannot_be_told(sql: Server) -> None:
    sql("alter table users replica identity full")
    db = Database()
    users = table_of(db, key=None)
    with following(sql.dsn, users, db) as (source, reading):
        sql("insert into users values (1 + 4, 'ann'); update users set name = 'x' where id > 4")
        source.catch_up(PATIENCE)
        assert sorted(users)[-1] == (5, "x")
        sql("alter table users replica identity default; delete from users")
        with pytest.raises(SourceError, match="another replica identity now"):
            reading.wait(timeout=PATIENCE)


@pytest.mark.long
def test_a_source_that_has_failed_is_not_waited_for(sql: Server) -> None:
    db = Database()
    with following(sql.dsn, table_of(db), db) as (source, reading):
        sql("alter table users drop name; insert into users values (7, 1)")
        until(lambda: reading.state == "failed")
        with pytest.raises(SourceError, match="has stopped before"):
            source.catch_up()
    with pytest.raises(TimeoutError, match="has not come in"):
        PostgresSource(sql.dsn, "users").catch_up(0.01)


def test_a_view_that_raises_stops_it_before_the_commit_and_it_goes_on(sql: Server) -> None:
    db = Database()
    users = table_of(db)
    lengths = users.select(lambda user: len(user.name))
    view = lengths.materialize()
    with following(sql.dsn, users, db, temporary=False) as (source, reading):
        sql("insert into users values (5, null)")
        with pytest.raises(TypeError):
            reading.wait(timeout=PATIENCE)
        sql("update users set name = 'x' where name is null")
        view.close()
        reading.start()
        source.catch_up(PATIENCE)
        assert users.get(5) == (5, "x")
    source.drop()


def test_the_driver_is_asked_for_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    with pytest.raises(PlanError, match=r"'\.\[postgres\]'"):
        PostgresSource("dbname=x", "users").catch_up()


def test_another_decoder_can_be_given(sql: Server) -> None:
    kinds: list[str] = []

    def decode(data: bytes) -> feed.Message:
        kinds.append(chr(data[0]))
        return feed.decode(data)

    db = Database()
    with following(sql.dsn, table_of(db), db, decode=decode) as (source, _):
        sql("insert into users values (5)")
        source.catch_up(PATIENCE)
    assert kinds == ["B", "R", "I", "C"]
    with pytest.raises(ValueError, match="format 'b'"):
        feed.decode(b"I\0\0\0\x09N\0\x01b\0\0\0\x017")


def test_a_server_that_is_not_there_is_told_whoever_asks() -> None:
    dsn = "postgresql://localhost:1/nowhere"
    source, notified = PostgresSource(dsn, "orders"), NotifySource(dsn, "orders")
    for ask in (source.catch_up, source.row_class, source.drop, notified.trigger_sql):
        with pytest.raises(SourceError, match="see that the server can be reached"):
            ask()


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", [None, Any, dict, dict[str, Any], Mapping, object, tuple | Mapping]
)
def test_documents_of_json_are_kept_in_a_file(sql: Server, tmp_path: Path, kind: Any) -> None:
    sql("create table docs (id int primary key, extra jsonb not null)")
    sql("""insert into docs values (1, '{"a": [1, {"b": null}], "c": {}}'), (2, '[1, 2]')""")
    of_kind = [("id", int), ("extra", kind)]
    made: Any = PostgresSource(sql.dsn, "docs").row_class("docs")
    doc: Any = made if kind is None else make_dataclass("Docs", of_kind, frozen=True)
    source = PostgresSource(sql.dsn, {"docs": doc}, **QUICK)
    with Database(tmp_path / "shop.db") as db:
        table = db.table(doc, key="id", name="docs")
        with db.ingest(source, {doc: table}):
            source.catch_up(PATIENCE)
            sql("update docs set extra = jsonb_build_object('b', 1, 'a', extra) where id = 2")
            sql("""insert into docs values (3, '{"z": 1, "a": 2}')""")
            sql("delete from docs where id = 3")
            source.catch_up(PATIENCE)
    with Database(tmp_path / "shop.db") as db:
        found = {row.id: row.extra for row in db.table(doc, key="id", name="docs")}
    assert found == {1: {"a": (1, {"b": None}), "c": {}}, 2: {"b": 1, "a": (1, 2)}}
    assert hash(found[1]) == hash(frozen_json('{"c": {}, "a": [1, {"b": null}]}'))


class Sold(NamedTuple):
    """A row whose fields are called as its columns are mended."""

    class_: int
    unit_price: Decimal | None
    column_2024: int | None


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_columns_of_any_name_are_fields(sql: Server, full: bool, own: bool) -> None:
    sql(
        'create table "Sold Items" ("class" int primary key, "unit price" numeric, "2024" int, '
        '"_x" text, "from" int, mro int)'
    )
    sql("insert into \"Sold Items\" values (1, 2.5, 3, 'a', 4, 5), (2, null, null, null, 6, 7)")
    if full:
        sql('alter table "Sold Items" replica identity full')
    named = '"Sold Items"'
    kind: Any = Sold if own else PostgresSource(sql.dsn, named).row_class(named)
    if not own:
        assert kind._fields == ("class_", "unit_price", "column_2024", "x", "from_", "mro")
    db = Database()
    table = db.table(kind, key="class_", name="sold")
    source = PostgresSource(sql.dsn, {named: kind}, **QUICK)
    with db.ingest(source, {kind: table}):
        source.catch_up(PATIENCE)
        assert sorted(row[:3] for row in table) == [(1, Decimal("2.5"), 3), (2, None, None)]
        sql('update "Sold Items" set "unit price" = 9 where "class" = 2')
        sql('update "Sold Items" set "class" = 7 where "class" = 1')
        sql('insert into "Sold Items" values (3)')
        sql('delete from "Sold Items" where "class" = 3')
        source.catch_up(PATIENCE)
        assert sorted(row[:3] for row in table) == [(2, Decimal(9), None), (7, Decimal("2.5"), 3)]
