"""Every argument of a parsed node is read, or refused with its place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from reactive import Database, PlanError
from reactive.errors import TableError
from reactive.languages.sql.entry import catalog_of, dialect_of, scope_of
from reactive.languages.sql.terms.errors import (
    OF_PARSER,
    put,
    record_arguments,
    refuse_unread,
    unread,
)
from reactive.languages.sql.text.read import parse_statements
from tests.budget import TIMES, seeds
from tests.languages.sql.broken_texts import prepared, scripts

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


@pytest.mark.long
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
        "create unlogged table u (i int)",
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select count(*, null) from t", "count() takes nothing beside *"),
        ("select string_agg(distinct i, ',', null) from t", "takes 2, and got 3 arguments"),
        ("select sum(distinct i, x) from t", "takes 1, and got 2 arguments"),
        ("select rank(null) over (order by x) from t", "cannot read all of rank()"),
        ("select u.a from unnest([1, 2]) as u(a, b)", "2 names are given to 1 columns"),
    ],
)
def test_an_argument_too_many_is_refused_though_it_is_no_more_than_a_word(
    db: Database, text: str, said: str
) -> None:
    with pytest.raises(PlanError) as found:
        db.sql(text)
    assert said in str(found.value)


LEAVES = (exp.Null, exp.Star, exp.CurrentDate)
"""Nodes without arguments."""
MEANS_NOTHING = {
    (exp.Coalesce, exp.Null),  # NULL is left out by definition
    (exp.In, exp.Null),  # as a second NULL in a list
    *((exp.Select, leaf) for leaf in LEAVES),  # as what EXISTS selects
}
NOT_WRITTEN = ("order", "except_", "replace")
"""Lists that no grammar puts such a node into."""


@pytest.mark.long
@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(60))
def test_a_node_without_arguments_is_read_or_refused_in_each_list(seed: int) -> None:
    """Put one into the lists of a query: it is refused, or the plan is another one."""
    random = Random(seed)
    engine, statements, queries = random.choice([each for each in scripts() if each[2]])
    db = prepared(engine, statements)
    text = random.choice(queries)
    try:
        plan = _plan(db, text, _tree(db, text))
    except PlanError:  # not in this dialect
        return
    for number, node in enumerate(_tree(db, text).walk()):
        for name, parts in dict.items(node.args):
            if not isinstance(parts, list) or not parts or name in NOT_WRITTEN:
                continue
            for leaf in LEAVES:
                if (type(node), leaf) in MEANS_NOTHING or isinstance(node, exp.Order):
                    continue
                changed = _tree(db, text)
                list(changed.walk())[number].append(name, leaf())
                try:
                    found = _plan(db, text, changed)
                except PlanError:
                    continue
                assert found != plan, (engine, changed.sql(dialect=engine))


WORDS = (*LEAVES, exp.true)
MEANS_THE_SAME = {
    (exp.Case, "default", exp.Null),  # as without ELSE
    (exp.Count, "this", exp.Boolean),  # count(1) is count(true)
    (exp.Table, "alias", exp.Boolean),  # has a name, which nothing else may have in the query
    (exp.WindowSpec, "start", exp.Boolean),  # 1 PRECEDING
    (exp.WindowSpec, "end", exp.Boolean),
}
CHANGES = 100 if TIMES else 15
"""Changes of one query, of some 1,300."""


def test_a_word_in_the_place_of_any_argument_is_read_or_refused() -> None:
    """Put NULL, *, CURRENT_DATE and TRUE into each argument of each node of a query.

    Some of these nodes occur in no text. The query must be refused, or have another plan.
    """
    for seed in seeds(650, share=40):
        _put_words(seed)


def _put_words(seed: int) -> None:
    random = Random(seed)
    engine, statements, queries = random.choice([each for each in scripts() if each[2]])
    db = prepared(engine, statements)
    text = random.choice(queries)
    try:
        plan = _plan(db, text, _tree(db, text))
    except PlanError:  # not in this dialect
        return
    changes = [
        (number, name, word)
        for number, node in enumerate(_tree(db, text).walk())
        for name in node.arg_types
        for word in WORDS
        if not isinstance(given := dict.get(node.args, name), list) and given != word()
    ]
    for number, name, word in random.sample(changes, min(CHANGES, len(changes))):
        changed = _tree(db, text)
        node = list(changed.walk())[number]
        put(node, name, word())
        if (type(node), name, type(word())) in MEANS_THE_SAME:
            continue
        try:
            found = _plan(db, text, changed)
        except PlanError:
            continue
        assert found != plan, (seed, engine, text, type(node), name, word())


def _tree(db: Database, text: str) -> Any:
    return parse_statements(text, dialect_of(db._engine))[0]


def _plan(db: Database, text: str, tree: Any) -> Any:
    record_arguments(tree)
    dialect, catalog = dialect_of(db._engine), catalog_of(db._engine)
    query = scope_of(tree, text, dialect, catalog, {}).query(tree)
    made = query.rows()
    refuse_unread(tree, text)
    return made, query.sort


@pytest.mark.parametrize("place", ["order", "having"])
@pytest.mark.parametrize("engine", ["duckdb", "postgres", "sqlite"])
def test_a_column_of_a_catalog_is_no_alias(engine: Any, place: str) -> None:
    """No text has a catalog without a table; a tree that has one is refused all the same."""
    db = Database(dialect=engine)
    db.execute("create table t (k int, x int)")
    text = "select k, sum(x) as s from t group by k having sum(x) > 0 order by s"
    tree = _tree(db, text)
    if place == "having":
        tree.find(exp.Having).set(
            "this", exp.GT(this=exp.column("s"), expression=exp.Literal.number(0))
        )
    where = tree.find(exp.Having if place == "having" else exp.Order)
    where.find(exp.Column).set("catalog", exp.true())
    with pytest.raises(PlanError):
        _plan(db, text, tree)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
def test_a_column_written_twice_is_one(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (k int, x int)")
    db.execute("insert into t values (1, 2), (1, 3), (2, 4)")
    for text in (
        "select t.k, count(*) as n from t group by t.k, t.k",
        "select t.k, count(*) as n from t group by t.k, 1, k, t.k, (t.k), k + 0, k + 0",
        "select t.k, count(*) as n from t group by t.k having t.k = t.k or t.k = t.k",
        "select k, count(*) as n from t group by t.k order by t.k, t.k, k",
    ):
        assert sorted(db.sql(text).materialize()) == [(1, 2), (2, 1)], text


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("select i from t", {"least": 1}, "the text has no :least"),
        ("select i from t where i > :last", {"last": 1, "lest": 1}, "did you mean 'last'?"),
        (
            "select i from t where i > :last",
            {"lest": 1},
            "no parameter 'last'; did you mean 'lest'",
        ),
        ("select i from t where i > :last", {}, "there is no parameter 'last'"),
        ("select i from t where i > :Last", {"last": 1}, "there is no parameter 'Last'"),
        ("select i, ':least' as l from t -- :least", {"least": 1}, "the text has no :least"),
        ("select i from t", {"t": 1}, "the text has no :t"),
        ("select i from t", {"dialect": "duckdb"}, "the dialect is of the database"),
        ("delete from t where i > 1", {"least": 1}, "the text has no :least"),
        ("delete from t where i > :least", {}, "there is no parameter 'least'"),
        ("insert into t values (:a, :b)", {"a": 1}, "there is no parameter 'b'"),
        ("insert into t values (:a, :b)", {"a": 1, "b": 2, "c": 3}, "the text has no :c"),
        ("create table u (a int)", {"a": 1}, "the text has no :a"),
        ("drop table t", {"t": 1}, "the text has no :t"),
        ("select i from t where i > ?", {}, "name it: `:name`"),
    ],
)
def test_parameters_are_those_that_the_text_names(
    dialect: Any, text: str, given: dict[str, Any], said: str
) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (i int, x int)")
    db.execute("insert into t values (1, 2)")
    with pytest.raises(PlanError, match=said.replace("?", "[?]")):
        (db.sql if text.startswith("select") else db.execute)(text, **given)
    assert [tuple(row) for row in db.sql("select * from t").materialize()] == [(1, 2)]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
def test_relations_as_parameters_are_those_that_from_reads(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (i int)")
    db.execute("insert into t values (1), (2)")
    some = db.sql("select i from t where i > :least", least=1)
    assert list(db.sql("select i from Some", some=some).materialize()) == [(2,)]
    assert db.execute("insert into t select i + 5 from some", some=some) == 1
    with pytest.raises(PlanError, match="no FROM reads 'some'"):
        db.sql("select i from t", some=some)
    with pytest.raises(PlanError, match="WITH gives the name 'some' to another query"):
        db.sql("with some as (select i from t) select i from some", some=some)


@pytest.mark.parametrize("mark", [":", "$", "@"])
def test_sqlite_has_three_marks_of_parameters(mark: str) -> None:
    db = Database(dialect="sqlite")
    db.execute("create table t (i int, [$i] int)")
    db.execute(f"insert into t values ({mark}a, 5)", a=1)
    found = db.sql(f"select i, [$i], '$i' from t where i = {mark}a", a=1).materialize()
    assert list(found) == [(1, 5, "$i")]


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
        ("pragma foo", "there is no setting 'foo'"),
        ("with a as (insert into t values (1, 2)) select * from a", "a query cannot write"),
        ("select i from t for update", "a query cannot write"),
        ("pragma table_info(tt)", "there is no table or view 'tt'; did you mean 't'"),
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
from tests.languages.sql.script import read

def answer(act):
    try:
        return act()
    except PlanError as error:
        return f"{type(error).__name__}: {error}"

given, number, part = {}, 0, int(sys.argv[1])
for dialect in ("duckdb", "postgres", "sqlite"):
    for path in sorted(Path("tests/languages/sql/scripts").glob("*.test")):
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
"""Queries of the scripts, all or one of several, with their results."""
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


@pytest.mark.long
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
