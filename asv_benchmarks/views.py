"""Many views of one shape, each of one value: the cost of one more view, and of a commit."""

from __future__ import annotations

from random import Random
from statistics import median
from time import perf_counter
from typing import Any

from asv_benchmarks.measure import SEED
from asv_benchmarks.rows import Order, order
from reactive import Database, Table, View

FEW, MANY, MORE = 20, 1_000, 100
ROWS = 100_000
CHANGES = 1_000


def view_figures(
    few: int = FEW, many: int = MANY, rows: int = ROWS, changes: int = CHANGES
) -> dict[str, float]:
    """Milliseconds of a commit with few views and with many, and of one view more.

    A commit changes one of the views, whose subscriber is notified.
    """
    orders = Database().table(Order)
    orders.add_all(order(number, Random(number), customers=many) for number in range(rows))
    views = [_view(orders, customer) for customer in range(few)]
    with_few = _commit(orders, views, changes)
    started = perf_counter()
    views += [_view(orders, customer) for customer in range(few, many)]
    making = (perf_counter() - started) / (many - few)
    return {
        "view_change_few": with_few * 1e3,
        "view_change_many": _commit(orders, views, changes) * 1e3,
        "view_more": making * 1e3,
    }


def _view(orders: Table[Order], customer: int) -> View[Order]:
    return orders.where(lambda o: o.customer == customer).materialize()


def _commit(orders: Table[Order], views: list[View[Order]], changes: int) -> float:
    """Return the median seconds of one change."""
    random, heard, times = Random(SEED), list[Any](), []
    subscriptions = [view.subscribe(heard.append) for view in views]
    for number in range(changes):
        row = Order(-number, random.randrange(len(views)), 1, 1, 1)
        start = perf_counter()
        orders.add(row)
        times.append(perf_counter() - start)
        orders.remove(row)
    for subscription in subscriptions:
        subscription.close()
    if len(heard) != 2 * changes:
        raise AssertionError("a commit did not change exactly one view")
    return median(times)
