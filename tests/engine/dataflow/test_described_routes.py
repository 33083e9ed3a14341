"""`explain(analyze=True)` says how a row finds an operator among the readers of an input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from reactive import Database


class Order(NamedTuple):
    id: int
    customer: int


class Customer(NamedTuple):
    id: int
    nation: int


Make = Callable[[Any, Any, int], Any]


def _joined(orders: Any, customers: Any, n: int) -> Any:
    pairs = orders.join(customers, on=lambda o, c: o.customer == c.id)
    return pairs.where(lambda o, c: c.nation == n)


QUERIES: dict[str, Make] = {
    "1 of 40 readers, found by the key of a row": lambda orders, _, n: orders.where(
        lambda o: o.customer == n
    ),
    "1 of 14 readers, found by nation": _joined,
    "1 of 40 joins, found by the key of a row": _joined,
}


def _explained(make: Make, count: int) -> str:
    db = Database()
    orders, customers = db.table(Order, name="orders"), db.table(Customer, name="customers")
    views = [make(orders, customers, n).materialize() for n in range(count)]
    customers.add(Customer(1, 1))
    orders.add(Order(1, 1))
    return str(views[-1].explain(analyze=True))


@pytest.mark.parametrize("told", QUERIES)
def test_an_operator_tells_how_a_row_finds_it(told: str) -> None:
    assert told in _explained(QUERIES[told], int(told.split()[2]))
    assert "found by" not in _explained(QUERIES[told], 2)
