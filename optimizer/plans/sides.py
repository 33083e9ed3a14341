"""A recursion apart from what it reads: its sides, and the recursion over these.

    same = edges U select (join(edges, same, edges))      sides: edges
    ranks <- select (join(ranks, shares))                 sides: where it starts, shares

Sides are as large as they can be: whole queries that read nothing of the recursion. One whose rows
are several side by side is taken apart further, as a table has one row at a time.
"""

from __future__ import annotations

from typing import Any

from optimizer import plan
from optimizer.plans.clauses import is_closed
from optimizer.plans.properties import bindings, is_set, nodes, shapes
from optimizer.traverse import with_inputs


def apart_from_sides(
    node: plan.Fixpoint | plan.Iterate, level: Any
) -> tuple[plan.Node, tuple[plan.Node, ...]]:
    """The recursion over `Recursive` relations of a level, and what these stand for."""
    sides: dict[plan.Node, int] = {}
    made: dict[int, plan.Node] = {}

    def is_side(part: plan.Node) -> bool:
        return part is not node and is_closed(part) and bindings(part) == 1

    for part in nodes(node, until=is_side):
        if is_side(part):
            place = sides.setdefault(part, len(sides))
            made[id(part)] = plan.Recursive(
                level, place, f"side {place + 1}", is_set(part), shapes(part)
            )
        else:
            made[id(part)] = with_inputs(part, [made[id(source)] for source in part.inputs()])
    return made[id(node)], tuple(sides)
