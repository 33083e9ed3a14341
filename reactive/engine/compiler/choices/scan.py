"""Read the output of a table, or of another part of the query.

Needs:  a table, a part that is optimized separately, or a view inside the query.
Pays:   its node already exists.
"""

from __future__ import annotations

from optimizer import plan
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Op, Physical, Scan


def scan(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    """Return how to read a table, a settled part or a view; None for other nodes."""
    match node:
        case plan.Table() | plan.Settled() | plan.Given():
            return _plan_scan(node)
        case plan.View(source):
            return _plan_view(source)
        case _:
            return None


def _plan_scan(node: plan.Table | plan.Settled | plan.Given) -> Asking[Physical]:
    yield from ()
    return Scan(node, Op(node))


def _plan_view(source: plan.Node) -> Asking[Physical]:
    return (yield source)
