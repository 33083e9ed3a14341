"""Recursions on Spark: the first load, and an inserted or deleted edge.

closure         by partitions: separate communities of nodes in a circle with chords: each node
                reaches its whole community, so that a community of n nodes has n * n pairs
generation      by rounds: nodes with the same distance from a root, in trees of the size of a
                community, whose nodes have three children

first load      from no edge to all pairs, beside the same in the process
an edge         inserted between two connected nodes, deleted, or connecting two communities:
                seconds, actions of Spark, changed pairs

python -m asv_benchmarks.offload.recursion [closure] [--communities 100] [--nodes 100] [--rounds 5]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

from asv_benchmarks.offload.cpu import Took, took
from reactive import Database, fixpoint
from spark_backend import SparkOffload

BELOW = 3
"""Number of children of each node of a tree."""


class Edge(NamedTuple):
    """An edge of a graph, or a pair of its closure."""

    src: int
    dst: int


def closure(edges: Any) -> Any:
    """Return the pairs of nodes whose first leads to the second."""
    return fixpoint(
        lambda reach: edges.union(
            reach.join(edges, on=lambda p, e: p.dst == e.src).select(
                lambda p, e: Edge(p.src, e.dst)
            )
        )
    )


def generation(edges: Any) -> Any:
    """Return the pairs of nodes that are as far below a node."""
    return fixpoint(
        lambda same: (
            edges.join(edges, on=lambda a, b: a.src == b.src)
            .select(lambda a, b: Edge(a.dst, b.dst))
            .union(
                edges.join(same, on=lambda a, s: a.src == s.src)
                .join(edges, on=lambda a, s, b: s.dst == b.src)
                .select(lambda a, s, b: Edge(a.dst, b.dst))
            )
        )
    )


def trees(communities: int, nodes: int) -> Iterator[Edge]:
    """Yield the edges of all trees, from the root down."""
    for first in range(0, communities * nodes, nodes):
        for place in range(1, nodes):
            yield Edge(first + (place - 1) // BELOW, first + place)


def graph(communities: int, nodes: int) -> Iterator[Edge]:
    """Yield the edges of all communities: a circle each, and a chord for every fourth node."""
    for first in range(0, communities * nodes, nodes):
        for place in range(nodes):
            yield Edge(first + place, first + (place + 1) % nodes)
            if place % 4 == 0:
                yield Edge(first + place, first + (place * 7 + 3) % nodes)


class Measured:
    """A view of the recursion on Spark, and the cost of its flushes."""

    def __init__(self, query: Any, offload: SparkOffload) -> None:
        self.db = Database(offload=offload)
        self.edges: Any = self.db.table(Edge, name="edges")
        self.view: Any = query(self.edges).materialize("pairs")
        self.view.offload()
        spark: Any = offload.session.spark
        self._store = spark._jsparkSession.sharedState().statusStore()
        self._pairs = 0

    def flush(self, name: str) -> Took:
        """Bring the view up to date, and print the cost."""
        actions = self._store.executionsCount()
        each = took(self.db.flush)
        actions, before = self._store.executionsCount() - actions, self._pairs
        self._pairs = len(self.view)
        print(f"{name:<28} {each}  {actions} actions  {self._pairs - before:+,} pairs", flush=True)
        return each


def measure(name: str, communities: int, nodes: int, rounds: int) -> None:
    """Print the table."""
    query, made = QUERIES[name]
    edges = list(made(communities, nodes))
    here = Database()
    table, began = here.table(Edge, name="edges"), perf_counter()
    view = query(table).materialize()
    table.add_all(edges)
    print(f"{'in the process, load':<28} {perf_counter() - began:7.2f} s  {len(view):,} pairs")
    offload = SparkOffload(threshold_rows=None)
    try:
        of = Measured(query, offload)
        of.edges.add_all(edges)
        of.flush("first load")
        times: dict[str, list[Took]] = {}
        for number in range(rounds):
            first = number % communities * nodes
            for name, chord in (("an edge inside", 5), ("an edge to another", nodes)):
                edge = Edge(first, (first + chord) % (communities * nodes))
                of.edges.add(edge)
                times.setdefault(f"{name}, comes", []).append(of.flush(f"{name}, comes"))
                of.edges.remove(edge)
                times.setdefault(f"{name}, goes", []).append(of.flush(f"{name}, goes"))
        for name, each in times.items():
            seconds, cpu = (median(getattr(e, of) for e in each) for of in ("seconds", "cpu"))
            print(f"median of {name}: {seconds:.2f} s, {cpu:.2f} s of CPU")
        of.db.close()
    finally:
        offload.session.close()


QUERIES: dict[str, tuple[Any, Any]] = {
    "closure": (closure, graph),
    "generation": (generation, trees),
}


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.offload.recursion")
    parser.add_argument("query", nargs="?", choices=[*QUERIES], default="closure")
    parser.add_argument("--communities", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=100, help="of a community")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    measure(options.query, options.communities, options.nodes, options.rounds)


if __name__ == "__main__":
    main()
