"""Captured variables of many readers: looked at in turns, as long as they may change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from reactive import Database, StaleCaptureWarning, Table
from reactive.engine.dataflow.node import FEW, LOOKED_AT
from tests.counted_calls import calls_of

VIEWS = 40


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: Any


def turns(db: Database) -> int:
    """The readers that are looked at."""
    return sum(len(node.routes.turns) for node in db._engine.graph.nodes())


def nobodys(orders: Table[Order], commits: int) -> None:
    for number in range(commits):
        orders.add(Order(number, -1))


def test_a_variable_that_nobody_else_has_is_not_looked_at_for_ever() -> None:
    db = Database()
    orders = db.table(Order)

    def of(customer: int) -> Any:
        return orders.where(lambda o: o.customer == customer)

    views = [of(customer).materialize() for customer in range(VIEWS)]
    assert turns(db) == VIEWS
    before = calls_of(lambda: nobodys(orders, 1))
    nobodys(orders, VIEWS // LOOKED_AT + 1)
    assert turns(db) == 0
    assert calls_of(lambda: nobodys(orders, 1)) < before
    assert len(views) == VIEWS


Change = Callable[[int], None]


def with_a_variable(orders: Table[Order]) -> tuple[Any, Change]:
    bound = 0

    def change(value: int) -> None:
        nonlocal bound
        bound = value

    return orders.where(lambda o: o.customer == bound), change


def with_a_list(orders: Table[Order]) -> tuple[Any, Change]:
    bounds = [0]
    return orders.where(lambda o: o.customer == bounds[0]), lambda value: bounds.append(value)


def with_its_own_function(orders: Table[Order]) -> tuple[Any, Change]:
    bound = 0

    def wanted(o: Order) -> bool:
        return bool(o.customer == bound)

    def change(value: int) -> None:
        wanted.__closure__[0].cell_contents = value  # type: ignore[index]

    return orders.where(wanted), change


@pytest.mark.parametrize("made", [with_a_variable, with_a_list, with_its_own_function])
def test_one_that_somebody_else_has_is_looked_at_as_long_as_it_is_there(
    made: Callable[[Table[Order]], tuple[Any, Change]],
) -> None:
    orders = Database().table(Order)

    def of(customer: int) -> Any:
        return orders.where(lambda o: o.customer == customer)

    views = [of(customer).materialize() for customer in range(1, VIEWS)]
    query, change = made(orders)
    views.append(query.materialize())
    nobodys(orders, VIEWS)
    change(7)
    with pytest.warns(StaleCaptureWarning):
        nobodys(orders, VIEWS)
    assert len(views) == VIEWS


def test_readers_that_have_gone_are_not_remembered() -> None:
    db = Database()
    orders = db.table(Order)

    def of(customer: int) -> Any:
        return orders.where(lambda o: o.customer == customer)

    views = [of(customer).materialize() for customer in range(VIEWS)]
    for customer in range(VIEWS, VIEWS + 8 * FEW):
        of(customer).materialize().close()
    assert turns(db) <= 2 * VIEWS + FEW + 1
    assert len(views) == VIEWS
