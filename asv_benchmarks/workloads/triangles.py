"""The number of triangles of a graph; each is counted from each of its corners."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

from asv_benchmarks.rows import Edge
from asv_benchmarks.workload import (
    Change,
    Listener,
    Result,
    Rows,
    Stream,
    TableDelta,
    TableOf,
    Verb,
    Workload,
)
from reactive import Count, Relation, Table

NODES = 500
MOST = 20_000
"""Edges, however many rows other workloads have."""


def query(edges: Table[Edge]) -> Relation[*tuple[Any, ...]]:
    """Pairs of edges that follow each other, and an edge back."""
    paths = edges.join(edges, left_key=lambda a: a.target, right_key=lambda b: b.source)
    found = paths.join(
        edges, left_key=lambda a, b: (b.target, a.source), right_key=lambda c: (c.source, c.target)
    )
    return found.aggregate(Count()).where(lambda count: count > 0)


class Twin:
    """The targets and the sources of each node.

    There are no two edges between the same nodes, and none from a node to itself.
    """

    def __init__(self, listener: Listener) -> None:
        self._targets: dict[int, set[int]] = defaultdict(set)
        self._sources: dict[int, set[int]] = defaultdict(set)
        self._count = 0
        self._listener = listener

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(self.add, self.remove)]

    def add(self, row: Edge) -> None:
        closed = self._closed(row)
        self._put(row)
        if closed:
            self._tell(self._count + closed)

    def remove(self, row: Edge) -> None:
        self._take(row)
        closed = self._closed(row)
        if closed:
            self._tell(self._count - closed)

    def batch(self, *deltas: TableDelta) -> None:
        before = self._count
        for row, weight in deltas[0].pairs():
            if weight > 0:
                self._count += self._closed(row)
                self._put(row)
            else:
                self._take(row)
                self._count -= self._closed(row)
        changed = [(before or None, self._count or None)] if before != self._count else []
        self._listener.changes(changed)

    def result(self) -> Result:
        return {self._count: 1} if self._count else {}

    def _put(self, row: Edge) -> None:
        self._targets[row.source].add(row.target)
        self._sources[row.target].add(row.source)

    def _take(self, row: Edge) -> None:
        self._targets[row.source].remove(row.target)
        self._sources[row.target].remove(row.source)

    def _closed(self, row: Edge) -> int:
        """Return the number of triangles that an absent edge would close."""
        return 3 * len(self._targets[row.target] & self._sources[row.source])

    def _tell(self, count: int) -> None:
        old, self._count = self._count, count
        self._listener.change(old or None, count or None)


class Closing:
    """Insert an edge that closes a triangle, then delete an edge of one, in turn."""

    def __init__(self, rows: list[Edge], random: Random) -> None:
        self._edges = rows.copy()
        self._known = set(rows)
        self._targets: dict[int, set[int]] = defaultdict(set)
        self._sources: dict[int, set[int]] = defaultdict(set)
        self._random = random
        self._adding = False
        for row in rows:
            self._targets[row.source].add(row.target)
            self._sources[row.target].add(row.source)

    def visible(self) -> Change:
        return self._turn(closing=True)

    def ordinary(self) -> Change:
        return self._turn(closing=False)

    def _turn(self, *, closing: bool) -> Change:
        self._adding = not self._adding
        while True:
            row = _edge(self._random) if self._adding else self._random.choice(self._edges)
            if (row in self._known) == self._adding or row.source == row.target:
                continue
            if not closing or self._targets[row.target] & self._sources[row.source]:
                break
        if self._adding:
            self._edges.append(row)
            self._known.add(row)
            self._targets[row.source].add(row.target)
            self._sources[row.target].add(row.source)
            return Change(0, row, 1)
        self._edges.remove(row)
        self._known.remove(row)
        self._targets[row.source].remove(row.target)
        self._sources[row.target].remove(row.source)
        return Change(0, row, -1)


def rows(size: int, random: Random) -> Rows:
    """Return edges between random nodes, at most `size` of them."""
    wanted, found = min(size, MOST), dict[Edge, None]()
    while len(found) < wanted:
        row = _edge(random)
        if row.source != row.target:
            found[row] = None
    return (list(found),)


def stream(rows: Rows, random: Random) -> Stream:
    """Insert and delete edges of triangles."""
    return Closing(rows[0], random)


def _edge(random: Random) -> Edge:
    source, target = random.randrange(NODES), random.randrange(NODES)
    return Edge(source * NODES + target, source, target)


WORKLOAD = Workload(
    name="triangles",
    title="triangles, 20,000 edges",
    tables=(TableOf(Edge, key="id"),),
    query=query,
    twin=Twin,
    rows=rows,
    stream=stream,
)
