"""PageRank of a changing graph: twenty rounds, not a fixpoint."""

from __future__ import annotations

from math import fsum
from random import Random
from typing import Any, NamedTuple

from asv_benchmarks.recursion.case import Case, Kind, Table, additions, removals, sample
from asv_benchmarks.recursion.graphs import Edge, digraph, new_edges
from asv_benchmarks.workload import Rows, TableOf
from reactive import Count, Relation, Sum, iterate
from reactive import Table as TableOfRows

ROUNDS = 20
EDGES = 5
"""Edges for each node."""


class Rank(NamedTuple):
    node: int
    value: float


class Degree(NamedTuple):
    node: int
    edges: int


class Share(NamedTuple):
    src: int
    dst: int
    edges: int


def query(edges: TableOfRows[Edge]) -> Relation[*tuple[Any, ...]]:
    """Return the rank of every node: 1 at first, then 0.85 of the ranks along its edges."""
    degrees = edges.group_by(lambda e: e.src).aggregate(Count()).select(lambda n, c: Degree(n, c))
    shares = edges.join(degrees, left_key=lambda e: e.src, right_key=lambda d: d.node).select(
        lambda e, d: Share(e.src, e.dst, d.edges)
    )
    nodes = edges.select_many(lambda e: (e.src, e.dst)).distinct()
    nothing = nodes.select(lambda n: Rank(n, 0.0))

    def step(ranks: Relation[Rank]) -> Relation[Rank]:
        given = shares.join(ranks, left_key=lambda s: s.src, right_key=lambda r: r.node).select(
            lambda s, r: Rank(s.dst, r.value / s.edges)
        )
        return (
            given.union_all(nothing)
            .group_by(lambda r: r.node)
            .aggregate(Sum(lambda r: r.value))
            .select(lambda node, total: Rank(node, 0.15 + 0.85 * total))
        )

    ranks: Relation[*tuple[Any, ...]] = iterate(
        step, nodes.select(lambda n: Rank(n, 1.0)), times=ROUNDS
    )
    return ranks


def scratch(edges: Table) -> list[Rank]:
    """Return the same ranks, from scratch: plain loops, with `fsum` as in the engine."""
    before: dict[int, list[int]] = {node: [] for edge in edges for node in edge}
    degrees = dict.fromkeys(before, 0)
    for src, dst in edges:
        before[dst].append(src)
        degrees[src] += 1
    ranks = dict.fromkeys(before, 1.0)
    for _ in range(ROUNDS):
        given = {node: rank / (degrees[node] or 1) for node, rank in ranks.items()}
        ranks = {
            node: 0.15 + 0.85 * fsum([given[other] for other in others])
            for node, others in before.items()
        }
    return [Rank(node, rank) for node, rank in ranks.items()]


def rows_of(size: int, random: Random) -> Rows:
    """Edges between random nodes."""
    return (digraph(size, EDGES * size, random),)


def kinds_of(rows: Rows, random: Random) -> list[Kind]:
    """Return edits; in twenty rounds an edge matters to nearly all nodes."""
    return [
        Kind("a random edge", removals(sample(rows[0], 5, random))),
        Kind("a new edge", additions(new_edges(rows[0], Edge, 3, random))),
    ]


RANK = Case(
    name="rank",
    title="PageRank of a random digraph",
    size=1_000,
    tables=(TableOf(Edge),),
    query=query,
    scratch=scratch,
    program=None,
    rows=rows_of,
    kinds=kinds_of,
)
