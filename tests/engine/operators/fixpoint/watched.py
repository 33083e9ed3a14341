"""Recursive queries over a table of edges, whose work and state are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from reactive import Database, Table, fixpoint, iterate
from tests.engine.operators.fixpoint.graphs import Edge, Road, chain, cycle
from tests.engine.operators.fixpoint.test_keep import Dist, shortest
from tests.engine.operators.fixpoint.test_shapes import CLOSURES, left_linear, step

Rel = Any


def same_generation(edges: Rel) -> Rel:
    return fixpoint(
        lambda same: (
            edges.join(edges, on=lambda a, b: a.src == b.src)
            .select(lambda a, b: Edge(a.dst, b.dst))
            .union(
                same.join(edges, on=lambda p, a: p.src == a.src)
                .join(edges, on=lambda p, a, b: p.dst == b.src)
                .select(lambda p, a, b: Edge(a.dst, b.dst))
            )
        )
    )


def from_roots(edges: Rel) -> Rel:
    """Nodes that are reached from those without a predecessor."""
    roots = edges.anti_join(edges, on=lambda a, b: a.src == b.dst).select(lambda e: e.src)
    return fixpoint(
        lambda seen: roots.union(
            edges.semi_join(seen, on=lambda e, n: e.src == n).select(lambda e: e.dst)
        )
    )


def best_ways(edges: Rel) -> Rel:
    starts = edges.anti_join(edges, on=lambda a, b: a.src == b.dst).select(lambda e: Dist(e.src, 0))
    return shortest(starts, edges.select(lambda e: Road(e.src, e.dst, 1)))


def unreached(edges: Rel) -> Rel:
    """A stratum over a recursion, in rounds."""
    return iterate(
        lambda r: step(r, edges).difference(edges), left_linear(edges), times=3
    ).distinct()


QUERIES: dict[str, Callable[[Rel], Rel]] = {
    **CLOSURES,
    "same_generation": same_generation,
    "from_roots": from_roots,
    "best_ways": best_ways,
    "unreached": unreached,
}
COMPONENT = (*chain(1, 2, 3, 4, 5), *cycle(5, 6, 7), Edge(2, 4), Edge(7, 8))


def elsewhere(count: int) -> Iterable[Edge]:
    """Yield `count` copies of a component that is not connected with the main one."""
    for number in range(1, count + 1):
        for edge in COMPONENT:
            yield Edge(100 * number + edge.src, 100 * number + edge.dst)


class Watched:
    """A table of edges and a view of them, whose work is counted."""

    def __init__(self, query: Callable[[Rel], Rel], edges: Iterable[Edge]) -> None:
        self.db = Database()
        self.edges: Table[Edge] = self.db.table(Edge, name="edges")
        self.edges.add_all(edges)
        self.view: Any = query(self.edges).materialize()

    def work(self, *changes: Callable[[Table[Edge]], object]) -> list[int]:
        """Return the number of rows that each change touches."""
        counts = []
        for change in changes:
            before = self.view.stats().touched
            change(self.edges)
            counts.append(self.view.stats().touched - before)
        return counts
