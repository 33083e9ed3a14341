"""Filter, map, group: sum and count of the orders of each product."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from asv_benchmarks.churn import Churn
from asv_benchmarks.rows import Order, order
from asv_benchmarks.workload import (
    Listener,
    Result,
    Rows,
    Stream,
    TableDelta,
    TableOf,
    Verb,
    Workload,
)
from asv_benchmarks.workloads.counts import take_one
from reactive import Count, Relation, Sum, Table

Shown = tuple[int, int, int]


def query(orders: Table[Order]) -> Relation[*tuple[Any, ...]]:
    """(product, amount, number of orders) of the orders for more than one piece."""
    amounts = orders.where(lambda o: o.quantity > 1).select(
        lambda o: (o.product, o.quantity * o.price)
    )
    totals: Relation[*tuple[Any, ...]] = amounts.group_by(lambda a: a[0]).aggregate(
        Sum(lambda a: a[1]), Count()
    )
    return totals


class Twin:
    """Keep orders with their counts, to refuse the removal of an absent one.

    Keep for each product the row of the result, which is its whole state.
    """

    def __init__(self, listener: Listener) -> None:
        self._orders: dict[Order, int] = {}
        self._groups: dict[int, Shown] = {}
        self._listener = listener

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(self.add, self.remove)]

    def add(self, row: Order) -> None:
        self._orders[row] = self._orders.get(row, 0) + 1
        if row.quantity > 1:
            product = row.product
            old = self._groups.get(product)
            amount = row.quantity * row.price
            new = (product, amount, 1) if old is None else (product, old[1] + amount, old[2] + 1)
            self._groups[product] = new
            self._listener.change(old, new)

    def remove(self, row: Order) -> None:
        take_one(self._orders, row)
        if row.quantity > 1:
            product = row.product
            old = self._groups[product]
            if old[2] == 1:
                del self._groups[product]
                self._listener.change(old, None)
            else:
                new = (product, old[1] - row.quantity * row.price, old[2] - 1)
                self._groups[product] = new
                self._listener.change(old, new)

    def batch(self, *deltas: TableDelta) -> None:
        orders, groups = self._orders, self._groups
        before: dict[int, Shown | None] = {}
        for row, weight in deltas[0].pairs():
            if weight > 0:
                orders[row] = orders.get(row, 0) + 1
            else:
                take_one(orders, row)
            if row.quantity > 1:
                product = row.product
                old = groups.get(product)
                if product not in before:
                    before[product] = old
                _, total, count = old or (product, 0, 0)
                total += row.quantity * row.price * weight
                groups[product] = (product, total, count + weight)
        self._tell(before)

    def result(self) -> Result:
        return dict.fromkeys(self._groups.values(), 1)

    def _tell(self, before: dict[int, Shown | None]) -> None:
        changes: list[tuple[Shown | None, Shown | None]] = []
        for product, old in before.items():
            new: Shown | None = self._groups[product]
            if new is not None and not new[2]:
                del self._groups[product]
                new = None
            if old != new:
                changes.append((old, new))
        self._listener.changes(changes)


def rows(size: int, random: Random) -> Rows:
    """Orders of a thousand products."""
    return ([order(number, random) for number in range(size)],)


def stream(rows: Rows, random: Random) -> Stream:
    """Insert and delete orders; orders for one piece are not seen."""
    return Churn(rows[0], lambda number: order(number, random), lambda o: o.quantity > 1, random)


WORKLOAD = Workload(
    name="group_sum",
    title="filter, map, group sum and count",
    tables=(TableOf(Order),),
    query=query,
    twin=Twin,
    rows=rows,
    stream=stream,
)
