"""Which recursions of a database's queries can move, and should: for moves, and for `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.plans.properties import nodes
from optimizer.traverse import has_components
from reactive.engine.compiler.offloaded import OffloadedNodes
from reactive.engine.dataflow.node import Node
from reactive.engine.remote import recursions

if TYPE_CHECKING:
    from reactive.borders.offload.offload import Offloading

RECURSIONS = (plan.Fixpoint, plan.Iterate, plan.Component)


def refused(of: Offloading, node: plan.Node) -> str | None:
    """Why a recursion, which goes with all that is below it, has to stay; None if it may go."""
    away = _away(of)
    found = recursions.why_not(node, away.holds)
    if found is None and not away.is_whole(node):
        return "it, or what it reads, cannot be done in columns; its inputs may be moved"
    return found


def goes_with(of: Offloading, node: plan.Node, top: plan.Node) -> bool:
    """Whether the chain from a recursion up to a node can go with it."""
    return top is node or _away(of).is_whole(top)


def placed(of: Offloading, node: plan.Node) -> str | None:
    """Where a recursion runs that is not elsewhere as a whole: whether it can move, and should.
    Whoever would do it is not asked. Of relations that are defined together, each is told of."""
    if has_components(node):
        return None
    why = recursions.why_not(node, _away(of).holds)
    if why is not None:
        return f"in the process: {why}"
    return f"in the process, {recursions.advice(node, _held(of, node))}"


def within(node: plan.Node) -> list[plan.Node]:
    """The nodes of a recursion, which go where it goes."""
    match node:
        case plan.Component(source):
            return [source]
        case plan.Fixpoint() | plan.Iterate():
            return [n for body in node.bodies for n in nodes(body)]
        case _:
            return []


def _held(of: Offloading, node: plan.Node) -> int | None:
    """How many rows a node's operator holds in the process; None if it is not computed."""

    def rows(every: list[Node]) -> list[int]:
        own = [each for each in every if each.plan == node and not each.is_remote]
        return [n.operator.footprint()[0] for n in own if hasattr(n.operator, "footprint")]

    return max(of.look(rows), default=None)


def _away(of: Offloading) -> OffloadedNodes:
    away = of.offloaded(of.moved)
    assert away is not None
    return away
