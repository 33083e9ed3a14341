"""Rows and twin of the joins that are there to be rewritten: parcels sent and received."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from asv_benchmarks.rows import Parcel, parcel
from asv_benchmarks.workload import Listener, Result, Rows, TableDelta, Verb
from asv_benchmarks.workloads.counts import take_one

Pair = tuple[Parcel, Parcel]


class Twin:
    """Keep both tables by the order, with counts, and the pairs that are seen.

    `seen` is the condition of the query on two parcels of one order.
    """

    def __init__(self, seen: Callable[[Parcel, Parcel], bool], listener: Listener) -> None:
        self._seen = seen
        self._sides: tuple[dict[int, dict[Parcel, int]], ...] = ({}, {})
        self._pairs: dict[Pair, int] = {}
        self._listener = listener

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(partial(self._one, table, 1), partial(self._one, table, -1)) for table in (0, 1)]

    def batch(self, *deltas: TableDelta) -> None:
        moved: Counter[Pair] = Counter()
        for table, delta in enumerate(deltas):
            for row, weight in delta.pairs():
                self._move(table, row, weight, moved)
        self._tell(moved)

    def result(self) -> Result:
        return self._pairs.copy()

    def _one(self, table: int, weight: int, row: Parcel) -> None:
        moved: Counter[Pair] = Counter()
        self._move(table, row, weight, moved)
        self._tell(moved)

    def _move(self, table: int, row: Parcel, weight: int, moved: Counter[Pair]) -> None:
        """Insert a row into its table, or delete it, and count the effect on the pairs."""
        own = self._sides[table].setdefault(row.order, {})
        if weight < 0:
            take_one(own, row)
        else:
            own[row] = own.get(row, 0) + 1
        for other, count in self._sides[1 - table].get(row.order, {}).items():
            pair = (other, row) if table else (row, other)
            if self._seen(*pair):
                moved[pair] += weight * count

    def _tell(self, moved: Counter[Pair]) -> None:
        for pair, weight in moved.items():
            left = self._pairs.pop(pair, 0) + weight
            if left:
                self._pairs[pair] = left
        came = [(None, pair) for pair, weight in moved.items() for _ in range(weight)]
        went = [(pair, None) for pair, weight in moved.items() for _ in range(-weight)]
        if came or went:
            self._listener.changes([*went, *came])


def rows(size: int, random: Random) -> Rows:
    """Return as many sent as received parcels, one of each order."""
    orders = range(size)
    return [parcel(n, n) for n in orders], [parcel(n, n) for n in random.sample(orders, size)]
