"""One step of the graph in two phases: what is prepared is published, or undone.

    prepare   what the changes reach has stepped; its views are read only inside the gate
    publish   operators settle, and the outbox has what leaves have to tell
    undo      operators are as they were before, the last one first

A commit is such a step (`Graph.prepare`), and so is each part of a flush (`remote/flush.py`). A
commit with nothing between its phases may be one generated function instead (`straight.py`).

State:  what has stepped, until it is published or undone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from reactive.dataflow.blame import annotate, stepped_in
from reactive.dataflow.delta import Delta
from reactive.operators.sums_by import Unfit
from reactive.runtime.interrupts import is_asynchronous, surely

if TYPE_CHECKING:
    from reactive.dataflow.node import Told
    from reactive.dataflow.outbox import Delivery, Outbox

log = logging.getLogger("reactive")


class Stepped(Protocol):
    """What has stepped, and holds both states until it is told which one stands."""

    @property
    def settle(self) -> Callable[[], object]: ...

    @property
    def undo(self) -> Callable[[], object]: ...


class Step:
    """What has stepped, and what is to be told of it once it is published."""

    __slots__ = ("_deliveries", "_outbox", "stepped", "told", "version")

    def __init__(self, outbox: Outbox, version: int) -> None:
        self._outbox = outbox
        self._deliveries: Sequence[Delivery] = ()
        self.version = version
        self.stepped: list[Stepped] = []
        """Each stateful node, noted before it steps."""
        self.told: list[Told] = []
        """What the leaves have given out."""

    def address(self) -> None:
        """All has stepped: decide who is to hear of it, while that may still fail."""
        self._deliveries = deliveries(self.told, self.version)

    def publish(self) -> None:
        """It stands."""
        for done in self.stepped:
            done.settle()
        self._outbox.extend(self._deliveries)

    def undo(self) -> bool:
        """Take all of it back; whether every operator could."""
        return undo(self.stepped)


def take_back(error: BaseException, stepped: Sequence[Stepped]) -> bool:
    """Undo what has been stepped of a commit, and say where it failed; whether all is undone.

    It is not where the commit may have failed anywhere: then nobody knows what has been done of a
    step.
    """
    if is_asynchronous(error.__cause__ if isinstance(error, Unfit) else error):
        return False
    is_undone = undo(stepped)
    node = stepped_in(error)
    if node is not None and isinstance(error, Exception):
        annotate(error, node, rolled_back=True)
    return is_undone


def undo(stepped: Sequence[Stepped]) -> bool:
    """Take back what has stepped, the last one first; whether every operator could."""
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


def deliveries(told: Sequence[Told], version: int) -> list[Delivery]:
    """What leaves have to tell, and whom."""
    found: list[Delivery] = []
    for node, changes in told:
        feed = node.leaf
        if feed.subscribers and changes:
            delta = Delta(version, changes, feed.key, node.operator.edits)
            found.append((feed.subscribers, delta))
    for node, _ in told:
        if node.operator.edits:
            node.operator.forget()
    return found
