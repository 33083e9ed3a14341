"""Run a node as a plain operator, which calls its callables one by one, like the reference.

Needs:  nothing; every node except joins has such an operator.
Pays:   the fallback for opaque callables; set operations, orders and operators per group run this
        way.
"""

from __future__ import annotations

from optimizer import plan
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Apply, Op, Physical


def apply_operator(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    return _plan_apply(node)


def _plan_apply(node: plan.Node) -> Asking[Physical]:
    """Yield the inputs of a node, and return the node as a plain operator over them."""
    sources = []
    for each in node.inputs():
        sources.append((yield each))
    return Apply(node, tuple(sources), Op(node))
