"""Run the loops of an inner join over what changes on either side, with the chain above it.

Needs:  all callables were read; the join is read by nobody else.
Pays:   1.26 times an operator after the other; pairs that are grouped are never held.
"""

from __future__ import annotations

from optimizer import plan
from reactive.compiler.choices.run_pipeline import sink_of
from reactive.compiler.chooser import Asking, Chooser
from reactive.compiler.physical import Op, Physical, Probe, ops
from reactive.operators.loops import Below, Inner


def probe_indexes(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    found = chooser.join_of(node)
    return None if found is None else _probe(chooser, node, *found)


def _probe(chooser: Chooser, node: plan.Node, join: Inner, below: Below) -> Asking[Physical]:
    left, right = yield from chooser.indexes(join)
    return Probe(node, left, right, Op(join), ops(below.chain), sink_of(node, below))
