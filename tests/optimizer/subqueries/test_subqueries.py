"""Plans of sub-queries, one by one, and refusals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import (
    And,
    Attribute,
    Conditional,
    Expr,
    Lifted,
    Operation,
    Or,
    Outer,
    Parameter,
    Subquery,
    constant,
    tuple_of,
)
from optimizer.expressions.text import text
from optimizer.plans.explain import explain
from optimizer.plans.properties import bindings
from optimizer.subqueries.decorrelation import lateral
from reactive import Count, Database, Table
from reactive.engine.collections.zset import canonical
from tests.optimizer.subqueries import plain

ROW, OUTER = Parameter(0), Outer(0)


@dataclass(frozen=True, slots=True)
class Customer:
    id: Any
    town: str


@dataclass(frozen=True, slots=True)
class Order:
    customer: Any
    total: Any


def lifted(body: Expr) -> Lifted:
    return Lifted(body, ("row",), (), 1)


@pytest.fixture
def db() -> Database:
    return Database()


@pytest.fixture
def customers(db: Database) -> Table[Any]:
    return db.table(Customer, name="customers")


@pytest.fixture
def orders(db: Database) -> Table[Any]:
    return db.table(Order, name="orders")


MINE = Operation("==", (Attribute(ROW, "customer"), Attribute(OUTER, "id")))
LARGE = Operation(">", (Attribute(ROW, "total"), constant(3)))


def of(orders: Table[Any], *tests: Expr) -> plan.Node:
    return plan.Where(orders.plan, lifted(And(tests) if len(tests) > 1 else tests[0]))


def count(orders: Table[Any], *tests: Expr) -> Subquery:
    template = orders.aggregate(Count()).plan
    assert isinstance(template, plan.Aggregate)
    return Subquery("value", replace(template, input=of(orders, *tests)), (ROW,))


def where(customers: Table[Any], test: Expr) -> plan.Node:
    return plain.free(plan.Where(customers.plan, lifted(test)))


def test_conditions_keep_their_order(customers: Table[Any], orders: Table[Any]) -> None:
    is_x = Operation("==", (Attribute(ROW, "town"), constant("x")))
    exists = Subquery("exists", of(orders, MINE, LARGE), (ROW,))
    made = where(customers, And((is_x, exists, Operation("not", (exists,)))))
    assert str(explain(made)) == (
        "anti_join on row1.customer == row.id and row1.total > 3\n"
        "  semi_join on row1.customer == row.id and row1.total > 3\n"
        "    where row.town == 'x'\n"
        "      table customers\n"
        "    table orders\n"
        "  table orders"
    )


def test_not_goes_to_where_the_queries_are(customers: Table[Any], orders: Table[Any]) -> None:
    is_x = Operation("==", (Attribute(ROW, "town"), constant("x")))
    exists = Subquery("exists", of(orders, MINE), (ROW,))
    made = where(customers, Operation("not", (Or((is_x, Operation("not", (exists,)))),)))
    assert str(explain(made)) == (
        "semi_join on row1.customer == row.id\n"
        "  where not row.town == 'x'\n"
        "    table customers\n"
        "  table orders"
    )


def test_a_nan_has_no_rows_and_none_has_those_of_none(
    customers: Table[Any], orders: Table[Any]
) -> None:
    made = plan.Select(
        customers.plan, lifted(tuple_of(Attribute(ROW, "town"), count(orders, MINE)))
    )
    view = customers._new(plain.free(made)).materialize()
    orders.add_all([Order(math.nan, 1), Order(None, 1), Order(None, 2), Order(1, 1)])
    customers.add_all([Customer(math.nan, "nan"), Customer(None, "none"), Customer(1.0, "one")])
    assert sorted(view) == [("nan", 0), ("none", 2), ("one", 1)]


def test_what_raises_is_asked_of_no_row_that_is_not_asked_about(
    customers: Table[Any], orders: Table[Any]
) -> None:
    is_x = Operation("==", (Attribute(ROW, "town"), constant("x")))
    number = Conditional(is_x, count(orders, MINE, LARGE), constant(-1))
    made = plain.free(plan.Select(customers.plan, lifted(number)))
    view = customers._new(made).materialize()
    orders.add(Order(1, "many"))
    customers.add(Customer(1, "y"))
    customers.add(Customer(2, "x"))
    assert sorted(view) == [-1, 0]
    with pytest.raises(TypeError):
        customers.add(Customer(1, "x"))
    assert sorted(view) == [-1, 0]


def test_without_an_order_it_may_be_asked_of_all(customers: Table[Any], orders: Table[Any]) -> None:
    made = plan.Select(customers.plan, lifted(count(orders, MINE, LARGE)))
    text = str(explain(plain.free(made, in_order=False)))
    assert "distinct" in str(explain(plain.free(made))) and "distinct" not in text


def test_rows_in_no_order_of_their_own_are_shown_without_what_they_stand_by(
    customers: Table[Any], orders: Table[Any]
) -> None:
    by = (plan.SortKey(lifted(count(orders, MINE))),)
    made = plain.free(plan.OrderBy(customers.plan, by, None, 0))
    assert isinstance(made, plan.OrderBy)
    assert (made.shown, bindings(made.input), bindings(made)) == (1, 2, 1)
    customers.add_all([Customer(1, "a"), Customer(2, "b")])
    orders.add(Order(1, 1))
    first = customers._new(plain.free(plan.OrderBy(customers.plan, by, 1, 0))).materialize()
    assert list(first) == [Customer(2, "b")]
    orders.add_all([Order(2, 1), Order(2, 1)])
    assert list(first) == [Customer(1, "a")]


def test_a_query_of_two_values_is_none(customers: Table[Any], orders: Table[Any]) -> None:
    query = orders.aggregate(Count()).join(orders.aggregate(Count())).plan
    with pytest.raises(PlanError, match="gives 2 values at once"):
        where(customers, Operation("==", (Subquery("value", query), constant(1))))


def test_sub_queries_have_a_text(customers: Table[Any], orders: Table[Any]) -> None:
    test = And((Subquery("exists", of(orders, MINE), (ROW,)), MINE))
    assert text(test, ("row",)) == (
        "exists (where row.customer == outer[0].id) and row.customer == outer[0].id"
    )


def test_the_first_rows_of_each_stand_beside_it(customers: Table[Any], orders: Table[Any]) -> None:
    largest = plan.SortKey(lifted(Attribute(ROW, "total")), descending=True)
    query = plan.OrderBy(of(orders, MINE), (largest,), 2, 0)
    made = lateral(
        customers.plan, query, (ROW,), "left", of_no_rows=plain.of_no_rows, canonical=canonical
    )
    view = customers._new(made).materialize()
    customers.add_all([Customer(1, "a"), Customer(2, "b")])
    orders.add_all([Order(1, n) for n in range(5)])
    rows = [(c.town, None if o is None else o.total) for c, o in view]
    assert sorted(rows, key=str) == [("a", 3), ("a", 4), ("b", None)]
    orders.remove(Order(1, 4))
    rows = [(c.town, None if o is None else o.total) for c, o in view]
    assert sorted(rows, key=str) == [("a", 2), ("a", 3), ("b", None)]
    view.verify()
