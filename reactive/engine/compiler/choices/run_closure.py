"""Run a transitive closure with a bit for each pair of nodes.

    reach <- edges                              edges
    reach <- select(join(reach, edges))

Needs:  a recursion that reads only the two ends of rows (`optimizer/plans/closures.py`).
Pays:   10 to 100 times the general operator, if rows have many derivations, or derive many rows.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.plans import clauses, closures
from reactive.engine.compiler import physical
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Physical


def run_closure(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    """Return how to plan a recursion as a transitive closure; None if it is none."""
    if not isinstance(node, plan.Fixpoint) or not chooser.closes or chooser.depends(node):
        return None
    found = closures.closure_of(node, clauses.clauses(node))
    return None if found is None else _plan_closure(node, found)


def _plan_closure(node: plan.Fixpoint, closure: closures.Closure) -> Asking[Physical]:
    source = yield closure.source
    return physical.PhysicalClosure(node, source, closure)
