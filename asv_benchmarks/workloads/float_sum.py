"""Filter, group: sum and count of the sales of each product, in floats.

Prices are multiples of a quarter, so that plain additions are exact and all sides agree to the bit;
a price in hundredths costs the engine the same (`exact_sum.py`), and plain additions would drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from asv_benchmarks.churn import Churn
from asv_benchmarks.rows import Sale, sale
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

QUARTER = 0.25
Shown = tuple[int, float, int]


def query(sales: Table[Sale]) -> Relation[*tuple[Any, ...]]:
    """(product, amount, number of sales) of the sales of more than one piece."""
    amounts = sales.where(lambda s: s.quantity > 1).select(lambda s: (s.product, s.price))
    totals: Relation[*tuple[Any, ...]] = amounts.group_by(lambda a: a[0]).aggregate(
        Sum(lambda a: a[1]), Count()
    )
    return totals


class Twin:
    """Keep sales with their counts, to refuse the removal of an absent one.

    Keep for each product the row of the result, which is its whole state: floats are added plainly,
    and rounding errors remain.
    """

    def __init__(self, listener: Listener) -> None:
        self._sales: dict[Sale, int] = {}
        self._groups: dict[int, Shown] = {}
        self._listener = listener

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(self.add, self.remove)]

    def add(self, row: Sale) -> None:
        self._sales[row] = self._sales.get(row, 0) + 1
        if row.quantity > 1:
            product = row.product
            old = self._groups.get(product)
            price = row.price
            new = (product, price, 1) if old is None else (product, old[1] + price, old[2] + 1)
            self._groups[product] = new
            self._listener.change(old, new)

    def remove(self, row: Sale) -> None:
        take_one(self._sales, row)
        if row.quantity > 1:
            product = row.product
            old = self._groups[product]
            if old[2] == 1:
                del self._groups[product]
                self._listener.change(old, None)
            else:
                new = (product, old[1] - row.price, old[2] - 1)
                self._groups[product] = new
                self._listener.change(old, new)

    def batch(self, *deltas: TableDelta) -> None:
        sales, groups = self._sales, self._groups
        before: dict[int, Shown | None] = {}
        for row, weight in deltas[0].pairs():
            if weight > 0:
                sales[row] = sales.get(row, 0) + 1
            else:
                take_one(sales, row)
            if row.quantity > 1:
                product = row.product
                old = groups.get(product)
                if product not in before:
                    before[product] = old
                _, total, count = old or (product, 0.0, 0)
                groups[product] = (product, total + row.price * weight, count + weight)
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
    """Sales of a thousand products."""
    return ([sale(number, random, QUARTER) for number in range(size)],)


def stream(rows: Rows, random: Random) -> Stream:
    """Insert and delete sales; sales of one piece are not seen."""
    return Churn(
        rows[0], lambda number: sale(number, random, QUARTER), lambda s: s.quantity > 1, random
    )


WORKLOAD = Workload(
    name="float_sum",
    title="filter, group sum of floats and count",
    tables=(TableOf(Sale),),
    query=query,
    twin=Twin,
    rows=rows,
    stream=stream,
)
