"""Conditions above joins are evaluated below the sums, so that no pairs are kept."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Sum


class Order(NamedTuple):
    id: int
    customer: int
    quantity: Any


class Customer(NamedTuple):
    id: int
    region: int
    active: bool


class Region(NamedTuple):
    id: int
    nation: int


class Nation(NamedTuple):
    id: int
    name: str


def made() -> tuple[Any, Any, Any]:
    db = Database()
    orders, customers = db.table(Order), db.table(Customer, key="id")
    regions, nations = db.table(Region, key="id"), db.table(Nation, key="id")
    customers.add_all([Customer(n, n % 3, n % 4 > 0) for n in range(6)])
    regions.add_all([Region(n, n % 2) for n in range(2)])
    nations.add_all([Nation(0, "north"), Nation(1, "south")])
    view = (
        orders.join(customers, on=lambda o, c: o.customer == c.id)
        .join(regions, on=lambda o, c, r: c.region == r.id)
        .join(nations, on=lambda o, c, r, n: r.nation == n.id)
        .where(lambda o, c, r, n: o.quantity > 1 and c.active)
        .group_by(lambda o, c, r, n: n.name)
        .aggregate(Sum(lambda o, c, r, n: o.id), Count())
        .materialize()
    )
    return db, (orders, customers, regions, nations), view


def test_every_join_below_is_kept_as_sums() -> None:
    _, _, view = made()
    runs = str(view.explain()).partition("runs as")[2]
    assert runs.count("| sums by") == 2


orders = st.builds(Order, st.integers(0, 20), st.integers(0, 7), st.integers(0, 4))


@given(st.lists(st.tuples(st.sampled_from("ocr"), orders), max_size=12), st.booleans())
def test_views_equal_their_query_after_every_change(changes: Any, odd: bool) -> None:
    _, (held, customers, regions, _), view = made()
    if odd:
        held.add(Order(99, 7, None))  # without a customer: its condition is never evaluated
    for which, order in changes:
        if which == "o":
            held.remove(order) if order in held else held.add(order)
        elif which == "c":
            customers.upsert(Customer(order.customer % 7, order.id % 3, order.quantity > 1))
        else:
            regions.upsert(Region(order.customer % 3, order.quantity % 2))
        view.verify()


def test_a_condition_that_raises_of_a_pair_leaves_all_as_it_was() -> None:
    _, (held, customers, *_), view = made()
    held.add_all([Order(n, n % 6, n % 4) for n in range(24)])
    before = set(view)
    with pytest.raises(TypeError):
        held.add(Order(99, 1, None))
    assert set(view) == before and len(held) == 24
    held.add(Order(99, 7, None))
    with pytest.raises(TypeError):
        customers.add(Customer(7, 1, True))
    view.verify()
    assert set(view) == before


def test_a_condition_that_stays_above_is_asked_below() -> None:
    db = Database()
    orders, customers, nations = db.table(Order), db.table(Customer), db.table(Nation)
    customers.add_all([Customer(n, n % 3, n % 4 > 0) for n in range(6)])
    nations.add_all([Nation(1, "north"), Nation(2, "south")])
    view = (
        orders.join(customers, on=lambda o, c: o.customer == c.id)
        .join(nations, on=lambda o, c, n: c.region == 2 // n.id and o.quantity > 1)
        .group_by(lambda o, c, n: n.name)
        .aggregate(Sum(lambda o, c, n: o.id), Count())
        .materialize()
    )
    for number in range(24):
        orders.add(Order(number, number % 6, number % 4))
        view.verify()
