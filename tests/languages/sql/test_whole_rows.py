"""Names of tables as values: a whole row is a struct, as in DuckDB and in Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reactive import Database, PlanError
from tests.languages.sql.oracles import DuckDB, Oracle, Postgres, Refused
from tests.languages.sql.postgres_player import new_database
from tests.postgres_server import PostgresServer

TABLES = ("create table t (a int, b text)", "create table u (a int, c int not null)")
CHANGES = (
    "insert into t values (1, 'x'), (2, null), (null, null), (1, 'x')",
    "insert into u values (1, 5), (3, 6)",
    "update t set b = 'y' where a = 2",
    "insert into u values (2, null::int + 1)",
    "delete from t where a = 1",
)
BOTH = (
    "select t from t",
    "select t.a, t from t where a > 1",
    "select count(distinct t), count(*) from t",
    "select distinct t from t",
    "select t, count(*) from t group by t",
    "select x.b from t x join u y on x.a = y.a and y.c > 4 where x = x",
    "select x from t x join u y on x.a = y.a",
    "select t from t order by t.a nulls last, t.b limit 2",
    "select x.a from t x where exists (select 1 from u where u.a = x.a and u = u)",
    "select (select x) from t x",
    "select s from (select a, c + 1 as d from u) s",
    "with w as (select 1 as k) select w from w",
    "select v from (values (1, 'q')) v(i, j)",
    "select case when x.a = 1 then x end from t x",
    "select first_value(u) over (order by c) from u",
    "select a from u where u in (select u from u where c = 5)",
)
POSTGRES = (
    *BOTH,
    "select t.a, t is null, t is not null from t",
    "select (t).a, (t).b from t",
    "select (t).* from t",
    "select t::text from t",
    "select x.a, y from t x left join u y on x.a = y.a",
    "select count(y), count(x) from t x left join u y on x.a = y.a",
    "select x.a from t x left join u y on x.a = y.a where y is null",
    "select row_to_json(s)::text from (select a, c + 1 as d from u) s",
    "select json_agg(s order by d)::text from (select a, c + 1 as d from u) s",
)
DUCKDB = (
    *BOTH,
    "select t.a, t is null from t",
    "select t.a, struct_extract(t, 'b') from t",
    "select list(u order by u.c) from u",
    "select max(t) from t",
    "select to_json(t)::varchar from t",
    "select x.a, y from t x left join u y on x.a = y.a",
    "select count(y) from t x left join u y on x.a = y.a",
)


def _play(engine: Oracle, dialect: Any, queries: tuple[str, ...]) -> None:
    """Compare views with the other database after each change."""
    db = Database(dialect=dialect)
    for text in TABLES:
        engine.run(text)
        db.execute(text)
    views = [db.sql(text).materialize() for text in queries]
    for change in CHANGES:
        try:
            engine.run(change)
        except Refused:
            continue
        db.execute(change)
        for text, view in zip(queries, views, strict=True):
            mine = [tuple(map(_as_text, row)) for row in view]
            theirs = [tuple(map(_as_text, row)) for row in engine.ask(text)]
            assert sorted(mine) == sorted(theirs), text
    for view in views:
        view.verify()


def _as_text(value: Any) -> str:
    """Return a value as the texts of rows are: `(1,x)`."""
    if isinstance(value, tuple):
        return f"({','.join('' if each is None else _as_text(each) for each in value)})"
    return str(value)


def test_whole_rows_are_those_of_duckdb() -> None:
    _play(DuckDB(), "duckdb", DUCKDB)


@pytest.fixture
def elephant(postgres: PostgresServer) -> Iterator[Postgres]:
    found = Postgres(new_database(postgres, "whole_rows"))
    yield found
    found.close()


def test_whole_rows_are_those_of_postgres(elephant: Postgres) -> None:
    _play(elephant, "postgres", POSTGRES)


def test_columns_come_before_tables_and_tables_before_nothing() -> None:
    db = Database()
    db.execute("create table c (id int, sales int)")
    db.execute("create table sales (c int)")
    db.execute("insert into c values (1, 7)")
    db.execute("insert into sales values (1)")
    assert db.sql("select sales from c, sales").materialize().value == (7,)
    text = "select id from c where exists (select 1 from sales where sales.c = c.id)"
    assert db.sql(text).materialize().value == (1,)
    with pytest.raises(PlanError, match="no column 'd'"):
        db.sql("select d from c")
    with pytest.raises(PlanError, match="neither in GROUP BY"):
        db.sql("select c from c group by id")
