"""A whole part of a plan as one fragment: all of it is done elsewhere, with nothing between.

    aggregate Sum by town              the fragment, down to its inputs
      join order.customer == ...
        table orders                   an input, from the process
        table customers                an input, or fed from where its rows are

Inputs are tables and rows that the query has written in it, with the tests that they pass in the
process; of a table that is elsewhere, the
chain over it. What may be inside is what whoever does it can do; also recursions, and loops of many
rounds (`is_loop`), which are not written out then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from optimizer import plan
from optimizer.plans.nodes.reduce import is_of_whole
from optimizer.plans.properties import below_wheres, free, may_be_negative, nodes, shapes
from optimizer.traverse import has_components, with_inputs
from reactive.engine.remote.fragments import LEVEL, Fragment, alone, by_row, group_of

Holds = Callable[[plan.Node], bool]
"""Whether the rows of a node are elsewhere, and it looks at one after the other."""
STATEFUL = (
    *(plan.Join, plan.SemiJoin, plan.AntiJoin, plan.OuterJoin, plan.Aggregate),
    *(plan.Distinct, plan.Union, plan.Difference, plan.DifferenceAll),
    *(plan.Intersection, plan.IntersectionAll, plan.Fixpoint, plan.Iterate),
    *(plan.Top, plan.OrderBy, plan.Reduce),
)
RECURSIONS = (plan.Fixpoint, plan.Iterate)
WRITTEN_OUT = 3
"""Rounds of a loop up to which it goes elsewhere as the operators of all rounds: the query of one
job grows with them."""
_INSIDE = (
    *STATEFUL,
    plan.Component,
    plan.UnionAll,
    plan.Where,
    plan.Select,
    plan.Extend,
    plan.SelectMany,
    plan.Unnest,
)


def is_loop(node: plan.Iterate) -> bool:
    """Whether a loop that goes elsewhere goes as one, and not as the operators of its rounds."""
    return node.times is None or node.times > WRITTEN_OUT or node.is_tolerant()


def whole_of(top: plan.Node, holds: Holds) -> Fragment | None:
    """The fragment from a node down to its inputs; None if something in it has to stay, or if it is
    several relations that are defined together."""
    if has_components(top):
        return None
    cut = _Cut(holds)
    node = cut.of(top)
    if node is None or not any(isinstance(n, STATEFUL) for n in cut.inside):
        return None
    last = below_wheres(top)
    is_by_group = isinstance(last, plan.Aggregate) and last.key is not None
    return Fragment(
        _with_first(node),
        tuple(cut.inside),
        tuple(cut.inputs),
        (by_row,) * len(cut.inputs),
        group_of if is_by_group else alone,
        is_whole=True,
    )


def level_of(part: plan.Select, holds: Holds) -> Fragment | None:
    """Rows with their keys, `(key, row)`, which are kept by the key; None if something below has to
    stay."""
    cut = _Cut(holds)
    rows = cut.of(part.input)
    if rows is None:
        return None
    prepare = (by_row,) * len(cut.inputs)
    inside, node = (part, *cut.inside), replace(part, input=rows)
    return Fragment(node, inside, tuple(cut.inputs), prepare, group_of, is_whole=True)


def _with_first(node: plan.Node) -> plan.Node:
    """Of an order that the process sorts again, also the rows before the offset, and all of each
    that it stands by."""
    if not isinstance(node, plan.OrderBy) or node.limit is None:
        return node
    return replace(node, limit=node.limit + node.offset, offset=0, shown=None)


class _Cut:
    """Goes down a plan, and takes note of what is inside and of the inputs."""

    def __init__(self, holds: Holds) -> None:
        self._holds = holds
        self._made: dict[int, plan.Node | None] = {}
        self.inside: list[plan.Node] = []
        self.inputs: list[plan.Node] = []

    def of(self, node: plan.Node) -> plan.Node | None:
        """The node over inputs; None if it, or one below, has to stay."""
        if id(node) not in self._made:
            self._made[id(node)] = self._of(node)
        return self._made[id(node)]

    def _of(self, node: plan.Node) -> plan.Node | None:
        if isinstance(node, plan.Recursive):
            return node
        if self._holds(node) or isinstance(below_wheres(node), plan.Table | plan.Values):
            return self._input(node)
        if not isinstance(node, _INSIDE) or (isinstance(node, plan.OrderBy) and node.limit is None):
            return None
        if isinstance(node, RECURSIONS) and not _may_go(node):
            return None
        if isinstance(node, plan.Reduce) and is_of_whole(node):
            return None
        if not free(node):  # else it is of a recursion, which is what goes
            self.inside.append(node)
        below = [self.of(source) for source in node.inputs()]
        return None if None in below else with_inputs(node, [n for n in below if n is not None])

    def _input(self, node: plan.Node) -> plan.Node | None:
        if any(isinstance(n, plan.Table) and not n.stored for n in nodes(node)):
            return None
        if node not in self.inputs:
            self.inputs.append(node)
        place = self.inputs.index(node)
        return plan.Recursive(LEVEL, place, f"input {place + 1}", False, shapes(node))


def _may_go(node: plan.Fixpoint | plan.Iterate) -> bool:
    """Whether a recursion is no part of another, and of rows that are there or not."""
    return not free(node) and not (isinstance(node, plan.Iterate) and may_be_negative(node))
