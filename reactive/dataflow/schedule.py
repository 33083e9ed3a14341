"""Which nodes a commit steps, in their order, and how it is taken back.

Once one has proved to be in use, a generated function takes its place (`straight.py`).

State:  the inboxes of the nodes while a walk is under way.
Cost:   O(nodes that the changes may reach), a fraction of a microsecond each.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from reactive.dataflow.blame import annotate, stepped_in
from reactive.dataflow.node import comes_late
from reactive.operators.sums_by import Unfit
from reactive.runtime.interrupts import is_asynchronous, surely

if TYPE_CHECKING:
    from reactive.dataflow.node import Node, Told

log = logging.getLogger("reactive")
OFTEN = 64
"""Walks after which code takes the place of a schedule."""
FEW = 24
"""Nodes that a schedule has at most; of more, what a commit reaches is found while it goes."""

Check = Callable[["Node"], None]
Fed = tuple["Node", Sequence[Any]]
"""A source, and a delta of it."""


class Schedule:
    """The nodes that some sources reach, in topological order."""

    __slots__ = ("_walks", "nodes", "sources")

    def __init__(self, sources: tuple[Node, ...], nodes: tuple[Node, ...]) -> None:
        self.sources = sources
        self.nodes = nodes
        self._walks = 0

    def step(
        self, changes: Sequence[Fed], stepped: list[Node], told: list[Told], check: Check
    ) -> None:
        """Step what the changes reach.

        `stepped` is told of each stateful node beforehand, `told` of what leaves give out.
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
                        told.append((node, out))

    @property
    def is_in_use(self) -> bool:
        """Whether it has been walked so often that code for it is worth its making."""
        return self._walks >= OFTEN and len(self.sources) == 1

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
                if consumer.routes or len(found) > FEW:
                    return None
                if not comes_late(consumer):
                    waiting.append(consumer)
    return tuple(sorted(found, key=_order))


def take_back(error: BaseException, stepped: Sequence[Node]) -> bool:
    """Undo what has been stepped of a commit, and say where it failed; whether all is undone.

    It is not where the commit may have failed anywhere: then nobody knows what has been done of a
    step.
    """
    if is_asynchronous(error.__cause__ if isinstance(error, Unfit) else error):
        return False
    stuck: list[Node] = []
    surely(partial(_undo, stepped, stuck))
    node = stepped_in(error)
    if node is not None and isinstance(error, Exception):
        annotate(error, node, rolled_back=True)
    return not stuck


def _undo(stepped: Sequence[Node], stuck: list[Node]) -> None:
    for done in reversed(stepped):
        try:
            done.undo()
        except Exception:  # it must not keep the others
            log.exception("an operator could not take a commit back; all views are computed again")
            stuck.append(done)


def _order(node: Node) -> int:
    return node.order
