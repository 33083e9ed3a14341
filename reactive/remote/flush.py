"""A flush: what comes late is brought up to the state of one commit, all of it or nothing.

    cut     with the gate        what waits, up to the last commit, is set apart
    send    without it           each remote operator has its entries applied
    step    with the gate        the nodes below take in what came of it
    show    with the gate        all leaves change together

Commits go on meanwhile: what they leave behind waits for the next flush. Any thread may carry a
flush on, also one inside the gate that cannot wait for another to get in.

One that raises is over, and nothing is lost: each node keeps what came to it until it has stepped,
and the next flush goes on from there, with all that was committed meanwhile.

State:  how far it has come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

from reactive.dataflow.graph import Graph
from reactive.dataflow.node import Node, Told, comes_late
from reactive.remote.remote import RemoteOperator

MOST = 8
"""How many parts are sent to at the same time."""
Stage = tuple[bool, Callable[[], object]]
"""Whether it needs the gate, and what to do; without the gate, what can be done twice."""


class Flush:
    """One flush, from the cut on. Made inside the gate.

    `version` is the commit up to which it brings what is late. `show` is told of the leaves, and
    what has changed.
    """

    def __init__(self, graph: Graph, version: int, show: Callable[[list[Told], int], None]) -> None:
        self.version = version
        self._graph = graph
        self._show = show
        self._place = 0
        self._failed = False
        nodes = graph.late()
        for node in nodes:
            node.cut()
            if node.is_remote:
                node.operator.cut()
        inner = [node for node in nodes if node.leaf is None]
        self._leaves = [node for node in nodes if node.leaf is not None]
        first = [node.operator for node in inner if node.is_remote and not node.late]
        self._stages: list[Stage] = [(False, lambda: _send(first))]
        self._stages += [stage for node in inner for stage in self._of(node)]
        self._stages.append((True, self._finish))

    @property
    def is_over(self) -> bool:
        """Whether it has come to its end, or has raised."""
        return self._failed or self.is_done

    @property
    def is_done(self) -> bool:
        """Whether all that was late is now at its version."""
        return self._place == len(self._stages)

    def run(self, inside: Callable[[], AbstractContextManager[None]]) -> None:
        """Carry it on to its end, unless it fails another who does so."""
        while not self.is_over:
            place = self._place
            needs_gate, act = self._stages[place]
            try:
                if not needs_gate:
                    act()
                with inside():
                    if self._place == place and not self._failed:
                        if needs_gate:
                            act()
                        self._place += 1
            except BaseException:
                self._failed = not self.is_done
                raise

    def _of(self, node: Node) -> list[Stage]:
        stages: list[Stage] = [(True, lambda: self._step(node))] if node.late else []
        if node.is_remote:
            stages += [(False, node.operator.send), (True, lambda: self._hand_out(node))]
        return stages

    def _step(self, node: Node) -> None:
        if not any(node.ready):
            return
        out = _stepped(self._graph, node)
        if hasattr(node.operator, "commit"):
            node.operator.commit()
        node.done()
        if node.is_remote:
            node.operator.cut()
        _give(node, out)

    def _hand_out(self, node: Node) -> None:
        _give(node, node.operator.flush())

    def _finish(self) -> None:
        """Change all leaves, or none if one raises."""
        changed = [leaf for leaf in self._leaves if any(leaf.ready) and leaf.inputs]
        done: list[Node] = []
        told: list[Told] = []
        try:
            for leaf in changed:
                done.append(leaf)
                told.append((leaf, leaf.run(*leaf.taken())))
        except BaseException:
            for leaf in reversed(done):
                if hasattr(leaf.operator, "undo"):
                    leaf.operator.undo()
            raise
        for leaf in changed:
            if hasattr(leaf.operator, "commit"):
                leaf.operator.commit()
            leaf.done()
        self._show(told, self.version)
        for node in self._graph.remotes:
            if node.operator.is_filled:
                node.operator.flushed()


def _send(operators: list[RemoteOperator]) -> None:
    """Send what several have to send, at the same time; raise what the first of them raised."""
    waiting = [operator for operator in operators if operator.lag or operator.is_fed]
    if len(waiting) < 2:
        return  # its own stage does it
    with ThreadPoolExecutor(MOST, thread_name_prefix="reactive-flush") as pool:
        sent = [pool.submit(operator.send) for operator in waiting]
    for future in sent:
        future.result()


def _stepped(graph: Graph, node: Node) -> Sequence[Any]:
    try:
        with graph.running(node):
            out: Sequence[Any] = node.run(*node.taken())
    except BaseException:
        if hasattr(node.operator, "undo"):
            node.operator.undo()
        raise
    return out


def _give(node: Node, out: Sequence[Any]) -> None:
    """A delta, to those that read a node; they are all late."""
    if out:
        for consumer, port in node.consumers:
            assert comes_late(consumer)
            consumer.ready[port].append(out)
