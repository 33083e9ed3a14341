"""Join, filter, group: sum of the orders of the active customers of each region."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from asv_benchmarks.churn import Churn
from asv_benchmarks.rows import Customer, Order, customer, order
from asv_benchmarks.workload import (
    Listener,
    OldNew,
    Result,
    Rows,
    Stream,
    TableDelta,
    TableOf,
    Verb,
    Workload,
)
from asv_benchmarks.workloads.counts import take_one
from reactive import Relation, Sum, Table

ORDERS_PER_CUSTOMER = 10
Group = tuple[int, int, int]
"""Region, amount, number of orders; a group without orders is not shown."""


def query(orders: Table[Order], customers: Table[Customer]) -> Relation[*tuple[Any, ...]]:
    """(region, amount) of the orders for more than one piece."""
    sold = orders.join(customers, left_key=lambda o: o.customer, right_key=lambda c: c.id).where(
        lambda o, c: c.active and o.quantity > 1
    )
    totals: Relation[*tuple[Any, ...]] = sold.group_by(lambda o, c: c.region).aggregate(
        Sum(lambda o, c: o.quantity * o.price)
    )
    return totals


class Twin:
    """Keep customers by their key, and orders with their counts.

    The counts refuse the removal of an absent order. Keep for each customer the number and the
    amount of the orders, which determine the effect of inserting or deleting the customer, and the
    same sums for each region.
    """

    def __init__(self, listener: Listener) -> None:
        self._customers: dict[int, Customer] = {}
        self._orders: dict[Order, int] = {}
        self._of_customers: dict[int, tuple[int, int]] = {}
        self._groups: dict[int, Group] = {}
        self._listener = listener

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(self.add, self.remove), (self.add_customer, self.remove_customer)]

    def add(self, row: Order) -> None:
        self._orders[row] = self._orders.get(row, 0) + 1
        if row.quantity > 1:
            amount = row.quantity * row.price
            self._sum(row.customer, amount, 1)
            customer = self._customers.get(row.customer)
            if customer is not None and customer.active:
                self._listener.change(*self._move(customer.region, amount, 1))

    def remove(self, row: Order) -> None:
        take_one(self._orders, row)
        if row.quantity > 1:
            amount = row.quantity * row.price
            self._sum(row.customer, -amount, -1)
            customer = self._customers.get(row.customer)
            if customer is not None and customer.active:
                self._listener.change(*self._move(customer.region, -amount, -1))

    def add_customer(self, row: Customer) -> None:
        if row.id in self._customers:
            raise KeyError(row.id)
        self._customers[row.id] = row
        self._tell(row, 1)

    def remove_customer(self, row: Customer) -> None:
        if self._customers[row.id] != row:
            raise KeyError(row)
        del self._customers[row.id]
        self._tell(row, -1)

    def batch(self, *deltas: TableDelta) -> None:
        before: dict[int, OldNew] = {}
        self._batch_of_customers(deltas[1], before)
        customers, orders = self._customers, self._orders
        for row, weight in deltas[0].pairs():
            if weight > 0:
                orders[row] = orders.get(row, 0) + 1
            else:
                take_one(orders, row)
            if row.quantity > 1:
                amount = row.quantity * row.price * weight
                self._sum(row.customer, amount, weight)
                customer = customers.get(row.customer)
                if customer is not None and customer.active:
                    region = customer.region
                    old, new = self._move(region, amount, weight)
                    before[region] = (before[region][0] if region in before else old, new)
        self._listener.changes([(old, new) for old, new in before.values() if old != new])

    def result(self) -> Result:
        return {(region, total): 1 for region, total, _ in self._groups.values()}

    def _sum(self, customer: int, amount: int, count: int) -> None:
        """Change the sums of a customer."""
        old = self._of_customers.get(customer)
        if old is None:
            self._of_customers[customer] = (amount, count)
        elif old[1] + count:
            self._of_customers[customer] = (old[0] + amount, old[1] + count)
        else:
            del self._of_customers[customer]

    def _move(self, region: int, amount: int, count: int) -> OldNew:
        """Change a region's sums; the rows of the result before and after."""
        old = self._groups.get(region)
        if old is None:
            self._groups[region] = (region, amount, count)
            return None, (region, amount)
        total, orders = old[1] + amount, old[2] + count
        if not orders:
            del self._groups[region]
            return (region, old[1]), None
        self._groups[region] = (region, total, orders)
        return (region, old[1]), (region, total)

    def _change_customer(self, row: Customer, weight: int) -> OldNew:
        """Change the sums by all orders of a customer that came or went."""
        sums = self._of_customers.get(row.id) if row.active else None
        if sums is None:
            return None, None
        return self._move(row.region, sums[0] * weight, sums[1] * weight)

    def _tell(self, row: Customer, weight: int) -> None:
        old, new = self._change_customer(row, weight)
        if old != new:
            self._listener.change(old, new)

    def _batch_of_customers(self, delta: TableDelta, before: dict[int, OldNew]) -> None:
        for row, weight in delta.pairs():
            if weight > 0:
                self._customers[row.id] = row
            else:
                del self._customers[row.id]
            old, new = self._change_customer(row, weight)
            if old != new:
                before[row.region] = (before.get(row.region, (old, None))[0], new)


def rows(size: int, random: Random) -> Rows:
    """Orders, and a tenth as many customers."""
    customers = max(1, size // ORDERS_PER_CUSTOMER)
    return (
        [order(number, random, customers) for number in range(size)],
        [customer(number) for number in range(customers)],
    )


def stream(rows: Rows, random: Random) -> Stream:
    """Insert and delete orders; customers stay."""
    customers: list[Customer] = rows[1]

    def seen(row: Order) -> bool:
        return row.quantity > 1 and customers[row.customer].active

    return Churn(rows[0], lambda number: order(number, random, len(customers)), seen, random)


WORKLOAD = Workload(
    name="join_sum",
    title="join, filter, group sum",
    tables=(TableOf(Order), TableOf(Customer, key="id")),
    query=query,
    twin=Twin,
    rows=rows,
    stream=stream,
)
