"""Transitive closure, from scratch and by hand, of rows with the fields `src` and `dst`.

From scratch it is semi-naive: only pairs that were new in the last round are made longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from asv_benchmarks.recursion.case import Table
from asv_benchmarks.recursion.forest import NONE, Graph, Node, Tree
from asv_benchmarks.workload import Row, TableDelta


def closure(edges: Table, make: Callable[[Any, Any], Row]) -> set[Row]:
    """Return every pair of nodes whose first leads to the second. Equal tuples are one row.

    A row is made only for new pairs.
    """
    after: dict[Node, list[Node]] = {}
    for src, dst in edges:
        after.setdefault(src, []).append(dst)
    found: set[Row] = set(edges)
    new: list[Row] = list(found)
    while new:
        last, new = new, []
        for src, middle in last:
            for dst in after.get(middle, ()):
                if (src, dst) not in found:
                    pair = make(src, dst)
                    found.add(pair)
                    new.append(pair)
    return found


class Closure:
    """The closure by hand: a tree for each node, and for each node the trees that contain it."""

    def __init__(self, make: Callable[[Any, Any], Row]) -> None:
        self._make = make
        self._graph = Graph()
        self._trees: dict[Node, Tree] = {}
        self._holders: dict[Node, set[Node]] = {}

    def add(self, table: int, row: Row) -> TableDelta:
        src, dst = row
        self._graph.add(src, dst)
        if src not in self._trees:
            self._trees[src] = Tree(self._graph, src)
        came: list[Row] = []
        for root in [src, *self._holders.get(src, NONE)]:
            for node in self._trees[root].added(src, dst):
                self._holders.setdefault(node, set()).add(root)
                came.append(self._make(root, node))
        return TableDelta(added=came)

    def remove(self, table: int, row: Row) -> TableDelta:
        src, dst = row
        self._graph.remove(src, dst)
        went: list[Row] = []
        for root in [src, *self._holders.get(src, NONE)]:
            for node in self._trees[root].removed(src, dst):
                self._holders[node].remove(root)
                went.append(self._make(root, node))
        return TableDelta(removed=went)

    def result(self) -> Iterator[Row]:
        return (
            self._make(root, node) for root, tree in self._trees.items() for node in tree.parents
        )
