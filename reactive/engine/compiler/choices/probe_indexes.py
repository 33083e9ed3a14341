"""Run a join as loops over the changes of either side, with the chain above it.

An outer join also has loops over the rows that lose or find their partner. Semi and anti joins have
no loops: they make no pairs, and measured 0.7 to 1.0 times separate operators.

Needs:  all callables are lifted; no other node reads the join.
Pays:   1.26 times separate operators, and 1.0 to 1.4 for outer joins; grouped pairs are never held.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.plans.side_conditions import AnyJoin
from reactive.engine.compiler.choices.run_pipeline import sink_of
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Op, Physical, PhysicalProbe, ops
from reactive.engine.operators.plain import PipelineSource


def probe_indexes(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    """Return how to plan `node` with the join in its loop; None if it has no join there."""
    found = chooser.join_of(node) or chooser.outer_join_of(node)
    return None if found is None else _plan_probe(chooser, node, *found)


def _plan_probe(
    chooser: Chooser, node: plan.Node, join: AnyJoin, below: PipelineSource
) -> Asking[Physical]:
    """Yield the sides of a join, and return the join as probes of an index of each side."""
    left, right = yield from chooser.indexes(join)
    return PhysicalProbe(node, left, right, Op(join), ops(below.chain), sink_of(node, below))
