"""A flush: bring all deferred nodes up to the state of one commit, atomically.

    barrier    with the lock        set apart the pending changes, up to the last commit
    send       without the lock     each remote operator applies its entries
    step       with the lock        the nodes below step over the resulting deltas
    show       with the lock        all leaves change together

Commits continue meanwhile: their changes are pending until the next flush. Any thread may resume a
flush, including one that holds the lock and cannot wait for another thread.

A flush that raises is over, and nothing is lost: each node keeps its changes until it has stepped,
and the next flush continues there, with all later commits.

State:  the current stage.

`send_together` makes remote operators apply the entries set apart at barriers; operators that share
a store do so in one call.

State:  none.
Cost:   an `apply` per barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent import futures
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from optimizer.plans.properties import tables
from reactive.engine.dataflow.graph import Graph
from reactive.engine.dataflow.node import Node, is_deferred
from reactive.engine.dataflow.schedule import CommitStep
from reactive.engine.remote.remote import Sharing
from reactive.engine.remote.remote_operator import RemoteOperator
from reactive.engine.remote.remote_tree import RemoteLeaf

if TYPE_CHECKING:
    from reactive.engine.operators.event_time import EventClock

MOST = 8
"""Number of remotes that are sent to at the same time."""
Stage = tuple[bool, Callable[[], object]]
"""True if the stage needs the lock, and its action; without the lock, one that is repeatable."""


class Flush:
    """One flush, from its barrier on. Create it inside the lock.

    `version` is the commit that deferred nodes are brought up to.
    """

    def __init__(self, graph: Graph, version: int) -> None:
        self.version = version
        self._graph = graph
        self._place = 0
        self._failed = False
        nodes = graph.deferred_nodes()
        self._watermarks = [(clock, clock.watermark) for clock in _clocks_of(nodes)]
        for node in nodes:
            node.set_barrier()
            if node.is_remote:
                node.operator.set_barrier(version)
        for node in graph.remotes:
            if not node.operator.is_filled and node.operator.shared is not None:
                node.operator.set_barrier(version)
        self._trees = [
            node for node in nodes if hasattr(node.operator, "drop_lookups") and not node.leaf
        ]
        for node in self._trees:
            node.operator.settle()
        inner = [node for node in nodes if node.leaf is None and node not in self._trees]
        self._leaves = [node for node in nodes if node.leaf is not None]
        first = [node for node in inner if node.is_remote and not node.deferred]
        self._stages: list[Stage] = [(False, lambda: _send(graph, first))]
        self._stages += [stage for node in inner for stage in self._make_stages(node)]
        self._stages.append((True, self._finish))

    @property
    def is_over(self) -> bool:
        """True if it is complete, or has raised."""
        return self._failed or self.is_done

    @property
    def is_done(self) -> bool:
        """True if all deferred nodes are at its version."""
        return self._place == len(self._stages)

    def run(self, inside: Callable[[], AbstractContextManager[None]]) -> None:
        """Run to the end, unless another thread that runs the same flush fails."""
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

    def _make_stages(self, node: Node) -> list[Stage]:
        """Return the stages of a node in order, each with True if it needs the lock."""
        stages: list[Stage] = [(True, lambda: self._step(node))] if node.deferred else []
        if node.is_remote:
            together = partial(_nodes_sharing, self._graph, node)
            stages += [
                (False, lambda: _send_group(together())),
                (True, lambda: self._hand_out(node)),
            ]
        return stages

    def _step(self, node: Node) -> None:
        """Step a node over its deltas in flight, if any, and send the result to its readers."""
        if not any(node.in_flight):
            return
        step, outs = self._prepare([node])
        step.publish()
        if node.is_remote:
            node.operator.set_barrier(self.version)
        _send_to_readers(node, *outs)

    def _hand_out(self, node: Node) -> None:
        """Send the flushed delta of a remote node to its readers.

        If the delta was not fetched, the leaves of the node are marked as outdated.
        """
        found = node.operator.flush(quiet=not is_heard(node))
        if found is not None:
            _send_to_readers(node, found)
            return
        for leaf, _ in node.consumers:
            leaf.operator.drop_lookups()

    def _finish(self) -> None:
        """Change all leaves, or none if one raises."""
        for node in self._graph.remotes:
            if is_heard(node):  # perhaps only since the last stage
                _send_to_readers(node, node.operator.fetch_skipped())
        for node in self._trees:
            self._step(node)
        step, _ = self._prepare(
            [leaf for leaf in self._leaves if any(leaf.in_flight) and leaf.inputs]
        )
        step.publish()
        for node in self._graph.remotes:
            if node.operator.is_filled:
                node.operator.finish_flush()
        for clock, mark in self._watermarks:
            clock.finish_flush(mark)

    def _prepare(self, nodes: Sequence[Node]) -> tuple[CommitStep, list[Sequence[Any]]]:
        """Step nodes over their pending changes, all or none; return what each emits."""
        step, outs = CommitStep(self._graph.delivery_queue, self.version), list[Sequence[Any]]()
        try:
            for node in nodes:
                step.stepped.append(_TakenIn(node))
                with self._graph.running(node):
                    outs.append(node.run(*node.in_flight_deltas()))
                if node.leaf is not None:
                    step.leaf_deltas.append((node, outs[-1]))
            step.address()
        except BaseException:
            step.undo()
            raise
        return step, outs


def _clocks_of(nodes: Sequence[Node]) -> Iterable[EventClock]:
    """Return the clocks of the streams that some nodes read, each once."""
    read = {table: None for node in nodes if node.plan is not None for table in tables(node.plan)}
    return [table.clock for table in read if table.time is not None]


class _TakenIn:
    """A deferred node that has stepped: its changes are dropped, or pending again."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    def finalize(self) -> None:
        if hasattr(self._node.operator, "commit"):
            self._node.operator.commit()
        self._node.finish_flush()

    def undo(self) -> None:
        if hasattr(self._node.operator, "undo"):
            self._node.operator.undo()


def is_heard(node: Node) -> bool:
    """Return True if a reader in the process needs the changes of a remote node's output.

    Views without subscribers need none: they query the rows when they are read.
    """
    return not all(_only_asks(reader) for reader, _ in node.consumers)


def _only_asks(reader: Node) -> bool:
    """Return True if a reader of a remote node queries it when read, and has no subscribers.

    The reader is a view, or a nest all of whose views are so.
    """
    if reader.leaf is not None:
        is_asked = isinstance(reader.operator, RemoteLeaf)
        return is_asked and not reader.leaf.subscribers
    if not hasattr(reader.operator, "drop_lookups"):
        return False
    return not any(leaf.leaf.subscribers for leaf in reader.readers())


def _send(graph: Graph, nodes: list[Node]) -> None:
    """Send the entries of several nodes in parallel; nodes that share a store are sent in one call.

    Raise the error of the first node that failed.
    """
    waiting = [node for node in nodes if node.operator.lag or node.operator.is_fed]
    groups = list({node: _nodes_sharing(graph, node) for node in waiting}.values())
    apart = [group for n, group in enumerate(groups) if group not in groups[:n]]
    if len(apart) < 2:
        return  # the node's own stage sends it
    with futures.ThreadPoolExecutor(MOST, thread_name_prefix="reactive-flush") as pool:
        sent = [pool.submit(_send_group, group) for group in apart]
    for future in sent:
        future.result()


def _nodes_sharing(graph: Graph, node: Node) -> list[Node]:
    """Return the remote nodes that share a store with `node`, even if still being filled."""
    shared = node.operator.shared
    if shared is None:
        return [node]
    return [each for each in graph.remotes if each.operator.shared is shared]


def _send_group(nodes: list[Node]) -> None:
    """Send entries without the lock; a reader that subscribes meanwhile still gets the changes."""
    send_together([(node.operator, not is_heard(node)) for node in nodes])


def _send_to_readers(node: Node, out: Sequence[Any]) -> None:
    """Send a delta to the readers of a node; they are all deferred."""
    if out:
        for consumer, port in node.consumers:
            assert is_deferred(consumer)
            consumer.in_flight[port].append(out)


def send_together(operators: Sequence[tuple[RemoteOperator, bool]]) -> None:
    """Apply the entries that one operator, or several with a shared store, set apart at barriers.

    Wait for another thread that does so, or that fills an operator; skip operators not filled yet.

    Parameters
    ----------
    operators: pairs of an operator and True if it is quiet: as far as is known, no reader needs the
        changes of its output.
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
