"""From a plan to nodes of the graph: a physical plan is chosen, and built.

    logical plan   --choose-->   physical plan   --build-->   nodes of the graph

A node that several others read is a node of the graph, and no part of a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from optimizer import plan
from optimizer.traverse import without_iterations
from reactive.compiler.build import Builder
from reactive.compiler.choices import CHOICES
from reactive.compiler.chooser import Chooser
from reactive.compiler.elsewhere import Elsewhere
from reactive.compiler.physical import Index, Physical
from reactive.dataflow.graph import Graph
from reactive.dataflow.node import Node

Source = Callable[[Any], Node]
MANY_READERS = 16
"""Readers of a table that want rows of one value of a field, from which on it gets an index."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A plan as it is run.

    `nodes` are those of the graph for nodes of the plan, by the `id` of these: those that are part
    of another's loop have none. `made` are those for nodes of the physical plan.
    """

    physical: Physical
    nodes: dict[int, Node]
    made: dict[int, Node]


def compile_plan(
    root: plan.Node,
    graph: Graph,
    source: Source,
    *,
    generate: bool = True,
    elsewhere: Elsewhere | None = None,
) -> Compiled:
    """Have the nodes of the graph for a plan, made where missing.

    Without `generate` every node of the plan has its own. `elsewhere` knows what does not run in
    the process.
    """

    def many_readers(index: Index, field: Any) -> bool:
        table = source(index.chain.base)
        if graph.find(index.does, (table,)) is not None:
            return True
        return sum(field in reader.pins for reader, _ in table.consumers) >= MANY_READERS

    written, root = root, without_iterations(root)
    chooser = Chooser(root, CHOICES, many_readers, generate=generate, elsewhere=elsewhere or None)
    physical = chooser.choose(root)
    builder = Builder(graph, source, generate)
    builder.build(physical)
    nodes = {
        key: builder.made[id(found)]
        for key, found in chooser.chosen.items()
        if id(found) in builder.made
    }
    nodes[id(written)] = builder.made[id(physical)]
    return Compiled(physical, nodes, builder.made)
