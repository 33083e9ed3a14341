"""Whether computing a plan may raise."""

from __future__ import annotations

from optimizer import plan
from optimizer.plans.properties import fact
from optimizer.plans.side_conditions import strict
from optimizer.traverse import called


def may_raise(node: plan.Node) -> bool:
    """Whether any callable in the plan, or what is done with its results, may raise.

    What a view raises it raises itself, whatever becomes of a query over it.
    """
    return bool(fact(node, "may_raise", _may_raise))


def _may_raise(node: plan.Node) -> bool:
    if isinstance(node, plan.View):
        return False
    below = any(source.known["may_raise"] for source in node.inputs())
    return below or node.facts.raises or calls_may_raise(node)


def calls_may_raise(node: plan.Node) -> bool:
    """Whether the callables of one node may."""
    return any(strict(function, given) for function, given in called(node))
