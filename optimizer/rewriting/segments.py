"""Long queries are optimized in segments, so that the work grows with their length and no faster.

    where        2 levels       the segment of the query
    settled
      where     24 levels       one that a longer query finds done
      settled
        where   24 levels
        table t

A segment ends at a view or at rows as they were, every `HIGHEST` levels of a query that is higher
than that, and in such a query also at what is read several times. Rules do not reach across its
end. What it came to stays with the node as it was written, so that of a query over another one only
what is new is optimized.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from optimizer import plan
from optimizer.expressions.knowledge import Shapes
from optimizer.plans.properties import (
    degree,
    fact,
    free,
    is_set,
    keeps_identity,
    may_be_negative,
    nodes,
    shapes,
    tables,
)
from optimizer.rewriting.optimize import Optimized
from optimizer.traverse import has_components, with_inputs

HIGHEST = 24
"""Levels of a plan that are optimized together."""


@dataclass(slots=True, eq=False)
class Segment:
    """A part of a query, and how it is run.

    `optimized` has `plan.Settled` for the segments `below`. The engine's are `top`, which computes
    it, `watcher`, who reports changes of what it captured, the `physical` plan, one that was
    `prepared` in its place, and the ways which it is run `without`, as they proved not to hold for
    its rows.
    """

    owner: object
    written: plan.Node
    made: Optimized | Callable[[], Optimized] = field(repr=False)
    """What it came to, or what finds it when somebody asks."""
    below: tuple[Segment, ...]
    top: Any = field(default=None, repr=False)
    watcher: Any = field(default=None, repr=False)
    physical: Any = field(default=None, repr=False)
    prepared: Any = field(default=None, repr=False)
    without: set[str] = field(default_factory=set, repr=False)
    _settled: plan.Settled | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.is_optimized:  # known of each before the next is made over it
            _ = self.shapes, self.is_set, self.keeps_identity, self.tables
            _ = self.may_be_negative

    @property
    def is_optimized(self) -> bool:
        """Whether it is known what it came to."""
        return isinstance(self.made, Optimized)

    @property
    def optimized(self) -> Optimized:
        """The plan that is run, and the rules that made it."""
        if not isinstance(self.made, Optimized):
            self.made = self.made()
        return self.made

    @property
    def run(self) -> plan.Node:
        """The plan that is run."""
        return self.optimized.plan

    @property
    def settled(self) -> plan.Settled:
        """What stands for it in a longer query."""
        if self._settled is None:
            self._settled = plan.Settled(self)
        return self._settled

    @property
    def shapes(self) -> Shapes:
        return shapes(self.run)

    @property
    def is_set(self) -> bool:
        return is_set(self.run)

    @property
    def keeps_identity(self) -> bool:
        return keeps_identity(self.run)

    @property
    def tables(self) -> tuple[plan.Table, ...]:
        return tuple(tables(self.run))

    @property
    def may_be_negative(self) -> bool:
        return may_be_negative(self.run)

    @property
    def degree(self) -> float:
        return degree(self.run)

    def own(self) -> list[plan.Node]:
        """The nodes of it as they were written, inputs first."""
        ends = {id(segment.written) for segment in self.below}
        return [n for n in nodes(self.written, until=lambda n: id(n) in ends) if id(n) not in ends]

    def every(self, until: Callable[[Segment], bool] = lambda segment: False) -> list[Segment]:
        """Those below it and itself, each once, the lowest first; not those `until` is true of."""
        found: dict[Segment, None] = {}
        waiting = [(self, False)]
        while waiting:
            segment, complete = waiting.pop()
            if complete:
                found[segment] = None
            elif segment not in found and not until(segment):
                waiting.append((segment, True))
                waiting.extend((below, False) for below in reversed(segment.below))
        return list(found)


def settle(
    root: plan.Node,
    owner: object,
    run: Callable[[plan.Node], Optimized],
    *,
    in_parts: bool = True,
) -> Segment:
    """The segment of a query, made where it is new; `run` optimizes a plan.

    What came of the same query for another `owner` is forgotten. If it is not optimized `in_parts`
    it is one segment.

    Cost: that of the segments which are new.
    """
    found = _known(root, owner)
    if found is not None:
        return found
    every = nodes(root, until=lambda node: _is_done(node, owner)) if in_parts else [root]
    ends = _ends(root, every) if in_parts else set()
    for node in every:
        if (node is root or id(node) in ends) and _known(node, owner) is None:
            _settle(node, ends, owner, run)
    return root.known["segment"]  # type: ignore[no-any-return]


def is_low(root: plan.Node, levels: int) -> bool:
    """Whether a query without views, of a number of levels, is one segment."""
    if levels < HIGHEST:
        return True
    _is_high(root)
    return all(not _is_high(source) for node in nodes(root) for source in node.inputs())


def whole(top: Segment) -> tuple[Optimized, dict[int, plan.Node]]:
    """A query as it is run, in one plan; and by the `id` of each of its nodes, the node of the
    segment that it stands for.

    Cost: O(nodes).
    """
    plans: dict[Segment, plan.Node] = {}
    of: dict[int, plan.Node] = {}
    fired: dict[str, None] = {}
    for segment in top.every():
        made: dict[int, plan.Node] = {}
        for node in nodes(segment.run):
            if isinstance(node, plan.Settled):
                made[id(node)] = plans[node.segment]
            else:
                new = with_inputs(node, [made[id(source)] for source in node.inputs()])
                made[id(node)], of[id(new)] = new, node
        plans[segment] = made[id(segment.run)]
        fired.update(dict.fromkeys(segment.optimized.fired))
    return Optimized(plans[top], tuple(fired)), of


def _settle(
    node: plan.Node, ends: set[int], owner: object, run: Callable[[plan.Node], Optimized]
) -> None:
    below: dict[Segment, None] = {}
    made: dict[int, plan.Node] = {}
    for each in nodes(node, until=lambda n: n is not node and id(n) in ends):
        if each is not node and id(each) in ends:
            segment: Segment = each.known["segment"]
            below[segment] = None
            made[id(each)] = segment.settled
        else:
            made[id(each)] = with_inputs(each, [made[id(source)] for source in each.inputs()])
    node.known["segment"] = Segment(owner, node, run(made[id(node)]), tuple(below))


def _ends(root: plan.Node, every: Iterable[plan.Node]) -> set[int]:
    """The nodes, by their `id`, that are tops of segments."""
    found = {id(node.input) for node in every if isinstance(node, plan.View | plan.Previous)}
    high = {id(node) for node in every if _is_high(node)}
    if not high - {id(root)}:
        return found
    readers = Counter(id(source) for node in every for source in node.inputs())
    several = {id(n) for n in every if readers[id(n)] > 1 and _may_end(n) and n.inputs()}
    return found | high | several


def _is_done(node: plan.Node, owner: object) -> bool:
    """Whether there is nothing new below."""
    if isinstance(node, plan.View | plan.Previous):
        return _known(node.input, owner) is not None
    return _is_high(node) and _known(node, owner) is not None


def _known(node: plan.Node, owner: object) -> Segment | None:
    found: Segment | None = node.known.get("segment")
    return found if found is not None and found.owner is owner else None


def _is_high(node: plan.Node) -> bool:
    """Whether a segment ends here in every query."""
    return bool(fact(node, "height", _height) >= HIGHEST) and _may_end(node)


def _height(node: plan.Node) -> int:
    if isinstance(node, plan.View | plan.Previous):
        return 1
    below = (0 if _is_high(source) else source.known["height"] for source in node.inputs())
    return 1 + max(below, default=0)


def _may_end(node: plan.Node) -> bool:
    """Whether it means the same alone: not inside a recursion, or as one of its relations. Pairs of
    all rows with all do not stay alone, as conditions further up may have them looked up."""
    return not free(node) and not has_components(node) and not isinstance(node, plan.Product)
