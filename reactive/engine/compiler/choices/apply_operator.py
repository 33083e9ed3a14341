"""Call one callable after the other: the operator of the node, as the reference says it.

Needs:  nothing; every node that is no join has one.
Pays:   it is what is left where a callable could not be read, and what set operations, orders and
        operators per group run as.
"""

from __future__ import annotations

from optimizer import plan
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Apply, Op, Physical


def apply_operator(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    return _apply(node)


def _apply(node: plan.Node) -> Asking[Physical]:
    sources = []
    for each in node.inputs():
        sources.append((yield each))
    return Apply(node, tuple(sources), Op(node))
