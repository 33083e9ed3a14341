"""Steps what a commit reaches, found while it goes: for graphs of many nodes, few of them reached.

    waiting = heap of (order, rank, node)   a node steps after all that it reads
    while waiting:
        ready = pop
        while ready:
            node = pop;  out = node.step(...)
            its readers are ready that read nothing else; the others wait

Readers of an index that want the rows of one key are found by it (`Node.routes`), others by a
field (`discrimination.py`), so that a thousand views of a thousand values cost a commit no more
than those whose rows change.

What such readers captured is looked at in turns (`node.py`).

A commit of one source is one function (`Walk.commit`), as that of a schedule is: it makes no
objects for phases that nothing comes between.

State:  the inboxes of the nodes that wait while a walk is under way.
Cost:   O(nodes reached), and the logarithm of how many wait for each that reads several others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from reactive.engine.dataflow.discrimination import DiscriminationNetwork, Enqueue, send
from reactive.engine.dataflow.node import Turns
from reactive.engine.dataflow.schedule import Stepped, deliveries

if TYPE_CHECKING:
    from reactive.engine.dataflow.graph import Graph
    from reactive.engine.dataflow.node import LeafDelta, Node
    from reactive.engine.dataflow.schedule import Check, CompiledStep, Fed

TakeBack = Callable[[BaseException, Sequence[Stepped]], None]
Waiting = list[tuple[float, int, "Node"]]
Ready = list[tuple["Node", Sequence[Sequence[Any]]]]
"""Nodes to step next, each with a delta per input."""


class Walk:
    """What some sources reach. It takes the place of a `Schedule`."""

    __slots__ = ("_networks", "_turns", "_waiting", "compiled_step", "sources")
    is_in_use = True
    """Its commits are one function from the first one on: nothing is to be generated."""

    def __init__(self, networks: Mapping[Node, DiscriminationNetwork]) -> None:
        self._networks = networks
        self.sources = tuple(networks)
        self.compiled_step: CompiledStep | None = None
        """What takes its place."""
        self._turns = {
            s: Turns(reader for reader, _ in s.consumers if reader.constant_tests) for s in networks
        }
        """Of readers of a source, which may get none of its rows."""
        self._waiting: Waiting = []

    def step(
        self,
        changes: Sequence[Fed],
        stepped: list[Stepped],
        leaf_deltas: list[LeafDelta],
        check: Check,
    ) -> None:
        """Step what the changes reach, as `Schedule.step` does."""
        waiting = self._waiting = []

        def enqueue(node: Node) -> None:
            heappush(waiting, (node.order, node.rank, node))

        for source, delta in changes:
            if self._turns[source]:
                self._turns[source].look(check)
            self._networks[source].send(delta, enqueue)
        while waiting:
            node = waiting[0][2]
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
                    _forward(node, out, ready, enqueue)
                    if node.leaf is not None:
                        leaf_deltas.append((node, out))
        if len(leaf_deltas) > 1:
            leaf_deltas.sort(key=_order_of)

    def commit(self, graph: Graph, take_back: TakeBack) -> CompiledStep:
        """The function that commits a delta of each source, as the version that it gets last."""
        sources = self.sources
        watch, queue = graph.watch, graph.delivery_queue

        def commit(*given: Any, between: Callable[[], object] | None = None) -> None:
            changes, version = tuple(zip(sources, given, strict=False)), given[-1]
            stepped: list[Stepped] = []
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
        """Empty the inboxes of a walk that was broken off."""
        for _, _, node in self._waiting:
            node.clear()
        self._waiting = []


def _forward(node: Node, out: Sequence[Any], ready: Ready, enqueue: Enqueue) -> None:
    """Hand a delta to the readers of all of it: who reads nothing else is ready for it."""
    readers = node.consumers
    if len(readers) > 1:
        readers = readers[::-1]  # the first is the last to be ready
    for reader, port in readers:
        if len(reader.inputs) == 1:
            ready.append((reader, (out,)))
        else:
            send(((reader, port),), out, enqueue)


def _route(node: Node, keyed: Sequence[Any], ready: Ready) -> None:
    """Forward the rows of a delta of an index to the readers that want their keys."""
    find = node.routes.find
    if len(keyed) == 1:
        found = find(keyed[0][0])
        if len(found) > 1:
            found = sorted(found, key=_order, reverse=True)  # the first is the last to be ready
        for reader in found:
            ready.append((reader, (keyed,)))
        return
    wanted: dict[Node, list[Any]] = {}
    for pair in keyed:
        for reader in find(pair[0]):
            wanted.setdefault(reader, []).append(pair)
    for reader in sorted(wanted, key=_order, reverse=True):
        ready.append((reader, (wanted[reader],)))


def _order(node: Node) -> float:
    return node.order


def _order_of(of: LeafDelta) -> float:
    return of[0].order
