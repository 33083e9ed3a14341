"""Conditions as keys of CUBE and GROUPING SETS, VALUES behind IN, and arrays of two dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reactive import Database
from tests.languages.sql.oracles import DuckDB, Oracle, Postgres
from tests.languages.sql.postgres_player import new_database
from tests.postgres_server import PostgresServer

STATEMENTS = (
    "create table t (a int, b text)",
    "insert into t values (1, 'x'), (2, null), (null, null), (1, 'y')",
)
BOTH = (
    "select count(*) from t group by cube (a > 1)",
    "select a > 1 as k, b is null as n, count(*) from t"
    " group by grouping sets ((a > 1, b is null), a > 1, ())",
    "select count(*) from t group by rollup (a = 1 or b is null, b)",
    "select * from t where (a, b) in (values (1, 'x'), (2, 'y'))",
    "select * from t where (a, b) not in (values (1, 'x'), (2, 'y'))",
    "select a in (values (1), (null)) as k, count(*) from t group by k",
)
POSTGRES = (
    *BOTH,
    "select unnest(array[[1, 2], [3, 4]])",
    "select * from unnest(array[[1, 2], [3, 4]]) with ordinality u(x, n)",
)
DUCKDB = (*BOTH, "select unnest([[1, 2], [3, 4]])", "select repeat([1, null], 2), repeat('a', 2)")


def _compare(engine: Oracle, dialect: Any, queries: tuple[str, ...]) -> None:
    db = Database(dialect=dialect)
    for text in STATEMENTS:
        engine.run(text)
        db.execute(text)
    for text in queries:
        mine = map(tuple, db.sql(text).materialize())
        assert sorted(mine, key=repr) == sorted(map(tuple, engine.ask(text)), key=repr), text


def test_conditions_are_read_as_in_duckdb() -> None:
    _compare(DuckDB(), "duckdb", DUCKDB)


@pytest.fixture
def elephant(postgres: PostgresServer) -> Iterator[Postgres]:
    found = Postgres(new_database(postgres, "grouped_conditions"))
    yield found
    found.close()


def test_conditions_are_read_as_in_postgres(elephant: Postgres) -> None:
    _compare(elephant, "postgres", POSTGRES)
