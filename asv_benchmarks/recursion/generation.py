"""Same generation: pairs with the same distance from a common ancestor."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from asv_benchmarks.recursion.case import Case, Kind, Table, removals, sample
from asv_benchmarks.recursion.graphs import Edge, heaviest, leaves, tree
from asv_benchmarks.workload import Rows, TableOf
from reactive import Relation, fixpoint
from reactive import Table as TableOfRows


class Pair(NamedTuple):
    one: int
    other: int


def query(edges: TableOfRows[Edge]) -> Relation[*tuple[Any, ...]]:
    """Pairs of nodes of one parent, and of parents that are such a pair."""
    siblings = edges.join(edges, left_key=lambda a: a.src, right_key=lambda b: b.src).select(
        lambda a, b: Pair(a.dst, b.dst)
    )
    pairs: Relation[*tuple[Any, ...]] = fixpoint(
        lambda same: siblings.union(
            same.join(edges, left_key=lambda s: s.one, right_key=lambda a: a.src)
            .join(edges, left_key=lambda s, a: s.other, right_key=lambda b: b.src)
            .select(lambda s, a, b: Pair(a.dst, b.dst))
        )
    )
    return pairs


def scratch(edges: Table) -> set[Pair]:
    """Return the same pairs, from scratch: semi-naive."""
    below: dict[int, list[int]] = {}
    for src, dst in edges:
        below.setdefault(src, []).append(dst)
    found = {Pair(one, other) for nodes in below.values() for one in nodes for other in nodes}
    new = list(found)
    while new:
        last, new = new, []
        for left, right in last:
            if left in below and right in below:
                for one in below[left]:
                    for other in below[right]:
                        if (one, other) not in found:
                            pair = Pair(one, other)
                            found.add(pair)
                            new.append(pair)
    return found


def rows_of(size: int, random: Random) -> Rows:
    """Return the edges of a tree, in any order."""
    edges = tree(size, random)
    return (random.sample(edges, len(edges)),)


def kinds_of(rows: Rows, random: Random) -> list[Kind]:
    """Return edits of a tree: most pairs depend on the edge above most nodes."""
    edges = sorted(rows[0], key=lambda edge: edge.dst)
    return [
        Kind("the edge of a leaf", removals(sample(leaves(edges), 30, random))),
        Kind("a random edge", removals(sample(edges, 20, random))),
        Kind("the edge above most nodes", removals([heaviest(edges)] * 5)),
    ]


GENERATION = Case(
    name="generation",
    title="same generation in a random tree",
    size=500,
    tables=(TableOf(Edge),),
    query=query,
    scratch=scratch,
    program=None,
    rows=rows_of,
    kinds=kinds_of,
)
