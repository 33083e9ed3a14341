"""Views that filter a join by constants get the rows of their values, wherever the filter is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Sum, Table
from reactive.engine.compiler import queries
from reactive.engine.dataflow.discrimination import WORTHWHILE
from tests.budget import examples


class Order(NamedTuple):
    customer: Any
    amount: Any


class Customer(NamedTuple):
    id: Any
    nation: Any


Query = Callable[["Table[Order]", "Table[Customer]", Any], Any]
QUERIES: dict[str, Query] = {
    "join": lambda o, c, k: o.join(c, on=lambda x, y: x.customer == y.id).where(
        lambda x, y: x.customer == k
    ),
    "join, sum": lambda o, c, k: (
        o.join(c, on=lambda x, y: x.customer == y.id)
        .where(lambda x, y: x.customer == k)
        .aggregate(Count())
    ),
    "other table": lambda o, c, k: o.join(c, on=lambda x, y: x.customer == y.id).where(
        lambda x, y: y.nation == k
    ),
    "other table, sum": lambda o, c, k: (
        o.join(c, on=lambda x, y: x.customer == y.id)
        .where(lambda x, y: y.nation == k)
        .group_by(lambda x, y: x.customer)
        .aggregate(Count())
    ),
    "a comparison that may raise first": lambda o, c, k: o.join(
        c, on=lambda x, y: x.amount > 1 and x.customer == y.id and x.customer == k
    ),
    "a key that may raise first": lambda o, c, k: o.join(
        c, on=lambda x, y: 6 // x.amount == y.id and x.customer == k
    ),
    "a test of both first": lambda o, c, k: o.join(
        c, on=lambda x, y: x.amount != y.id and x.customer == y.id and y.nation == k
    ),
    "a range": lambda o, c, k: o.join(
        c, on=lambda x, y: x.customer == k and y.id <= x.amount < y.nation
    ),
    "written keys": lambda o, c, k: o.join(
        c, left_key=lambda x: x.customer, right_key=lambda y: y.id
    ).where(lambda x, y: x.customer == k and y.nation == k),
    "left join": lambda o, c, k: o.left_join(
        c, on=lambda x, y: x.customer == y.id and x.customer == k and y.nation == k
    ),
    "semi join": lambda o, c, k: o.semi_join(
        c, on=lambda x, y: x.customer == y.id and y.nation == k
    ),
    "anti join": lambda o, c, k: o.anti_join(
        c, on=lambda x, y: x.customer == y.id and y.nation == k
    ),
    "itself": lambda o, c, k: o.join(o, on=lambda x, y: x.customer == y.amount).where(
        lambda x, y: x.customer == k and y.customer != k
    ),
}
VALUES = st.sampled_from([0, 1, 2, True, 1.0, None, float("nan"), "a"])
row = st.tuples(VALUES, VALUES)
step = st.tuples(st.sampled_from(["orders", "customers"]), st.booleans(), row)


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
@examples(208)
@given(st.lists(st.lists(step, min_size=1, max_size=3), max_size=8), st.booleans(), st.booleans())
def test_they_are_right_after_every_commit(
    name: str, history: list[list[tuple[str, bool, Any]]], quiet: bool, looks_up: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if looks_up:
            patch.setattr(queries, "MANY_READERS", 2)
            patch.setattr(queries, "LARGE", 0)
        run(name, history, quiet)


def run(name: str, history: list[list[tuple[str, bool, Any]]], quiet: bool) -> None:
    """Run a history of commits, and compare each view with its query after each."""
    db, on_error = Database(), "drop" if quiet else "raise"
    orders, customers = db.table(Order, name="orders"), db.table(Customer, name="customers")
    views = [QUERIES[name](orders, customers, k).materialize(on_error=on_error) for k in range(14)]
    for steps in history:
        try:
            with db.transaction():
                for table, adds, values in steps:
                    if table == "orders":
                        (orders.add if adds else orders.discard)(Order(*values))
                    else:
                        (customers.add if adds else customers.discard)(Customer(*values))
        except (TypeError, ZeroDivisionError):
            pass
        for view in views:
            view.verify()


@pytest.mark.parametrize("name", ["join", "join, sum"])
def test_a_change_reaches_the_views_of_its_value_only(name: str) -> None:
    db = Database()
    orders, customers = db.table(Order, name="orders"), db.table(Customer, name="customers")
    views = [QUERIES[name](orders, customers, k).materialize() for k in range(14)]
    customers.add_all(Customer(k, k) for k in range(50))
    orders.add(Order(3, 1))
    before = sum(view.stats().touched for view in views)
    orders.add_all(Order(7, n) for n in range(10))
    assert sum(view.stats().touched for view in views) - before < 10 * 12


def test_an_exception_of_an_earlier_part_is_raised_though_no_view_wants_the_row() -> None:
    db = Database()
    orders, customers = db.table(Order, name="orders"), db.table(Customer, name="customers")
    query = QUERIES["a key that may raise first"]
    views = [query(orders, customers, k).materialize() for k in range(WORTHWHILE)]
    customers.add(Customer(6, 0))
    with pytest.raises(ZeroDivisionError):
        orders.add(Order("none", 0))
    orders.add(Order(3, 1))
    assert [len(view) for view in views] == [k == 3 for k in range(WORTHWHILE)]


def test_a_row_that_raises_meets_the_rows_that_the_tests_of_the_other_side_leave_out() -> None:
    db = Database()
    orders, customers = db.table(Order, name="orders"), db.table(Customer, name="customers")
    query = QUERIES["a comparison that may raise first"]
    views = [query(orders, customers, k).materialize() for k in range(WORTHWHILE)]
    orders.add(Order(0, None))
    with pytest.raises(TypeError):
        customers.add(Customer(None, 0))
    assert not list(customers) and not any(map(len, views))


def test_a_sum_over_the_other_side_follows_it() -> None:
    db = Database()
    orders, customers = db.table(Order, name="orders"), db.table(Customer, name="customers")
    views = [
        orders.join(customers, on=lambda o, c: o.customer == c.id)
        .where(lambda o, c, k=k: c.nation == k)  # type: ignore[misc]
        .aggregate(Sum(lambda o, c: o.amount))
        .materialize()
        for k in range(20)
    ]
    orders.add_all(Order(n % 5, n) for n in range(20))
    customers.add_all(Customer(n, n) for n in range(5))
    orders.add(Order(2, 100))
    customers.update(Customer(2, 2), Customer(2, 7))
    orders.add(Order(2, 1000))
    assert views[7].value == 2 + 7 + 12 + 17 + 100 + 1000
    for view in views:
        view.verify()
