"""A generated commit applies a single row as the step of the operator does, with fewer calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Sum
from tests.counted_calls import calls_of
from tests.thresholds import thresholds


class Order(NamedTuple):
    id: int
    customer: int
    amount: Any


@dataclass(frozen=True)
class Customer:
    id: int
    region: int


QUERIES: dict[str, Callable[[Any, Any], Any]] = {
    "sums": lambda orders, customers: (
        orders.where(lambda o: 12 // o.amount > 1)
        .group_by(lambda o: o.customer)
        .aggregate(Sum(lambda o: o.amount), Count())
    ),
    "joined sums": lambda orders, customers: (
        orders.join(customers, left_key=lambda o: o.customer, right_key=lambda c: c.id)
        .group_by(lambda o, c: c.region)
        .aggregate(Sum(lambda o, c: o.amount), Count())
    ),
}
GENERATED = {
    "reactive.engine.dataflow.schedule.LATEST": 0,
    "reactive.engine.transactions.commit.SAMPLES": 0,
}
"""Threshold that makes commits generated code from the first."""
AMOUNTS = st.sampled_from([1, 2, 5, 7, 0.5, 0, "text", float("inf")])
CHANGES = st.lists(
    st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 2), AMOUNTS), max_size=16
)


def sides(query: str, *, optimize: bool) -> tuple[Database, Any, Any, Any]:
    db = Database(optimize=optimize)
    orders, customers = db.table(Order), db.table(Customer)
    view = QUERIES[query](orders, customers).materialize()
    return db, orders, customers, view


@given(st.sampled_from(list(QUERIES)), CHANGES)
def test_a_single_row_is_taken_or_refused_as_without_generated_code(query: str, some: Any) -> None:
    with thresholds(GENERATED):
        follow(query, some)


def follow(query: str, some: Any) -> None:
    """Follow a query; a view above it refuses groups of three rows, so changes are undone."""
    db, orders, customers, view = sides(query, optimize=True)
    plain = sides(query, optimize=False)
    refusing = [
        of.select(lambda key, total, count: 1 // (count - 3)).materialize()
        for of in (view, plain[3])
    ]
    for is_order, number, other, amount in some:
        row: Any = Order(number, other, amount) if is_order else Customer(number, other)
        said = []
        for of_orders, of_customers in ((orders, customers), plain[1:3]):
            table = of_orders if is_order else of_customers
            verb = table.remove if table.count(row) > 1 else table.add
            with suppress(TypeError, ZeroDivisionError):
                verb(row)
                said.append(verb.__name__)
        assert len(said) in (0, 2)
        view.verify()
        assert dict(view.zset().items()) == dict(plain[3].zset().items())
    assert len(db.views()) == len(refusing)


@pytest.mark.parametrize(("query", "most"), [("sums", 17), ("joined sums", 22)])
def test_a_commit_calls_the_loops_of_its_operators_and_little_else(query: str, most: int) -> None:
    db, orders, customers, view = sides(query, optimize=True)
    customers.add_all([Customer(n, n % 3) for n in range(100)])
    orders.add_all([Order(n, n % 50, 1 + n % 5) for n in range(100)])
    for n in range(100):
        customers.add(Customer(1_000 + n, 1))
    for n in range(200):
        orders.add(Order(100 + n, n % 50, 1 + n % 5))
    assert calls_of(lambda: orders.add(Order(-1, 7, 3))) <= most
    view.verify()
    assert len(db.views()) == 1
