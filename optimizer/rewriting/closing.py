"""Rows inside a recursion, as a query outside of it.

inside a fixpoint      over what it comes to
inside an iteration    of all its rounds: one more relation of it, a set, to which each round
                       adds its rows
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from optimizer import plan
from optimizer.plans.asked_form import FORMS, substituted_with_forms
from optimizer.plans.properties import free, nodes
from optimizer.traverse import substituted, with_inputs


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


def with_own_levels(root: plan.Node) -> plan.Node:
    """The plan with a level of its own for each recursion; itself if they have that already.

    Recursions that are not inside each other may have the same level, and are told apart by it.
    """
    every = [n for n in nodes(root, until=_is_view) if isinstance(n, plan.Fixpoint | plan.Iterate)]
    if len({node.level for node in every}) == len(set(every)):
        return root
    numbers = [node.level for node in every if isinstance(node.level, int)]
    first = 1 + max(numbers, default=0)  # bodies may read the levels of before
    levels: dict[plan.Node, int] = {}

    def changed(node: plan.Node) -> plan.Node:
        if not isinstance(node, plan.Fixpoint | plan.Iterate):
            return node
        level = levels.setdefault(node, first + len(levels))
        named = partial(replace, level=level)
        bodies = [substituted_with_forms(body, node.level, named) for body in node.bodies]
        return replace(node, level=level, bodies=tuple(bodies))

    made: dict[int, plan.Node] = {}
    waiting = [root]
    while waiting:
        node = waiting[-1]
        below = () if _is_view(node) else (*node.inputs(), *FORMS.parts(node))
        missing = [each for each in below if id(each) not in made]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        if _is_view(node):
            made[id(node)] = node
        elif id(node) not in made:
            found = changed(with_inputs(node, [made[id(s)] for s in node.inputs()]))
            made[id(node)] = found
            if found is not node:
                FORMS.carry(node, found, lambda part: made[id(part)])
    return made[id(root)]


def _is_view(node: plan.Node) -> bool:
    return isinstance(node, plan.View)


def rebuilt(
    root: plan.Node,
    change: Callable[[plan.Node, plan.Node], plan.Node],
    known: Mapping[int, plan.Node],
) -> plan.Node:
    """Return the plan with every node changed, inputs first, down to the views it is made of;
    `change` is given the node over its new inputs, and as it was. Those `known` stay as given."""
    made: dict[int, plan.Node] = dict(known)
    for node in nodes(root, until=lambda node: isinstance(node, plan.View)):
        if id(node) in made:
            continue
        if isinstance(node, plan.View):
            made[id(node)] = node
        else:
            inputs = [made[id(source)] for source in node.inputs()]
            made[id(node)] = change(with_inputs(node, inputs), node)
    return made[id(root)]
