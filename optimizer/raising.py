"""Whether computing a plan may raise."""

from __future__ import annotations

from optimizer import plan
from optimizer.early import strict
from optimizer.properties import nodes
from optimizer.traverse import called


def may_raise(root: plan.Node) -> bool:
    """Whether any callable in the plan, or what is done with its results, may raise."""
    return any(node.facts.raises or calls_may_raise(node) for node in nodes(root))


def calls_may_raise(node: plan.Node) -> bool:
    """Whether the callables of one node may."""
    return any(strict(function, given) for function, given in called(node))
