"""The path of schemas, as in DuckDB and Postgres; settings belong to a connection."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import psycopg2
import pytest

from reactive import Database, PlanError
from reactive.sql import connect

STATEMENTS = (
    *("create schema app", "create schema other", "create table t (a int)"),
    *("create table app.t (a int)", "create table app.u (a int primary key)"),
    *("insert into t values (1)", "insert into app.t values (2)", "set schema 'app'"),
    *("insert into t values (3)", "create table z (a int references u(a), t int)"),
    *("insert into u values (5)", "insert into z values (5, 1)", "create index i on t (a)"),
    *("create view v as select t.a from t where t.a > 2", "drop index i"),
    *("update t set a = a + 1 where t.a = 3", "delete from z where a in (select a from t)"),
    *("alter table z rename to y", "set search_path to other, app, public"),
    *("create table w (a int)", "insert into w select a from t", "insert into other.w values (9)"),
    "insert into u select a from t where a not in (select a from u) and exists (select 1 from v)",
)
QUERIES = (
    *("select a from t", "select a from v", "select t.a, u.a from t, u", "select a from w"),
    "with t as (select 7 as a) select a from t",
    "select a from app.t union all select a from other.w union all select a from y",
    "select current_schema()",
    "select table_schema, table_name from information_schema.tables where table_schema in "
    "('app', 'other')",
)


def rows(db: Any, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in db.sql(text).materialize())


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_tables_are_found_and_made_along_the_path(
    engine: Any, request: pytest.FixtureRequest
) -> None:
    own = connect(Database(dialect=engine))
    if engine == "duckdb":
        other: Any = duckdb.connect()
    else:
        other = psycopg2.connect(request.getfixturevalue("database")).cursor()
    for text in STATEMENTS:
        if engine == "duckdb":
            text = text.replace("schema 'app'", "schema = 'app'")
            text = text.replace("to other, app, public", "= 'other,app,main'")
            text = text.replace(" references u(a)", "")  # DuckDB renames no such table
        own.execute(text)
        other.execute(text)
        for query in QUERIES[:3] if "search_path" in text else ():
            other.execute(query)
            assert sorted(own.execute(query).fetchall()) == sorted(other.fetchall()), (text, query)
    for query in QUERIES:
        other.execute(query)
        assert sorted(own.execute(query).fetchall()) == sorted(other.fetchall()), query
    own.execute("reset search_path")
    assert own.execute("select a from t").fetchall() == [(1,)]


def test_duckdb_looks_into_main_at_last() -> None:
    own, other = connect(Database(dialect="duckdb")), duckdb.connect()
    for text in ("create schema app", "create table t (a int)", "create table app.u (b int)"):
        own.execute(text)
        other.execute(text)
    for each in ("use app", "use memory.app", "use main", "set search_path = 'app'"):
        own.execute(each)
        other.execute(each)
        for query in (
            *("show tables", "show tables from app", "select * from t", "pragma table_info('t')"),
            *("select current_schema(), current_schemas(false)", "reset schema", "show tables"),
            "select current_setting('schema')",
        ):
            cursor, expected = own.execute(query), other.execute(query).fetchall()
            found = [
                tuple(list(cell) if isinstance(cell, tuple) else cell for cell in row)
                for row in (cursor.fetchall() if cursor.description else [])
            ]
            assert "reset" in query or found == expected, (each, query)


def test_a_definition_does_not_depend_on_a_path(tmp_path: Path) -> None:
    for run in range(2):
        with Database(tmp_path / "db", dialect="postgres") as db:
            if run == 0:
                for text in ("create schema app", "create table t (a int)"):
                    db.execute(text)
                db.execute("set search_path to app")
                db.execute("create table t (a int default 4)")
                db.execute("create view v as select a from t")
                db.execute("insert into t default values")
                db.execute("set search_path to default")
            assert rows(db, "select a from app.v") == [(4,)]
            assert rows(db, "select a from t") == []


@pytest.mark.parametrize("name", ["", "db"])
def test_temporary_tables_are_in_no_schema(name: str, tmp_path: Path) -> None:
    with Database(*([tmp_path / name] if name else []), dialect="postgres") as db:
        for text in ("create schema app", "create table app.t (a int)", "set search_path to app"):
            db.execute(text)
        db.execute("create temp table t (a int)")
        db.execute("create temp view v as select a + 1 as b from t")
        db.execute("insert into t values (1)")
        assert rows(db, "select a, b from t, v") == [(1, 2)]
        db.execute("drop view v")
        db.execute("drop table t")
        assert rows(db, "select a from t") == []


def test_settings_and_prepared_statements_are_of_a_connection() -> None:
    db = Database(dialect="postgres")
    db.execute("create schema app")
    db.execute("create table app.t (a int)")
    one, other = connect(db), connect(db)
    one.execute("set search_path to app")
    one.execute("set application_name to 'one'")
    one.execute("prepare q as select count(*) from t")
    assert one.execute("execute q").fetchall() == [(0,)]
    assert one.execute("show application_name").fetchall() == [("one",)]
    assert one.execute("select current_setting('search_path')").fetchall() == [("app",)]
    for name in ("show application_name", "select current_setting('application_name')"):
        assert other.execute(name).fetchall() == [("",)]
        assert rows(db, name) == [("",)]
    with pytest.raises(other.ProgrammingError, match="no prepared statement 'q'"):
        other.execute("execute q")
    with pytest.raises(other.ProgrammingError, match="no table or view 't'"):
        other.execute("select * from t")
    with pytest.raises(PlanError, match="no table or view 't'"):
        db.sql("select * from t")
    one.execute("reset all")
    assert one.execute("show search_path").fetchall() == [('"$user", public',)]


@pytest.mark.parametrize(
    ("dialect", "text", "problem"),
    [
        ("postgres", "select * from nope.t", "there are public, app"),
        ("duckdb", "select * from nope.t", "there are main, app"),
        ("duckdb", "set schema = 'apq'", "no schema 'apq'; did you mean 'app'.*\n.*main, app"),
        ("postgres", "create table n (a int)", "no schema of the search_path is there: nope"),
        ("postgres", "insert into n values (1)", "no schema 'nope'|no table.*'nope.n'"),
    ],
)
def test_what_is_not_there_is_said(dialect: Any, text: str, problem: str) -> None:
    db = Database(dialect=dialect)
    db.execute("create schema app")
    db.execute("set schema = 'main'" if dialect == "duckdb" else "set search_path to nope")
    with pytest.raises(PlanError, match=problem):
        db.sql(text) if text.startswith("select") else db.execute(text)


def test_sqlite_says_its_version() -> None:
    assert rows(Database(dialect="sqlite"), "select sqlite_version()") == [
        (sqlite3.sqlite_version,)
    ]
    assert rows(Database(dialect="postgres"), "select version()")[0][0].startswith("PostgreSQL 15")
