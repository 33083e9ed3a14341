"""Scripts and statements in the dialect of Postgres have the effect of a Postgres server."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from reactive import Database, TableError
from tests.budget import TIMES, drawing
from tests.languages.sql.drawn_statements import Report
from tests.languages.sql.drawn_statements import play as play_statements
from tests.languages.sql.generate import scripts
from tests.languages.sql.oracles import Postgres
from tests.languages.sql.player import Report as Played
from tests.languages.sql.player import play
from tests.languages.sql.script import parsed, read
from tests.postgres_server import PostgresServer

SCRIPTS = Path(__file__).parent / "scripts"
PLAYED = {
    "queries": 86,
    "queries_duckdb": 24,
    "subqueries": 50,
    "subqueries_duckdb": 22,
    "functions": 12,
    "functions_sqlite": 3,
    "outer_only": 6,
    "windows": 21,
}
"""Scripts, and the number of their queries that Postgres accepts."""
UNEQUAL = {
    "subqueries.test:112": "sum of bigint is numeric in Postgres",
    "functions.test:379": "date_trunc of a date has a zone in Postgres",
}


@pytest.fixture(scope="module")
def dsn(postgres: PostgresServer) -> str:
    options = "template template0 lc_collate 'C' lc_ctype 'C.UTF-8'"
    postgres.execute(postgres.dsn(), f"create database scripts {options}")
    return postgres.dsn("scripts")


@pytest.mark.long
@pytest.mark.parametrize("name", PLAYED)
def test_views_are_what_postgres_gives(name: str, dsn: str) -> None:
    script = read(SCRIPTS / f"{name}.test")
    report = play(script, "postgres", Random(7), commits=14, made=lambda _: Postgres(dsn))
    assert report.queries == PLAYED[name]
    assert not report.refused, report
    wrong = {":".join(each.split(":")[:2]) for each in report.wrong}
    assert wrong == {each for each in UNEQUAL if each.startswith(f"{name}.test")}, report


@pytest.mark.long
def test_drawn_queries_are_what_postgres_gives(dsn: str) -> None:
    random, total = drawing(), Played()
    count, few = (2000, 25) if TIMES else (12, 12)
    for name, text in scripts(count, random.randrange(10**6), of_a_script=few):
        total.add(play(parsed(name, text), "postgres", random, 6, made=lambda _: Postgres(dsn)))
    assert total.compared > total.queries > count // 2
    assert not total.wrong and not total.refused, total


@pytest.mark.long
def test_statements_change_what_postgres_changes(dsn: str) -> None:
    random, report = drawing(), Report()
    for _ in range(500 if TIMES else 12):
        play_statements(Postgres(dsn), random, 40, report)
        assert not report.wrong, "\n".join(report.wrong)
    assert min(report.run[kind] for kind in ("insert", "update", "delete")) > 20
    assert not report.unexpected()


def test_a_row_is_changed_once_by_a_statement_of_postgres() -> None:
    text = "insert into t values (1, 1), (1, 2) on conflict (id) do update set a = excluded.a"
    db = Database(dialect="postgres")
    db.execute("create table t (id integer primary key, a integer)")
    with pytest.raises(TableError, match="changes no row twice"):
        db.execute(text)
    assert not list(db.sql("select * from t").materialize())

    other = Database(dialect="sqlite")
    other.execute("create table t (id integer primary key, a integer)")
    assert other.execute(text) == 2
