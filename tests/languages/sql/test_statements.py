"""Statements change tables as a list of rows in Python would change, all of it or nothing."""

from __future__ import annotations

import pickle
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from reactive import Database, PlanError, TableError, TransactionError

MADE = "create table t (id int primary key, name text not null, price decimal(8, 2) default 1.5)"


@pytest.fixture
def db() -> Database:
    made = Database()
    made.execute(MADE)
    return made


def rows(db: Database, name: str = "t") -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in next(t for t in db.tables() if t.name == name))


def test_create_makes_a_table_of_named_tuples_with_a_key(db: Database) -> None:
    (table,) = db.tables()
    row = table.row_type(1, "a", Decimal("2.00"))
    table.add(row)
    assert row.name == "a"
    assert table[1] is row
    assert type(pickle.loads(pickle.dumps(row))) is type(row)


def test_a_key_of_several_columns_is_a_tuple() -> None:
    db = Database()
    db.execute("create table t (a int, b int, c int, primary key (b, a))")
    db.execute("insert into t values (1, 2, 3)")
    (table,) = db.tables()
    assert table[2, 1] == (1, 2, 3)
    with pytest.raises(TableError):
        db.execute("insert into t values (1, 2, 4)")


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("key", ["", " primary key"])
def test_plain_tuples_become_rows(key: str, count: int) -> None:
    db = Database()
    db.execute(f"create table t (a int{key}, b text)")
    table: Any = db.tables()[0]
    view = table.where(lambda r: r.a >= 0).materialize()
    given = [(n, f"x{n}") for n in range(count)]
    if count == 1:
        table.add(given[0])
    else:
        table.add_all([*given[:-1], table.row_type(*given[-1])])
    assert {type(row) for row in [*table, *view]} == {table.row_type}
    assert sorted(view) == sorted(given) and table.count((0, "x0")) == 1
    table.update((0, "x0"), (0, "y"))
    table.upsert((0, "z")) if key else table.remove((0, "y"))
    assert list(db.sql("select b from t where a = 0").materialize()) == ([("z",)] if key else [])
    table.replace_all([(5, "five")])
    table.discard((7, "none"))
    assert list(view) == [(5, "five")] and type(next(iter(view))) is table.row_type
    for wrong in ((1,), (1, "a", 2), [1, "a"], (1, None, None)):
        with pytest.raises(TableError, match="takes rows of t"):
            table.add(wrong)
        with pytest.raises(TableError, match="takes rows of t"):
            table.add_all([(8, "eight"), wrong])
        assert table.count(wrong) == 0
    db.execute("create table u (a int not null)")
    with pytest.raises(TableError, match="field 'a' is None"):
        db.tables()[1].add((None,))


def test_insert_gives_the_number_of_rows_and_fills_in_defaults(db: Database) -> None:
    assert db.execute("insert into t values (1, 'a', 2), (2, 'b', null)") == 2
    assert db.execute("insert into t (name, id) values ('c', :id)", id=3) == 1
    assert db.execute("insert into t values (4, 'd', default)") == 1
    assert rows(db) == [(1, "a", 2), (2, "b", None), (3, "c", Decimal("1.5")), (4, "d", 1.5)]


def test_insert_of_a_query_sees_the_rows_of_before(db: Database) -> None:
    db.execute("insert into t values (1, 'a', 2), (2, 'b', 3)")
    assert db.execute("insert into t select id + 2, name || '!', price from t where id > 1") == 1
    assert rows(db) == [(1, "a", 2), (2, "b", 3), (4, "b!", 3)]


def test_an_insert_that_is_refused_changes_nothing(db: Database) -> None:
    db.execute("insert into t values (1, 'a', 2)")
    for text in (
        "insert into t values (2, 'b', 2), (1, 'c', 2)",
        "insert into t values (2, 'b', 2), (3, null, 2)",
    ):
        with pytest.raises(TableError):
            db.execute(text)
    assert rows(db) == [(1, "a", 2)]


def test_update_changes_what_where_finds(db: Database) -> None:
    db.execute("insert into t values (1, 'a', 2), (2, 'b', 3), (3, 'c', 4)")
    assert db.execute("update t set price = price + 1, name = name || id where id >= 2") == 2
    assert rows(db) == [(1, "a", 2), (2, "b2", 4), (3, "c3", 5)]
    assert db.execute("update t set name = 'x' where id = :id", id=1) == 1
    assert db.execute("update t set name = 'x' where id = 17") == 0
    assert rows(db)[0] == (1, "x", 2)


def test_update_may_move_keys_along(db: Database) -> None:
    db.execute("insert into t values (1, 'a', 2), (2, 'b', 3)")
    assert db.execute("update t set id = id + 1") == 2
    assert rows(db) == [(2, "a", 2), (3, "b", 3)]


def test_update_of_a_bag_changes_every_copy() -> None:
    db = Database()
    db.execute("create table t (a int)")
    db.execute("insert into t values (1), (1), (2)")
    view = db.sql("select a, count(*) as n from t group by a").materialize()
    assert db.execute("update t set a = 5 where a = 1") == 2
    assert sorted(view) == [(2, 1), (5, 2)]
    assert db.execute("delete from t where a = 5") == 2
    assert sorted(view) == [(2, 1)]


def test_a_statement_is_one_commit(db: Database) -> None:
    db.execute("insert into t values (1, 'a', 2), (2, 'b', 3)")
    before, seen = db.version, list[Any]()
    subscription = db.sql("select name from t").subscribe(seen.append)
    db.execute("update t set name = 'z'")
    db.execute("delete from t where id = 1")
    assert db.version == before + 2
    assert len(seen) == 2
    subscription.close()


def test_delete_takes_out_what_where_finds(db: Database) -> None:
    db.execute("insert into t values (1, 'a', 2), (2, 'b', 3), (3, 'c', null)")
    assert db.execute("delete from t where price > 2") == 1
    assert db.execute("delete from t where price is null") == 1
    assert db.execute("delete from t") == 1
    assert rows(db) == []


def test_an_insert_may_leave_conflicting_rows_alone_or_replace_them(db: Database) -> None:
    db.execute("insert into t values (1, 'a', 2)")
    assert db.execute("insert into t values (1, 'b', 3), (2, 'c', 4) on conflict do nothing") == 1
    assert rows(db) == [(1, "a", 2), (2, "c", 4)]
    assert db.execute("insert or replace into t values (1, 'r', 9)") == 1
    more = "on conflict (id) do update set price = t.price + excluded.price"
    assert db.execute(f"insert into t values (2, 'q', 7) {more}") == 1
    assert rows(db) == [(1, "r", 9), (2, "c", 11)]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
@pytest.mark.parametrize("action", ["a = (select 1)", "a = 1 where exists (select id from t)"])
def test_a_query_in_do_update_is_refused_without_a_conflict(dialect: Any, action: str) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (id integer primary key, a integer)")
    with pytest.raises(PlanError, match="a query in DO UPDATE is not supported"):
        db.execute(f"insert into t values (1, 1) on conflict (id) do update set {action}")
    assert not rows(db)


@pytest.mark.parametrize("text", ["update t set a = 'x'", "insert into t select 1, 'x' from t"])
def test_postgres_reads_a_constant_before_it_looks_for_rows(text: str) -> None:
    postgres, duckdb = Database(dialect="postgres"), Database()
    for db in (postgres, duckdb):
        db.execute("create table t (id integer primary key, a integer)")
    assert duckdb.execute(text) == 0
    with pytest.raises(PlanError, match="this constant is no INTEGER at line 1"):
        postgres.execute(text)


@pytest.mark.parametrize(
    "text",
    [
        "insert into s select v, 1 from u",
        "insert into s select v, 1 from u order by v",
        "update s set n = (select v from u)",
        "update s set n = id * 100000",
        "create table z as select cast(v as smallint) as c from u",
        "delete from s where id = (select cast(v as smallint) from u)",
        "delete from s where id = cast(id * 100000 as smallint)",
    ],
)
def test_a_value_that_cannot_be_made_is_a_plan_error(text: str) -> None:
    db = Database()
    db.execute("create table s (n smallint, id integer primary key)")
    db.execute("create table u (v bigint)")
    db.execute("insert into u values (100000)")
    db.execute("insert into s values (1, 1)")
    with pytest.raises(PlanError, match="out of the range of SMALLINT at line 1"):
        db.execute(text)
    assert rows(db, "s") == [(1, 1)] and len(db.tables()) == 2


@pytest.mark.parametrize(
    ("text", "count", "left"),
    [
        ("update b set v = u.v from u where u.k = b.k", 3, [(1, 10), (1, 10), (2, 20), (3, 0)]),
        (
            "update b as c set v = u.v + w.v from u join u w on w.k = u.k where u.k = c.k",
            3,
            [(1, 20), (1, 20), (2, 40), (3, 0)],
        ),
        ("update b set v = 7 from u where u.v > b.v", 4, [(1, 7), (1, 7), (2, 7), (3, 7)]),
        ("update b set v = u.v from u where u.k = 9", 0, [(1, 0), (1, 0), (2, 0), (3, 0)]),
        ("delete from b using u where u.k = b.k", 3, [(3, 0)]),
        ("delete from b using u, u as w where u.v > b.v and w.k = b.k", 3, [(3, 0)]),
        (
            "with w as (select k + 1 as k from u) delete from b where k in (select k from w)",
            2,
            [(1, 0), (1, 0)],
        ),
        (
            "with w as (select k from u where v > 10) update b set v = 5 from w where w.k = b.k",
            1,
            [(1, 0), (1, 0), (2, 5), (3, 0)],
        ),
        (
            "with w (k) as (select max(k) from u) insert into b select k, 9 from w",
            1,
            [(1, 0), (1, 0), (2, 0), (2, 9), (3, 0)],
        ),
    ],
)
def test_rows_are_changed_beside_those_of_other_tables(
    text: str, count: int, left: list[tuple[int, int]]
) -> None:
    db = Database()
    db.execute("create table b (k int, v int)")
    db.execute("create table u (k int, v int)")
    db.execute("insert into b values (1, 0), (1, 0), (2, 0), (3, 0)")
    db.execute("insert into u values (1, 10), (2, 20)")
    view = db.sql("select k, v from b").materialize()
    assert db.execute(text) == count
    assert rows(db, "b") == sorted(map(tuple, view)) == left


def test_an_update_that_would_give_a_row_two_values_is_refused() -> None:
    db = Database()
    db.execute("create table b (k int primary key, v int)")
    db.execute("insert into b values (1, 0)")
    db.execute("create table u as select 1 as k, 10 as v union all select 1, 20")
    with pytest.raises(TableError, match="several rows of FROM give it different values"):
        db.execute("update b set v = u.v from u where u.k = b.k")
    assert rows(db, "b") == [(1, 0)]
    with pytest.raises(PlanError, match="USING of DELETE is not supported"):
        Database(dialect="sqlite").execute("delete from b using u where u.k = b.k")


def test_statements_inside_a_transaction_are_part_of_it(db: Database) -> None:
    with pytest.raises(ZeroDivisionError), db.transaction():
        db.execute("insert into t values (1, 'a', 2)")
        db.execute("update t set name = 'b' where id = 1")
        assert [row.name for row in db.tables()[0]] == ["b"]
        raise ZeroDivisionError
    assert rows(db) == []


def test_a_query_in_a_statement_is_not_asked_of_half_a_transaction(db: Database) -> None:
    with db.transaction():
        db.execute("insert into t values (1, 'a', 2)")
        with pytest.raises(TransactionError, match="so far"):
            db.execute("insert into t select id + 1, name, price from t")
    assert rows(db) == [(1, "a", 2)]


def test_create_table_as_takes_columns_and_rows_of_a_query(db: Database) -> None:
    db.execute("insert into t values (1, 'a', 2), (2, 'b', 3)")
    assert db.execute("create table u as select id, name as n from t where id > 1") == 1
    assert rows(db, "u") == [(2, "b")]
    assert list(db.sql("select n from u").materialize()) == [("b",)]


def test_views_are_queries_by_name(db: Database) -> None:
    db.execute("create view dear (who) as select name from t where price > 2")
    view = db.sql("select who from dear").materialize()
    db.execute("insert into t values (1, 'a', 2), (2, 'b', 3)")
    assert list(view) == [("b",)]
    with pytest.raises(PlanError, match="already"):
        db.execute("create view dear as select 1 from t")
    db.execute("create or replace view dear as select id from t")
    assert sorted(db.sql("select * from dear").materialize()) == [(1,), (2,)]
    db.execute("drop view dear")
    with pytest.raises(PlanError, match="no table or view 'dear'"):
        db.sql("select * from dear")


def test_a_materialized_view_is_kept_until_it_is_dropped(db: Database) -> None:
    db.execute("create materialized view n as select count(*) as c from t")
    db.execute("insert into t values (1, 'a', 2)")
    (view,) = db.views()
    assert list(view) == [(1,)]
    assert list(db.sql("select c + 1 from n").materialize()) == [(2,)]
    del view
    db.execute("drop view n")
    assert db.views() == []


def test_drop_refuses_a_table_that_is_read(db: Database) -> None:
    view = db.sql("select name from t").materialize("names")
    with pytest.raises(PlanError, match="names"):
        db.execute("drop table t")
    db.execute("drop table t cascade")
    assert view.closed
    assert db.execute("drop table if exists t") == 0
    with pytest.raises(PlanError, match="no table 't'"):
        db.execute("drop table t")


def test_create_if_not_exists_leaves_what_is_there(db: Database) -> None:
    db.execute("insert into t values (1, 'a', 2)")
    assert db.execute("create table if not exists t (x int)") == 0
    assert rows(db) == [(1, "a", 2)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("create table u (a int references v)", "there is no table 'v'"),
        ("create table u (a int check (b > 1))", "there is no column 'b'"),
        ("create table u (a int as (a + 1))", "'a' is computed itself"),
        ("create table u (a nonsense)", "no type"),
        ("create table u (a int, primary key (b))", "no column"),
        ("insert into t (id, nam) values (1, 'a')", "did you mean 'name'"),
        ("insert into t values (1)", "1 values are inserted into 3 columns"),
        ("insert into u values (1)", "there is no table 'u'"),
        ("update t set nam = 'a'", "did you mean 'name'"),
        ("delete from t where idd = 1", "did you mean 'id'"),
        ("select 1", "db.sql"),
        ("begin", "with db.transaction"),
        ("alter table t drop column nope", "no column 'nope'"),
    ],
)
def test_what_no_statement_can_be_is_said(db: Database, text: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        db.execute(text)
    assert [table.name for table in db.tables()] == ["t"]


@pytest.mark.parametrize("kind", ("int[]", "text[][]", "struct(a int, b text[])", "varchar(8)"))
def test_columns_of_arrays_and_structs(kind: str) -> None:
    db = Database()
    db.execute(f"create table nested (x {kind})")
    assert list(db.sql("select x from nested").materialize()) == []


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
def test_a_count_of_rows_has_the_rows_of_returning(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (id integer primary key, a integer)")
    assert db.execute("insert into t values (1, 1)").rows == ()
    for text, found in (
        ("insert into t values (2, 2), (3, 2) returning id", [(2,), (3,)]),
        ("insert into t values (1, 2) on conflict (id) do update set a = 5 returning a", [(5,)]),
        ("insert into t values (1, 2) on conflict do nothing returning a", []),
        ("insert into t select 4, 2 returning *", [(4, 2)]),
        ("update t set a = 3 where id = 1 returning id, a + 1 as b", [(1, 4)]),
        ("update t set a = 3 where id = 9 returning id", []),
        ("delete from t where id < 3 returning *", [(1, 3), (2, 2)]),
    ):
        count = db.execute(text)
        assert sorted(map(tuple, count.rows)) == found, text
        assert count == len(found) and type(pickle.loads(pickle.dumps(count))) is type(count)
    (row,) = db.execute("update t set a = :a where id = 4 returning a as b", a=8).rows
    assert row.b == 8
    with pytest.raises(PlanError, match="RETURNING takes expressions"):
        db.execute("delete from t returning count(*)")
    assert rows(db) == [(3, 2), (4, 8)]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
def test_names_of_parameters_stand_beside_commas(dialect: Any) -> None:
    """`$a,$b,` was read as a text in dollars."""
    db = Database(dialect=dialect)
    db.execute("create table t (a int primary key, b text, c int)")
    for place, text in enumerate(["(:a,:b,:c)", "($a,$b,$c)", "($a, $b , $c)", "(:a,:b,:c+0)"]):
        assert db.execute(f"insert into t values {text}", a=place, b="x", c=2) == 1
    if dialect != "sqlite":
        texts = {"($a,$tag$it's,$b$tag$,$c)": "it's,$b", "(:a,$$'':b,$c$$,:c)": "'':b,$c"}
        for place, (text, expected) in enumerate(texts.items(), 10):
            assert db.execute(f"insert into t values {text}", a=place, c=2) == 1
            found = db.sql("select b from t where a=$n", n=place).materialize()
            assert list(found) == [(expected,)]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_a_default_has_the_type_of_its_column(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute(
        "create table t (id int primary key, a int default '3', b date default '2020-01-31',"
        " c double precision default 1, d varchar(3) default 5, e numeric(5, 2) default 1.5)"
    )
    db.execute("insert into t (id) values (1)")
    (row,) = db.sql("select * from t").materialize()
    expected = (1, 3, date(2020, 1, 31), 1.0, "5", Decimal("1.50"))
    assert tuple(row) == expected
    assert [type(value) for value in row] == [type(value) for value in expected]
    with pytest.raises(PlanError):
        db.execute("create table u (a int default 'x')")


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
def test_update_assigns_rows_and_queries(dialect: Any) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (id integer primary key, a integer default 7, b text)")
    db.execute("insert into t values (1, 1, 'x'), (2, 2, 'y')")
    assert db.execute("update t set (a, b) = (a + 10, :b) where id = 1", b="z") == 1
    assert rows(db) == [(1, 11, "z"), (2, 2, "y")]
    if dialect != "sqlite":
        db.execute("update t set (b, a) = row('r', default) where id = 1")
        assert rows(db)[0] == (1, 7, "r")
    for _ in range(3):  # from the second on, by the plan that is kept
        if dialect != "duckdb":
            text = "(a, b) = (select count(*), max(o.b) || t.b from t as o where o.id >= t.id)"
            db.execute("update t set (a, b) = (0, 'b')")
            db.execute(f"update t set {text}")
            assert rows(db) == [(1, 2, "bb"), (2, 1, "bb")]
    for text, told in (
        ("(a, b) = (1, 2, 3)", "3 values are assigned to 2 columns"),
        ("(a, nope) = (1, 2)", "no column 'nope'"),
        ("(a, b) = 1", "SET of a row takes a row or a query"),
        ("(a + 1, b) = (1, 2)", "SET takes `column = value`"),
    ):
        with pytest.raises(PlanError, match=told):
            db.execute(f"update t set {text}")
