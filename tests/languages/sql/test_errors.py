"""Errors in a text name its line and column, and a remedy."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

import pytest

from reactive import Database, PlanError


@pytest.fixture(scope="module")
def db() -> Database:
    made = Database()
    made.execute("create table orders (id int primary key, town text, total int)")
    made.execute("create table customers (id int primary key, name text)")
    return made


SAID = {
    "select amonut from orders": """\
there is no column 'amonut' at line 1, column 8
  select amonut from orders
         ^
  there are id, town, total""",
    "select id,\n       totl\nfrom orders": """\
there is no column 'totl'; did you mean 'total'? at line 2, column 8
         totl
         ^
  there are id, town, total""",
    "select * from ordesr": """\
there is no table or view 'ordesr'; did you mean 'orders'? at line 1, column 15
  select * from ordesr
                ^
  the database has customers, orders""",
    "select o.id, x.id from orders o": """\
there is no table 'x' here at line 1, column 14
  select o.id, x.id from orders o
               ^
  FROM has o""",
    "select id from orders, customers": """\
column 'id' is ambiguous at line 1, column 8
  select id from orders, customers
         ^
  say which: orders.id, customers.id""",
    "select town, sum(total) from orders": """\
column 'town' is neither in GROUP BY nor inside an aggregate at line 1, column 8
  select town, sum(total) from orders
         ^
  group by it, or take any_value(town)""",
    "select id from orders where total > :lest": """\
there is no parameter 'lest'; did you mean 'least'? at line 1, column 29
  select id from orders where total > :lest
                              ^
  give it: db.sql(..., lest=...)""",
    "select id from orders union select id, name from customers": """\
UNION of 1 columns and of 2 at line 1, column 36
  select id from orders union select id, name from customers
                                     ^""",
    "select id from orders order by 3": """\
there is no column 3 at line 1, column 32
  select id from orders order by 3
                                 ^
  SELECT has 1""",
    "select id from orders where id in (select id, name from customers)": """\
1 values are compared with the 2 columns of a query at line 1, column 29
  select id from orders where id in (select id, name from customers)
                              ^""",
    "select (select id, name from customers) from orders": """\
a query in the place of a value has 2 columns, not one at line 1, column 16
  select (select id, name from customers) from orders
                 ^""",
    "select distinct town from orders order by id": """\
SELECT DISTINCT is ordered by what is no column of it at line 1, column 43
  select distinct town from orders order by id
                                            ^
  select it too""",
    "select x.* from orders": """\
x.* stands for no columns at line 1, column 8
  select x.* from orders
         ^""",
    "select * from orders limit 'a'": """\
a number of rows cannot be 'a' at line 1, column 28
  select * from orders limit 'a'
                             ^""",
    "select id from orders o join customers c using (nmae)": """\
USING names 'nmae', which one side does not have at line 1, column 30
  select id from orders o join customers c using (nmae)
                               ^""",
    "select id from orders where": """\
this is no SQL: something is missing beside 'where' at line 1, column 23
  select id from orders where
                        ^""",
    "select (id from orders": """\
this is no SQL: expecting ), found 'from' at line 1, column 12
  select (id from orders
             ^""",
    "with recursive r as (select 1 from r) select * from r": """\
recursive 'r' is no UNION of where it begins and how it goes on at line 1, column 16
  with recursive r as (select 1 from r) select * from r
                 ^""",
    "with recursive r(a, b) as (select 1, 2 union select a from r) select * from r": """\
recursive 'r' has 2 columns, and goes on with 1 at line 1, column 53
  with recursive r(a, b) as (select 1, 2 union select a from r) select * from r
                                                      ^""",
    "delete from orders": """\
a query cannot write: sql takes a query, not DELETE
  db.execute(...) changes tables""",
    "select 1; select 2": """\
the text has 2 statements, not one
  select 1; select 2""",
    "": """\
the text has no statement, not one
  """,
}


@pytest.mark.parametrize("text", SAID)
def test_a_text_that_means_nothing_is_refused(db: Database, text: str) -> None:
    with pytest.raises(PlanError) as caught:
        db.sql(text, **({"least": 3} if ":lest" in text else {}))
    assert str(caught.value) == SAID[text]


def test_a_parameter_is_no_variable_of_the_caller(db: Database) -> None:
    orders = customers = None
    assert orders is customers
    assert list(db.sql("select count(*) from orders").materialize()) == [(0,)]
    with pytest.raises(PlanError, match="there is no parameter 'orders'"):
        db.sql("select :orders")


def test_a_dialect_is_one_of_three() -> None:
    with pytest.raises(PlanError, match="there is no dialect 'oracle'\n  there are duckdb"):
        Database(dialect="oracle")  # type: ignore[arg-type]


def test_a_row_that_raises_is_left_out_and_stops_nobody() -> None:
    db = Database(dialect="postgres")
    db.execute("create table t (a int, b int)")
    quotients = db.sql("select a / b as q from t").materialize()
    total = db.sql("select sum(a) from t").materialize()
    db.execute("insert into t values (6, 3), (1, 0)")
    assert list(quotients) == [(2,)]
    assert list(total) == [(7,)]
    (error,) = quotients.errors
    assert error.row == (1, 0)
    db.execute("update t set b = 1 where b = 0")
    assert sorted(quotients) == [(1,), (2,)]
    assert list(quotients.errors) == []


def test_a_view_may_raise_all_the_same() -> None:
    db = Database(dialect="postgres")
    db.execute("create table t (a int, b int)")
    view = db.sql("select a / b as q from t").materialize("quotients", on_error="raise")
    with pytest.raises(ZeroDivisionError) as caught:
        db.execute("insert into t values (1, 0)")
    assert "in select of view 'quotients' (SQL, line 1), on row t(a=1, b=0)" in str(
        caught.value.__notes__
    )
    assert list(view) == []


def test_a_query_of_several_rows_in_the_place_of_a_value_is_null_and_an_error() -> None:
    db = Database()
    db.execute("create table t (a int)")
    view = db.sql("select (select a from t) as only").materialize()
    assert list(view) == [(None,)]
    db.execute("insert into t values (1)")
    assert list(view) == [(1,)]
    db.execute("insert into t values (2)")
    assert list(view) == [(None,)]
    (error,) = view.errors
    assert "more than one row" in error.error.message


def test_explain_shows_the_text_at_the_nodes_that_come_of_it(db: Database) -> None:
    told = db.sql("select town from orders where total > :least", least=3).explain()
    assert "and orders.total > 3    -- total > :least" in told
    assert "select Row(orders.town)    -- town" in told


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
@pytest.mark.parametrize("word", ["when", "select", "from", "order", "x"])
def test_any_word_names_a_parameter(dialect: Any, word: str) -> None:
    db = Database(dialect=dialect)
    db.execute("create table t (a int)")
    db.execute("insert into t values (1), (5)")
    view = db.sql(f"select a from t where a > :{word}", **{word: 3}).materialize()
    assert [row.a for row in view] == [5]


def test_a_window_that_is_defined_by_itself_is_refused() -> None:
    """The search for such a window in its own definition once did not end."""
    db = Database()
    db.execute("create table v (id int, i int)")
    text = "select sum(i) over w from v window w as (partition by sum(i) over w order by id)"
    with pytest.raises(PlanError, match="a window is defined by values of rows, not of windows"):
        db.sql(text)


def test_sqlglot_is_silent_while_it_reads_a_text_and_only_then(caplog: Any) -> None:
    db, logger = Database(), logging.getLogger("sqlglot")
    with caplog.at_level(logging.WARNING, "sqlglot"):
        for text in ("vacuum t", "select " + "(" * 400 + "1" + ")" * 400):
            with suppress(PlanError):
                db.execute(text)
        assert not caplog.records and logger.level == logging.WARNING
        logger.warning("heard")
    assert caplog.messages == ["heard"]
