"""The calls that finding updated rows of a join takes, for each partner of the updated row."""

from __future__ import annotations

from typing import Any, NamedTuple

from reactive import Database
from tests.counted_calls import calls_of

WARM = 80
MOST = 100
"""Calls for one more partner: of the change itself, and of its row before and after."""


class Order(NamedTuple):
    id: int
    customer: int


class Customer(NamedTuple):
    id: int
    nation: int
    tier: int


class Nation(NamedTuple):
    id: int


def calls(partners: int) -> int:
    """Return the calls of an update of a customer with so many orders, which a subscriber reads."""
    db = Database()
    orders = db.table(Order, name="orders")
    customers, nations = db.table(Customer, name="customers"), db.table(Nation, name="nations")
    nations.add(Nation(1))
    customers.add(Customer(1, 1, 0))
    orders.add_all([Order(number, 1) for number in range(partners)])
    both = orders.join(customers, on=lambda o, c: o.customer == c.id)
    all_ = both.join(nations, on=lambda o, c, n: c.nation == n.id)
    view = all_.select(lambda o, c, n: (o.id, c.tier)).materialize()
    told: list[Any] = []

    def update(tier: int) -> None:
        customers.update(Customer(1, 1, tier - 1), Customer(1, 1, tier))

    with view.subscribe(lambda delta: told.append(delta.updated)):
        for tier in range(1, WARM):
            update(tier)
        found = calls_of(lambda: update(WARM))
    assert set(told[-1]) == {((n, WARM - 1), (n, WARM)) for n in range(partners)}
    return found


def test_updated_rows_of_three_tables_are_found_with_few_calls() -> None:
    assert (calls(40) - calls(10)) / 30 < MOST
