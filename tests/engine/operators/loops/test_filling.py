"""A new join is filled from its smaller side, once an index of the larger one is there."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, Sum
from tests.counted_calls import calls_of


class Order(NamedTuple):
    id: int
    customer: Any
    amount: Any


class Customer(NamedTuple):
    id: Any
    nation: Any


class Nation(NamedTuple):
    id: Any
    region: Any


Tables = tuple[Database, Any, Any, Any]
NAN = float("nan")


def _tables(count: int, customers: int = 64) -> Tables:
    db = Database()
    orders = db.table(Order, name="orders")
    others, nations = db.table(Customer, name="customers"), db.table(Nation, name="nations")
    orders.add_all([Order(n, n % customers, n % 7) for n in range(count)])
    others.add_all([Customer(n, n % 32) for n in range(customers)])
    nations.add_all([Nation(n, n % 16) for n in range(32)])
    return db, orders, others, nations


def _pairs(t: Tables, nation: Any) -> Any:
    joined = t[1].join(t[2], on=lambda o, c: o.customer == c.id)
    return joined.where(lambda o, c: c.nation == nation)


def _products(t: Tables, nation: Any) -> Any:
    return _pairs(t, nation).select(lambda o, c: o.amount * 2)


def _sums(t: Tables, nation: Any) -> Any:
    return _pairs(t, nation).group_by(lambda o, c: o.amount).aggregate(Sum(lambda o, c: o.id))


def _two_joins(t: Tables, region: Any) -> Any:
    joined = t[1].join(t[2], on=lambda o, c: o.customer == c.id)
    joined = joined.join(t[3], on=lambda o, c, n: c.nation == n.id)
    return joined.where(lambda o, c, n: n.region == region)


QUERIES = (_pairs, _products, _sums, _two_joins)


@pytest.mark.parametrize("query", [_pairs, _products, _two_joins])
def test_one_more_view_of_a_small_part_reads_no_large_table(query: Any) -> None:
    def cost(count: int) -> int:
        t = _tables(0)
        for number in range(count):  # the same rows meet the new view
            t[1].add(Order(number, number if number < 64 else -number, 1))
        views = [query(t, n).materialize() for n in range(10)]
        return calls_of(lambda: views.append(query(t, 11).materialize()))

    small, large = cost(200), cost(1_600)
    assert large < small + 300  # 1,400 orders more, each looked up


@pytest.mark.parametrize("query", QUERIES)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 9),
            st.sampled_from([0, 1, 2, 3, 1.0, None, NAN, True]),
            st.sampled_from([1, 2, 0.5]),
        ),
        max_size=40,
    ),
    nations=st.lists(st.sampled_from([0, 1, 2, None, NAN]), min_size=6, max_size=9),
)
def test_each_view_of_a_family_has_its_rows(query: Any, rows: Any, nations: Any) -> None:
    t = _tables(0, 0)
    t[1].add_all([Order(*row) for row in rows])
    t[2].add_all([Customer(n % 4, n % 3) for n in range(8)])
    t[2].add(Customer(None, 1))
    views = []
    for number, nation in enumerate(nations):
        views.append(query(t, nation).materialize())
        views[-1].verify()
        t[2].add(Customer(number % 5, nation))
        t[1].add(Order(number, number % 5, 1))
        if number % 3 == 2:
            t[1].remove(Order(number, number % 5, 1))
    for view in views:
        view.verify()


def test_an_exception_is_that_of_the_first_view() -> None:
    def differences(t: Tables, nation: Any) -> Any:
        return _pairs(t, nation).select(lambda o, c: o.amount - 1)

    def raised(t: Tables) -> str:
        with pytest.raises(TypeError) as error:
            differences(t, 9).materialize()
        return str([str(error.value), *error.value.__notes__])

    t, fresh = _tables(300), _tables(300)
    views = [differences(t, n).materialize() for n in range(8)]
    for each in (t, fresh):
        each[1].add_all([Order(1_000, 9, "x"), Order(1_001, 41, "y")])
    assert raised(t) == raised(fresh) and len(views) == 8
