"""Take a definition apart into strata: relations that depend on each other stay together.

    reach  <-  edges, reach                         stratum 1: fixpoint reach
    others <-  nodes not in reach                   stratum 2: a query over stratum 1

A relation that does not lead back to itself is no recursion, and one that depends on others without
their depending on it may negate and aggregate them.

Source: stratified negation: Apt, Blair, Walker, 1988.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from optimizer import plan
from optimizer.plans.asked_form import substituted_with_forms
from optimizer.traverse import relations_read

Finish = Callable[[plan.Fixpoint], plan.Fixpoint]


def in_strata(node: plan.Fixpoint, finish: Finish) -> list[plan.Node]:
    """The plan of each relation; `finish` is given each fixpoint that is left."""
    made: dict[int, plan.Node] = {}
    for group in _groups([_read(node, body) for body in node.bodies]):
        made |= zip(group, _stratum(node, group, made, finish), strict=True)
    return [made[index] for index in range(len(node.bodies))]


def _stratum(
    node: plan.Fixpoint, group: list[int], made: dict[int, plan.Node], finish: Finish
) -> list[plan.Node]:
    """The plans of relations that depend on each other; the plans of lower strata are made."""

    def named(part: plan.Recursive) -> plan.Node:
        known = made.get(part.index)
        return replace(part, index=group.index(part.index)) if known is None else known

    bodies = [substituted_with_forms(node.bodies[index], node.level, named) for index in group]
    best = tuple(node.best[index] for index in group)
    if len(group) == 1 and best == (None,) and group[0] not in _read(node, node.bodies[group[0]]):
        return [plan.Distinct(bodies[0])]
    names = tuple(node.names[index] for index in group)
    fixpoint = finish(plan.Fixpoint(tuple(bodies), node.level, names, best, node.max_rounds))
    if len(group) == 1:
        return [fixpoint]
    return [plan.Component(fixpoint, place) for place in range(len(group))]


def _read(node: plan.Fixpoint, body: plan.Node) -> set[int]:
    """The relations of a definition that a body reads."""
    return {part.index for part in relations_read(body, node.level)}


def _groups(reads: list[set[int]]) -> list[list[int]]:
    """Those that read each other, directly or not, together; each after all that it reads."""
    reached = [set(direct) for direct in reads]
    for _ in reads:
        for some in reached:
            some |= {far for near in [*some] for far in reached[near]}
    groups: list[list[int]] = []
    for index, mine in sorted(enumerate(reached), key=lambda pair: len(pair[1] | {pair[0]})):
        if not any(index in group for group in groups):
            groups.append(sorted({index} | {n for n in mine if index in reached[n]}))
    return groups
