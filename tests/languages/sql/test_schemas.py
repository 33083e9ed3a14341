"""Schemas: tables and views of the same name in several, as in DuckDB and Postgres."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import psycopg2
import pytest

from reactive import Database, PlanError

SETUP = (
    "create schema app",
    "create table app.customers (id int primary key, name text)",
    "create table app.orders (id int primary key, customer int references "
    "app.customers(id), total int default 3)",
    "create table orders (id int, total int)",
    "insert into app.customers values (1, 'Ann'), (2, 'Bob')",
    "insert into app.orders (id, customer) values (10, 1)",
    "insert into app.orders values (11, 2, 7)",
    "insert into orders values (1, 2)",
    "create view app.large as select * from app.orders where total > 3",
    "update app.orders set total = total + 1 where orders.id = 10",
    "delete from app.orders where app.orders.id = 11",
    "insert into app.orders values (12, 2, 9), (13, 1, 1)",
    "create index by_total on app.orders (total)",
)
QUERIES = (
    "select o.id, app.customers.name from app.orders o join app.customers on o.customer = "
    "customers.id",
    "select orders.total, app.orders.id from app.orders",
    "select app.orders.id, x from app.orders, (select 1 as x) as one",
    "select a.id, b.id from orders a, app.orders b",
    "select * from app.large",
    "select count(*) from app.orders where exists (select 1 from orders where "
    "orders.total < app.orders.total)",
    "with orders as (select 5 as id) select orders.id, o.id from orders, app.orders o",
    "select table_schema, table_name, table_type from information_schema.tables where "
    "table_schema = 'app'",
    "select column_name from information_schema.columns where table_schema = 'app' and "
    "table_name = 'orders'",
    "select schema_name from information_schema.schemata where schema_name = 'app'",
    "select orders.id, (select max(total) from orders where orders.id < app.orders.id) "
    "from app.orders",
    "select app.orders.id, o.id from app.orders join orders as o on app.orders.id > o.id",
    "select orders.id, customers.name from app.orders orders join app.customers as customers on "
    "orders.customer = customers.id",
    "select orders.id from app.orders as orders where exists (select 1 from orders as o where "
    "o.total < orders.total)",
    "select orders.id, o.id from orders as o, app.orders orders",
)


def rows(db: Database, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in db.sql(text).materialize())


def test_queries_and_changes_are_those_of_duckdb() -> None:
    db, other = Database(dialect="duckdb"), duckdb.connect()
    for text in SETUP:
        db.execute(text)
        other.execute(text)
    for text in QUERIES:
        assert rows(db, text) == sorted(other.execute(text).fetchall()), text
    assert rows(db, "select * from main.orders") == [(1, 2)]


def test_queries_and_changes_are_those_of_postgres(database: str) -> None:
    db = Database(dialect="postgres")
    with psycopg2.connect(database) as connection, connection.cursor() as cursor:
        for text in SETUP:
            db.execute(text)
            cursor.execute(text)
        for text in QUERIES:
            cursor.execute(text)
            assert rows(db, text) == sorted(cursor.fetchall()), text
    assert rows(db, "select * from public.orders") == [(1, 2)]


def test_a_table_of_a_schema_is_one_of_the_database() -> None:
    db = Database(dialect="postgres")
    db.execute("create schema app")
    db.execute("create table app.orders (id int primary key, total int)")
    orders: Any = db.table("app.orders")
    large = db.sql("select id from app.orders where total > 3").materialize()
    orders.add((1, 4))
    db.execute("insert into app.orders values (2, 5)")
    assert {row.id for row in large} == {1, 2}
    large.close()
    db.execute("alter table app.orders rename to bills")
    assert rows(db, "select id from app.bills") == [(1,), (2,)]
    db.execute("truncate app.bills")
    assert rows(db, "select bills.id from app.bills") == []


def test_schemas_are_there_again_in_a_durable_database(tmp_path: Path) -> None:
    made = ("create schema app", "create schema empty", "create table app.t (a int default 3)")
    for run in range(3):
        with Database(tmp_path / "db", dialect="duckdb") as db:
            for text in made if run < 2 else ():  # as a program does that starts again
                db.execute(text)
            db.execute("insert into app.t default values")
            assert rows(db, "select a from app.t") == [(3,)] * (run + 1)
            assert ("empty",) in rows(db, "select schema_name from information_schema.schemata")
            with pytest.raises(PlanError, match="there is a schema 'empty' already"):
                db.execute("create  schema empty")
    with Database(tmp_path / "db", dialect="duckdb") as db:
        db.execute("drop schema app cascade")
        db.execute("drop schema empty")
    with Database(tmp_path / "db", dialect="duckdb") as db:
        assert ("empty",) not in rows(db, "select schema_name from information_schema.schemata")
        with pytest.raises(PlanError, match="there is no schema 'app'"):
            db.sql("select * from app.t")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "select * from ap.t",
            "there is no schema 'ap'; did you mean 'app'.*\n.*\n.*\n.*main, app",
        ),
        ("create table other.t (a int)", "there is no schema 'other'"),
        (
            "insert into other.t values (1)",
            "there is no table 'other.t'|there is no schema 'other'",
        ),
        ("select * from app.u", "there is no table or view 'app.u'; did you mean 'app.t'"),
        ("select app.u.a from app.t", "there is no schema 'app'|there is no table 'u'"),
        ("select t.a from app.t, t", "'t' is the name of several tables in FROM"),
        ("create schema app", "there is a schema 'app' already"),
        ("create schema main", "there is a schema 'main' already"),
        ("drop schema app", "schema 'app' is not empty: it has app.t.*\n.*\n.*\n.*cascade"),
        ("drop schema other", "there is no schema 'other'.*\n.*\n.*\n.*there are app"),
        ("drop schema main", "the schema 'main' cannot be dropped"),
    ],
)
def test_what_is_not_there_is_said(text: str, problem: str) -> None:
    db = Database(dialect="duckdb")
    db.execute("create schema app")
    db.execute("create table app.t (a int)")
    with pytest.raises(PlanError, match=problem):
        if text.startswith("select"):
            db.sql(text)
        else:
            db.execute(text)
    db.execute("drop schema if exists other")
    db.execute("create schema if not exists app")
    assert rows(db, "select * from app.t") == []


def test_commands_show_the_table_that_is_named() -> None:
    db, other = Database(dialect="duckdb"), duckdb.connect()
    for text in (
        "create schema app",
        "create table t (id integer primary key, a text not null)",
        "create table app.t (id integer primary key, b integer)",
    ):
        db.execute(text)
        other.execute(text)
    for name in ("t", "app.t", "main.t"):
        expected = [row[:2] for row in other.execute(f"describe {name}").fetchall()]
        own = [row[:2] for row in rows(db, f"describe {name}")]
        assert [column for column, _ in own] == sorted(column for column, _ in expected)
        found = [row[:2] for row in rows(db, f"pragma table_info('{name}')")]
        assert found == [
            row[:2] for row in other.execute(f"pragma table_info('{name}')").fetchall()
        ]
    assert rows(db, "show tables") == other.execute("show tables").fetchall() == [("t",)]


def test_sqlite_has_no_schemas() -> None:
    db = Database(dialect="sqlite")
    for text in ("create schema app", "drop schema app"):
        with pytest.raises(PlanError, match="sqlite has no schemas"):
            db.execute(text)
    db.execute("create table main.t (a int)")
    assert rows(db, "select main.t.a from t") == []
