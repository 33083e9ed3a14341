"""Every argument of a parsed node is read, or refused with its place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from reactive import Database, PlanError
from reactive.errors import TableError
from reactive.sql.terms.arguments import OF_PARSER, record_arguments, refuse_unread, unread

NODES = [
    each
    for each in vars(exp).values()
    if isinstance(each, type) and issubclass(each, exp.Expression) and each.arg_types
]
LOWEST = "30.25.0"
"""The lower end of the range that pyproject.toml admits."""


@pytest.fixture
def db() -> Database:
    made = Database()
    made.execute("create table t (i int, x int)")
    made.execute("insert into t values (1, null), (2, 5), (3, null)")
    return made


@pytest.mark.parametrize("kind", NODES, ids=lambda kind: kind.__name__)
def test_an_argument_of_any_node_that_is_not_asked_for_is_refused(kind: Any) -> None:
    names = [name for name in kind.arg_types if name not in OF_PARSER.get(kind.key, ())]
    for name in names:
        node = kind(**{name: exp.Literal.number(1)})
        others = [other for other in kind.arg_types if other != name]
        record_arguments(node)
        for other in others or ["of a later release"]:
            node.args.get(other)
        assert (node, name) in list(unread(node))
        with pytest.raises(PlanError, match="cannot read all of"):
            refuse_unread(node, "select 1")
        node.args[name].args["this"]
        assert not list(unread(node))


def test_what_walks_or_prints_a_tree_asks_for_nothing() -> None:
    tree = sqlglot.parse_one("select a, sum(b) from t where c > 1 group by a limit 40%", "duckdb")
    record_arguments(tree)
    assert tree.sql()
    assert tree == tree.copy()
    assert len(list(tree.find_all(exp.Column))) == 4
    assert all(not node.args.asked for node in tree.walk())  # type: ignore[attr-defined]


READ_OVER = {
    "select i from t order by i limit 40%": 34,
    "select i from t order by i limit 50 percent": 34,
    "select i from nosuchschema.t": 15,
    "select nosuchschema.t.i from t": 8,
    "with recursive r(k) using key (k) as (select 1 union select k from r) select * from r": 16,
    "select * ilike 'I' from t": 16,
    "select rank(order by x desc) over (order by i) from t": 22,
    "select sum(x ignore nulls) over (order by i) from t": 8,
    "select array_agg(x respect nulls) from t": 8,
    "select i from t using sample 2": 30,
    "select i into x from t": 15,
    "select cast('a' as int format 'x')": 31,
}


@pytest.mark.parametrize("text", READ_OVER)
def test_what_has_no_meaning_here_is_refused_with_its_place(db: Database, text: str) -> None:
    with pytest.raises(PlanError, match=f"line 1, column {READ_OVER[text]}"):
        db.sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "delete from nosuch.t",
        "insert into nosuch.t values (1, 2)",
        "update nosuch.t set i = 2",
        "create or replace table t (i int collate nocase)",
        "create temp table u (i int)",
        "create or replace table t as select i from t limit 40%",
        "drop table nosuch.t",
        "insert or fail into t values (1, 2)",
    ],
)
def test_a_statement_that_is_refused_changes_nothing(db: Database, text: str) -> None:
    before = sorted(db.sql("select i from t").materialize())
    with pytest.raises(PlanError):
        db.execute(text)
    assert sorted(db.sql("select i from t").materialize()) == before


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
def test_is_not_null_is_not_is_null(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (a int)")
    db.execute("insert into t values (1), (null), (2)")
    assert sorted(r.a for r in db.sql("select a from t where a is not null").materialize()) == [
        1,
        2,
    ]
    assert len(db.sql("select a from t where not (a is not null)").materialize()) == 1
    assert db.execute("delete from t where a is not null") == 2


GIVEN = {
    "select count_if(distinct x > 1) from u": 1,
    "select product(distinct x) from u": 6.0,
    "select bit_xor(distinct x) from u": 0,
    "select regr_slope(distinct y, x) from u": 0.5,
    "select regr_count(distinct y, x) from u": 4,
    "select skewness(distinct x) from u": 0.0,
    "select median(distinct x) from u": 2.0,
    "select trunc(-2.77, 1) = -2.7": True,
    "select trunc(277, -1)": 270,
    "select list_sort([2, null, 1], 'desc')": (2, 1, None),
    "select list_sort([2, null, 1], 'asc', 'nulls first')": (None, 1, 2),
    "select make_timestamp(3000000) = timestamp '1970-01-01 00:00:03'": True,
    "select i from main.t where i = 2": 2,
    "select date('2024-01-01') = date '2024-01-01'": True,
}


@pytest.mark.parametrize("text", GIVEN)
def test_an_argument_that_has_a_meaning_has_that_of_duckdb(db: Database, text: str) -> None:
    db.execute("create table u (x int, y int)")
    db.execute("insert into u values (1, 2), (1, 2), (2, 3), (2, 4), (3, 3)")
    (row,) = db.sql(text).materialize()
    assert (
        row[0] == pytest.approx(GIVEN[text])
        if isinstance(GIVEN[text], float)
        else (row[0] == GIVEN[text])
    )


def test_varchar_of_postgres_has_its_length() -> None:
    db = Database(dialect="postgres")
    db.execute("create table t (s varchar(3))")
    db.execute("insert into t values ('abc')")
    with pytest.raises(TableError, match="takes 3 letters"):
        db.execute("insert into t values ('abcd')")
    assert [r[0] for r in db.sql("select cast('hello' as varchar(2)) from t").materialize()] == [
        "he"
    ]
    with pytest.raises(PlanError, match="pads with blanks"):
        db.sql("select cast('hello' as char(2))")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select dat('2024')", "there is no function 'dat'; did you mean 'date'?"),
        ("select generate_serie(1, 2)", "there is no function 'generate_serie'"),
        ("insert into t values (1, 2)", "a query cannot write"),
        ("pragma foo", "sql takes a query, not PRAGMA"),
        ("with a as (insert into t values (1, 2)) select * from a", "a query cannot write"),
        ("select i from t for update", "a query cannot write"),
        ("explain select i from t", "sql takes a query, not EXPLAIN"),
        ("select i from t where sum(x) > 1", "the aggregate sum() cannot stand here"),
        ("select sum(sum(x)) from t", "the aggregate sum() cannot stand here"),
        ("select row_number() from t", "row_number() needs a window"),
        ("select i from t where row_number() over () = 1", "a window function cannot stand here"),
        ("select 'abc from t", "the quote ' is not closed at line 1, column 8"),
        ('select i from "t', 'the quote " is not closed at line 1, column 15'),
        ("select i from t where", "something is missing beside 'where'"),
        ("select i form t", "unexpected 't'"),
        ("select upper(s, s) from t", "takes at most 1 arguments, and got 2"),
        ("select i from t, t", "give each table a name of its own"),
        ("select distinct on i from t", "SELECT DISTINCT ON (...) names no columns"),
        ("select uper(i) from t", "there is no function 'uper'; did you mean 'upper'?"),
        ("select y from t", "there is no column 'y'"),
        ("select i from tt", "there is no table or view 'tt'; did you mean 't'?"),
        ("select i, count(*) from t", "column 'i' is neither in GROUP BY nor inside an aggregate"),
    ],
)
def test_messages_name_what_is_written(db: Database, text: str, said: str) -> None:
    with pytest.raises(PlanError) as found:
        db.sql(text)
    assert said in str(found.value)


SCRIPT = """
import sqlglot
from reactive import Database, PlanError
assert sqlglot.__version__ == {version!r}, sqlglot.__version__
for dialect in ("duckdb", "postgres", "sqlite"):
    db = Database(dialect=dialect)
    db.execute("create table t (a int primary key, b text not null default 'x')")
    db.execute("insert into t values (1, 'a'), (2, 'b'), (3, 'b')")
    for text, count in {queries!r}.items():
        assert len(db.sql(text).materialize()) == count, (dialect, text)
    assert db.execute("delete from t where b is not null and a > 2") == 1
    try:
        db.sql("select a from nosuch.t")
    except PlanError:
        pass
    else:
        raise AssertionError(dialect)
"""
PLAYED = """
import json, sys
from pathlib import Path
from reactive import Database, PlanError
from tests.sql.script import read

def answer(act):
    try:
        return act()
    except PlanError as error:
        return f"{type(error).__name__}: {error}"

given, number, part = {}, 0, int(sys.argv[1])
for dialect in ("duckdb", "postgres", "sqlite"):
    for path in sorted(Path("tests/sql/scripts").glob("*.test")):
        for statements, queries in read(path).groups(dialect):
            number += 1
            chosen = queries[number % part :: part]
            db = Database(dialect=dialect)
            for each in statements if chosen else ():
                answer(lambda: db.execute(each.text))
            for each in chosen:
                rows = answer(lambda: sorted(map(repr, db.sql(each.text).materialize())))
                given[f"{dialect} {path.name}:{each.line}"] = rows
json.dump(given, sys.stdout)
"""
"""All queries of the scripts, or one of several, and what they give."""
QUERIES = {
    "select a from t where b is not null": 3,
    "select a from t where b is null": 0,
    "select b, count(*) as n, sum(a) as s from t group by b having count(*) > 1": 1,
    "select a, rank() over (partition by b order by a desc) as r from t": 3,
    "select x.a from t x left join t y on x.a = y.a + 1 where y.b like 'b%'": 1,
    "with recursive r(n) as (select 1 union select n + 1 from r where n < 5) select n from r": 5,
    "select a from t where a in (select max(a) from t) or b between 'a' and 'a'": 2,
    "select distinct coalesce(b, 'z') || 'x' as c from t order by c limit 1": 1,
    "select case when a / 2 > 1 then b else 'z' end as v from t union all select b from t": 6,
}


def test_the_lowest_release_of_sqlglot_means_the_same(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    installed = subprocess.run(
        [*pip, str(tmp_path), f"sqlglot=={LOWEST}"], capture_output=True, text=True, check=False
    )
    if installed.returncode:
        pytest.skip(f"pip cannot install sqlglot {LOWEST}: {installed.stderr[-200:]}")
    path = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    code = path + SCRIPT.format(version=LOWEST, queries=QUERIES)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    part = "1" if os.environ.get("EXAMPLES") == "1" else "20"
    found = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", begin + PLAYED, part],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for begin in ("", path)
    ]
    assert len(found[0]) > 30
    assert found[0] == found[1]
