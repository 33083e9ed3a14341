"""One step of the graph in two phases: what is prepared is published, or undone.

    prepare   what the changes reach has stepped; its views are read only inside the lock
    publish   operators finalize, and the delivery queue has what leaves emit
    undo      operators are as they were before, the last one first

A commit is such a step (`Graph.prepare`), and so is each part of a flush (`remote/flush.py`). A
commit with nothing between its phases may be one generated function instead (`compiled_step.py`).

State:  what has stepped, until it is published or undone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Protocol

from reactive.engine.dataflow.delta import Delta
from reactive.engine.dataflow.error_notes import annotate, stepped_in
from reactive.engine.operators.operator import BailOut
from reactive.engine.runtime.interrupts import is_asynchronous, surely

if TYPE_CHECKING:
    from reactive.engine.dataflow.delivery_queue import DeliveryQueue
    from reactive.engine.dataflow.limits import Delivery
    from reactive.engine.dataflow.moves import Moves
    from reactive.engine.dataflow.node import LeafDelta, Node

log = logging.getLogger("reactive")


class Stepped(Protocol):
    """What has stepped, and holds both states until it is told which one stands."""

    @property
    def finalize(self) -> Callable[[], object]: ...

    @property
    def undo(self) -> Callable[[], object]: ...


class Step:
    """What has stepped, and what subscribers are notified of once it is published."""

    __slots__ = ("_deliveries", "_queue", "leaf_deltas", "stepped", "version")

    def __init__(self, delivery_queue: DeliveryQueue, version: int) -> None:
        self._queue = delivery_queue
        self._deliveries: Sequence[Delivery] = ()
        self.version = version
        self.stepped: list[Stepped] = []
        """Each stateful node, noted before it steps."""
        self.leaf_deltas: list[LeafDelta] = []
        """What the leaves have emitted."""

    def address(self) -> None:
        """All has stepped: decide who is to hear of it, while that may still fail."""
        self._deliveries = deliveries(self.leaf_deltas, self.version)

    def publish(self) -> None:
        """It stands."""
        for done in self.stepped:
            done.finalize()
        self._queue.extend(self._deliveries)

    def undo(self) -> bool:
        """Take all of it back; whether every operator could."""
        return undo(self.stepped)


class Trees:
    """The nodes that hand on changes which are read later, but before the next commit."""

    __slots__ = ("_nodes", "inside")

    def __init__(self, inside: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._nodes: tuple[Node, ...] = ()
        self.inside = inside
        """Within which what only commits change is read."""

    def add(self, node: Node) -> None:
        """Know a node, if it is one."""
        if hasattr(node.operator, "settle") and not node.deferred:
            self._nodes = (*self._nodes, node)

    def discard(self, node: Node) -> None:
        """A node steps no more: what is read later of it is read now."""
        if hasattr(node.operator, "settle"):
            node.operator.settle()
            self._nodes = tuple(other for other in self._nodes if other is not node)

    def settle(self) -> None:
        """There will be a commit: what is read later of the last one is read now."""
        for node in self._nodes:
            node.operator.settle()


def take_back(error: BaseException, stepped: Sequence[Stepped]) -> bool:
    """Undo what has been stepped of a commit, and say where it failed; whether all is undone.

    It is not where the commit may have failed anywhere: then nobody knows what has been done of a
    step.
    """
    if is_asynchronous(error.__cause__ if isinstance(error, BailOut) else error):
        return False
    is_undone = undo(stepped)
    node = stepped_in(error)
    if node is not None and isinstance(error, Exception):
        annotate(error, node, rolled_back=True)
    return is_undone


def undo(stepped: Sequence[Stepped]) -> bool:
    """Undo what has stepped, the last one first; whether every operator could."""
    stuck: list[Stepped] = []
    surely(partial(_undo, stepped, stuck))
    return not stuck


def _undo(stepped: Sequence[Stepped], stuck: list[Stepped]) -> None:
    for done in reversed(stepped):
        try:
            done.undo()
        except Exception:  # it must not keep the others
            log.exception("an operator could not take a commit back; all views are computed again")
            stuck.append(done)


def deliveries(leaf_deltas: Sequence[LeafDelta], version: int) -> list[Delivery]:
    """What leaves emit, and to which subscribers."""
    found: list[Delivery] = []
    for node, changes in leaf_deltas:
        channel = node.leaf
        if channel.subscribers and changes:
            moves = traced(node)
            delta = Delta(version, changes, channel.key, node.operator.edits, moves=moves)
            found.append((channel.subscribers, delta._with_columns(channel.columns)))
    for node, _ in leaf_deltas:
        if node.operator.edits:
            node.operator.forget()
    return found


def traced(leaf: Node) -> Moves | None:
    """What finds the updates in what a leaf tells of this commit."""
    moved, lineage = leaf.graph.moved, leaf.leaf.lineage
    if moved is None or lineage is None:
        return None
    found: Moves | None = lineage.traced(moved)
    return found
