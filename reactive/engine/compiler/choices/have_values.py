"""Return the literal rows of the query, or none.

Needs:  a literal relation, or a condition that was found to be never true.
Pays:   no node below is run.
"""

from __future__ import annotations

from optimizer import plan
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Op, Physical, PhysicalValues


def have_values(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    return _plan_values(node) if isinstance(node, plan.Values | plan.Empty) else None


def _plan_values(node: plan.Values | plan.Empty) -> Asking[Physical]:
    yield from ()
    return PhysicalValues(node, Op(node))
