"""From a plan to nodes of the graph: a physical plan is chosen, and built.

    logical plan   --choose-->   physical plan   --build-->   nodes of the graph

A node that several others read is a node of the graph, and no part of a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from optimizer import plan
from optimizer.plans import drawing as drawings
from optimizer.plans.wanted import Between
from optimizer.record import record
from optimizer.rewriting.segments import Segment
from optimizer.traverse import without_iterations
from reactive.engine.compiler import inner_graph, loops
from reactive.engine.compiler import offloaded as offloading
from reactive.engine.compiler.build import Builder
from reactive.engine.compiler.choices import CHOICES
from reactive.engine.compiler.chooser import CLOSURE, MULTIWAY, SUMS, Chooser, ValuesWanted
from reactive.engine.compiler.physical import (
    Closure,
    CyclicCount,
    CyclicJoin,
    FactorizedGroups,
    Index,
    Multiway,
    Physical,
    RangeIndex,
    Scan,
)
from reactive.engine.dataflow.graph import Graph
from reactive.engine.dataflow.node import Node

Source = Callable[[Any], Node]
MANY_READERS = 16
"""Readers of a table that want a value of a field, from which on it gets an index."""
MANY_RANGES = 16
"""Ranges of a field that readers of a table want; without an index each asks for itself."""


@record
class Compiled:
    """A plan as it is run.

    `nodes` are those of the graph for nodes of the plan, by the `id` of these: those that are part
    of another's loop have none. `made` are those for nodes of the physical plan.
    """

    physical: Physical
    nodes: dict[int, Node]
    made: dict[int, Node]
    looked_up: Sequence[tuple[Index | RangeIndex, str]]
    """The indexes in which it looks values of a field up."""


@record
class Running:
    """How a query is run: its physical plan, over those of the segments below."""

    root: Physical
    tops: Mapping[Segment, Physical]

    def inputs(self, node: Physical) -> tuple[Physical, ...]:
        return tuple(map(self._meant, node.inputs()))

    def drawing(self, remark: Callable[[Physical], str] = lambda node: "") -> drawings.Drawing:
        """It as boxes; `remark` may add something to each."""
        return drawings.drawn(
            self._meant(self.root), self.inputs, lambda node: node.headline(), remark
        )

    def _meant(self, node: Physical) -> Physical:
        while isinstance(node, Scan) and isinstance(node.source.node, plan.Settled):
            node = self.tops[node.source.node.segment]
        return node


def chosen(
    root: plan.Node,
    graph: Graph,
    source: Source,
    *,
    generate: bool,
    offloaded: offloading.OffloadedNodes | None,
    without: Collection[str],
) -> Chooser:
    """What has chosen the physical plan of a logical one.

    Without `generate` every node of the plan has its own. `offloaded` knows what does not run in
    the process; ways of which it is to be run `without` were given up.
    """

    def keeps(loop: plan.Iterate) -> bool:
        return offloaded.takes(loop) if offloaded else generate and loops.pays(loop)

    run = without_iterations(root, keeps)
    chooser = Chooser(
        run,
        CHOICES,
        values_wanted(graph, source),
        generate=generate,
        offloaded=offloaded or None,
        without=without,
    )
    chooser.chosen[id(root)] = chooser.choose(run)
    return chooser


def values_wanted(graph: Graph, source: Source) -> ValuesWanted:
    """How many values of a field are wanted of a graph."""

    def count(index: Index | RangeIndex, field: str) -> int:
        table = source(index.chain.base)
        made = graph.find(index.does, (table,))
        if made is not None:
            return int(made.operator.index.keys) or 1
        found = [reader.constant_tests.wants for reader, _ in table.consumers]
        wanted = [wants[field] for wants in found if field in wants]
        if isinstance(index, RangeIndex):
            ranges = len({values for values in wanted if isinstance(values, Between)})
            return ranges if ranges >= MANY_RANGES else 0
        values = [value for value in wanted if not isinstance(value, Between)]
        return (len(set(values)) or 1) if len(values) >= MANY_READERS else 0

    return count


def compiled(chooser: Chooser, root: plan.Node, graph: Graph, source: Source) -> Compiled:
    """A plan with its nodes of the graph, made where missing."""
    builder = Builder(graph, source, chooser.generates, within)
    physical = chooser.chosen[id(root)]
    builder.build(physical)
    made = builder.made
    nodes = {key: made[id(p)] for key, p in chooser.chosen.items() if id(p) in made}
    return Compiled(physical, nodes, made, chooser.looked_up)


def within(
    roots: Sequence[plan.Node], contents: Sequence[loops.Contents], *, generate: bool
) -> loops.InnerNodes:
    """A graph within an operator."""
    return inner_graph.InnerGraph(roots, contents, generate=generate)


def ways_that_may_fail(physical: Physical | None) -> set[str]:
    """Those ways of a plan that may prove not to hold for the rows."""
    found: set[str] = set()
    waiting = [] if physical is None else [physical]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.inputs())
        if isinstance(node, Multiway | CyclicCount | CyclicJoin):
            found.add(MULTIWAY)
        elif isinstance(node, FactorizedGroups):
            found.add(SUMS)
        elif isinstance(node, Closure):
            found.add(CLOSURE)
    return found
