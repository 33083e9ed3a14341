"""An iteration apart from what it reads: its inputs, and bodies over relations that are given.

ranks <- select(join(shares, ranks))  U  nothing

inputs    start, shares, nothing
bodies    select(join(given 1, given 0))  U  given 2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.expressions.knowledge import Shapes
from optimizer.plans.properties import free, is_set, nodes, shapes
from optimizer.traverse import all_substituted, substituted, with_inputs, without_iterations


def over_given(node: plan.Iterate) -> tuple[tuple[plan.Node, ...], plan.Iterate]:
    """Where it starts and what its bodies read besides; and the iteration over these.

    In its bodies the relations of a round come first, then what stays from round to round.
    """
    level = node.level
    inputs: list[plan.Node] = list(node.starts)
    made: dict[int, plan.Node] = {}

    def stands(part: plan.Node) -> plan.Node:
        inputs.append(part)
        return plan.Recursive(level, len(inputs) - 1, "input", is_set(part), shapes(part))

    bodies = []
    for body in map(without_iterations, node.bodies):
        for part in nodes(body, until=lambda part: not free(part)):
            if id(part) in made:
                continue
            if not free(part):
                made[id(part)] = stands(part)
            else:
                made[id(part)] = with_inputs(part, [made[id(s)] for s in part.inputs()])
        bodies.append(made[id(body)])
    starts = tuple(
        plan.Recursive(level, index, name, False, shapes(start))
        for index, (name, start) in enumerate(zip(node.names, node.starts, strict=True))
    )
    return tuple(inputs), replace(node, starts=starts, bodies=_shaped(level, starts, bodies))


def handed(root: plan.Node) -> plan.Node:
    """A plan over rows that are handed in, in the place of relations that are not defined in it."""
    for level in free(root):
        root = substituted(root, level, lambda part: plan.Given(part.index, part.is_set, part.of))
    return root


def _shaped(
    level: Any, starts: Sequence[plan.Recursive], bodies: Sequence[plan.Node]
) -> tuple[plan.Node, ...]:
    """The bodies, in which it is known of the relations of a round what their rows are.

    It is what the rows are that they start with, if bodies over such rows make such rows.
    """
    known = [start.of for start in starts]
    while True:
        made = all_substituted(bodies, level, lambda part: _told(part, known))
        found = [
            of if shapes(body) == of else (None,) * len(of)
            for of, body in zip(known, made, strict=True)
        ]
        if found == known:
            return tuple(made)
        known = found


def _told(part: plan.Recursive, known: Sequence[Shapes]) -> plan.Recursive:
    return replace(part, of=known[part.index]) if part.index < len(known) else part
