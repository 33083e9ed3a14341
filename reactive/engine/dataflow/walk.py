"""Walk of the graph: find the nodes that a commit reaches while stepping, for large graphs.

    waiting = heap of (order, rank, node)   a node steps after all its inputs
    while waiting:
        ready = pop
        while ready:
            node = pop;  out = node.step(...)
            readers with one input become ready; the others wait

Readers of an index that want the rows of one key are found by it (`Node.routes`), others by a field
or by the keys of the other side of a join (`routing.py`). So a commit costs the same with a
thousand views of a thousand values as with only the views whose rows change. A join whose both
sides change gets their whole deltas: it was found by what the other side had before or after.

The captured variables of such readers are checked in turns (`node.py`).

A commit is one function (`Walk.commit`), like that of a schedule: it creates no objects for the two
phases.

State:  the inboxes of the waiting nodes while a walk is in progress.
Cost:   O(nodes reached), and O(log waiting nodes) for each node with several inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from reactive.engine.dataflow.discrimination import Enqueue, Reader, send
from reactive.engine.dataflow.schedule import UndoableStep, deliveries

if TYPE_CHECKING:
    from reactive.engine.dataflow.graph import Graph
    from reactive.engine.dataflow.node import LeafDelta, Node
    from reactive.engine.dataflow.routing import Routing
    from reactive.engine.dataflow.schedule import Check, CompiledStep, Fed

TakeBack = Callable[[BaseException, Sequence[UndoableStep]], None]
Waiting = list[tuple[float, int, "Node"]]
Ready = list[tuple["Node", Sequence[Sequence[Any]]]]
"""Nodes to step next, each with a delta per input."""


class Walk:
    """The nodes that some sources reach, found as they step; used in place of a `Schedule`."""

    __slots__ = ("_routing", "_waiting", "compiled_step", "sources")
    is_in_use = True
    """True: its commits are one function from the first one on, without generated code."""

    def __init__(self, sources: tuple[Node, ...], routing: Routing) -> None:
        self._routing = routing
        self.sources = sources
        self.compiled_step: CompiledStep | None = None
        """The function that replaces `step`."""
        self._waiting: Waiting = []

    def step(
        self,
        changes: Sequence[Fed],
        stepped: list[UndoableStep],
        leaf_deltas: list[LeafDelta],
        check: Check,
    ) -> None:
        """Step the nodes that the changes reach, as `Schedule.step` does.

        Appends to `stepped` and `leaf_deltas`.
        """
        waiting = self._waiting = []
        routing, whole = self._routing, dict["Node", Sequence[Any]]()

        def enqueue(node: Node) -> None:
            heappush(waiting, (node.order, node.rank, node))

        for source, delta in changes:
            way = routing[source]
            if way is None:
                send(source.consumers, delta, enqueue)
            else:
                way.turns.look(check)
                way.send(delta, enqueue)
                send(way.everything, delta, enqueue)
        while waiting:
            node = waiting[0][2]
            if len(whole) > 1:
                _complete(node, whole)
            ready: Ready = [(node, node.inbox)]
            node.clear()
            heappop(waiting)
            while ready:
                node, inbox = ready.pop()
                if node.guards:
                    check(node)
                if node.stateful:
                    stepped.append(node)
                out = node.step(*inbox)
                if node.routes:
                    if node.routes.turns:
                        node.routes.turns.look(check)
                    _route(node, out, ready)
                if out:
                    way = routing[node] if node.consumers else None
                    if way is None:
                        _forward(node.consumers, out, ready, enqueue)
                    else:
                        whole[node] = out
                        way.turns.look(check)
                        if (change := way.side_change(out)) is not None:
                            stepped.append(change)
                        way.send(out, enqueue)
                        _forward(way.everything, out, ready, enqueue)
                    if node.leaf is not None:
                        leaf_deltas.append((node, out))
        if len(leaf_deltas) > 1:
            leaf_deltas.sort(key=_leaf_delta_order)

    def commit(self, graph: Graph, take_back: TakeBack) -> CompiledStep:
        """Return the function that commits a delta per source; its last argument is the version."""
        sources = self.sources
        watch, queue = graph.watch, graph.delivery_queue

        def commit(*given: Any, between: Callable[[], object] | None = None) -> None:
            changes, version = tuple(zip(sources, given, strict=False)), given[-1]
            stepped: list[UndoableStep] = []
            leaf_deltas: list[LeafDelta] = []
            graph.trees.settle()
            graph.stepping = True
            try:
                for source in sources:
                    if source.watchers:
                        watch.look(source)
                self.step(changes, stepped, leaf_deltas, watch.check)
                told = deliveries(leaf_deltas, version) if leaf_deltas else ()
                if between is not None:
                    between()
            except BaseException as error:
                self.clear()
                take_back(error, stepped)
                raise
            graph.version = version
            for done in stepped:
                done.finalize()
            if told:
                queue.extend(told)
            graph.stepping = False

        return commit

    def clear(self) -> None:
        """Empty the inboxes of an interrupted walk."""
        for _, _, node in self._waiting:
            node.clear()
        self._waiting = []


def _complete(node: Node, whole: Mapping[Node, Sequence[Any]]) -> None:
    """Give a node the whole deltas of its inputs if several of them have changed.

    Parameters
    ----------
    whole: the deltas of nodes whose readers are found by key, or that such readers ask.
    """
    ports = [port for port, source in enumerate(node.inputs) if source in whole]
    if len(ports) > 1:
        for port in ports:
            node.inbox[port] = whole[node.inputs[port]]


def _forward(readers: Sequence[Reader], out: Sequence[Any], ready: Ready, enqueue: Enqueue) -> None:
    """Send a delta to readers; append readers with one input to `ready`."""
    if len(readers) > 1:
        readers = readers[::-1]  # the last one appended steps first
    for reader, port in readers:
        if len(reader.inputs) == 1:
            ready.append((reader, (out,)))
        else:
            send(((reader, port),), out, enqueue)


def _route(node: Node, keyed: Sequence[Any], ready: Ready) -> None:
    """Append to `ready` the readers that want keys of an index's delta, with their pairs."""
    find = node.routes.find
    if len(keyed) == 1:
        found = find(keyed[0][0])
        if len(found) > 1:
            found = sorted(
                found, key=_node_order, reverse=True
            )  # the last one appended steps first
        for reader in found:
            ready.append((reader, (keyed,)))
        return
    wanted: dict[Node, list[Any]] = {}
    for pair in keyed:
        for reader in find(pair[0]):
            wanted.setdefault(reader, []).append(pair)
    for reader in sorted(wanted, key=_node_order, reverse=True):
        ready.append((reader, (wanted[reader],)))


def _node_order(node: Node) -> float:
    return node.order


def _leaf_delta_order(of: LeafDelta) -> float:
    return of[0].order
