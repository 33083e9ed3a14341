"""The last commit, for what reads rows as they were before it.

    commit v      input changes by d        coming: d, of version v
    commit v + 1  previous changes by d     coming: how the input changes now, of version v + 1

What changed in a commit is fed to the graph along with the next one, as if a table had changed. So
only what has changed in the last commit costs anything in this one. It is noted by the version
that the commit is to make, before it stands: it is known of a commit from the moment on at which it
stands, wherever that is broken off, and of one that does not stand never.

State:  one delta, in the graph; of what `verify` was asked of the rows of a version.
Source: [dbsp] the delay operator, z^-1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from reactive.engine.collections.zset import Pair, Row
from reactive.engine.dataflow.schedule import rank_of
from reactive.errors import OffloadError

if TYPE_CHECKING:
    from reactive.engine.dataflow.graph import Graph
    from reactive.engine.dataflow.node import Node
    from reactive.engine.dataflow.schedule import Fed

Rows = Counter[Row]


class EvaluatedVersions(NamedTuple):
    """The rows of a version and those of the one before, evaluated from scratch."""

    version: int
    now: Rows
    before: Rows


class Moment:
    """How some rows changed in the last commit; equal relations share it.

    `nodes` are those of the graph that have the rows as they were: more than one if views of the
    rows compute them in several ways.
    """

    __slots__ = ("__weakref__", "graph", "nodes")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []

    @property
    def pending(self) -> Sequence[Pair]:
        """What changed in the last commit."""
        graph = self.graph
        return graph.past.get(graph.version, {}).get(self, ())

    def set(self, delta: Sequence[Pair]) -> None:
        """The commit that is made changes this, if it stands."""
        graph = self.graph
        graph.past.setdefault(graph.version + 1, {})[self] = delta

    def add(self, node: Node) -> None:
        """A node has the rows as they were, which may be one that is known."""
        self.nodes = [*(other for other in self.read() if other is not node), node]

    def read(self) -> list[Node]:
        """The nodes that are in the graph still."""
        if not all(map(self.graph.has, self.nodes)):
            self.nodes = [node for node in self.nodes if self.graph.has(node)]
        return self.nodes

    def before(self, now: Rows, without: Rows) -> Rows:
        """The rows before the last commit, for a check, from those of now, evaluated from scratch,
        and the same without what changed.

        They are those that a check after that commit had evaluated, if there was one, and those of
        now are kept for a check after the next.
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
    """The changes of a commit, and what the one before makes of rows as they were, by rank."""
    if graph.past:
        changes = [*changes, *_fed(graph)]
    return sorted(changes, key=rank_of) if len(changes) > 1 else changes


def _fed(graph: Graph) -> Iterator[Fed]:
    """What the last commit changes in this one."""
    graph.kept = {
        moment: kept
        for moment, kept in graph.kept.items()
        if kept.version == graph.version and moment.read()
    }
    forget(graph)
    for moment, delta in graph.past.get(graph.version, {}).items():
        for node in moment.read():
            yield node, delta


def forget(graph: Graph) -> None:
    """Forget what is of no use any more: of commits before the last one, or of one that failed."""
    if graph.past:
        deltas = graph.past.get(graph.version, {})
        graph.past = {graph.version: deltas} if deltas or graph.kept else {}


def check_prompt(node: Node) -> None:
    """Raise if the rows of a node come at flushes, so that it has none of each commit."""
    if node.deferred:
        raise OffloadError(
            "previous() reads what is not in the process, which changes at flushes and not at"
            " commits\n  view.recall() brings a part back; previous() of a table of the process"
        )
