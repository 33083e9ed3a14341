"""The first rows of an order in a flush that the process does: those that are held, sorted here.

State:  none beside the tables.
Cost:   O(rows that are held and those that change), with their logarithm; all rows when too few are
        held.
Source: `first_of_all.py`, which this is equal to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from optimizer import plan
from reactive.engine.collections.order import tie_key
from reactive.engine.collections.zset import Row
from reactive.engine.reference.bags import Bag
from reactive.engine.reference.order import in_order, order_key
from spark_backend.direct.flush import together


@dataclass(frozen=True, slots=True)
class Placed:
    """A row: how often it is held before and after, and how much of it is shown."""

    row: Row
    before: int
    after: int
    shown_before: int
    shown_after: int


class DirectFirst:
    """Which rows are held, and which of them shown.

    Parameters
    ----------
    wanted: how many rows are held, beside those that tie with the last of them.
    is_total: rows that differ never tie; else those that tie with the last one that is shown come
        along.
    """

    def __init__(self, node: plan.OrderBy, wanted: int, *, is_total: bool) -> None:
        assert node.limit is not None
        self._first, self._needed = node.offset, node.offset + node.limit
        self._wanted, self._is_total = wanted, is_total
        self._whole = plan.OrderBy(node.input, node.keys, None, 0)
        self._key = order_key(self._whole)

    def within(self, before: Bag, change: Bag) -> list[Placed]:
        """Those that are held, and what changed up to the last of these."""
        after = together([before, change])
        runs = self._runs({**before, **after})
        last = max(
            (n for n, run in enumerate(runs) if any(row in before for row in run)), default=-1
        )
        return list(self._placed(runs[: last + 1], before, after))

    def of_all(self, before: Bag, every: Bag) -> list[Placed]:
        """Those that are held, and all rows there are after the change."""
        return list(self._placed(self._runs({**before, **every}), before, every))

    def is_enough(self, found: Iterable[Placed]) -> bool:
        """Whether as many are held as are shown."""
        return sum(one.after for one in found) >= self._needed

    def held(self, found: Iterable[Placed]) -> Bag:
        """How those that are held change."""
        return Counter({p.row: p.after - p.before for p in found if p.after != p.before})

    def shown(self, found: Iterable[Placed]) -> Bag:
        """How those that are shown change."""
        shown = {p.row: p.shown_after - p.shown_before for p in found}
        return Counter({row: weight for row, weight in shown.items() if weight})

    def _runs(self, rows: Iterable[Row]) -> list[list[Row]]:
        """Rows in order, each once; those that tie together."""
        ordered = in_order(self._whole, Counter(dict.fromkeys(rows, 1)))
        keyed = groupby(ordered, key=lambda row: (self._key(row), tie_key(row)))
        return [list(run) for _, run in keyed]

    def _placed(self, runs: list[list[Row]], before: Bag, after: Bag) -> Iterator[Placed]:
        start_b = start_a = 0
        for run in runs:
            for row in run:
                b, a = before.get(row, 0), max(0, after.get(row, 0))
                held = a if start_a < self._wanted else 0
                shown = self._shown(b, start_b), self._shown(held, start_a)
                yield Placed(row, b, held, *shown)
            start_b += sum(before.get(row, 0) for row in run)
            start_a += sum(max(0, after.get(row, 0)) for row in run)

    def _shown(self, weight: int, start: int) -> int:
        """How many copies of a row are shown, which has so many before it."""
        if self._is_total:
            return max(0, min(start + weight, self._needed) - max(start, self._first))
        return weight if start < self._needed else 0
