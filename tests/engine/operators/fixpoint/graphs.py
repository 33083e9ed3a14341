"""Graphs and their properties, computed with plain loops, without the engine."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class Edge(NamedTuple):
    """A row of the graph."""

    src: Any
    dst: Any


Edges = Iterable[Edge]


def settled(step: Callable[[set[Any]], Iterable[Any]]) -> set[Any]:
    """Apply the step from the empty set on until its result equals its input."""
    known: set[Any] = set()
    while (found := set(step(known))) != known:
        known = found
    return known


def closure(edges: Edges) -> set[Edge]:
    """All pairs of nodes with a path from the one to the other."""
    edges = set(edges)
    return settled(
        lambda known: edges | {Edge(p.src, e.dst) for p in known for e in edges if p.dst == e.src}
    )


def reached(starts: Iterable[Any], edges: Edges) -> set[Any]:
    """Nodes with a path from a start."""
    starts, edges = set(starts), set(edges)
    return settled(lambda known: starts | {e.dst for e in edges if e.src in known})


def by_length(edges: Edges) -> tuple[set[Edge], set[Edge]]:
    """Pairs of nodes with a walk of odd length, and with one of even length, not zero."""
    edges = set(edges)
    walks = settled(
        lambda known: (
            {(e, 1) for e in edges}
            | {(Edge(p.src, e.dst), 1 - odd) for p, odd in known for e in edges if p.dst == e.src}
        )
    )
    return {p for p, odd in walks if odd}, {p for p, odd in walks if not odd}


def path_sets(edges: Edges) -> set[frozenset[Any]]:
    """The sets of nodes of all walks."""
    edges = set(edges)
    walks = settled(
        lambda known: (
            {(e.dst, frozenset(e)) for e in edges}
            | {(e.dst, nodes | {e.dst}) for at, nodes in known for e in edges if e.src == at}
        )
    )
    return {nodes for _, nodes in walks}


class Road(NamedTuple):
    """An edge with a cost."""

    src: Any
    dst: Any
    cost: Any


def least(
    starts: Iterable[tuple[Any, Any]], roads: Iterable[Road], rounds: float = math.inf
) -> Mapping[Any, Any]:
    """The least cost of each node that is reached: Bellman and Ford, until nothing changes."""
    starts, roads = list(starts), list(roads)
    known: dict[Any, Any] = {}
    while rounds > 0:
        rounds -= 1
        found: dict[Any, Any] = {}
        ways = [(r.dst, known[r.src] + r.cost) for r in roads if r.src in known]
        for node, cost in [*starts, *ways]:
            found[node] = min(found.get(node, cost), cost)
        if found == known:
            return known
        known = found
    raise ArithmeticError("there is a cycle of negative cost")


# Shapes.


def chain(*nodes: int) -> tuple[Edge, ...]:
    return tuple(map(Edge, nodes, nodes[1:]))


def cycle(*nodes: int) -> tuple[Edge, ...]:
    return chain(*nodes, nodes[0])


def star(*ends: tuple[int, int]) -> tuple[Edge, ...]:
    return tuple(Edge(*end) for end in ends)


@dataclass(frozen=True)
class Shape:
    """Edges with their multiplicity, and the cuts to try: edges that are deleted together."""

    name: str
    edges: tuple[Edge, ...]
    cuts: tuple[Edge, ...]

    def orders(self) -> Iterator[tuple[Edge, ...]]:
        """Some orders to add the edges in."""
        half = len(self.edges) // 2
        yield self.edges
        yield self.edges[::-1]
        yield self.edges[half:] + self.edges[:half]
        yield self.edges[1::2] + self.edges[::2]


LONG = chain(1, 2, 3, 4, 5, 6)
DIAMOND = (*chain(2, 3, 5), *chain(2, 4, 5))
TRIANGLE, SQUARE = cycle(3, 4, 5), cycle(3, 4, 5, 6)
FIGURE_EIGHT = (*cycle(1, 2, 3), *cycle(1, 4, 5))

SHAPES = (
    Shape("one_edge", chain(1, 2), chain(1, 2)),
    Shape("duplicate_edge", chain(1, 2) * 2, chain(1, 2)),
    Shape("duplicate_edge_in_a_chain", (*LONG, Edge(3, 4)), (Edge(3, 4),)),
    Shape("chain_cut_in_the_middle", LONG, (Edge(3, 4),)),
    Shape("chain_cut_at_the_ends", LONG, (Edge(1, 2), Edge(5, 6))),
    Shape("two_paths", DIAMOND, (Edge(3, 5),)),
    Shape("two_paths_both_cut", DIAMOND, (Edge(3, 5), Edge(2, 4))),
    Shape("two_paths_in_a_chain", (*chain(0, 1, 2), *DIAMOND, *chain(5, 6, 7)), (Edge(2, 3),)),
    Shape("two_paths_cut_before", (*chain(0, 1, 2), *DIAMOND, *chain(5, 6, 7)), (Edge(1, 2),)),
    Shape("two_paths_of_different_lengths", (*chain(1, 2, 3, 4, 5), Edge(1, 5)), (Edge(1, 5),)),
    Shape("long_way_cut", (*chain(1, 2, 3, 4, 5), Edge(1, 5), Edge(5, 6)), (Edge(3, 4),)),
    Shape("back_edge", (*chain(1, 2, 3, 4, 5), Edge(4, 2)), (Edge(4, 2),)),
    Shape("back_edge_stays", (*chain(1, 2, 3, 4, 5), Edge(4, 2)), (Edge(2, 3),)),
    Shape("triangle", TRIANGLE, (Edge(4, 5),)),
    Shape("triangle_reached_from_a_chain", (*chain(1, 2, 3), *TRIANGLE), (Edge(4, 5),)),
    Shape("triangle_loses_its_chain", (*chain(1, 2, 3), *TRIANGLE), (Edge(2, 3),)),
    Shape("triangle_into_a_chain", (*TRIANGLE, *chain(5, 6, 7)), (Edge(4, 5),)),
    Shape("square", SQUARE, (Edge(4, 5),)),
    Shape("square_reached_from_a_chain", (*chain(1, 2, 3), *SQUARE), (Edge(5, 6),)),
    Shape("square_loses_its_chain", (*chain(1, 2, 3), *SQUARE), (Edge(2, 3),)),
    Shape("square_into_a_chain", (*SQUARE, *chain(5, 7, 8)), (Edge(3, 4),)),
    Shape("out_of_a_cycle", (*TRIANGLE, *star((3, 6), (3, 7), (4, 8))), (Edge(5, 3),)),
    Shape("into_a_cycle", (*TRIANGLE, *star((6, 3), (7, 3), (8, 4))), (Edge(5, 3),)),
    Shape("self_loop", (Edge(1, 1), *chain(1, 2, 3)), (Edge(1, 1),)),
    Shape("self_loop_in_a_chain", (*chain(1, 2, 3), Edge(2, 2)), (Edge(1, 2),)),
    Shape("self_loop_alone", (Edge(1, 1),), (Edge(1, 1),)),
    Shape("two_nodes", cycle(1, 2), (Edge(1, 2),)),
    Shape("two_cycles_sharing_a_node", FIGURE_EIGHT, (Edge(3, 1),)),
    Shape("two_cycles_and_a_chain", (Edge(0, 1), *FIGURE_EIGHT, Edge(5, 6)), (Edge(0, 1),)),
    Shape("two_cycles_sharing_an_edge", (*SQUARE, *chain(4, 7, 3)), (Edge(6, 3),)),
    Shape("cycle_of_cycles", (*cycle(1, 2), *cycle(2, 3), *cycle(3, 1)), (Edge(1, 2), Edge(1, 3))),
    Shape("base_edge_also_derived", (*chain(1, 2, 3, 4), Edge(1, 3)), (Edge(1, 3),)),
    Shape("derivation_of_a_base_edge", (*chain(1, 2, 3, 4), Edge(1, 3)), (Edge(2, 3),)),
    Shape("ladder", (*chain(1, 2, 3), *chain(4, 5, 6), *star((1, 4), (2, 5), (3, 6))), chain(2, 3)),
)


def copies(edges: Edges) -> Counter[Edge]:
    return Counter(edges)
