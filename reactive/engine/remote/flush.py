"""A flush: what is deferred is brought up to the state of one commit, all of it or nothing.

    barrier    with the lock        what waits, up to the last commit, is set apart
    send       without it           each remote operator has its entries applied
    step       with the lock        the nodes below take in what came of it
    show       with the lock        all leaves change together

Commits go on meanwhile: what they leave behind waits for the next flush. Any thread may resume a
flush, also one inside the lock that cannot wait for another to get in.

One that raises is over, and nothing is lost: each node keeps what came to it until it has stepped,
and the next flush goes on from there, with all that was committed meanwhile.

State:  how far it has come.

Have what remote operators set apart at barriers applied: by those that share what they keep, in
one go.

State:  none.
Cost:   an `apply` for each barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent import futures
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any

from reactive.engine.dataflow.graph import Graph
from reactive.engine.dataflow.node import Node, is_deferred
from reactive.engine.dataflow.schedule import CommitStep
from reactive.engine.remote.remote import Sharing
from reactive.engine.remote.remote_operator import RemoteOperator
from reactive.engine.remote.remote_tree import RemoteLeaf

MOST = 8
"""How many parts are sent to at the same time."""
Stage = tuple[bool, Callable[[], object]]
"""Whether it needs the lock, and what to do; without the lock, what can be done twice."""


class Flush:
    """One flush, from its barrier on. Made inside the lock.

    `version` is the commit up to which it brings what is deferred.
    """

    def __init__(self, graph: Graph, version: int) -> None:
        self.version = version
        self._graph = graph
        self._place = 0
        self._failed = False
        nodes = graph.deferred()
        for node in nodes:
            node.set_barrier()
            if node.is_remote:
                node.operator.set_barrier(version)
        for node in graph.remotes:
            if not node.operator.is_filled and node.operator.shared is not None:
                node.operator.set_barrier(version)
        self._trees = [
            node for node in nodes if hasattr(node.operator, "outdated") and not node.leaf
        ]
        for node in self._trees:
            node.operator.settle()
        inner = [node for node in nodes if node.leaf is None and node not in self._trees]
        self._leaves = [node for node in nodes if node.leaf is not None]
        first = [node for node in inner if node.is_remote and not node.deferred]
        self._stages: list[Stage] = [(False, lambda: _send(graph, first))]
        self._stages += [stage for node in inner for stage in self._of(node)]
        self._stages.append((True, self._finish))

    @property
    def is_over(self) -> bool:
        """Whether it has come to its end, or has raised."""
        return self._failed or self.is_done

    @property
    def is_done(self) -> bool:
        """Whether all that was deferred is now at its version."""
        return self._place == len(self._stages)

    def run(self, inside: Callable[[], AbstractContextManager[None]]) -> None:
        """Run it to its end, unless it fails for another thread that does so."""
        while not self._failed and (place := self._place) < len(self._stages):
            needs_lock, act = self._stages[place]
            try:
                if not needs_lock:
                    act()
                with inside():
                    if self._place == place and not self._failed:
                        if needs_lock:
                            act()
                        self._place += 1
            except BaseException:
                self._failed = not self.is_done
                raise

    def _of(self, node: Node) -> list[Stage]:
        stages: list[Stage] = [(True, lambda: self._step(node))] if node.deferred else []
        if node.is_remote:
            together = partial(_together, self._graph, node)
            stages += [
                (False, lambda: _send_group(together())),
                (True, lambda: self._hand_out(node)),
            ]
        return stages

    def _step(self, node: Node) -> None:
        if not any(node.in_flight):
            return
        step, outs = self._prepare([node])
        step.publish()
        if node.is_remote:
            node.operator.set_barrier(self.version)
        _give(node, *outs)

    def _hand_out(self, node: Node) -> None:
        found = node.operator.flush(quiet=not is_heard(node))
        if found is not None:
            _give(node, found)
            return
        for leaf, _ in node.consumers:
            leaf.operator.outdated()

    def _finish(self) -> None:
        """Change all leaves, or none if one raises."""
        for node in self._graph.remotes:
            if is_heard(node):  # perhaps since just now
                _give(node, node.operator.overlooked())
        for node in self._trees:
            self._step(node)
        step, _ = self._prepare(
            [leaf for leaf in self._leaves if any(leaf.in_flight) and leaf.inputs]
        )
        step.publish()
        for node in self._graph.remotes:
            if node.operator.is_filled:
                node.operator.flushed()

    def _prepare(self, nodes: Sequence[Node]) -> tuple[CommitStep, list[Sequence[Any]]]:
        """Have nodes take in what waits for them, all or none; and what each emits."""
        step, outs = CommitStep(self._graph.delivery_queue, self.version), list[Sequence[Any]]()
        try:
            for node in nodes:
                step.stepped.append(_TakenIn(node))
                with self._graph.running(node):
                    outs.append(node.run(*node.taken()))
                if node.leaf is not None:
                    step.leaf_deltas.append((node, outs[-1]))
            step.address()
        except BaseException:
            step.undo()
            raise
        return step, outs


class _TakenIn:
    """A deferred node that has taken in what waited: it waits no more, or does so again."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    def finalize(self) -> None:
        if hasattr(self._node.operator, "commit"):
            self._node.operator.commit()
        self._node.done()

    def undo(self) -> None:
        if hasattr(self._node.operator, "undo"):
            self._node.operator.undo()


def is_heard(node: Node) -> bool:
    """Whether somebody in the process is to be told how the output of a remote node changes: all
    but views that nobody subscribes to, which ask when they are read."""
    return not all(_only_asks(reader) for reader, _ in node.consumers)


def _only_asks(reader: Node) -> bool:
    """Whether a reader of a remote node asks when it is read, and nobody is to be told: a view, or
    a nest of which each view is so."""
    if reader.leaf is not None:
        is_asked = isinstance(reader.operator, RemoteLeaf)
        return is_asked and not reader.leaf.subscribers
    if not hasattr(reader.operator, "outdated"):
        return False
    return not any(leaf.leaf.subscribers for leaf in reader.readers())


def _send(graph: Graph, nodes: list[Node]) -> None:
    """Send what several have to send, at the same time, and what shares its state in one go; raise
    what the first of them raised."""
    waiting = [node for node in nodes if node.operator.lag or node.operator.is_fed]
    groups = list({node: _together(graph, node) for node in waiting}.values())
    apart = [group for n, group in enumerate(groups) if group not in groups[:n]]
    if len(apart) < 2:
        return  # its own stage does it
    with futures.ThreadPoolExecutor(MOST, thread_name_prefix="reactive-flush") as pool:
        sent = [pool.submit(_send_group, group) for group in apart]
    for future in sent:
        future.result()


def _together(graph: Graph, node: Node) -> list[Node]:
    """The nodes whose remotes share what they keep with that of a node, also ones that are only
    being filled."""
    shared = node.operator.shared
    if shared is None:
        return [node]
    return [each for each in graph.remotes if each.operator.shared is shared]


def _send_group(nodes: list[Node]) -> None:
    """Without the lock: who listens from now on is told all the same, when it is handed out."""
    send_together([(node.operator, not is_heard(node)) for node in nodes])


def _give(node: Node, out: Sequence[Any]) -> None:
    """Send a delta to the readers of a node; they are all deferred."""
    if out:
        for consumer, port in node.consumers:
            assert is_deferred(consumer)
            consumer.in_flight[port].append(out)


def send_together(operators: Sequence[tuple[RemoteOperator, bool]]) -> None:
    """Have what one set apart at barriers applied, once; or several, whose remotes share what they
    keep. Another thread that does so is waited for, also one that fills; one that is still to be
    filled is left out.

    Parameters
    ----------
    operators: with whether each is quiet: nobody asks how its output changes, as far as is known.
    """
    with ExitStack() as stack:
        for operator, _ in sorted(operators, key=lambda pair: id(pair[0])):
            stack.enter_context(operator._sending)
        ready = [pair for pair in operators if pair[0].is_filled]
        for operator, _ in ready:
            if operator.lost is not None:
                raise operator.lost
            operator._try_again()
        while any(operator._batches for operator, _ in ready):
            barrier = min(o._barriers[0] for o, _ in ready if o._batches)
            due = [(o, q) for o, q in ready if o._barriers[:1] == [barrier]]
            first = due[0][0].remote
            if isinstance(first, Sharing):
                first.take_in([operator._prepare() for operator, _ in due])
            for operator, quiet in due:
                operator._apply(quiet=quiet)
        for operator, _ in ready:
            if operator._owed is not None:
                raise operator._owed
