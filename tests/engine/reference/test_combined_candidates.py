"""Sub-queries over products in `verify`: rows found by equations, as all rows tested one by one."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database
from reactive.engine.reference import combined_candidates, keys
from reactive.engine.reference.evaluate import evaluate
from tests.budget import examples
from tests.counted_calls import calls_of

Rel = Any


class Customer(NamedTuple):
    id: Any
    town: Any


class Order(NamedTuple):
    customer: Any
    day: Any
    price: Any


class Day(NamedTuple):
    id: Any
    year: Any


def existing(customers: Rel, orders: Rel, days: Rel) -> Rel:
    return customers.where(
        lambda c: any(
            True
            for o in orders
            for d in days
            if o.customer == c.id and o.day == d.id and d.year > 1
        )
    )


def one_or_the_other(customers: Rel, orders: Rel, days: Rel) -> Rel:
    return customers.where(
        lambda c: (
            any(True for o in orders for d in days if o.day == d.id and d.year == c.town)
            or any(o.price < d.year for o in orders for d in days if d.id == c.id and o.day == d.id)
        )
    )


def counted(customers: Rel, orders: Rel, days: Rel) -> Rel:
    return customers.select(
        lambda c: (
            c.id,
            sum(
                1
                for o in orders
                for d in days
                for more in orders
                if o.day == d.id
                if more.customer == o.customer
                if c.id == o.customer
                if more.price != o.price
            ),
        )
    )


def raising_before(customers: Rel, orders: Rel, days: Rel) -> Rel:
    """A condition before the equation may raise, and so may one after it."""
    return customers.where(
        lambda c: any(
            True
            for o in orders
            for d in days
            if 6 / o.price > 1 and o.customer == c.id and o.day == d.id and d.year / o.day > 0
        )
    )


def shared_by_arms(customers: Rel, orders: Rel, days: Rel) -> Rel:
    """A product of three with an `or` whose arms share an equation."""
    return (
        customers.join(orders)
        .join(days)
        .where(
            lambda c, o, d: (
                (o.day == d.id and c.town == 1 and o.price > 1)
                or (o.day == d.id and c.town == 2 and d.year < o.price)
            )
        )
        .where(lambda c, o, d: c.id == o.customer)
    )


def later_in_arms(customers: Rel, orders: Rel, days: Rel) -> Rel:
    return (
        customers.join(orders)
        .join(days)
        .where(
            lambda c, o, d: (
                (c.town == o.price and c.id == o.customer)
                or (c.town == d.year and c.id == o.customer and 2 / d.id > 0)
            )
        )
    )


def in_another_order(customers: Rel, orders: Rel, days: Rel) -> Rel:
    """The days have no equation with the customers, which are written before the orders."""
    return (
        customers.join(days)
        .join(orders)
        .where(lambda c, d, o: o.customer == c.id and d.id == o.day and d.year / o.price > 0)
    )


def above_left_joins(customers: Rel, orders: Rel, days: Rel) -> Rel:
    return (
        customers.join(orders, on=lambda c, o: c.id == o.customer)
        .join(orders, on=lambda c, o, more: more.customer == c.id)
        .left_join(days, on=lambda c, o, more, d: o.day == d.id and d.year != more.price)
        .where(lambda c, o, more, d: c.town == 1 and o.price != more.day)
        .where(lambda c, o, more, d: c.town == o.day and (d is None or d.year == 2))
    )


def raising_left_joins(customers: Rel, orders: Rel, days: Rel) -> Rel:
    """A left join and a filter may raise for rows that another filter drops."""
    return (
        customers.join(orders, on=lambda c, o: c.id == o.customer)
        .left_join(days, on=lambda c, o, d: o.day == d.id and 2 / d.year > 0)
        .where(lambda c, o, d: c.town == 1 and o.price < 2 and (d is None or d.year > 0))
    )


def read_twice(customers: Rel, orders: Rel, days: Rel) -> Rel:
    """Filters above one filter that is read twice."""
    rows = customers.join(orders).join(days).where(lambda c, o, d: o.day == d.id and c.id == o.day)
    wheres = (
        rows.where(lambda c, o, d: c.town == 1),
        rows.where(lambda c, o, d: 1 / c.town > 0 and o.customer == d.year),
        rows.where(lambda c, o, d: o.price < d.year),
    )
    return wheres[0] + wheres[1] + wheres[2]


QUERIES = (
    existing,
    one_or_the_other,
    counted,
    raising_before,
    shared_by_arms,
    later_in_arms,
    in_another_order,
    above_left_joins,
    raising_left_joins,
    read_twice,
)
SQL = (
    "select c.id from customers c where exists (select * from orders o, days d"
    " where o.customer = c.id and o.day = d.id and d.year = 2)"
    " or not exists (select * from orders o, days d where d.id = c.town and o.day = d.id)",
    "select c.id, d.year from customers c, orders o, days d where (o.day = d.id and c.town = 1"
    " and o.customer = c.id) or (c.id = o.customer and o.day = d.id and o.price > 1)",
    "select c.id from customers c where c.town in (select d.year from orders o, days d, orders p"
    " where o.customer = c.id and p.day = d.id and o.day = p.price)",
    "select c.id, (select sum(o.price) from orders o, days d where o.day = d.id"
    " and o.customer = c.id and (d.year = 1 or d.year = o.price)) as total from customers c",
    "select c.id, d.year, p.price from customers c, days d, orders o, orders p"
    " where o.customer = c.id and o.day = d.id and p.day = d.year and c.town < p.price",
    "select c.id, d.year, p.price from customers c join orders o on o.customer = c.id"
    " left join days d on d.id = o.day and d.year > c.town left join orders p on p.day = d.id"
    " where c.town = o.price and o.day < 2 and (p.price is null or p.price > 0)",
    "select c.town, d.year, avg(o.price), count(*) from customers c, orders o, days d"
    " where o.customer = c.id and o.day = d.id group by rollup (c.town, d.year)",
)
ODD = st.sampled_from([0, 1, 2, 1.0, nan, None, "a", (1, "b")])
SMALL = st.sampled_from([0, 1, 2, 3])
NULLABLE = st.sampled_from([0, 1, 2, None])


def _tables(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, list[Any]]]:
    kinds: dict[str, Any] = {"customers": Customer, "orders": Order, "days": Day}
    return st.fixed_dictionaries(
        {
            name: st.lists(st.builds(kind, *[values] * len(kind._fields)), max_size=6)
            for name, kind in kinds.items()
        }
    )


def _outcome(plan: Any, rows: dict[str, list[Any]]) -> Any:
    """Return the rows of a plan, or the class of what its evaluation raises."""
    try:
        return evaluate(plan, lambda table: [(row, 1) for row in dict.fromkeys(rows[table.name])])
    except Exception as error:
        return type(error)


def _compare(plan: Any, rows: dict[str, list[Any]]) -> None:
    """Compare the rows with those of an evaluation in which all combinations are tested."""
    found = _outcome(plan, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys.ConditionReader, "take", lambda self, test: False)
        patch.setattr(combined_candidates.CombinedRows, "is_found", False)
        assert found == _outcome(plan, rows)


@pytest.mark.parametrize("values", [ODD, SMALL], ids=["odd", "small"])
@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_all_combinations(
    query: Callable[[Rel, Rel, Rel], Rel], values: st.SearchStrategy[Any]
) -> None:
    db = Database()
    tables = [db.table(kind, name=name) for kind, name in _NAMED]
    plan = query(*tables).plan

    @examples(40)
    @given(_tables(values))
    def run(rows: dict[str, list[Any]]) -> None:
        _compare(plan, rows)

    run()


_NAMED: tuple[tuple[Any, str], ...] = (
    (Customer, "customers"),
    (Order, "orders"),
    (Day, "days"),
)


class NullableCustomer(NamedTuple):
    id: int | None
    town: int | None


class NullableOrder(NamedTuple):
    customer: int | None
    day: int | None
    price: int | None


class NullableDay(NamedTuple):
    id: int | None
    year: int | None


@pytest.mark.parametrize("text", SQL)
def test_rows_of_sql_are_those_of_all_combinations(text: str) -> None:
    db = Database()
    for kind, name in (
        (NullableCustomer, "customers"),
        (NullableOrder, "orders"),
        (NullableDay, "days"),
    ):
        db.table(kind, name=name)
    plan = db.sql(text).plan

    @examples(60)
    @given(_tables(NULLABLE))
    def run(rows: dict[str, list[Any]]) -> None:
        _compare(plan, rows)

    run()


LINEAR = (
    SQL[0],
    SQL[1],
    "select c.id from customers c, orders p, orders o where o.customer = c.id"
    " and p.customer = o.customer",
    "select c.id, d.year from customers c join orders o on o.day = c.town"
    " left join days d on d.id = o.day where o.customer = c.id",
)
JOINED = "customers c, orders o, days d where o.customer = c.id and o.day = d.id"


def _calls_of_verify(text: str, size: int) -> int:
    db = Database()
    customers = db.table(NullableCustomer, name="customers")
    orders = db.table(NullableOrder, name="orders")
    days = db.table(NullableDay, name="days")
    customers.add_all(NullableCustomer(n, n % 50) for n in range(size))
    orders.add_all(NullableOrder(n, n % 50, n % 7) for n in range(size))
    days.add_all(NullableDay(n, n % 3) for n in range(50))
    view = db.sql(text).materialize()
    assert len(view) > 0
    return calls_of(view.verify)


@pytest.mark.parametrize("text", LINEAR)
def test_verifying_is_linear_in_the_rows(text: str) -> None:
    assert _calls_of_verify(text, 800) < 2.6 * _calls_of_verify(text, 400)


def test_a_filter_that_is_read_several_times_is_evaluated_once() -> None:
    grouped = f"select c.town, d.year, avg(o.price) from {JOINED} group by"
    once = _calls_of_verify(f"{grouped} (c.town, d.year)", 300)
    assert _calls_of_verify(f"{grouped} rollup (c.town, d.year)", 300) < 2.5 * once


def test_equal_sub_queries_are_evaluated_once() -> None:
    found = f"in (select c.id from {JOINED})"
    once = _calls_of_verify(f"select id from customers where id {found}", 300)
    twice = f"select id from customers where id {found} union all"
    assert (
        _calls_of_verify(f"{twice} select town from customers where town {found}", 300) < 1.6 * once
    )
