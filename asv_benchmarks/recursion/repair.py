"""Handwritten: least costs from the starts, for inserted and deleted roads and starts.

An insert can only lower costs: Dijkstra's algorithm runs from its end on. A delete matters if a
least cost used it. Then the places are found, nearest first, whose cost nothing explains that is
not itself among them; they get the least cost by the places around them, nearest first again.
Every cost is above zero, so that no place explains its own, and nothing but a start costs nothing.

Source: G. Ramalingam and T. Reps, An incremental algorithm for a generalization of the
shortest-path problem, 1996.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from asv_benchmarks.workload import Row, TableDelta


class Road(NamedTuple):
    src: int
    dst: int
    cost: int


class Distance(NamedTuple):
    place: int
    cost: int


class Repair:
    """Keep roads by both ends, starts, and the least cost of every place that is reached."""

    def __init__(self) -> None:
        self._after: dict[int, set[Road]] = {}
        self._before: dict[int, set[Road]] = {}
        self._starts: set[int] = set()
        self._costs: dict[int, int] = {}

    def add(self, table: int, row: Row) -> TableDelta:
        if table:
            self._starts.add(row)
            return self._lower([(0, row)], {})
        self._after.setdefault(row.src, set()).add(row)
        self._before.setdefault(row.dst, set()).add(row)
        if row.src not in self._costs:
            return TableDelta()
        return self._lower([(self._costs[row.src] + row.cost, row.dst)], {})

    def remove(self, table: int, row: Row) -> TableDelta:
        if table:
            self._starts.remove(row)
            return self._raise(row)
        self._after[row.src].remove(row)
        self._before[row.dst].remove(row)
        cost = self._costs.get(row.src)
        if cost is None or self._costs[row.dst] != cost + row.cost:
            return TableDelta()
        return self._raise(row.dst)

    def result(self) -> Iterator[Distance]:
        return (Distance(place, cost) for place, cost in self._costs.items())

    def _lower(self, heap: list[tuple[int, int]], old: dict[int, int | None]) -> TableDelta:
        """Go on from costs of places as long as they are less; `old`: places without a cost."""
        costs = self._costs
        while heap:
            cost, place = heappop(heap)
            known = costs.get(place)
            if known is None or cost < known:
                old.setdefault(place, known)
                costs[place] = cost
                for road in self._after.get(place, ()):
                    heappush(heap, (cost + road.cost, road.dst))
        return self._delta(old)

    def _raise(self, place: int) -> TableDelta:
        """Recompute from a place that may have lost the explanation of its cost."""
        costs = self._costs
        old: dict[int, int | None] = {}
        heap = [(costs[place], place)]
        while heap:
            cost, place = heappop(heap)
            if place not in old and not self._is_explained(place, cost, old):
                old[place] = cost
                for _, dst, more in self._after.get(place, ()):
                    if costs[dst] == cost + more:
                        heappush(heap, (cost + more, dst))
        for place in old:
            del costs[place]
        heap = [
            (costs[src] + cost, place)
            for place in old
            for src, _, cost in self._before.get(place, ())
            if src in costs
        ]
        heapify(heap)
        return self._lower(heap, old)

    def _is_explained(self, place: int, cost: int, lost: dict[int, int | None]) -> bool:
        return any(
            self._costs.get(src, cost) + more == cost and src not in lost
            for src, _, more in self._before.get(place, ())
        )

    def _delta(self, old: dict[int, int | None]) -> TableDelta:
        added: list[Distance] = []
        removed: list[Distance] = []
        for place, before in old.items():
            now = self._costs.get(place)
            if now != before:
                removed += [] if before is None else [Distance(place, before)]
                added += [] if now is None else [Distance(place, now)]
        return TableDelta(added, removed)
