"""The last commit, for `previous()`, which reads rows as they were before it.

    commit v      input changes by d        coming: d, of version v
    commit v + 1  previous changes by d     coming: the input's delta, of version v + 1

The changes of a commit are fed to the graph along with the next commit, as if a table had changed,
so only rows that changed in the last commit cost anything. They are recorded by the version that
the commit will have, before it stands: the record is valid exactly if the commit stands, even if it
is interrupted.

State:  one delta, in the graph; the rows of a version that `verify` evaluated.
Source: [dbsp] the delay operator, z^-1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from reactive.engine.collections.zset import Pair, Row
from reactive.engine.dataflow.schedule import source_rank
from reactive.errors import OffloadError

if TYPE_CHECKING:
    from reactive.engine.dataflow.graph import Graph
    from reactive.engine.dataflow.node import Node
    from reactive.engine.dataflow.schedule import Fed

Rows = Counter[Row]


class EvaluatedVersions(NamedTuple):
    """The rows of a version and of the previous version, evaluated from scratch."""

    version: int
    now: Rows
    before: Rows


class Moment:
    """The changes of a relation in the last commit; equal relations share one object.

    `nodes` are the graph nodes that have the previous rows: several, if views compute the rows in
    different ways.
    """

    __slots__ = ("__weakref__", "graph", "nodes")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []

    @property
    def pending(self) -> Sequence[Pair]:
        """The changes made by the last commit."""
        graph = self.graph
        return graph.past.get(graph.version, {}).get(self, ())

    def set(self, delta: Sequence[Pair]) -> None:
        """Record the changes of the commit in progress."""
        graph = self.graph
        graph.past.setdefault(graph.version + 1, {})[self] = delta

    def add(self, node: Node) -> None:
        """Add a node that has the previous rows, if it is new."""
        self.nodes = [*(other for other in self.nodes_in_graph() if other is not node), node]

    def nodes_in_graph(self) -> list[Node]:
        """Forget the nodes that are no longer in the graph, and return the others."""
        if not all(map(self.graph.has, self.nodes)):
            self.nodes = [node for node in self.nodes if self.graph.has(node)]
        return self.nodes

    def rows_before(self, now: Rows, without: Rows) -> Rows:
        """Return the rows before the last commit, for a check.

        `now` are the current rows, evaluated from scratch, and `without` the rows without the last
        changes. If a check after the previous commit evaluated its rows, these are returned. The
        current rows are stored for a check after the next commit.
        """
        graph = self.graph
        version, kept = graph.version, graph.kept.get(self)
        if kept is None or kept.version < version - 1:
            was = without
        else:
            was = kept.before if kept.version == version else kept.now
        graph.kept[self] = EvaluatedVersions(version, now, was)
        graph.past.setdefault(version, {})
        return was


def with_past(graph: Graph, changes: Sequence[Fed]) -> Sequence[Fed]:
    """Return the changes of a commit and of `previous()` relations, by rank of the source."""
    if graph.past:
        changes = [*changes, *_changes_for_previous(graph)]
    return sorted(changes, key=source_rank) if len(changes) > 1 else changes


def _changes_for_previous(graph: Graph) -> Iterator[Fed]:
    """Yield the changes of the last commit for the nodes that read previous rows."""
    graph.kept = {
        moment: kept
        for moment, kept in graph.kept.items()
        if kept.version == graph.version and moment.nodes_in_graph()
    }
    drop_old_changes(graph)
    for moment, delta in graph.past.get(graph.version, {}).items():
        for node in moment.nodes_in_graph():
            yield node, delta


def drop_old_changes(graph: Graph) -> None:
    """Drop the changes of commits before the last one, or of one that failed."""
    if graph.past:
        deltas = graph.past.get(graph.version, {})
        graph.past = {graph.version: deltas} if deltas or graph.kept else {}


def check_prompt(node: Node) -> None:
    """Raise if the node changes only at flushes, so that it has no rows of each commit."""
    if node.deferred:
        raise OffloadError(
            "previous() reads what is not in the process, which changes at flushes and not at"
            " commits\n  view.recall() brings a part back; previous() of a table of the process"
        )
