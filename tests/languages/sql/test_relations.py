"""A SQL query is a relation like any other: it composes with methods, and with other SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import pytest

from optimizer import plan
from reactive import Count, Database, PlanError


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    town: str | None
    total: int


class Customer(NamedTuple):
    name: str
    town: str


class Struct(msgspec.Struct, frozen=True):
    name: str
    town: str


ORDERS = [Order(1, "Bonn", 7), Order(2, None, 3), Order(3, "Ulm", 4), Order(4, "Bonn", 7)]


@pytest.fixture
def db() -> Database:
    made = Database()
    made.table(Order, name="orders", key="id").add_all(ORDERS)
    made.table(Customer, name="customers").add_all(
        [Customer("Ann", "Bonn"), Customer("Ben", "Ulm")]
    )
    return made


def test_methods_go_on_with_sql(db: Database) -> None:
    large = db.sql("select id, town from orders where total > 3")
    counts = large.group_by(lambda r: r.town).aggregate(Count()).materialize()
    assert dict(counts) == {"Bonn": 2, "Ulm": 1}


def test_sql_goes_on_with_relations_and_views(db: Database) -> None:
    orders, customers = db.tables()
    pairs = orders.join(customers, on=lambda o, c: o.town == c.town)
    found = db.sql("select column0, column1 from pairs", pairs=pairs).materialize()
    assert {(a.id, b.name) for a, b in found} == {(1, "Ann"), (4, "Ann"), (3, "Ben")}
    view = orders.where(lambda o: o.total > 3).materialize("large")
    again = db.sql("select sum(total) as s from large").materialize()
    del view  # the query holds it
    assert list(again) == [(18,)]
    orders.add(Order(5, None, 100))
    assert list(again) == [(118,)]


def test_a_view_of_sql_knows_its_columns(db: Database) -> None:
    view = db.sql('select town, count(*) as "how many" from orders group by town').materialize("n")
    found = db.sql('select sum("how many") as s from n where town is not null').materialize()
    assert list(found) == [(3,)]
    assert len(view) == 3


@pytest.mark.parametrize("row_type", [Customer, Struct])
def test_rows_may_be_of_any_class(row_type: Any) -> None:
    db = Database()
    table = db.table(row_type, name="customers")
    view = db.sql("select upper(name) as n from customers where town = 'Ulm'").materialize()
    table.add_all([row_type("Ann", "Bonn"), row_type("Ben", "Ulm")])
    assert list(view) == [("BEN",)]


def test_plain_tuples_and_values_have_columns_too() -> None:
    db = Database()
    pairs = db.table(tuple[int, str], name="pairs")
    numbers = db.table(int, name="numbers")
    view = db.sql("select column1 from pairs join numbers on column0 = value").materialize()
    pairs.add_all([(1, "a"), (2, "b")])
    numbers.add(2)
    assert list(view) == [("b",)]


def test_a_parameter_is_a_constant_of_now(db: Database) -> None:
    ids = [1, 3]
    view = db.sql("select id from orders where id = any(:ids)", ids=ids).materialize()
    ids.append(4)
    assert sorted(view) == [(1,), (3,)]
    assert list(db.sql("select :x as x, :x + 1 as y", x=3).materialize()) == [(3, 4)]


def test_an_order_by_what_is_not_selected_is_kept(db: Database) -> None:
    relation: Any = db.sql("select town from orders order by total desc, id desc")
    view = relation.materialize()
    assert list(view) == [("Bonn",), ("Bonn",), ("Ulm",), (None,)]
    (orders, _) = db.tables()
    orders.update(ORDERS[1], Order(2, None, 9))
    assert [row.town for row in view] == [None, "Bonn", "Bonn", "Ulm"]
    assert list(relation.limit(2).materialize()) == [(None,), ("Bonn",)]
    with pytest.raises(PlanError, match="cannot keep the order of the rows in distinct"):
        relation.distinct()
    assert relation.aggregate(Count()).materialize().value == 4


def test_equal_texts_share_what_they_keep(db: Database) -> None:
    text = "select upper(town) as t, count(*) from orders group by upper(town)"
    first, second = (
        db.sql(text).materialize(),
        db.sql(text.replace("orders", "orders o")).materialize(),
    )
    assert sorted(first, key=str) == sorted(second, key=str)
    assert db.sql(text).plan == db.sql(text).plan


def test_names_need_not_be_identifiers() -> None:
    db = Database()
    db.execute('create table "my table" ("a b" int, "class" text, "a-b" int)')
    db.execute("insert into \"my table\" values (1, 'x', 2)")
    found = db.sql('select *, "a b" + "a-b" as "sum of both" from "my table"').materialize()
    (row,) = found
    assert row == (1, "x", 2, 3)
    assert row._fields == ("a_b", "class_", "a_b_1", "sum_of_both")


def test_names_are_the_same_in_upper_and_lower_case(db: Database) -> None:
    assert len(db.sql("SELECT Town, Max(ID) FROM Orders O GROUP BY o.TOWN").materialize()) == 3


def test_verify_evaluates_a_view_of_sql_from_scratch(db: Database) -> None:
    view = db.sql(
        "select o.id, (select count(*) from customers c where c.town = o.town) as n from orders o"
    ).materialize()
    view.verify()
    db.execute("delete from customers where name = 'Ann'")
    view.verify()
    assert sorted(view) == [(1, 0), (2, 0), (3, 1), (4, 0)]


def test_conditions_come_before_queries_wherever_they_are_written(db: Database) -> None:
    """The evaluation of a view from scratch, as written, makes no product for the queries."""
    text = "select 1 from orders o, customers c where o.id in (select id from orders) and {}"
    written = db.sql(text.format("o.town = c.town")).plan
    assert isinstance(written, plan.Select) and isinstance(written.input, plan.SemiJoin)
    filtered = written.input.left
    assert isinstance(filtered, plan.Where) and isinstance(filtered.input, plan.Product)
