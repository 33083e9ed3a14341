"""Cyclic joins: triangles and circles of four, listed, summed, per node and counted.

By hand: each node's targets and sources with the edges to them; the circles that an edge closes
are found by an intersection of two of these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

from asv_benchmarks.churn import Churn
from asv_benchmarks.cliffs.beside import batches, changes
from asv_benchmarks.cliffs.cliff import Cliff
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
from reactive import Count, Relation, Sum, Table

EDGES, FEW_EDGES = 8_000, 3_000
NODES = 800


class Edge(NamedTuple):
    src: int
    dst: int
    weight: int


Edges = Table[Edge]
Closed = tuple[Edge, ...]
Asked = Relation[*tuple[Any, ...]]


def across(e: Edges) -> Relation[Edge, Edge, Edge]:
    """a -> b -> c, and a -> c."""
    paths = e.join(e, on=lambda a, b: a.dst == b.src)
    return paths.join(e, on=lambda a, b, c: b.dst == c.dst and a.src == c.src)


def around(e: Edges) -> Relation[Edge, Edge, Edge]:
    """a -> b -> c -> a."""
    paths = e.join(e, on=lambda a, b: a.dst == b.src)
    return paths.join(e, on=lambda a, b, c: b.dst == c.src and c.dst == a.src)


def four(e: Edges) -> Relation[Edge, Edge, Edge, Edge]:
    """a -> b -> c -> d -> a."""
    paths = e.join(e, on=lambda a, b: a.dst == b.src).join(e, on=lambda a, b, c: b.dst == c.src)
    return paths.join(e, on=lambda a, b, c, d: c.dst == d.src and d.dst == a.src)


def across_summed(e: Edges) -> Asked:
    return across(e).aggregate(Sum(lambda a, b, c: a.weight + b.weight + c.weight), Count())


def around_summed(e: Edges) -> Asked:
    return around(e).aggregate(Sum(lambda a, b, c: a.weight + b.weight + c.weight), Count())


def across_per_node(e: Edges) -> Asked:
    return across(e).group_by(lambda a, b, c: a.src).aggregate(Count())


def around_per_node(e: Edges) -> Asked:
    return around(e).group_by(lambda a, b, c: a.src).aggregate(Count())


def across_counted(e: Edges) -> Asked:
    return across(e).aggregate(Count())


def around_counted(e: Edges) -> Asked:
    return around(e).aggregate(Count())


def four_per_node(e: Edges) -> Asked:
    return four(e).group_by(lambda a, b, c, d: a.src).aggregate(Count())


def four_counted(e: Edges) -> Asked:
    return four(e).aggregate(Count())


class Graph:
    """Edges by their ends, no two of the same ends and none from a node to itself."""

    def __init__(self) -> None:
        self.out: dict[int, dict[int, Edge]] = defaultdict(dict)
        self.back: dict[int, dict[int, Edge]] = defaultdict(dict)

    def put(self, edge: Edge) -> None:
        self.out[edge.src][edge.dst] = self.back[edge.dst][edge.src] = edge

    def take(self, edge: Edge) -> None:
        del self.out[edge.src][edge.dst], self.back[edge.dst][edge.src]

    def across(self, edge: Edge) -> Iterator[Closed]:
        """Yield the triangles that the edge closes, as their first, second and third edge."""
        out, into = self.out[edge.src], self.back[edge.dst]
        onward, before = self.out[edge.dst], self.back[edge.src]
        for node in out.keys() & onward.keys():
            yield edge, onward[node], out[node]
        for node in before.keys() & into.keys():
            yield before[node], edge, into[node]
        for node in out.keys() & into.keys():
            yield out[node], into[node], edge

    def around(self, edge: Edge) -> Iterator[Closed]:
        """Yield the triangles that the edge closes, from each of its nodes."""
        onward, before = self.out[edge.dst], self.back[edge.src]
        for node in onward.keys() & before.keys():
            second, third = onward[node], before[node]
            yield edge, second, third
            yield second, third, edge
            yield third, edge, second

    def four(self, edge: Edge) -> Iterator[Closed]:
        """Yield the squares that the edge closes; two, not four, if two of its edges are one."""
        before = self.back[edge.src]
        for third, second in self.out[edge.dst].items():
            out = self.out[third]
            for node in out.keys() & before.keys():
                a, b, c, d = edge, second, out[node], before[node]
                yield a, b, c, d
                yield b, c, d, a
                if a is not c or b is not d:
                    yield c, d, a, b
                    yield d, a, b, c


Finds = Callable[[Graph, Edge], Iterator[Closed]]


class Twin:
    """Keep the edges, to refuse the removal of an absent one, and the graph."""

    def __init__(self, listener: Listener, finds: Finds) -> None:
        self._held: dict[Edge, Edge] = {}
        self._graph = Graph()
        self._listener = listener
        self._finds = finds

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(self.add, self.remove)]

    def add(self, edge: Edge) -> None:
        self._held[edge] = edge
        self._graph.put(edge)
        self._tell(edge, 1)

    def remove(self, edge: Edge) -> None:
        del self._held[edge]
        self._tell(edge, -1)
        self._graph.take(edge)

    def batch(self, *deltas: TableDelta) -> None:
        for edge, weight in deltas[0].pairs():
            (self.add if weight > 0 else self.remove)(edge)

    def _tell(self, edge: Edge, sign: int) -> None:
        if self.close(self._finds(self._graph, edge), sign):
            self._listener.change(None, None)

    def close(self, found: Iterator[Closed], sign: int) -> bool:
        """Change the result by these; whether there were any."""
        raise NotImplementedError


class Listed(Twin):
    def __init__(self, listener: Listener, finds: Finds) -> None:
        super().__init__(listener, finds)
        self._shown: dict[Closed, int] = {}

    def close(self, found: Iterator[Closed], sign: int) -> bool:
        shown, before = self._shown, len(self._shown)
        if sign > 0:
            for edges in found:
                shown[edges] = 1
        else:
            for edges in found:
                del shown[edges]
        return len(shown) != before

    def result(self) -> Result:
        return dict(self._shown)


class Summed(Twin):
    """The sum of all weights, and how many there are."""

    def __init__(self, listener: Listener, finds: Finds) -> None:
        super().__init__(listener, finds)
        self._total = self._count = 0

    def close(self, found: Iterator[Closed], sign: int) -> bool:
        total = count = 0
        for a, b, c in found:
            total += a.weight + b.weight + c.weight
            count += 1
        self._total += sign * total
        self._count += sign * count
        return count > 0

    def result(self) -> Result:
        return {(self._total, self._count): 1}


class PerNode(Twin):
    """The number of triangles from each node."""

    def __init__(self, listener: Listener, finds: Finds) -> None:
        super().__init__(listener, finds)
        self._counts: dict[int, int] = {}

    def close(self, found: Iterator[Closed], sign: int) -> bool:
        counts, changed = self._counts, False
        for edges in found:
            node, changed = edges[0].src, True
            left = counts.get(node, 0) + sign
            if left:
                counts[node] = left
            else:
                del counts[node]
        return changed

    def result(self) -> Result:
        return dict.fromkeys(self._counts.items(), 1)


class Counted(Twin):
    def __init__(self, listener: Listener, finds: Finds) -> None:
        super().__init__(listener, finds)
        self._count = 0

    def close(self, found: Iterator[Closed], sign: int) -> bool:
        count = sum(1 for _ in found)
        self._count += sign * count
        return count > 0

    def result(self) -> Result:
        return {self._count: 1}


QUERIES: dict[str, tuple[Callable[[Edges], Asked], type[Any], Finds]] = {
    "triangles a→b→c, a→c: listed": (across, Listed, Graph.across),
    "triangles a→b→c, a→c: summed": (across_summed, Summed, Graph.across),
    "triangles a→b→c, a→c: per node": (across_per_node, PerNode, Graph.across),
    "triangles a→b→c, a→c: counted": (across_counted, Counted, Graph.across),
    "triangles a→b→c→a: listed": (around, Listed, Graph.around),
    "triangles a→b→c→a: summed": (around_summed, Summed, Graph.around),
    "triangles a→b→c→a: per node": (around_per_node, PerNode, Graph.around),
    "triangles a→b→c→a: counted": (around_counted, Counted, Graph.around),
    "circles of four: listed": (four, Listed, Graph.four),
    "circles of four: per node": (four_per_node, PerNode, Graph.four),
    "circles of four: counted": (four_counted, Counted, Graph.four),
}
IN_BATCHES = (
    "triangles a→b→c, a→c: listed",
    "triangles a→b→c, a→c: counted",
    "triangles a→b→c→a: counted",
)


def workload(name: str) -> Workload:
    """A query with its twin; every change is of any edge."""
    query, twin, finds = QUERIES[name]
    return Workload(
        name="cyclic",
        title=name,
        tables=(TableOf(Edge),),
        query=query,
        twin=lambda listener: twin(listener, finds),
        rows=rows_of,
        stream=stream_of,
    )


def rows_of(size: int, random: Random) -> Rows:
    """Different edges between random nodes."""
    nodes = min(NODES, size)
    made: dict[tuple[int, int], Edge] = {}
    while len(made) < size:
        src, dst = random.randrange(nodes), random.randrange(nodes)
        if src != dst:
            made[src, dst] = Edge(src, dst, random.randrange(10))
    return (list(made.values()),)


def stream_of(rows: Rows, random: Random) -> Stream:
    """Insert new edges; delete random ones."""
    known = {(edge.src, edge.dst) for edge in rows[0]}
    nodes = 1 + max(edge.src for edge in rows[0])

    def make(number: int) -> Edge:
        while True:
            src, dst = random.randrange(nodes), random.randrange(nodes)
            if src != dst and (src, dst) not in known:
                known.add((src, dst))
                return Edge(src, dst, random.randrange(10))

    return Churn(rows[0], make, lambda row: True, random)


def _size(name: str) -> int:
    return FEW_EDGES if "four" in name else EDGES


CLIFFS = (
    *(
        Cliff(f"{name}, one edge", "twin", changes(workload(name)), _size(name), most=3.0)
        for name in QUERIES
    ),
    *(
        Cliff(f"{name}, a batch", "twin", batches(workload(name)), _size(name), most=3.0)
        for name in IN_BATCHES
    ),
)
