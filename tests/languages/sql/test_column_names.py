"""Unnamed columns of a SELECT are named after their expressions; in Postgres, as it does."""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg2
import pytest

from reactive import Database


class Row(NamedTuple):
    a: int
    b: str
    c: float | None
    items: tuple[int, ...]


EXPRESSIONS = """
a + 1;(a + 1) * 2;case when a > 1 then 2 else 3 end;case when a > 1 then 'x' else b end
c is null;not a > 1;a::text;cast(a as text);'1'::int;'2'::bigint;1::numeric(8, 2);1::boolean;-a;a
b like 'x%';b not like 'x%';a in (1, 2);a between 1 and 2;items[1];(items)[1];coalesce(c, 1);'x';1
null;true;b || 'x';exists (select 1);(select 1);(select a from t limit 1);(select 1 as one)
row_number() over (order by a);sum(a) over (partition by b);array[1, 2];substring(b from 1 for 2)
a = 1 and b = 'x';interval '1 day';date '2024-01-01';'x'::varchar;'12:00'::time;greatest(a, 1)
nullif(a, 1);abs(a);upper(b);length(b);round(c);extract(year from date '2024-01-01');b::text || 'x'
a = any(items);(a);((a + 1));1::int::text;a::text::varchar;(case when true then 1 end)::text
(case when true then 1 else a end)::text;case when true then 1 else '2'::int8 end;abs(-1)::int::text
""".strip().replace("\n", ";").split(";")  # fmt: skip
AGGREGATES = (
    """
count(*);sum(a);max(a) + 1;count(distinct a);sum(a) filter (where a > 1);avg(c);bool_or(a > 1)
string_agg(b, ',' order by a);array_agg(a);min(b)::text;coalesce(sum(a), 0)
""".strip()
    .replace("\n", ";")
    .split(";")
)


def _name(dialect: Any, expression: str) -> str:
    db = Database(dialect=dialect)
    db.table(Row, name="t")
    query: Any = db.sql(f"select {expression} from t")
    return str(query.schema.names[0])


@pytest.mark.long
@pytest.mark.parametrize("expression", [*EXPRESSIONS, *AGGREGATES])
def test_names_in_postgres_are_those_of_its_server(database: str, expression: str) -> None:
    with psycopg2.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("create temp table t (a int, b text, c float8, items int[])")
        cursor.execute(f"select {expression} from t")
        assert _name("postgres", expression) == cursor.description[0].name
    connection.close()


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("(a + 1) * 2", "(a + 1) * 2"),
        ("-a", "-a"),
        ("1 - -a", "1 - -a"),
        ("not a > 1", "NOT a > 1"),
        ("c is null", "c IS NULL"),
        ("a > 1 and c is null", "a > 1 AND c IS NULL"),
        ("case when a > 1 then 2 end", "CASE WHEN a > 1 THEN 2 END"),
        ("cast(a as text)", "CAST(a AS TEXT)"),
        ("count( * )", "count( * )"),
        ("coalesce(c,  (1))", "coalesce(c, (1))"),
        ("exists (select 1)", "EXISTS(SELECT 1)"),
    ],
)
def test_names_elsewhere_are_the_whole_expressions(expression: str, name: str) -> None:
    assert (
        _name("duckdb", expression) == _name("sqlite", expression).replace("text", "TEXT") == name
    )


def test_unnamed_columns_are_read_by_their_names() -> None:
    db = Database(dialect="postgres")
    rows = db.table(Row, name="t")
    text = 'select count + 1, "?column?" from (select count(*), sum(a) + 1 from t) as s'
    view = db.sql(text).materialize()
    rows.add(Row(3, "x", None, ()))
    assert [tuple(row) for row in view] == [(2, 4)]


class Words(NamedTuple):
    array: tuple[int, ...]
    interval: int


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("t.array[1]", 5),
        ('"array"[1]', 5),
        ("array[array[1, 2][2], 3]", (2, 3)),
        ("interval + 1", 8),
        ("interval - 1", 6),
        ("t.interval", 7),
    ],
)
def test_columns_are_called_as_words_of_the_grammar(
    dialect: Any, expression: str, value: Any
) -> None:
    db = Database(dialect=dialect)
    db.table(Words, name="t").add(Words((5, 6), 7))
    assert [tuple(row) for row in db.sql(f"select {expression} from t").materialize()] == [(value,)]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
def test_tables_are_called_as_words_of_python(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (a int, b int)")
    view = db.sql(
        "select def.a, lambda.b from t as def left join t as lambda on lambda.b > def.a "
        "and def.b = lambda.a"
    ).materialize()
    db.execute("insert into t values (1, 2), (2, 3)")
    assert sorted(tuple(row) for row in view) == [(1, 3), (2, None)]
    view.verify()
