"""Number the rows of a window when they are read: their places in an order.

Needs:  the window only has functions of places, and its rows are those of the view: the selects
        between the two make a row of each row, and cannot raise.
Pays:   an inserted row changes no other row, where `row_number` of each row behind it changes.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Display, Lifted, walk
from optimizer.plans.nodes.groups import keeper
from optimizer.plans.properties import may_be_negative
from optimizer.plans.side_conditions import calls_may_raise
from reactive.engine.compiler.chooser import Asking, Chooser
from reactive.engine.compiler.physical import Op, Physical, PhysicalPlaces, ops
from reactive.engine.operators.plain import PipelineSource


def read_places(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    """Return how to plan the root as places that are read; None if its rows have other columns."""
    if node is not chooser.root or not isinstance(node, plan.Select | plan.Extend):
        return None
    below = chooser.chain_of(node)
    if below is None or not isinstance(below.base, plan.Reduce) or chooser.depends(node):
        return None
    window = below.base
    is_own = chooser.readers[id(window)] < 2 and not may_be_negative(node)
    are_places = getattr(keeper(window.function), "are_places", False)
    if not (is_own and are_places and all(map(_is_calm, below.chain))):
        return None
    return _plan_places(node, window, below)


def _plan_places(node: plan.Node, window: plan.Reduce, below: PipelineSource) -> Asking[Physical]:
    source = yield window.input
    return PhysicalPlaces(node, source, Op(window), ops(below.chain))


def _is_calm(node: plan.Node) -> bool:
    """Return True if a node makes a row of each row, which has a hash, and cannot raise."""
    if not isinstance(node, plan.Select | plan.Extend) or calls_may_raise(node):
        return False
    functions = [node.function] if isinstance(node, plan.Select) else node.columns
    return all(isinstance(each, Lifted) and _has_hash(each) for each in functions)


def _has_hash(function: Lifted) -> bool:
    """Return True if a function makes no list, dictionary or set."""
    parts = walk(function.body)
    return all(not isinstance(part, Display) or part.kind == "tuple" for part in parts)
