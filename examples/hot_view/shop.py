"""The tables of the shop and its live views. Nothing here knows where they are computed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from examples.hot_view.rows import Customer, Order, Spender
from examples.hot_view.stream import Batch
from reactive import Count, Database, GroupedRelation, Max, Sum, View

BEST = 10
Spending: TypeAlias = GroupedRelation[int, int, float, float]
"""A customer's number, the number of orders, their sum, and the largest of them."""


class Shop:
    """Views of spending: by customer, of the best customers, and by region.

    The view per customer keeps every amount, for the largest one; it is what grows.
    """

    def __init__(self, db: Database, customers: Iterable[Customer]) -> None:
        self.db = db
        self.orders = db.table(Order, name="orders")
        self.customers = db.table(Customer, name="customers", key="number")
        self.customers.add_all(customers)
        spending: Spending = self.orders.group_by(lambda o: o.customer).aggregate(
            Count(), Sum(lambda o: o.amount), Max(lambda o: o.amount)
        )
        named = spending.join(self.customers, on=lambda key, n, total, most, c: key == c.number)
        people = named.select(lambda key, n, total, most, c: Spender(key, c.name, c.region, total))
        self.spending = spending.materialize("spending")
        self.best = people.order_by(lambda s: (-s.total, s.number)).limit(BEST).materialize("best")
        self.regions = (
            people.group_by(lambda s: s.region)
            .aggregate(Count(), Sum(lambda s: s.total))
            .materialize("regions")
        )

    @property
    def views(self) -> tuple[View[*tuple[Any, ...]], ...]:
        """All of them."""
        return self.spending, self.best, self.regions

    def take(self, batch: Batch) -> None:
        """Commit a batch."""
        with self.db.transaction():
            self.orders.remove_all(batch.went)
            self.orders.add_all(batch.came)
