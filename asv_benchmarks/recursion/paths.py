"""Shortest paths: the least cost from a start to every place."""

from __future__ import annotations

from heapq import heappop, heappush
from random import Random
from typing import Any

from asv_benchmarks.recursion.case import Case, Kind, Table, additions, others, removals, sample
from asv_benchmarks.recursion.graphs import any_edge, digraph
from asv_benchmarks.recursion.repair import Distance, Repair, Road
from asv_benchmarks.workload import Rows, TableOf
from reactive import Min, Relation, fixpoint
from reactive import Table as TableOfRows

ROADS = 4
"""Roads for each place."""
DEAREST = 100


def query(roads: TableOfRows[Road], starts: TableOfRows[int]) -> Relation[*tuple[Any, ...]]:
    """Return the least cost of every reached place."""
    begin = starts.select(lambda s: Distance(s, 0))
    nearest: Relation[*tuple[Any, ...]] = fixpoint(
        lambda near: begin.union(
            near.join(roads, left_key=lambda d: d.place, right_key=lambda r: r.src).select(
                lambda d, r: Distance(r.dst, d.cost + r.cost)
            )
        ),
        keep=Min(lambda d: d.cost),
        by=lambda d: d.place,
    )
    return nearest


def scratch(roads: Table, starts: Table) -> list[Distance]:
    """Return the same costs, from scratch: Dijkstra's algorithm."""
    after: dict[int, list[Road]] = {}
    for road in roads:
        after.setdefault(road.src, []).append(road)
    costs: dict[int, int] = {}
    heap = [(0, start) for start in sorted(starts)]
    while heap:
        cost, place = heappop(heap)
        if place not in costs:
            costs[place] = cost
            for _, dst, more in after.get(place, ()):
                if dst not in costs:
                    heappush(heap, (cost + more, dst))
    return [Distance(place, cost) for place, cost in costs.items()]


def rows_of(size: int, random: Random) -> Rows:
    """Roads between random places, and one start."""
    edges = digraph(size, ROADS * size, random)
    return [Road(*edge, random.randint(1, DEAREST)) for edge in edges], [edges[0].src]


def kinds_of(rows: Rows, random: Random) -> list[Kind]:
    """Return edits of random roads, of roads on a cheapest way, and of the start."""
    roads, starts = rows
    costs = dict(scratch(roads, starts))
    used = [r for r in roads if r.src in costs and costs[r.src] + r.cost == costs[r.dst]]
    size = len(roads) // ROADS
    new = others(roads, lambda: Road(*any_edge(size, random), random.randint(1, DEAREST)), 30)
    return [
        Kind("a random road", removals(sample(roads, 50, random), 2)),
        Kind("a road in use", removals(sample(used, 50, random), 2)),
        Kind("a new road", additions(new, 2)),
        Kind("the start", removals(starts * 5, 2, table=1)),
    ]


PATHS = Case(
    name="paths",
    title="shortest paths in a random digraph",
    size=5_000,
    tables=(TableOf(Road), TableOf(int)),
    query=query,
    scratch=scratch,
    program=Repair,
    rows=rows_of,
    kinds=kinds_of,
)
