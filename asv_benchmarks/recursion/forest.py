"""Reachability under inserted and deleted edges, written by hand.

A tree from the root to every reached node: each has a parent, one of the nodes that lead to it. A
new edge matters if it leads out of the tree, which then grows. A deleted edge matters if it is the
edge to a parent: the nodes below it are detached, and attached again where a node outside leads to
them; the others are no longer reached. A node that only a cycle supports is below itself, so it is
detached, too.

Source: G. F. Italiano, Amortized efficiency of a path retrieval data structure, 1986, and Finding
paths and deleting edges in directed acyclic graphs, 1988; here with cycles.
"""

from __future__ import annotations

from collections.abc import Hashable

Node = Hashable
NONE: frozenset[Node] = frozenset()


class Graph:
    """Edges by both ends."""

    def __init__(self) -> None:
        self.after: dict[Node, set[Node]] = {}
        self.before: dict[Node, set[Node]] = {}

    def add(self, src: Node, dst: Node) -> None:
        self.after.setdefault(src, set()).add(dst)
        self.before.setdefault(dst, set()).add(src)

    def remove(self, src: Node, dst: Node) -> None:
        self.after[src].remove(dst)
        self.before[dst].remove(src)


class Tree:
    """The nodes that can be reached from a root by an edge or more, with their parents."""

    __slots__ = ("_graph", "_root", "parents")

    def __init__(self, graph: Graph, root: Node) -> None:
        self._graph = graph
        self._root = root
        self.parents: dict[Node, Node] = {}

    def added(self, src: Node, dst: Node) -> list[Node]:
        """Insert an edge from the root or a node of the tree; return newly reached nodes."""
        parents, after = self.parents, self._graph.after
        if dst in parents:
            return []
        parents[dst] = src
        came = [dst]
        for node in came:
            for other in after.get(node, NONE):
                if other not in parents:
                    parents[other] = node
                    came.append(other)
        return came

    def removed(self, src: Node, dst: Node) -> list[Node]:
        """Delete an edge, and return the nodes that are no longer reached."""
        if self.parents.get(dst, self) != src:
            return []
        loose = self._below(dst)
        for node in list(loose):
            if node in loose:
                self._attach(node, loose)
        for node in loose:
            del self.parents[node]
        return list(loose)

    def _below(self, top: Node) -> dict[Node, None]:
        """Return a node and all below it. What is below the root's own place hangs on the root."""
        parents, after = self.parents, self._graph.after
        below = [top]
        for node in below:
            if node != self._root:
                below += [n for n in after.get(node, NONE) if parents.get(n, self) == node]
        return dict.fromkeys(below)

    def _attach(self, node: Node, loose: dict[Node, None]) -> None:
        """Attach a node and its descendants, if a node that is not loose leads to it."""
        parents, after = self.parents, self._graph.after
        for parent in self._graph.before[node]:
            if parent == self._root or (parent in parents and parent not in loose):
                break
        else:
            return
        parents[node] = parent
        del loose[node]
        attached = [node]
        for node in attached:
            for other in after.get(node, NONE):
                if other in loose:
                    parents[other] = node
                    del loose[other]
                    attached.append(other)
