"""Transitive closure of a chain, of a random digraph and of a random tree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from random import Random
from typing import Any

from asv_benchmarks.recursion.case import Case, Kind, Table, additions, others, removals, sample
from asv_benchmarks.recursion.closure import Closure, closure
from asv_benchmarks.recursion.graphs import (
    Edge,
    any_edge,
    chain,
    digraph,
    heaviest,
    leaves,
    tree,
)
from asv_benchmarks.workload import Rows, TableOf
from reactive import Relation, fixpoint
from reactive import Table as TableOfRows

AGAIN = 10
"""The repeats of the only edge of a kind."""
LAST, MIDDLE = "the last edge", "the middle edge"
LEAF, HEAVIEST = "the edge of a leaf", "the edge above most nodes"
RANDOM, NEW = "a random edge", "a new edge"


def query(edges: TableOfRows[Edge]) -> Relation[*tuple[Any, ...]]:
    """Return every pair of nodes whose first leads to the second."""
    pairs: Relation[*tuple[Any, ...]] = fixpoint(
        lambda paths: edges.union(
            paths.join(edges, left_key=lambda p: p.dst, right_key=lambda e: e.src).select(
                lambda p, e: Edge(p.src, e.dst)
            )
        )
    )
    return pairs


def scratch(edges: Table) -> set[Edge]:
    """Return the same pairs, from scratch."""
    return closure(edges, Edge)


def chain_rows(size: int, random: Random) -> Rows:
    """Return the edges of a chain, in any order."""
    edges = chain(size)
    return (random.sample(edges, len(edges)),)


def chain_kinds(rows: Rows, random: Random) -> list[Kind]:
    """Return edits of a chain: half of all pairs depend on the middle edge."""
    edges = sorted(rows[0])
    return [
        Kind(LAST, removals([edges[-1]] * AGAIN)),
        Kind(RANDOM, removals(sample(edges, 20, random))),
        Kind(MIDDLE, removals([edges[len(edges) // 2]] * AGAIN)),
    ]


def digraph_rows(size: int, random: Random) -> Rows:
    """Three edges for two nodes: a third of the nodes lead to one another."""
    return (digraph(size, size * 3 // 2, random),)


def digraph_kinds(rows: Rows, random: Random) -> list[Kind]:
    """Return edits of random edges: some have no effect, some change a tenth of all pairs."""
    nodes = len(rows[0]) * 2 // 3
    new = others(rows[0], lambda: any_edge(nodes, random), 8)
    return [
        Kind(RANDOM, removals(sample(rows[0], 12, random))),
        Kind(NEW, additions(new)),
    ]


def tree_rows(size: int, random: Random) -> Rows:
    """Return the edges of a tree, in any order."""
    edges = tree(size, random)
    return (random.sample(edges, len(edges)),)


def tree_kinds(rows: Rows, random: Random) -> list[Kind]:
    """Below the edge with most nodes below it, there may be most of the tree."""
    edges = sorted(rows[0], key=lambda edge: edge.dst)
    return [
        Kind(LEAF, removals(sample(leaves(edges), 100, random))),
        Kind(RANDOM, removals(sample(edges, 30, random))),
        Kind(HEAVIEST, removals([heaviest(edges)] * AGAIN)),
    ]


def _case(
    name: str,
    title: str,
    size: int,
    rows: Callable[[int, Random], Rows],
    kinds: Callable[[Rows, Random], list[Kind]],
    judged: Collection[str],
    gains: Mapping[str, float] | None = None,
) -> Case:
    return Case(
        name=name,
        title=title,
        size=size,
        tables=(TableOf(Edge),),
        query=query,
        scratch=scratch,
        program=partial(Closure, Edge),
        rows=rows,
        kinds=kinds,
        gains=gains or {},
        judged=judged,
    )


CHAIN = _case("chain", "closure of a chain", 300, chain_rows, chain_kinds, (LAST, RANDOM, MIDDLE))
DIGRAPH = _case(
    "digraph", "closure of a random digraph", 1_000, digraph_rows, digraph_kinds, (RANDOM, NEW)
)
TREE = _case(
    "tree",
    "closure of a random tree",
    5_000,
    tree_rows,
    tree_kinds,
    (LEAF, RANDOM, HEAVIEST),
    {LEAF: 500},
)
