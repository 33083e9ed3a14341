"""Join inputs in a cycle by the values at the ends of their rows.

    rows are read                       rows by their ends
    only counted, into an aggregate     sets of ends: the rows are counted

Needs:  inputs with one or two shared values; if rows are read, a cycle that unique keys of tables
        do not lead around: there, a row leads to one row, and nothing is left to intersect.
Pays:   2 times indexes that are looked up one after the other, and more if more inputs meet, since
        all inputs that lead to a value are intersected; counted, 3 times.
"""

from __future__ import annotations

from collections.abc import Sequence

from optimizer import plan
from optimizer.plans import multiway as multiways
from reactive.engine.codegen import probe_order
from reactive.engine.compiler.choices.join_multiway import wide_in
from reactive.engine.compiler.choices.run_pipeline import sink_of
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Physical, PhysicalCyclicCount, PhysicalCyclicJoin, ops
from reactive.engine.operators import cycles
from reactive.engine.operators.plain import (
    LINEAR,
    PipelineSource,
    inputs_of_multiway,
    is_read,
    merged_nodes,
)


def join_cycles(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    """Return how to plan `node` as a join in a cycle; None if it is none, or would not pay."""
    found = wide_in(chooser, node)
    if found is None:
        return None
    join, below, multiway = found
    inputs = list(map(_all_below, inputs_of_multiway(join, multiway)))
    if (
        isinstance(node, plan.Aggregate)
        and cycles.cyclic_count(join, multiway, node, below.chain, inputs) is not None
    ):
        return _in_cycle(PhysicalCyclicCount, node, (join, multiway), below, inputs)
    if probe_order.is_led_by_keys(multiway):
        return None
    makes_several = any(each.pipeline().makes_several for each in inputs)
    if makes_several or cycles.cycle_of(multiway, inputs) is None:
        return None
    return _in_cycle(PhysicalCyclicJoin, node, (join, multiway), below, inputs)


def _in_cycle(
    kind: type[PhysicalCyclicCount | PhysicalCyclicJoin],
    node: plan.Node,
    of: tuple[plan.Join, multiways.MultiwayJoin],
    below: PipelineSource,
    inputs: Sequence[PipelineSource],
) -> Asking[Physical]:
    """Return the physical node of joins in a cycle, over the bases of the inputs."""
    sources = []
    for base in {id(below.base): below.base for below in inputs}.values():
        sources.append((yield base))
    joins, multiway = ops(tuple(merged_nodes(*of))), of[1]
    sink = sink_of(node, below)
    return kind(node, tuple(sources), tuple(inputs), joins, ops(below.chain), sink, multiway)


def _all_below(node: plan.Node) -> PipelineSource:
    """Return the chain of a node down to its base, even if other nodes read parts of it."""
    chain: list[plan.Node] = []
    while isinstance(node, LINEAR) and is_read(node):
        chain.append(node)
        node = node.input
    return PipelineSource(tuple(chain[::-1]), node)
