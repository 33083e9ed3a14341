"""Make the operators of joins in a cycle, whose rows are read or only counted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from optimizer import plan
from optimizer.plans.multiway import MultiwayJoin
from optimizer.plans.properties import is_interned, row_shape
from optimizer.traverse import read_functions
from reactive.engine.codegen.nest import ListSink
from reactive.engine.collections.index import itself
from reactive.engine.collections.neighbour_rows import NeighbourRows, Neighbours
from reactive.engine.operators.fuse import Make, grouping_sink
from reactive.engine.operators.loops.cyclic_count import (
    Cycle,
    CyclicCount,
    counts_only,
    cycle,
    cyclic_count_loop,
)
from reactive.engine.operators.loops.cyclic_join import (
    CyclicJoin,
    CyclicJoinRunner,
    CyclicRows,
    cyclic_join_loop,
)
from reactive.engine.operators.loops.grouped import GroupingOfOne
from reactive.engine.operators.loops.nests import SinkOf, joined_plan
from reactive.engine.operators.plain import PipelineSource, plain_aggregate


def cyclic_count(
    join: plan.Join,
    of: MultiwayJoin,
    node: plan.Aggregate,
    chain: tuple[plan.Node, ...],
    inputs: Sequence[PipelineSource],
) -> Make | None:
    """Return the maker of the operator of an aggregate over a multiway join in a cycle.

    Return None if the inputs are not pairs of ends, or if the joined rows are read.
    """
    above = joined_plan(of, chain, tuple(row_shape(below.top) for below in inputs))
    fits = GroupingOfOne.fits([folded.accumulator for folded in node.aggregates])
    if above.makes_several or not fits:
        return None
    sink = grouping_sink(node, above, plain_aggregate(node), GroupingOfOne)
    if not counts_only(above, sink):
        return None
    bases = list(dict.fromkeys(id(below.base) for below in inputs))
    found = cycle(
        of,
        [bases.index(id(below.base)) for below in inputs],
        [below.pipeline() for below in inputs],
        [tuple(read_functions(*below.chain)) for below in inputs],
    )
    if found is None:
        return None

    def make() -> CyclicCount:
        held = [Neighbours(is_unary=len(edges.ends) == 1) for edges in found.edges]
        loop, text = cyclic_count_loop(found, above, sink, held)
        return CyclicCount(plain_aggregate(node), loop, text, join, held)

    return make


def cycle_of(of: MultiwayJoin, inputs: Sequence[PipelineSource]) -> Cycle | None:
    """Return a multiway join as a cycle of pairs of ends; None if it is not one."""
    bases = list(dict.fromkeys(id(below.base) for below in inputs))
    pipelines = [below.pipeline() for below in inputs]
    for pipeline in pipelines:
        pipeline.narrow(1)
    return cycle(
        of,
        [bases.index(id(below.base)) for below in inputs],
        pipelines,
        [tuple(read_functions(*below.chain)) for below in inputs],
        holds_rows=True,
    )


def cyclic_join(
    join: plan.Join,
    of: MultiwayJoin,
    node: plan.Node,
    chain: tuple[plan.Node, ...],
    inputs: Sequence[PipelineSource],
) -> Make:
    """Return the maker of the operator of a cyclic join, its chain and the chain's reader."""
    bases = {id(below.base): below.base for below in inputs}.values()

    def made(sink_of: SinkOf) -> CyclicRows:
        found = cycle_of(of, inputs)
        assert found is not None
        above = joined_plan(of, chain, tuple(row_shape(below.top) for below in inputs))
        held = [_neighbour_rows(found, number, inputs) for number in range(len(found.edges))]
        loops = partial(cyclic_join_loop, found, above, sink_of(above), held)
        return CyclicRows(loops, held, list(map(is_interned, bases)))

    def make() -> CyclicJoin | CyclicJoinRunner:
        if not isinstance(node, plan.Aggregate):
            return CyclicJoinRunner(made(ListSink), join)
        plain = plain_aggregate(node)
        return CyclicJoin(plain, made(lambda above: grouping_sink(node, above, plain)), join)

    return make


def _neighbour_rows(of: Cycle, number: int, inputs: Sequence[PipelineSource]) -> NeighbourRows:
    """Return an empty store of the rows of one input of a cycle."""
    place = next(place for place, each in enumerate(of.occurrences) if each.of == number)
    handle = id if is_interned(inputs[place].top) else itself
    return NeighbourRows(handle, is_unary=len(of.edges[number].ends) == 1)
