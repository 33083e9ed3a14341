"""Run an iteration as one operator; nodes independent of its rounds are part of the graph.

    ranks <- start                              start
    ranks <- groups of ranks x shares           shares

Needs:  nothing; an iteration of `times` rounds is unrolled before, if possible.
Pays:   rounds evaluated as a whole take a tenth of the time of operators over the same rows.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.plans import strata
from reactive.engine.compiler import hops as rounds
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Op, Physical, PhysicalLoop, PhysicalRelation


def run_loop(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    """Return how to plan an iteration, or one of its relations; None for other nodes."""
    match node:
        case plan.Iterate():
            return _plan_loop_relation(chooser, node, node, 0)
        case plan.Component(plan.Iterate() as iterate, index):
            return _plan_loop_relation(chooser, node, iterate, index)
        case _:
            return None


def _plan_loop_relation(
    chooser: Chooser, node: plan.Node, iterate: plan.Iterate, index: int
) -> Asking[Physical]:
    """Return the plan of one relation of an iteration; the iteration itself is planned once."""
    if id(iterate) not in chooser.loops:
        inputs, given = strata.over_given(iterate)
        sources = []
        for each in inputs:
            sources.append((yield each))
        is_laid_out = rounds.laid_out(given, len(inputs))
        chooser.loops[id(iterate)] = PhysicalLoop(
            iterate, tuple(sources), Op(given), given, is_laid_out
        )
    return PhysicalRelation(node, chooser.loops[id(iterate)], index)
