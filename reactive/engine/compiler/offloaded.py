"""What of a plan is elsewhere.

moved         part over nodes of the graph     a part that has grown too large
on tables     part over tables, fed there      its rows do not come by
scan          rows of such tables              wanted in the process, by what cannot move
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.plans.properties import nodes
from optimizer.traverse import has_components
from reactive.engine.compiler import levels as nests
from reactive.engine.operators.plain import LINEAR, chain_over
from reactive.engine.remote.external import ExternalSource
from reactive.engine.remote.fragments import Fragment, Unmovable, part_of
from reactive.engine.remote.remote import Remote
from reactive.engine.remote.whole import RECURSIONS, STATEFUL, is_loop, level_of, whole_of

Begin = Callable[[Fragment], Remote]
Feeding = tuple[ExternalSource, plan.Table, tuple[plan.Node, ...]]
_ONLY_WHOLE = (*RECURSIONS, plan.Top, plan.Reduce)
"""What goes in no other way."""


class OffloadedNodes:
    """What of a database's plans is elsewhere.

    Parameters
    ----------
    moved: nodes that are to run there, with how to begin that.
    remote_tables: the tables whose rows are there, by their number.
    begin, scan: how to begin a part that reads such tables, and what fetches rows of them.
    apart: why a whole part of a plan cannot be done there as one, if it cannot.
    nested: has all rows of a nest, where the parts of its levels are.
    """

    def __init__(
        self,
        moved: Mapping[plan.Node, Begin],
        remote_tables: Mapping[int, ExternalSource],
        begin: Begin,
        scan: Begin,
        apart: Callable[[Fragment], str | None],
        nested: Callable[[Fragment, Sequence[Any]], Any],
    ) -> None:
        self.moved = moved
        self.remote_tables = remote_tables
        self._begin = begin
        self.scan = scan
        self._apart = apart
        self._nested = nested
        self._parts: dict[int, tuple[plan.Node, Fragment | None]] = {}
        self._reasons: dict[int, str] = {}
        self._levels: dict[int, tuple[plan.Node, nests.Levels | None]] = {}
        self._of_levels: dict[int, plan.Node] = {}
        """The nests whose levels are there, by the `id` of their parts."""

    def __bool__(self) -> bool:
        return bool(self.moved or self.remote_tables)

    def includes(self, node: plan.Node) -> bool:
        """Whether a node runs there."""
        if self.is_level(node):
            return True
        if node in self.moved:
            return self.levels(node) is None
        return bool(self.remote_tables) and self._is_fed(node)

    def holds(self, node: plan.Node) -> bool:
        """Whether the rows of a node are there, and it looks at one after the other."""
        _, base = chain_over(node)
        return isinstance(base, plan.Table) and base.number in self.remote_tables

    def reaches(self, node: plan.Node) -> bool:
        """Whether a node reads something that is there."""
        return bool(self) and any(self.includes(n) or self.holds(n) for n in nodes(node))

    def fragment(self, node: plan.Node) -> Fragment:
        """The part of a node that runs there."""
        part = self._part(node)
        assert part is not None
        return part

    def is_whole(self, node: plan.Node) -> bool:
        """Whether a node can run there together with all that is below it."""
        part = self._part(node)
        return part is not None and part.is_whole

    def stays(self, node: plan.Node) -> str:
        """Why a node does not go together with what is below it; empty if that is not known."""
        self._part(node)
        return self._reasons.get(id(node), "")

    # Nests, whose levels are parts of their own.

    def levels(self, root: plan.Node) -> nests.Levels | None:
        """The levels of a nest that can be there, each as a part."""
        if id(root) not in self._levels:
            found = nests.levels_of(root)
            can_be = found is not None and self._can_be_parts(root, found)
            self._levels[id(root)] = root, found if can_be else None
        return self._levels[id(root)][1]

    def levels_there(self, root: plan.Node) -> nests.Levels | None:
        """The same, of one whose levels are there."""
        if not self:
            return None
        found = self.levels(root)
        if found is None or not (root in self.moved or self._reads_there(root)):
            return None
        self._of_levels.update((id(part), root) for part in found.parts)
        return found

    def is_level(self, node: plan.Node) -> bool:
        """Whether a node is a part of such a nest."""
        return id(node) in self._of_levels

    def stands_for(self, top: plan.Node) -> tuple[plan.Node, ...]:
        """The nodes that are there with what has moved."""
        return (top,) if self.levels(top) is not None else self.fragment(top).of

    def parts(self, top: plan.Node) -> tuple[plan.Node, ...]:
        """The nodes that are parts there, of what has moved."""
        found = self.levels(top)
        return (top,) if found is None else found.parts

    def every(self, root: plan.Node) -> Callable[[Sequence[Any]], Any]:
        """What has all rows of a nest, of the operators of its parts, if they can be had there."""

        def found(operators: Sequence[Any]) -> Any:
            whole = whole_of(root, self.holds)
            can_be = whole is not None and self._apart(whole) is None
            return self._nested(whole, operators) if whole is not None and can_be else None

        return found

    def _can_be_parts(self, root: plan.Node, found: nests.Levels) -> bool:
        made = [level_of(part, self.holds) for part in found.parts]
        has_moved = root in self.moved
        if None in made or not (has_moved or self.is_whole(root.inputs()[0])):
            return False
        for part, fragment in zip(found.parts, made, strict=True):
            assert fragment is not None
            reason = None if has_moved else self._apart(fragment)
            if reason is not None:
                self._reasons[id(root)] = reason
                return False
            self._parts[id(part)] = part, fragment
        return True

    def _reads_there(self, root: plan.Node) -> bool:
        return bool(self.remote_tables) and any(map(self.holds, self.fragment(root).inputs))

    def takes(self, loop: plan.Iterate) -> bool:
        """Whether a loop can run there as one, so that its rounds are not written out."""
        if not is_loop(loop):
            return False
        if has_components(loop):
            found = self._found(plan.Component(loop, 0))
            return found is not None and found.is_whole
        return self.is_whole(loop)

    def begin(self, node: plan.Node) -> Begin:
        """How to begin the part of a node."""
        return self.moved.get(self._of_levels.get(id(node), node), self._begin)

    def _is_fed(self, node: plan.Node) -> bool:
        part = None if isinstance(node, LINEAR) else self._part(node)
        return part is not None and any(map(self.holds, part.inputs))

    def _part(self, node: plan.Node) -> Fragment | None:
        """The part of a node of the plan that is compiled, if it can be one; made once."""
        if id(node) not in self._parts:
            self._parts[id(node)] = node, self._found(node)
        return self._parts[id(node)][1]

    def _pays(self, whole: Fragment) -> bool:
        """Whether rows come from where they are in bulk, or would come by between operators."""
        operators = sum(isinstance(node, STATEFUL) for node in whole.of)
        alone = any(isinstance(node, _ONLY_WHOLE) for node in whole.of)
        return operators > 1 or alone or any(map(self.holds, whole.inputs))

    def _found(self, node: plan.Node) -> Fragment | None:
        if self.levels(node) is not None:
            below = self.fragment(node.inputs()[0])
            return replace(below, of=(node, *below.of))
        whole = whole_of(node, self.holds)
        reason = ""
        if whole is not None and self._pays(whole):
            found = self._apart(whole)
            if found is None:
                return whole
            reason = self._reasons[id(node)] = found
        try:
            return replace(part_of(node), apart=reason)
        except Unmovable:
            return None


def feeding(away: OffloadedNodes, node: plan.Node) -> Feeding:
    """What feeds a part there: the source, its table, and the chain over it."""
    chain, table = chain_over(node)
    assert isinstance(table, plan.Table)
    return away.remote_tables[table.number], table, chain
