"""Generated columns, names of the database, prepared statements, and other commands."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from reactive import Database, PlanError, TableError
from reactive.sql import connect, create_engine
from tests.budget import seeds

DIALECTS = ["duckdb", "postgres", "sqlite"]
MADE = """create table t (id integer primary key, a integer,
    b integer generated always as (a * 2 + 1) stored, c text as (coalesce(a, 0) || 'x'))"""


def rows(db: Database, text: str) -> list[Any]:
    with db.sql(text).materialize(on_error="raise") as view:
        return [tuple(row) for row in view]


@pytest.mark.parametrize("seed", seeds(8))
def test_computed_columns_are_those_of_sqlite(seed: int) -> None:
    rnd = Random(seed)
    db, other = Database(dialect="sqlite"), sqlite3.connect(":memory:", isolation_level=None)
    for run in (db.execute, other.execute):
        run(MADE)
    for _ in range(40):
        a, n = rnd.choice([None, *range(-3, 4)]), rnd.randrange(6)
        value = "null" if a is None else a
        text = rnd.choice(
            [
                f"insert into t (a) values ({value}), ({n})",
                f"insert into t values ({n}, {value})",
                f"insert or replace into t (id, a) values ({n}, {value})",
                f"insert into t (id, a) values ({n}, 1) on conflict (id) do update set a = a + {n}",
                f"update t set a = {value} where id = {n}",
                f"delete from t where b > {n}",
                f"update t set b = {n}",
                f"insert into t (b) values ({n})",
            ]
        )
        found = []
        for run in (other.execute, db.execute):
            try:
                run(text)
                found.append(True)
            except (sqlite3.Error, PlanError, TableError):
                found.append(False)
        assert found[0] == found[1], text
        assert (
            rows(db, "select * from t order by id")
            == other.execute("select * from t order by id").fetchall()
        ), text
    other.close()


@pytest.mark.parametrize("kind", ["serial", "bigserial", "int generated always as identity"])
def test_rows_are_numbered(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t.db")
    with Database(path, dialect="postgres") as db:
        db.execute(f"create table t (id {kind}, a text)")
        db.execute("insert into t (a) values ('x'), ('y')")
        db.execute("insert into t (id, a) values (default, 'z')")
    with Database(path, dialect="postgres") as db:
        db.execute("insert into t (a) select a from t where a > 'x'")
        assert rows(db, "select id, a from t order by id") == [
            *((1, "x"), (2, "y"), (3, "z"), (4, "y"), (5, "z")),
        ]
        if "always" in kind:
            with pytest.raises(PlanError, match="'id' is generated"):
                db.execute("insert into t values (9, 'q')")
        with pytest.raises(PlanError, match="no number 'nr'"):
            db.execute("alter table t drop column id, add column nr serial")


def test_a_row_of_python_is_held_to_the_expression() -> None:
    db = Database()
    db.execute("create table t (a int, b int generated always as (a * 2))")
    [table] = db.tables()
    table.add((1, 2))
    with pytest.raises(TableError, match="is false"):
        table.add((1, 3))
    db.execute("alter table t add column c int generated always as (a + 1)")
    assert rows(db, "from t") == [(1, 2, 2)]
    with pytest.raises(PlanError, match="'b' is computed from 'a'"):
        db.execute("alter table t drop column a")
    for text, told in [
        ("create table u (a int as (b), b int as (a))", "is computed itself"),
        ("create table u (a int as (q + 1))", "no column 'q'"),
    ]:
        with pytest.raises(PlanError, match=told):
            db.execute(text)
    assert [each.name for each in db.tables()] == ["t"]


def test_information_schema_is_that_of_duckdb() -> None:
    other, db = duckdb.connect(), Database()
    for text in [
        "create table t (id integer primary key, a bigint default 3, b varchar not null, c double)",
        "create table u (x integer, y timestamp, unique (x, y))",
        "create view v as select id, b from t",
    ]:
        other.execute(text)
        db.execute(text)
    for query in [
        "select table_schema, table_name, table_type from information_schema.tables order by 2",
        "select table_name, column_name, ordinal_position, data_type from"
        " information_schema.columns where table_schema = 'main' order by 1, 3",
        "select table_name, column_name, is_nullable from information_schema.columns"
        " where table_name in ('t', 'u') order by 1, 2",
        "select table_name, constraint_type from information_schema.table_constraints"
        " where constraint_type in ('PRIMARY KEY', 'UNIQUE') order by 1, 2",
        "show tables",
    ]:
        assert rows(db, query) == other.execute(query).fetchall(), query
    described = rows(db, "describe t")
    assert [row[:3] for row in described] == [
        row[:3] for row in other.execute("describe t").fetchall()
    ]
    with pytest.raises(PlanError, match="no table or view 'tt'; did you mean 't'"):
        db.sql("describe tt")
    with pytest.raises(PlanError, match="no table 'nope' in information_schema"):
        db.sql("from information_schema.nope")
    db.execute("drop view v")
    assert rows(db, "show tables") == [("t",), ("u",)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_clients_ask_at_connection_is_answered(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (a int)")
    db.execute("create view v as select a from t")
    [row] = rows(db, "select version(), current_schema(), current_database()")
    assert all(isinstance(each, str) for each in row)
    assert rows(db, "select schema_name from information_schema.schemata order by 1")
    if dialect == "sqlite":
        assert rows(db, "select type, name from sqlite_master order by name") == [
            *(("table", "t"), ("view", "v")),
        ]
    con = connect(db)
    assert con.execute("show tables").fetchall() == [("t",), ("v",)]
    lines = [row[0] for row in con.execute("explain select a from t where a > 1").fetchall()]
    assert "as written" in lines and any("table t" in line for line in lines)
    lines = [row[0] for row in con.execute("explain analyze select count(*) from t").fetchall()]
    assert any("table t" in line for line in lines)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_prepared_statements_run_with_values(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (id int primary key, a text)")
    db.execute("prepare ins as insert into t values ($1, $2)")
    for number in range(3):
        assert db.execute(f"execute ins({number} + 1, 'it''s ${number}')") == 1
    db.execute("prepare one as select a from t where id = $1;")
    assert rows(db, "execute one(2)") == [("it's $1",)]
    for text, told in [
        ("execute one", "takes 1 values, not 0"),
        ("execute two(1)", "no prepared statement 'two'"),
        ("deallocate two", "no prepared statement 'two'"),
        ("prepare one as select 1", "there is a prepared statement 'one' already"),
        ("refresh t", "views are always fresh"),
    ]:
        with pytest.raises(PlanError, match=told):
            db.execute(text)
    db.execute("deallocate one")
    db.execute("create materialized view m as select a from t")
    assert db.execute("refresh materialized view m") == 0
    assert db.execute("comment on table t is 'words'") == 0
    assert db.execute("truncate table t") == 3
    assert rows(db, "select * from m") == []


def test_the_end_of_a_constraint_is_said_and_kept(tmp_path: Path, caplog: Any) -> None:
    path = str(tmp_path / "t.db")
    with Database(path) as db:
        db.execute("create table p (id int primary key)")
        db.execute("create table t (a int check (a > 0), of int references p)")
        with caplog.at_level(logging.WARNING, "reactive"):
            db.drop(db.tables()[0], views=True)
        assert "ends the constraint t_of_fkey of table 't'" in caplog.text
    with Database(path) as db:
        db.execute("insert into t values (1, 9)")
        with pytest.raises(TableError, match="a > 0 is false"):
            db.execute("insert into t values (0, 9)")


def test_sqlalchemy_sees_keys_and_constraints(tmp_path: Path) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    path = str(tmp_path / "t.db")
    with Database(path) as db:
        db.execute("create table p (id int primary key, x int, unique (x))")
        db.execute(
            "create table t (a int check (a > 0), of int references p, y int, "
            "foreign key (y) references p (x))"
        )
    with Database(path) as db:
        seen = sqlalchemy.inspect(create_engine(db))
        assert sorted(seen.get_table_names()) == ["p", "t"]
        assert seen.get_pk_constraint("p")["constrained_columns"] == ["id"]
        assert seen.get_unique_constraints("p")[0]["column_names"] == ["x"]
        assert [each["sqltext"] for each in seen.get_check_constraints("t")] == ["a > 0"]
        found = seen.get_foreign_keys("t")
        assert [
            (e["constrained_columns"], e["referred_table"], e["referred_columns"]) for e in found
        ] == [(["of"], "p", ["id"]), (["y"], "p", ["x"])]
        made = sqlalchemy.Table("t", sqlalchemy.MetaData(), autoload_with=create_engine(db))
        assert [column.name for column in made.columns] == ["a", "of", "y"]


def test_a_stored_table_is_declared_with_new_columns(tmp_path: Path) -> None:
    path = str(tmp_path / "t.db")
    with Database(path) as db:
        db.execute("create table t (a int)")
        db.execute("insert into t values (1)")
    for wrong, told in [
        ("a int, b int not null", "'b' of table 't' is NOT NULL"),
        ("a text", "column 'a' of table 't' has 1 in the file"),
        ("b int", "a column 'a' in the file, which is not declared"),
    ]:
        with Database(path) as db, pytest.raises(PlanError, match=told):
            db.execute(f"create table t ({wrong})")
    with Database(path) as db:
        db.execute("create table t (a int, b int default 7, c text)")
        assert rows(db, "from t") == [(1, 7, None)]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
def test_temporary_tables_and_views_are_in_no_file(tmp_path: Path, dialect: Any) -> None:
    path = tmp_path / "t.db"
    with Database(path, dialect=dialect) as db:
        db.execute("create table k (a int)")
        db.execute("create temp table p (a int primary key)")
        db.execute("create temporary table q as select 1 as a")
        db.execute("alter table p add column b int default 3")
        db.execute("insert into p (a) values (1)")
        db.execute("create temp view v as select a + b as n from p")
        db.execute("create view w as select n from v")
        assert list(db.sql("select n from w").materialize()) == [(4,)]
        with pytest.raises(PlanError, match="cannot reference 'p', which is temporary"):
            db.execute("create table c (a int references p)")
        db.execute("create temp table c (a int references p)")
        with pytest.raises(TableError, match="references 'p'"):
            db.execute("insert into c values (2)")
    with Database(path, dialect=dialect) as db:
        assert [row[0] for row in db.sql("show tables").materialize()] == ["k"]
        db.execute("create table p (z int)")


def test_drop_of_several_is_made_or_not() -> None:
    db = Database(dialect="postgres")
    for text in ("create table t (a int)", "create view v as select a from t"):
        db.execute(text)
    db.execute("create materialized view m as select a from t")
    for text in ("drop view v, nope", "drop view v, t", "drop table t, nope", "drop table t, v"):
        with pytest.raises(PlanError, match="there is no"):
            db.execute(text)
    assert db.sql("show tables").materialize().count(("t",)) == 1
    db.execute("drop view if exists nope, v")
    db.execute("drop materialized view m")
    db.execute("alter table t add column if not exists a text")
    db.execute("create index concurrently if not exists i on t (a)")
    db.execute("drop table if exists nope, t")
    assert not list(db.sql("show tables").materialize())
