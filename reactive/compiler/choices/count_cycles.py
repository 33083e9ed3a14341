"""Count the rows of joins that form a cycle, in which every input has one or two values to meet.

Needs:  an aggregate that reads nothing of the joined rows.
Pays:   3 times the general way: sets of neighbours in the place of indexes of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from optimizer import plan
from optimizer.plans.multiway import MultiwayJoin
from reactive.compiler.choices.join_multiway import wide_in
from reactive.compiler.chooser import Asking, Chooser
from reactive.compiler.physical import CyclicCount, Op, Physical, ops
from reactive.operators.fuse import cyclic_count
from reactive.operators.pipelines import PipelineSource, inputs_of_multiway, is_read, within
from reactive.operators.plain import LINEAR


def count_cycles(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    found = wide_in(chooser, node)
    if found is None or not isinstance(node, plan.Aggregate):
        return None
    join, below, multiway = found
    inputs = list(map(_all_below, inputs_of_multiway(join, multiway)))
    if cyclic_count(join, multiway, node, below.chain, inputs) is None:
        return None
    return _count(node, (join, multiway), below, inputs)


def _count(
    node: plan.Aggregate,
    of: tuple[plan.Join, MultiwayJoin],
    below: PipelineSource,
    inputs: Sequence[PipelineSource],
) -> Asking[Physical]:
    sources = []
    for base in {id(below.base): below.base for below in inputs}.values():
        sources.append((yield base))
    joins, multiway = ops(tuple(within(*of))), of[1]
    return CyclicCount(
        node, tuple(sources), tuple(inputs), joins, ops(below.chain), Op(node), multiway
    )


def _all_below(node: plan.Node) -> PipelineSource:
    """A chain down to its base, whoever else reads what is between."""
    chain: list[plan.Node] = []
    while isinstance(node, LINEAR) and is_read(node):
        chain.append(node)
        node = node.input
    return PipelineSource(tuple(chain[::-1]), node)
