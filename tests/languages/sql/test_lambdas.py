"""Functions that take a lambda, and comprehensions of lists: equal to DuckDB after each change."""

from __future__ import annotations

from random import Random
from typing import Any

import duckdb
import pytest

from reactive import Database, PlanError
from tests.budget import seeds

TABLE = "create table t (a int primary key, n int, l int[], s varchar[], m int[][])"
EXPRESSIONS = [
    "list_transform(l, x -> x + 1)",
    "list_apply(l, x -> x + n)",
    "array_transform(l, (x, i) -> x * i + a)",
    "list_filter(l, x -> x > 1)",
    "list_filter(l, (x, i) -> i < 3 or x is null)",
    "filter(s, x -> x like 'x%')",
    "[x + n for x in l if x > 1]",
    "[x for x, i in l if i > 1]",
    "[upper(x) for x in s]",
    "list_reduce(list_filter(l, x -> x is not null) || [0], (s, x) -> s + x)",
    "list_reduce(l, (s, x) -> s + coalesce(x, n, 0), 5)",
    "list_reduce(s, (p, q) -> p || coalesce(q, '?'), '')",
    "list_transform(m, r -> list_transform(r, x -> x + n))",
    "list_transform(m, r -> list_filter(r, x -> x > len(r)))",
    "list_transform(list_transform(m, r -> r[1]), x -> x + 1)",
    "list_transform(s, x -> upper(x) || '!')",
    "list_transform(l, x -> case when x > 1 then n end)",
    "list_transform(l, x -> x > 1 and n > 3)",
    "list_transform([1, 2], x -> a)",
    "list_transform(l, a -> a + 1)",
    "list_transform(l, x -> list_transform(s, x -> length(x)))",
    "list_filter(l, x -> x in (1, a))",
    "list_transform(l, lambda x: x + 1)",
    "len(list_filter(l, x -> x % 2 = 0))",
    "list_transform(null, x -> x + 1)",
    "list_transform(l, x -> x)",
    "list_filter([n > 3, null, a > 1], x -> x)",
    "list_reduce(l, (x, y) -> y, 0)",
    "list_transform(m, r -> list_transform(r, x -> r))",
    "[x + i for x, i in l if i > 1]",
    "[x + i + n for x, i in l if x > 1 and i < 3 + a]",
    "[x + n for x in l if x > a or x + n > 5]",
    "[t.n + x for x in l]",
    "[o.k + n for o in [{'k': a}, {'k': n}]]",
    "[o.k for o in [{'k': a}, {'k': n}] if o.k > 1]",
]


def drawn_row(rnd: Random, number: int) -> tuple[Any, ...]:
    """Return a row of the table."""

    def some(values: list[Any]) -> Any:
        return None if rnd.random() < 0.2 else rnd.choices(values, k=rnd.randrange(4))

    inner = some([None, [], [1], [2, None, 3], [4, 5]])
    return (
        *(number, rnd.choice([None, 1, 4, 10]), some([None, 0, 1, 2, 3, 7])),
        *(some([None, "x", "yy", "xz"]), inner),
    )


def plain(value: Any) -> Any:
    """Return a value with tuples as lists."""
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value


def literal(value: Any) -> str:
    """Return a value of a column as SQL."""
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return "null" if value is None else repr(value)


@pytest.mark.parametrize("seed", seeds(24))
def test_lists_are_those_of_duckdb(seed: int) -> None:
    rnd = Random(seed)
    db, other = Database(), duckdb.connect()
    other.execute("set lambda_syntax = 'ENABLE_SINGLE_ARROW'")
    for run in (db.execute, other.execute):
        run(TABLE)
    query = f"select a, {', '.join(f'{e} as c{n}' for n, e in enumerate(EXPRESSIONS))} from t"
    view = db.sql(f"{query} order by a").materialize()
    for _ in range(12):
        number = rnd.randrange(5)
        texts = [f"delete from t where a = {number}"]
        if rnd.random() < 0.8:
            row = drawn_row(rnd, number)
            texts.append(f"insert into t values ({', '.join(map(literal, row))})")
        if rnd.random() < 0.3:
            texts.append("update t set l = list_transform(l, x -> x + 1), n = n - 1 where a < 3")
        for text in texts:
            db.execute(text)
            other.execute(text)
        expected = other.execute(f"{query} order by a").fetchall()
        assert [plain(row) for row in view] == [plain(row) for row in expected]
    assert not list(view.errors)
    view.verify()
    other.close()


def test_a_lambda_reads_the_rows_around_groups_and_parameters() -> None:
    db = Database()
    db.execute(TABLE)
    for row in ("(1, 4, [1, 2], null, null)", "(4, 7, [3], null, null)", "(2, 1, [3], null, null)"):
        db.execute(f"insert into t values {row}")
    joined = db.sql(
        "select t.a, list_transform(t.l, x -> x + b.n) as r from t left join t b on b.a = t.n"
    ).materialize()
    assert {row.a: row.r for row in joined} == {1: (8, 9), 4: (None,), 2: (7,)}
    grouped = db.sql("select l, [x + sum(n) for x in l] as r from t group by l").materialize()
    assert sorted(grouped) == [((1, 2), (5, 6)), ((3,), (11,))]
    asked = db.sql("select a, [x + (select max(n) from t) for x in l] as r from t").materialize()
    assert {row.a: row.r for row in asked} == {1: (8, 9), 4: (10,), 2: (10,)}
    limit = db.parameter(2)
    large = db.sql("select a, list_filter(l, x -> x >= :n) as r from t", n=limit).materialize()
    assert {row.a: row.r for row in large} == {1: (2,), 4: (3,), 2: (3,)}
    limit.set(3)
    assert {row.a: row.r for row in large} == {1: (), 4: (3,), 2: (3,)}


def test_a_statement_that_is_run_again_has_its_own_values() -> None:
    db = Database()
    db.execute(TABLE)
    db.execute("insert into t values (1, 4, [1, 2], null, null)")
    for more in (1, 10, 100):
        db.execute("update t set l = list_transform(l, x -> x + :more) where a = 1", more=more)
    for more in (1, 10, 100):
        db.execute(f"update t set l = list_filter(l, x -> x > {more}) where a = 1")
    assert db.sql("select l from t").materialize().value == ((112, 113),)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("list_transform(l, (x, y, z) -> 1)", "at most 2 parameters"),
        ("list_transform(l, x -> q)", "no column 'q'"),
        ("list_transform(n, x -> x)", "takes a list"),
        ("list_transform(l, n)", "takes a list and a lambda"),
        ("list_transform(l, x -> (select max(a) from t where a > x))", "a query of the parameters"),
        ("list_reduce(l, x -> x)", "two or three parameters"),
        ("list_reduce(l, (x, y) -> 'a')", "another type"),
        ("[x for x in n]", "takes a list"),
        ("list_filter(l, x -> x in (select a from t))", "a query of the parameters"),
        ("list_filter(l, x -> x > all (select a from t))", "a query of the parameters"),
        ("[x for x in l if list_filter([1], y -> x in (from t select a)) = l]", "a query of the"),
        ("[x.k for x in l]", "no field 'k'"),
    ],
)
def test_what_is_no_lambda_of_a_list_is_told(expression: str, told: str) -> None:
    db = Database()
    db.execute(TABLE)
    with pytest.raises(PlanError, match=told):
        db.sql(f"select {expression} from t")


def test_an_empty_list_without_a_start_is_an_error_of_its_row() -> None:
    db = Database()
    db.execute(TABLE)
    db.execute("insert into t values (1, 4, [1, 2], null, null), (2, 1, [], null, null)")
    view = db.sql("select a, list_reduce(l, (x, y) -> x + y) as r from t").materialize()
    assert list(view) == [(1, 3)]
    assert "empty list" in str(next(iter(view.errors)).error)
