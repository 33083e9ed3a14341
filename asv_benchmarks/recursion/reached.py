"""The nodes that the programs of the standard library reach, over its import and call graph."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from asv_benchmarks.recursion.case import Case, Edit, Kind, Table, additions, removals, sample
from asv_benchmarks.recursion.forest import Graph, Node, Tree
from asv_benchmarks.recursion.graphs import new_edges, within
from asv_benchmarks.recursion.stdlib import stdlib
from asv_benchmarks.workload import Row, Rows, TableDelta, TableOf
from reactive import Relation, fixpoint
from reactive import Table as TableOfRows

AGAIN = 5
BRIDGES = 20
RANDOM, NEW, BRIDGE = "a random edge", "a new edge", "an edge that most hang on"


class Use(NamedTuple):
    src: str
    dst: str


def query(uses: TableOfRows[Use], programs: TableOfRows[str]) -> Relation[*tuple[Any, ...]]:
    """Return the modules and definitions that a program uses, or uses by others."""
    nodes: Relation[*tuple[Any, ...]] = fixpoint(
        lambda nodes: programs.union(
            nodes.join(uses, left_key=lambda n: n, right_key=lambda u: u.src).select(
                lambda n, u: u.dst
            )
        )
    )
    return nodes


def scratch(uses: Table, programs: Table) -> set[Row]:
    """Return the same nodes, from scratch."""
    after: dict[Node, list[Node]] = {}
    for src, dst in uses:
        after.setdefault(src, []).append(dst)
    found = set(programs)
    new = list(found)
    while new:
        last, new = new, []
        for node in last:
            for dst in after.get(node, ()):
                if dst not in found:
                    found.add(dst)
                    new.append(dst)
    return found


class Reached:
    """The reached nodes by hand: one tree, whose root, None, has edges to all programs."""

    def __init__(self) -> None:
        self._graph = Graph()
        self._tree = Tree(self._graph, None)

    def add(self, table: int, row: Row) -> TableDelta:
        src, dst = (None, row) if table else row
        self._graph.add(src, dst)
        if src is not None and src not in self._tree.parents:
            return TableDelta()
        return TableDelta(added=self._tree.added(src, dst))

    def remove(self, table: int, row: Row) -> TableDelta:
        src, dst = (None, row) if table else row
        self._graph.remove(src, dst)
        return TableDelta(removed=self._tree.removed(src, dst))

    def result(self) -> Iterator[Row]:
        return iter(self._tree.parents)


def rows_of(size: int, random: Random) -> Rows:
    """Uses and programs; of a part of the nodes, if there are more than `size`."""
    graph = stdlib()
    uses = within([Use(*pair) for pair in graph.uses], size, random)
    nodes = {node for use in uses for node in use}
    return uses, [program for program in graph.programs if program in nodes]


def kinds_of(rows: Rows, random: Random) -> list[Kind]:
    """Return edits of random edges, of edges that reach the most nodes, and of all programs."""
    uses, programs = rows
    bridges = removals(_bridges(uses, programs), 2)
    every: list[Edit] = [(TableDelta(), TableDelta(removed=programs))] * AGAIN
    return [
        Kind(RANDOM, removals(sample(uses, 250, random), 2)),
        Kind(NEW, additions(new_edges(uses, Use, 100, random), 2)),
        Kind(BRIDGE, bridges),
        Kind("all programs", every),
    ]


def _bridges(uses: list[Use], programs: list[str]) -> list[Use]:
    """Return the edges without which least is reached."""
    program = Reached()
    for name in programs:
        program.add(1, name)
    for use in uses:
        program.add(0, use)
    lost: dict[Use, int] = {}
    for use in uses:
        lost[use] = len(program.remove(0, use).removed)
        program.add(0, use)
    return sorted(uses, key=lost.__getitem__, reverse=True)[:BRIDGES]


REACHED = Case(
    name="reached",
    title="reached in the standard library",
    size=1_000_000,
    tables=(TableOf(Use), TableOf(str)),
    query=query,
    scratch=scratch,
    program=Reached,
    rows=rows_of,
    kinds=kinds_of,
    gains={RANDOM: 100},
    judged=(RANDOM, NEW, BRIDGE),
)
