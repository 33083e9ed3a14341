"""Rows inside a recursion, as a query outside of it.

inside a fixpoint      over what it comes to
inside an iteration    of all its rounds: one more relation of it, a set, to which each round
                       adds its rows
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from optimizer import plan
from optimizer.plans.properties import free
from optimizer.traverse import substituted


def closed(rows: plan.Node, definitions: Mapping[Any, plan.Node]) -> plan.Node:
    """Rows over what recursions come to; those inside an iteration of all its rounds, as a set."""
    while open_levels := free(rows):
        inside = {level: free(definitions[level]) for level in open_levels}
        level = next(k for k in open_levels if all(k not in inside[other] for other in inside))
        of = definitions[level]
        if isinstance(of, plan.Iterate):
            rows = _of_all_rounds(of, rows)
        else:
            rows = substituted(rows, level, partial(_relation, of))
    return rows


def _of_all_rounds(of: plan.Iterate, rows: plan.Node) -> plan.Node:
    """The rows of one binding that a query inside an iteration gives in any round."""
    place = len(of.starts)
    before = plan.Recursive(of.level, place, "errors", is_set=False)
    made = replace(
        of,
        starts=(*of.starts, plan.Empty(1)),
        bodies=(*of.bodies, plan.Union(before, rows)),
        names=(*of.names, "errors"),
        max_rounds=of.max_rounds + 1 if of.max_rounds else 0,
        tolerances=(*of.tolerances, None) if of.tolerances else (),
    )
    return plan.Component(made, place)


def _relation(of: plan.Node, read: plan.Recursive) -> plan.Node:
    assert isinstance(of, plan.Fixpoint)
    return plan.Component(of, read.index) if len(of.bodies) > 1 else of
