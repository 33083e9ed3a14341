"""JSON_TO_RECORD and JSON_TO_RECORDSET in FROM: their rows are those of Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reactive import Database, PlanError
from tests.languages.sql.oracles import Postgres
from tests.languages.sql.postgres_player import new_database
from tests.postgres_server import PostgresServer

TABLE = "create table t (id int, j jsonb, k json)"
CHANGES = (
    'insert into t values (1, \'{"a": 1, "b": "x", "c": {"d": [1]}, "e": true}\','
    ' \'[{"a": 1}, {"a": null, "b": "y"}]\'), (2, \'{}\', \'[]\'), (3, null, null)',
    'update t set j = \'{"a": 7}\', k = \'[{"a": 9, "b": [1, 2]}]\' where id = 2',
    "delete from t where id = 1",
)
QUERIES = (
    'select * from jsonb_to_record(\'{"a":1,"b":"x"}\') as x(a int, b text)',
    "select * from jsonb_to_record(null) as x(a int)",
    "select id, x.a, x.b, x.c::text, x.e, x.z from t,"
    " jsonb_to_record(t.j) as x(a int, b text, c jsonb, e boolean, z date)",
    "select id, x.* from t, json_to_recordset(t.k) as x(a int, b text)",
    "select id, x.b from t left join lateral json_to_recordset(k) x(a int, b text) on x.a = 1",
    "select id, a + 1 from t cross join lateral jsonb_to_record(j) x(a int)",
    "select sum(x.a) from t, json_to_recordset(t.k) as x(a int)",
)


@pytest.fixture
def elephant(postgres: PostgresServer) -> Iterator[Postgres]:
    found = Postgres(new_database(postgres, "json_records"))
    yield found
    found.close()


def test_records_are_those_of_postgres(elephant: Postgres) -> None:
    db = Database(dialect="postgres")
    elephant.run(TABLE)
    db.execute(TABLE)
    views = [(text, db.sql(text).materialize()) for text in QUERIES]
    for change in CHANGES:
        elephant.run(change)
        db.execute(change)
        for text, view in views:
            assert _sorted(view) == _sorted(elephant.ask(text)), text
    for _, view in views:
        view.verify()


def _sorted(rows: Any) -> list[Any]:
    return sorted(map(tuple, rows), key=repr)


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ("jsonb_to_record('{}')", "needs columns with types"),
        ("jsonb_to_record('{}') as x(a)", "needs columns with types"),
        ("jsonb_to_record('{}', 1) as x(a int)", "takes one argument"),
        ("jsonb_to_record('{}') as x(a int[])", "is not read from JSON"),
    ],
)
def test_other_records_are_refused(item: str, problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        Database(dialect="postgres").sql(f"select * from {item}")
