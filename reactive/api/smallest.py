"""The plan of the smallest relations that are what their bodies say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optimizer import plan
from optimizer.plans.asked_form import substituted_with_forms
from optimizer.plans.properties import nodes
from optimizer.plans.strata import in_strata
from optimizer.plans.stratify import check_positive, check_stratified


def smallest(node: plan.Fixpoint) -> Sequence[plan.Node]:
    """The relations of a definition, each a plan, in strata that are as small as can be.

    Raises
    ------
    StratificationError: recursion through a negation, an aggregate, an outer join or an order.
    PlanError: rows of negative weight are read.
    """
    check_stratified(node)
    check_positive(node)
    above = level_of(node)  # those that will be inside each other have different numbers
    return in_strata(node, lambda part: _finished(part, max(above, level_of(part))))


def _finished(node: plan.Fixpoint, level: int) -> plan.Fixpoint:
    return replace(node, level=level, bodies=tuple(numbered(b, node, level) for b in node.bodies))


def level_of(node: plan.Fixpoint | plan.Iterate) -> int:
    """The number that equal definitions have too: one above those inside."""
    inside = [n.level for n in nodes(node) if isinstance(n, plan.Fixpoint | plan.Iterate)]
    return 1 + max((n for n in inside if n is not node.level), default=0)


def numbered(body: plan.Node, node: plan.Fixpoint | plan.Iterate, level: int) -> plan.Node:
    """A body whose recursive relations are of another level."""
    return substituted_with_forms(body, node.level, lambda relation: replace(relation, level=level))
