"""A SQL view never stops writers: a row with an incomparable value is an error row."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import duckdb
import pytest

from reactive import Database, PlanError
from tests.budget import sampled

QUERIES = [
    *(f"select k, {of} as v from t group by k" for of in ("min(x)", "max(x)", "bit_or(x)")),
    "select k, arg_max(k, x) as v from t group by k",
    "select x from t order by x",
    "select k, x from t order by x desc limit 2",
    "select distinct on (k) k, x from t order by k, x",
    "select k from t where x = (select max(x) from t)",
    "select x from t union select k from t order by 1",
]
NO_COMMON_TYPE = QUERIES[-1]
"""A query that unites `x` with an integer: refused where `x` is a struct or a list."""
KINDS: dict[str, tuple[str, list[Any]]] = {
    "a text among integers": ("int", [3, 5, "a"]),
    "NULL among integers": ("int", [3, 5, None]),
    "a struct with NULL": ("struct(a int)", [(3,), (5,), (None,)]),
    "a list with NULL": ("int[]", [(3,), (5,), (None,)]),
}


@sampled
@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("policy", ["drop", "null"])
def test_no_value_stops_a_writer(query: str, kind: str, policy: Any) -> None:
    declared, values = KINDS[kind]
    if query == NO_COMMON_TYPE and declared != "int":
        db = Database()
        db.execute(f"create table t (k int, x {declared})")
        with pytest.raises(PlanError, match="no common type"):
            db.sql(query)
        return
    db, found = Database(), []
    db.execute(f"create table t (k int, x {declared})")
    view = db.sql(query).materialize(on_error=policy)
    (table,) = db.tables()
    for order in permutations(values):
        rows = [table.row_type(1, value) for value in order]
        for row in rows:
            table.add(row)
            view.verify()
        found.append((sorted(map(repr, view)), sorted(map(repr, view.errors))))
        view.errors.verify()
        for row in rows:
            table.remove(row)
            view.verify()
        assert list(view.errors) == []
    assert all(each == found[0] for each in found)  # in any order of arrival


OF_PARTS: dict[str, list[Any]] = {
    "struct(a int, b text)": [(1, "x"), (None, "y"), (0, None), (1, None), (None, None), None],
    "int[]": [(1, 2), (1, None), (None,), (1,), (), (None, 1), None],
    "int[][]": [((1,), None), ((None,), (2,)), ((1, None),), (None,), (), None],
    "struct(a int[], b double)": [((1, None), 2.0), ((1, 2), None), (None, 1.0), ((), 1.5), None],
}
"""Declared types, and values of them with NULL inside."""
IN_ORDER = [
    "select min(s), max(s) from t",
    "select k, min(s), max(s) from t group by k order by k",
    "select arg_min(id, s), arg_max(id, s), arg_max(s, id) from t",
    "select arg_min(k, s), arg_max(k, s) from t where id < 3",
    *(f"select id from t order by s {way}, id" for way in ("", "desc", "nulls first", "asc")),
    "select id from t order by k desc, s desc, id limit 3",
    "select distinct on (k) k, id from t order by k, s desc, id",
    "select distinct s from t order by s",
    "select s, count(*) from t group by s order by s desc",
    "select id from t where s < (select max(s) from t) order by id",
    "select id from t where s >= all (select s from t where s is not null) order by id",
    "select list(id order by s, id), list(id order by s desc, id) from t",
    "select id, row_number() over (order by s, id) from t order by id",
    "select id, rank() over (order by s desc) from t order by id",
    "select id, max(s) over (order by id), min(s) over (partition by k) from t order by id",
    "select id, min(s) over (order by id rows 1 preceding) from t order by id",
    "select id, first_value(id) over (partition by k order by s desc, id) from t order by id",
    "select greatest(s, (select min(s) from t)) from t order by id",
]


@pytest.mark.long
@pytest.mark.sampled
@pytest.mark.parametrize("query", IN_ORDER)
@pytest.mark.parametrize("declared", OF_PARTS)
def test_null_inside_of_rows_and_arrays_is_the_greatest(declared: str, query: str) -> None:
    values = OF_PARTS[declared]
    db, engine = Database(dialect="duckdb"), duckdb.connect()
    for execute in (db.execute, engine.execute):
        execute(f"create table t (id int, k int, s {declared})")
    (table,) = db.tables()
    view = db.sql(query).materialize()
    rows = [(n, n % 2, value) for n, value in enumerate(values)]
    for row in rows:
        table.add(table.row_type(*row))
        view.verify()
        assert list(view.errors) == []
    for id_, k, value in rows:
        text = _written(value, "row()" if declared.startswith("struct") else "[]")
        engine.execute(f"insert into t values ({id_}, {k}, {text})")
    expected = engine.execute(query).fetchall()
    assert [tuple(row) for row in view] == [tuple(map(_as_tuples, row)) for row in expected]


def _written(value: Any, marks: str) -> str:
    """Return a value as DuckDB writes it: a tuple between `marks`, those inside as arrays."""
    if isinstance(value, tuple):
        inside = ", ".join(_written(item, "[]") for item in value)
        return f"{marks[:-1]}{inside}{marks[-1]}"
    return "null" if value is None else repr(value)


def _as_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        value = list(value.values())
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


@pytest.mark.sampled
@pytest.mark.parametrize("which", ["all", "any"])
@pytest.mark.parametrize("symbol", ["<", "<=", ">", ">=", "=", "<>"])
def test_null_beside_any_and_all_is_no_error(symbol: str, which: str) -> None:
    db = Database(dialect="duckdb")
    db.execute("create table t (x int)")
    texts = ("t.x", "t.x + 1")
    views = [
        db.sql(f"select x from t where {x} {symbol} {which} (select x from t o where {y} > 0)")
        for x in texts
        for y in ("o.x", "t.x")
    ]
    made = [each.materialize() for each in views]
    for value in (1, None, 2):
        db.execute("insert into t values (:value)", value=value)
        assert [list(view.errors) for view in made] == [[], [], [], []]


def test_of_values_without_a_declared_kind_most_are_shown() -> None:
    db = Database()
    rows = db.table(tuple[int, Any], name="rows")
    view = rows.order_by(lambda row: row[1]).materialize(on_error="drop")
    rows.add_all([(1, "b"), (2, 7), (3, "a")])
    assert list(view) == [(3, "a"), (1, "b")]
    assert [error.row for error in view.errors] == [(2, 7)]
    rows.add_all([(4, 5), (5, 6)])
    view.verify()
    view.errors.verify()
    assert list(view) == [(4, 5), (5, 6), (2, 7)]
    rows.remove_all([(1, "b"), (3, "a")])
    assert list(view.errors) == []


def test_two_recursions_beside_each_other_are_apart() -> None:
    db = Database()
    db.execute("create table e (a int, b int)")
    db.execute("insert into e values (1, 2), (2, 3), (3, 0)")
    text = """
        with recursive
          x(a, b) as (select a, 10 % b from e where b > 0 union
            select x.a, 10 % e.b from x join e on x.a = e.a where e.b > 0),
          y(a, b) as (select a, 25 % b from e union
            select y.a, 25 % e.b from y join e on y.a = e.a)
        select 'x' as k, a, b from x union all select 'y', a, b from y"""
    view = db.sql(text).materialize(on_error="drop")
    rows = sorted(map(tuple, view))
    assert rows == [("x", 1, 0), ("x", 2, 1), ("y", 1, 1), ("y", 2, 1)]
    assert {error.error.kind for error in view.errors} == {"ZeroDivisionError"}
    view.verify()
