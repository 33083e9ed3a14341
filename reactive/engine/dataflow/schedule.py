"""Which nodes a commit steps, in their order.

Once one has proved to be in use, a generated function takes its place (`compiled_step.py`).

State:  the inboxes of the nodes while a walk is under way.
Cost:   O(nodes that the changes may reach), a fraction of a microsecond each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from reactive.engine.dataflow.node import is_deferred

if TYPE_CHECKING:
    from reactive.engine.dataflow.compiled_step import CompiledStep
    from reactive.engine.dataflow.node import LeafDelta, Node
    from reactive.engine.dataflow.step import Stepped

OFTEN = 64
"""Walks after which code takes the place of a schedule."""
MOST = 1000
"""Nodes that a schedule has at most; of more, what a commit reaches is found as it steps."""

Check = Callable[["Node"], None]
Fed = tuple["Node", Sequence[Any]]
"""A source, and a delta of it."""


class Schedule:
    """The nodes that some sources reach, in topological order."""

    __slots__ = ("_walks", "compiled_step", "nodes", "sources")

    def __init__(self, sources: tuple[Node, ...], nodes: tuple[Node, ...]) -> None:
        self.sources = sources
        self.nodes = nodes
        self.compiled_step: CompiledStep | None = None
        """What takes its place."""
        self._walks = 0

    def step(
        self,
        changes: Sequence[Fed],
        stepped: list[Stepped],
        leaf_deltas: list[LeafDelta],
        check: Check,
    ) -> None:
        """Step what the changes reach.

        `stepped` gets each stateful node beforehand, `leaf_deltas` what leaves emit.
        """
        self._walks += 1
        for source, delta in changes:
            source.send(delta)
        for node in self.nodes:
            if node.dirty:
                if node.guards:
                    check(node)
                if node.stateful:
                    stepped.append(node)
                out = node.step(*node.inbox)
                node.clear()
                if out:
                    node.send(out)
                    if node.leaf is not None:
                        leaf_deltas.append((node, out))

    @property
    def is_in_use(self) -> bool:
        """Whether it has been walked often enough for generated code to pay."""
        return self._walks >= OFTEN

    def clear(self) -> None:
        """Empty the inboxes of a walk that was broken off."""
        for node in self.nodes:
            node.clear()


def reached(sources: tuple[Node, ...]) -> tuple[Node, ...] | None:
    """All nodes that these sources reach, in their order; None if they are many, or have routes."""
    found: dict[Node, None] = {}
    waiting = list(sources)
    while waiting:
        for consumer, _ in waiting.pop().consumers:
            if consumer not in found:
                found[consumer] = None
                if consumer.routes or len(found) > MOST:
                    return None
                if not is_deferred(consumer):
                    waiting.append(consumer)
    return tuple(sorted(found, key=_order))


def _order(node: Node) -> tuple[float, int]:
    return node.order, node.rank


def rank(node: Node) -> int:
    """The rank of a node."""
    return node.rank


def rank_of(change: Fed) -> int:
    """That of the source of a change."""
    return change[0].rank
