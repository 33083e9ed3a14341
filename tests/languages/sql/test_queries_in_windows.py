"""Queries inside of windows, and where a constant is needed; constants that have no value."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pytest

from reactive import Database, PlanError
from tests.budget import drawing

STATEMENTS = (
    "create table t (i int, s text)",
    "create table u (a int, b text)",
    "insert into t values (1, 'a'), (2, 'b'), (3, 'a'), (null, 'c')",
    "insert into u values (1, 'a'), (2, 'x'), (null, 'a')",
)
CHANGES = (
    "insert into u values (3, 'c')",
    "delete from t where i = 2",
    "delete from u where a = 1",
    "insert into t values (7, 'a'), (0, 'd')",
)
TEXTS = (
    "select sum((select i)) over () from t",
    "select max(i) over (partition by (select s)) from t",
    "select i, sum(i) over (order by (select count(*) from u where u.a <= t.i), i) from t",
    "select sum(case when exists (select 1 from u where u.a = t.i) then 1 else 0 end) "
    "over (partition by s) from t",
    "select i, sum(case when t.i in (select a from u) then 9 else 1 end) "
    "over (order by i nulls first) from t",
    "select count(*) filter (where t.s in (select b from u)) over () from t",
    "select sum(i + (select max(a) from u)) over () + (select min(a) from u) from t",
    "select rank() over (order by i in (select a from u where a > 0) nulls first, s) from t",
    "select s, sum(count(*)) over (partition by s = any(select b from u)) from t group by s",
    "select i, sum(i) over w from t window w as (partition by (select max(b) from u where a = 1))",
    "select sum(distinct (select i)) over () from t",
    "select i from t qualify row_number() over (order by (select max(a) from u), i) > 1",
    "select i from t order by i limit (select 1)",
    "select i from t order by i limit 2 offset (select 1)",
)


@pytest.mark.long
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_as_in_duckdb(text: str) -> None:
    db, other = Database(), duckdb.connect()
    for statement in STATEMENTS:
        db.execute(statement)
        other.execute(statement)
    view = db.sql(text).materialize()
    for change in ("select 1", *CHANGES):
        if change != "select 1":
            db.execute(change)
            other.execute(change)
        assert sorted(map(repr, map(tuple, view))) == sorted(
            map(repr, other.execute(text).fetchall())
        )
    view.verify()


def test_like_any_and_all_of_an_array() -> None:
    db = Database(dialect="postgres")
    for statement in STATEMENTS:
        db.execute(statement)
    text = """select s, s like any (array['a', 'B%']), s not like all (array['a', 'x']),
        s ilike any (array['x', 'B%']), s like any (array['a', null]) from t where i > 0"""
    assert sorted(map(tuple, db.sql(text).materialize()), key=repr) == [
        ("a", True, False, False, True),
        ("a", True, False, False, True),
        ("b", False, True, True, None),
    ]


REFUSED = {
    "select i from t limit (select max(a) from u)": "depends on tables",
    "select lag(i, (select 1)) over (order by i) from t": "has to be a constant",
    "with r(p, q) as (select 4 as p) select p from r": "2 names are given to 1 columns",
    "select * from t as x(a, b, c)": "3 names are given to 2 columns",
    "select * from (select 1) as x(a, b)": "2 names are given to 1 columns",
    "select regexp_matches(s, any(['a'])) from t": "not supported here",
    "select i like any (select b from u) from t": "cannot have a query",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_meaning_is_refused_with_its_place(text: str) -> None:
    db = Database()
    for statement in STATEMENTS:
        db.execute(statement)
    with pytest.raises(PlanError, match=REFUSED[text]):
        db.sql(text).materialize()


CONSTANTS: dict[str, Any] = {
    "select a from (values (cast('x' as int)), (4)) as t(a)": [(4,)],
    "select x from (values (['294247-01-10'::date])) t(x)": [],
    "select cast('y' as int) as a": [],
}


@pytest.mark.parametrize("text", CONSTANTS)
def test_a_constant_without_value_is_an_error_of_its_row(text: str) -> None:
    view = Database().sql(text).materialize()
    assert list(map(tuple, view)) == CONSTANTS[text]
    assert len(view.errors) == 1


@pytest.mark.parametrize(
    "statement",
    (
        "insert into t values ('x'::int, 'a')",
        "insert into t values ((select max(i) from t) / 0, 'a'::int)",
        "update t set i = cast(s as int)",
        "delete from t where cast(s as int) = 1",
        "create table v (a int default ('x'::int))",
        "create table v (a int, b int) as select 1",
    ),
)
def test_a_statement_that_cannot_be_evaluated_is_refused(statement: str) -> None:
    db = Database()
    for each in STATEMENTS:
        db.execute(each)
    before = sorted(map(repr, db.sql("select * from t").materialize()))
    with pytest.raises(PlanError):
        db.execute(statement)
    assert sorted(map(repr, db.sql("select * from t").materialize())) == before


def test_a_column_has_a_name_that_python_reads_as_it_is_written() -> None:
    (row,) = Database().sql('select 1 as "fib\u2099\u208a\u2081", 2 as "\ufb01n"').materialize()
    assert row._fields == ("fibn_1", "fin")


AROUND = (
    "select id from t where v in (select max(v) over (partition by g) from t u where u.g = t.g)",
    "select id from t where exists (select 1 from (select row_number() over (order by id) rn "
    "from u where u.g = t.g) x where x.rn = 2)",
    "select id, (select sum(x) from (select sum(v) over (order by id) x from u where u.g = t.g) y)"
    " from t",
    "select id from t where v not in (select lag(v) over (order by id) from u where u.g = t.g)",
    "select id, rank() over (partition by g order by (select count(*) from u where u.g = t.g), id)"
    " from t",
    "select id, sum(v) over (partition by exists (select 1 from u where u.g = t.g) order by id) "
    "from t",
    "select id, (select rn from (select id, row_number() over (partition by g order by id desc) rn"
    " from t t2) z where z.id = t.id) from t",
    "select id from t where v > all (select avg(v) over (partition by g) from u where u.g <> t.g)",
    "select id from t where (g, v) in (select g, first_value(v) over (partition by g order by id) "
    "from u)",
    "select id from t qualify row_number() over (partition by g order by id) = "
    "(select min(v) from u where u.g = t.g)",
    "with recursive r(n) as (select id from t where id < 2 union select x.id from (select id, "
    "row_number() over (partition by g order by id) rn from u) x, r where x.rn = r.n + 1) "
    "select n from r",
    "with recursive r(n) as (select id from t where id < 2 union select x.id from u x, r where "
    "exists (select 1 from t where t.v = x.v and t.id <= r.n) and x.id > r.n) "
    "select n, row_number() over (order by n) from r",
)


@pytest.mark.long
@pytest.mark.parametrize("text", AROUND)
def test_a_window_inside_of_a_query_inside_is_as_in_duckdb(text: str) -> None:
    random = drawing()
    db, other = Database(), duckdb.connect()
    for name in "tu":
        statement = f"create table {name} (id int, g int, v int)"
        db.execute(statement)
        other.execute(statement)
    view = db.sql(text).materialize()
    for number in range(12):
        if random.random() < 0.3:
            statement = (
                f"delete from {random.choice('tu')} where id = {random.randrange(number + 1)}"
            )
        else:
            g, v = (random.choice(("0", "1", "2", "null")) for _ in "gv")
            statement = f"insert into {random.choice('tu')} values ({number}, {g}, {v})"
        db.execute(statement)
        other.execute(statement)
        assert Counter(map(tuple, view)) == Counter(other.execute(text).fetchall()), statement
        view.verify()


STEPS = (
    "select u.a from u, r where u.a > r.n and u.a <= "
    "(select count(*) over () from t f where f.i <= r.n limit 1)",
    "select u.a from u, r where exists (select sum(f.i) over (order by f.s) from t f "
    "where f.i = r.n) and u.a is not null",
    "select u.a from u, r where u.a in (select max(f.i) over (partition by f.s) from t f "
    "where f.i = r.n)",
    "select x.w from r, lateral (select max(f.i) over (partition by f.s) as w from t f "
    "where f.i >= r.n) x",
    "select (select max(f.i) from t f where f.i > r.n) from r where r.n < 5",
    "select (select f.i from t f where f.i > r.n order by f.i limit 1) from r where r.n < 5",
    "select least(max(r.n) + 1, 4)::int from r",
)
"""Steps of a recursion in which a new row may remove others."""


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("begin", ["select 1", "select i from t where i < 3 or i is null"])
def test_a_step_of_a_recursion_is_as_in_duckdb(step: str, begin: str) -> None:
    text = f"with recursive r(n) as ({begin} union {step}) select n from r"
    db, other = Database(), duckdb.connect()
    for statement in STATEMENTS:
        db.execute(statement)
        other.execute(statement)
    view = db.sql(text).materialize()
    for change in ("select 1", *CHANGES):
        if change != "select 1":
            db.execute(change)
            other.execute(change)
        assert sorted(map(repr, map(tuple, view))) == sorted(
            map(repr, other.execute(text).fetchall())
        )
        view.verify()


@pytest.mark.parametrize(
    "step",
    [
        "select u.a from u where u.a > (select count(*) from r)",
        "select u.a from u, r where u.a not in (select n from r where n > 1)",
        "select u.a from u join (select max(n) as m from r) x on u.a > x.m",
    ],
)
def test_a_recursion_that_counts_itself_is_told_with_its_place(step: str) -> None:
    db = Database()
    for statement in STATEMENTS:
        db.execute(statement)
    text = f"with recursive r(n) as (select 1 union {step}) select n from r"
    column = text.index("from r") + 6
    with pytest.raises(
        PlanError, match="recursive 'r' is read in a sub-query of its own step"
    ) as told:
        db.sql(text)
    assert f"at line 1, column {column}" in str(told.value)
