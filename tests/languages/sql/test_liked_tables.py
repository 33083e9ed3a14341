"""CREATE TABLE with LIKE: the rows that the table takes and refuses are those of Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reactive import Database, PlanError
from tests.languages.sql.oracles import Postgres, Refused
from tests.languages.sql.postgres_player import new_database
from tests.postgres_server import PostgresServer

STATEMENTS = (
    "create table t (id int primary key, a int not null default 5 check (a > 0),"
    " b numeric(10,2) unique, c double precision[],"
    " e int generated always as (a * 2) stored, constraint q unique (a, b))",
    "create table u (like t)",
    "insert into u values (1, 2, 3.456, '{1,2}', 4)",
    "insert into u values (1, -2, 3.456, null, null)",
    "insert into u values (1, null, 3, null, null)",
    "insert into u (id) values (null)",
    "create table v (like t including all, extra text default 'x')",
    "insert into v (id, b) values (1, 2)",
    "insert into v (id, b) values (1, 3)",
    "insert into v (id, b) values (2, 2)",
    "insert into v (id, a) values (2, -3)",
    "create temp table w (like t including defaults including constraints)",
    "insert into w (id) values (7), (7)",
    "insert into w (id, a) values (7, -1)",
    "create table x (like nowhere)",
    "create table if not exists u (like t)",
    "create table y (like t including all excluding indexes)",
    "insert into y (id, b) values (1, 2), (1, 2)",
    "create table pair (p int, q int, primary key (p, q))",
    "create table free (like pair)",
    "insert into free values (1, null)",
    "insert into free values (1, 1), (1, 1)",
    "create table keyed (like pair including indexes)",
    "insert into keyed values (1, 1), (1, 1)",
)


@pytest.fixture
def elephant(postgres: PostgresServer) -> Iterator[Postgres]:
    found = Postgres(new_database(postgres, "liked_tables"))
    yield found
    found.close()


def test_a_table_like_another_is_that_of_postgres(elephant: Postgres) -> None:
    db = Database(dialect="postgres")
    for text in STATEMENTS:
        try:
            elephant.run(text)
        except Refused:
            with pytest.raises(LookupError if text.startswith("insert") else PlanError):
                db.execute(text)
            continue
        db.execute(text)
    for name in "uvwy":
        query = f"select * from {name}"
        mine = sorted(map(tuple, db.sql(query).materialize()), key=repr)
        assert mine == sorted(elephant.ask(query), key=repr), name


def test_a_table_like_another_is_stored_with_its_columns(tmp_path: Path) -> None:
    like = "create table app.u (like app.t including all, c int)"
    path = tmp_path / "tables.db"
    with Database(path, dialect="postgres") as db:
        db.execute("create schema app")
        db.execute("create table app.t (a int primary key, b text default 'q')")
        db.execute(like)
        db.execute("insert into app.u (a) values (1)")
    with Database(path, dialect="postgres") as db:
        db.execute(like)
        assert db.sql("select * from app.u").materialize().value == (1, "q", None)


def test_what_like_cannot_do_is_said() -> None:
    db = Database(dialect="postgres")
    db.execute("create table s (id serial)")
    with pytest.raises(PlanError, match="those of the other table"):
        db.execute("create table u (like s including defaults)")
    db.table(tuple[int, str], name="python")
    with pytest.raises(PlanError, match="not made by CREATE TABLE"):
        db.execute("create table u (like python)")
    other = Database()
    other.execute("create table t (a int)")
    with pytest.raises(PlanError, match="LIKE T in CREATE TABLE is not supported"):
        other.execute("create table u (like t)")
