"""Graphs: a chain, a random digraph, a random tree; and queries over edges.

Edges are the rows: named tuples of the fields `src` and `dst`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from asv_benchmarks.recursion.case import others, sample
from asv_benchmarks.workload import Row


class Edge(NamedTuple):
    src: int
    dst: int


def chain(nodes: int) -> list[Edge]:
    """Return the edges of nodes in a chain."""
    return [Edge(node, node + 1) for node in range(nodes - 1)]


def digraph(nodes: int, edges: int, random: Random) -> list[Edge]:
    """Return `edges` different edges between random nodes; a node may have one to itself."""
    made: dict[Edge, None] = {}
    while len(made) < edges:
        made[any_edge(nodes, random)] = None
    return list(made)


def tree(nodes: int, random: Random) -> list[Edge]:
    """Edges from parents: the parent of a node is a random one of those before it."""
    return [Edge(random.randrange(node), node) for node in range(1, nodes)]


def any_edge(nodes: int, random: Random) -> Edge:
    """Return an edge between two random nodes."""
    return Edge(random.randrange(nodes), random.randrange(nodes))


def leaves(edges: list[Edge]) -> list[Edge]:
    """Return the edges of a tree below which there is one node."""
    parents = {edge.src for edge in edges}
    return [edge for edge in edges if edge.dst not in parents]


def heaviest(edges: list[Edge]) -> Edge:
    """Return the edge of a tree with the most nodes below it. Children are after their parents."""
    below: dict[int, int] = {}
    for edge in reversed(edges):
        below[edge.src] = below.get(edge.src, 1) + below.setdefault(edge.dst, 1)
    return max(edges, key=lambda edge: below[edge.dst])


def within(edges: list[Row], size: int, random: Random) -> list[Row]:
    """Return the edges between `size` random nodes, or all edges if there are fewer nodes."""
    kept = set(sample(_nodes(edges), size, random))
    return [edge for edge in edges if edge.src in kept and edge.dst in kept]


def new_edges(
    edges: Sequence[Row], make: Callable[..., Row], count: int, random: Random
) -> list[Row]:
    """Edges between random nodes, none of those there are."""
    nodes = _nodes(edges)
    return others(edges, lambda: make(random.choice(nodes), random.choice(nodes)), count)


def _nodes(edges: Sequence[Row]) -> list[Row]:
    return sorted({node for edge in edges for node in edge})
