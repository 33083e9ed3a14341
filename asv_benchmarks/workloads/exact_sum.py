"""The query of `float_sum`, with prices in hundredths and a twin that rounds once.

Hundredths are integers of 2**-60: the twin keeps a sum of those, and knows that no price
is anything else, which the engine has to ask of every one.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from asv_benchmarks.churn import Churn
from asv_benchmarks.rows import Sale, sale
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
from asv_benchmarks.workloads.float_sum import Shown, query

HUNDREDTH = 0.01
SCALE = 2.0**60
Group = tuple[int, int]
"""The sum times 2**60, and the number of sales."""


class Twin:
    """Keep sales with their counts, and for each product the exact sum and its result row."""

    def __init__(self, listener: Listener) -> None:
        self._sales: dict[Sale, int] = {}
        self._groups: dict[int, Group] = {}
        self._shown: dict[int, Shown] = {}
        self._listener = listener

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(self.add, self.remove)]

    def add(self, row: Sale) -> None:
        self._sales[row] = self._sales.get(row, 0) + 1
        if row.quantity > 1:
            total, count = self._groups.get(row.product, (0, 0))
            self._set(row.product, total + int(row.price * SCALE), count + 1)

    def remove(self, row: Sale) -> None:
        take_one(self._sales, row)
        if row.quantity > 1:
            total, count = self._groups[row.product]
            self._set(row.product, total - int(row.price * SCALE), count - 1)

    def batch(self, *deltas: TableDelta) -> None:
        sales, groups = self._sales, self._groups
        touched: set[int] = set()
        for row, weight in deltas[0].pairs():
            if weight > 0:
                sales[row] = sales.get(row, 0) + 1
            else:
                take_one(sales, row)
            if row.quantity > 1:
                product = row.product
                total, count = groups.get(product, (0, 0))
                groups[product] = (total + int(row.price * SCALE) * weight, count + weight)
                touched.add(product)
        changes = (self._change(product) for product in touched)
        self._listener.changes([(old, new) for old, new in changes if old != new])

    def result(self) -> Result:
        return dict.fromkeys(self._shown.values(), 1)

    def _set(self, product: int, total: int, count: int) -> None:
        self._groups[product] = (total, count)
        self._listener.change(*self._change(product))

    def _change(self, product: int) -> OldNew:
        """Return the old and the new row of a product."""
        total, count = self._groups[product]
        old = self._shown.get(product)
        if not count:
            del self._groups[product]
            self._shown.pop(product, None)
            return old, None
        new = self._shown[product] = (product, total / SCALE, count)
        return old, new


def rows(size: int, random: Random) -> Rows:
    """Sales of a thousand products."""
    return ([sale(number, random, HUNDREDTH) for number in range(size)],)


def stream(rows: Rows, random: Random) -> Stream:
    """Insert and delete sales; sales of one piece are not seen."""
    return Churn(
        rows[0], lambda number: sale(number, random, HUNDREDTH), lambda s: s.quantity > 1, random
    )


WORKLOAD = Workload(
    name="exact_sum",
    title="the same in hundredths, beside exact sums",
    tables=(TableOf(Sale),),
    query=query,
    twin=Twin,
    rows=rows,
    stream=stream,
)
