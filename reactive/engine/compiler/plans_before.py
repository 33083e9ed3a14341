"""Return to the plans before a commit that queries were compiled again for, if it fails.

    recompile    the leaves read new nodes; the old ones leave the graph, and are kept
    commit       fails, and is undone
    restore      the old nodes enter the graph again, with their state; the new ones are dropped

Sound: the old nodes have undone the commit, or not begun it, and nothing is committed since.
State: the old nodes, until the commit ends.
Cost:  O(old nodes).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.rewriting.optimize import Segment
from reactive.engine.dataflow.graph import Graph

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import Node


class PlansBefore:
    """The leaves, the segments of their queries, and the nodes dropped inside `with`."""

    def __init__(self, graph: Graph, leaves: Iterable[Node], segments: Iterable[Segment]) -> None:
        self._graph = graph
        self._leaves = [(leaf, leaf.inputs[0], leaf.operator, leaf.order) for leaf in leaves]
        self._segments = [(s, {*s.without}, s.top, s.physical) for s in segments]
        self._since = graph.made
        upstream = {node for leaf, *_ in self._leaves for node in leaf.upstream()}
        self._is_possible = not graph.forgets and not any(map(_has_state_elsewhere, upstream))

    def __enter__(self) -> PlansBefore:
        self._graph.dropped = {} if self._is_possible else None
        return self

    def __exit__(self, *_: object) -> None:
        dropped, self._graph.dropped = self._graph.dropped, None
        self._nodes = {node: of for node, of in (dropped or {}).items() if node.rank <= self._since}

    def restore(self) -> None:
        """Connect the leaves to their nodes as before, and drop the new ones."""
        if not self._is_possible:
            return
        graph = self._graph
        for node in sorted(self._nodes, key=lambda node: node.rank):
            graph.connect_again(node, self._nodes[node])
        there = set(graph.leaves())
        for leaf, source, operator, order in self._leaves:
            if leaf in there:
                graph.reattach(leaf, source, operator)
                leaf.order = order
        for segment, without, top, physical in self._segments:
            segment.without, segment.top, segment.physical = without, top, physical
        graph.sweep()


def _has_state_elsewhere(node: Node) -> bool:
    """Return True if a node cannot leave the graph and come back."""
    return node.is_remote or node.deferred or isinstance(node.plan, plan.Previous)
