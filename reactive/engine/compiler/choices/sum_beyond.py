"""Keep rows by a condition of a sum over the rows beyond them, without the sums.

Needs:  a query that reads such sums in one condition only (`optimizer.plans.sums_beyond`); no other
        node reads the nodes in between.
Pays:   a change takes O(log n) in place of the sums of all rows before it.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.plans import sums_beyond
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Apply, Op, Physical, PhysicalSumsBeyond, Pipeline
from reactive.engine.operators.loops.grouped import is_in_line
from reactive.engine.operators.plain import PipelineSource

READERS = (plan.Select, plan.Extend, plan.Aggregate, plan.Distinct)


def sum_beyond(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    """Return how to plan a query of rows by sums beyond them; None if it is none."""
    if not isinstance(node, READERS) or not chooser.sums or not _has_sums(node.input):
        return None
    found = None if chooser.depends(node) else sums_beyond.sum_condition_of(node)
    if found is None or any(chooser.readers[id(part)] > 1 for part in found.parts):
        return None
    return _plan_sums(node, found)


def _has_sums(node: plan.Node) -> bool:
    """Return True if a plan may join rows with sums by their keys; at a glance."""
    while True:
        if isinstance(node, plan.Where | plan.Select | plan.Extend):
            node = node.input
        elif isinstance(node, plan.Join | plan.Product | plan.SemiJoin | plan.OuterJoin):
            right = node.right
            while isinstance(right, plan.Where):
                right = right.input
            join = right.input if isinstance(right, plan.Aggregate) else None
            if isinstance(join, plan.Join) and isinstance(join.left, plan.Distinct):
                return True
            node = node.left
        else:
            return False


def _plan_sums(node: plan.Node, found: sums_beyond.SumCondition) -> Asking[Physical]:
    """Yield the sides and the row of the condition; return the query over the rows that hold."""
    sources = [(yield found.left), (yield found.right)]
    if found.bound is not None:
        sources.append((yield found.bound))
    source: Physical = PhysicalSumsBeyond(
        found.owner,
        tuple(sources),
        Op(found.owner.input),
        found.left_key,
        found.right_key,
        found.condition,
        found.without_sum,
        found.beyond,
    )
    top, below = found.top, PipelineSource(found.chain, found.left)
    if isinstance(top, plan.Aggregate) and not is_in_line(a.accumulator for a in top.aggregates):
        if below.chain:
            source = Pipeline(below.top, source, below, None)
        return Apply(top, (source,), Op(top))
    return Pipeline(node, source, below, None if top is below.top else Op(top))
