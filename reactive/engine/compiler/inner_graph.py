"""A graph inside an operator: private nodes that may step several times in one commit.

    sources --deltas--> nodes, in topological order --> tops

The operator that owns it provides the contents of the sources, and decides when to undo a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optimizer import plan
from optimizer.plans.strata import replace_by_given
from reactive.engine.collections.zset import Pair, Pairs, consolidate
from reactive.engine.compiler.build import Builder
from reactive.engine.compiler.choices import CHOICES
from reactive.engine.compiler.chooser import CLOSURE, MULTIWAY, SUMS, Chooser
from reactive.engine.compiler.hops import Contents
from reactive.engine.dataflow.delivery_queue import DeliveryQueue
from reactive.engine.dataflow.graph import Graph
from reactive.engine.dataflow.node import Node
from reactive.engine.runtime.interrupts import reraise_asynchronous

MOST_TOUCHED = 1 << 62


class InnerGraph:
    """The nodes of some plans over `Recursive` relations, each a source that holds `contents`."""

    def __init__(
        self, roots: Sequence[plan.Node], contents: Sequence[Contents], *, generate: bool
    ) -> None:
        self._graph = Graph(lambda *_: None, DeliveryQueue())
        roots = [replace_by_given(root) for root in roots]
        self._sources = [
            self._graph.source(held, plan.Given(place, False, ()))
            for place, held in enumerate(contents)
        ]

        def source(leaf: Any) -> Node:
            found: Node = self._sources[leaf.index]
            return found

        together = roots[0]
        for root in roots[1:]:
            together = plan.UnionAll(together, root)
        chooser = Chooser(
            together,
            CHOICES,
            lambda candidate: 0,
            generate=generate,
            offloaded=None,
            without=(CLOSURE, MULTIWAY, SUMS),
        )
        builder = Builder(self._graph, source, generate, InnerGraph)
        self._tops = [builder.build(chooser.choose(root)) for root in roots]
        self._nodes = _find_reachable_nodes(self._sources)
        self._stepped: list[Node] = []

    def contents(self) -> list[Sequence[Pair]]:
        """Return all rows of the plans."""
        return [consolidate(self._graph.contents(top)) for top in self._tops]

    def step(self, deltas: Sequence[Pairs], most: int = MOST_TOUCHED) -> list[Pairs] | None:
        """Return the changes of the plans, given the changes of the sources.

        Return None, after undoing, if that raises or looks at more rows than `most`.
        """
        try:
            found = self._step(deltas, most)
        except Exception as error:
            reraise_asynchronous(error)
            found = None
        if found is None:
            for node in self._nodes:
                node.clear()
            self.undo()
        return found

    def _step(self, deltas: Sequence[Pairs], most: int) -> list[Pairs] | None:
        """Step the nodes, and return the deltas of the tops; None past `most` touched rows."""
        out: dict[Node, Pairs] = {}
        for source, delta in zip(self._sources, deltas, strict=True):
            if delta:
                source.send(delta)
                out[source] = delta
        for node in self._nodes:
            if node.dirty:
                before = node.operator.touched
                self._stepped.append(node)
                found = node.step(*node.inbox)
                node.clear()
                most -= node.operator.touched - before
                if most < 0:
                    return None
                if found:
                    node.send(found)
                    out[node] = found
        return [out.get(top, ()) for top in self._tops]

    def undo(self) -> None:
        """Undo the last step."""
        while self._stepped:
            self._stepped.pop().undo()

    def commit(self) -> None:
        for node in self._stepped:
            node.finalize()
        self._stepped = []

    @property
    def touched(self) -> int:
        return sum(node.operator.touched for node in self._nodes)

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows that the operators hold, and their size."""
        sizes = [
            node.operator.footprint() for node in self._nodes if hasattr(node.operator, "footprint")
        ]
        return sum(rows for rows, _ in sizes), sum(size for _, size in sizes)


def _find_reachable_nodes(sources: Sequence[Node]) -> list[Node]:
    """Return the nodes that the sources reach, in topological order, without the sources."""
    found: dict[Node, None] = {}
    waiting = list(sources)
    while waiting:
        for reader in waiting.pop().readers():
            if reader not in found:
                found[reader] = None
                waiting.append(reader)
    return sorted(found, key=lambda node: (node.order, node.rank))
