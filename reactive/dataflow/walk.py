"""Steps what a commit reaches, found while it goes: for graphs of many nodes, few of them reached.

    waiting = heap of (order, node)         a node steps after all that it reads
    while waiting:
        node = pop;  out = node.step(...);  its readers wait too

Readers of an index that want the rows of one key are found by it (`Node.routes`), others by a
field (`discrimination.py`), so that a thousand views of a thousand values cost a commit no more
than those whose rows change.

What such readers captured is looked at in turns, `LOOKED_AT` of them at each commit.

A commit of one source is one function (`Walk.commit`), as that of a schedule is: it makes no
objects for phases that nothing comes between.

State:  the inboxes of the nodes while a walk is under way.
Cost:   O(nodes reached, times the logarithm of how many wait).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Any

from reactive.dataflow.discrimination import DiscriminationNetwork, Enqueue, send
from reactive.dataflow.step import Stepped, deliveries

if TYPE_CHECKING:
    from reactive.dataflow.compiled_step import CompiledStep
    from reactive.dataflow.graph import Graph
    from reactive.dataflow.node import LeafDelta, Node
    from reactive.dataflow.schedule import Check, Fed

TakeBack = Callable[[BaseException, Sequence[Stepped]], None]

LOOKED_AT = 4
"""Readers of a node whose captured variables are looked at in a commit."""
Waiting = list[tuple[int, "Node"]]


class Walk:
    """What some sources reach. It takes the place of a `Schedule`."""

    __slots__ = ("_guarded", "_networks", "_turns", "_waiting", "compiled_step", "sources")
    is_in_use = True
    """Its commits are one function from the first one on: nothing is to be generated."""

    def __init__(self, networks: Mapping[Node, DiscriminationNetwork]) -> None:
        self._networks = networks
        self.sources = tuple(networks)
        self.compiled_step: CompiledStep | None = None
        """What takes its place."""
        self._guarded = {
            s: [n for n, _ in s.consumers if n.constant_tests and n.guards] for s in networks
        }
        self._turns: dict[Node, Iterator[Node]] = {}
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
            heappush(waiting, (node.order, node))

        for source, delta in changes:
            for node in self._in_turn(source, self._guarded[source]):  # also one that gets no row
                check(node)
            self._networks[source].send(delta, enqueue)
        while waiting:
            _, node = waiting[0]
            if node.guards:
                check(node)
            if node.stateful:
                stepped.append(node)
            out = node.step(*node.inbox)
            node.clear()
            heappop(waiting)
            if node.routes:
                self._look(node, check)
                _route(node, out, enqueue)
            if out:
                send(node.consumers, out, enqueue)
                if node.leaf is not None:
                    leaf_deltas.append((node, out))

    def commit(self, graph: Graph, take_back: TakeBack) -> CompiledStep:
        """The function that commits a delta of each source, as the version that it gets last."""
        sources = self.sources
        watch, queue = graph.watch, graph.delivery_queue

        def commit(*given: Any) -> None:
            changes, version = tuple(zip(sources, given, strict=False)), given[-1]
            stepped: list[Stepped] = []
            leaf_deltas: list[LeafDelta] = []
            graph.stepping = True
            try:
                for source in sources:
                    if source.watchers:
                        watch.look(source)
                self.step(changes, stepped, leaf_deltas, watch.check)
                told = deliveries(leaf_deltas, version) if leaf_deltas else ()
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
        for _, node in self._waiting:
            node.clear()
        self._waiting = []

    def _look(self, node: Node, check: Check) -> None:
        """Look at what some of the readers captured that are not reached now."""
        for reader in self._in_turn(node, node.routes.readers()):
            if reader.guards:
                check(reader)

    def _in_turn(self, node: Node, readers: Collection[Node]) -> Collection[Node]:
        """The readers of a node whose turn it is."""
        if len(readers) <= LOOKED_AT:
            return readers
        turn = self._turns.get(node)
        found: list[Node] = []
        if turn is not None:
            with suppress(RuntimeError):  # others have come or gone
                found = list(islice(turn, LOOKED_AT))
        if not found:
            turn = self._turns[node] = iter(readers)
            found = list(islice(turn, LOOKED_AT))
        return found


def _route(node: Node, keyed: Sequence[Any], enqueue: Enqueue) -> None:
    """Forward the rows of a delta of an index to the readers that want their keys."""
    find = node.routes.find
    if len(keyed) == 1:
        ((key, _),) = keyed
        send([(reader, 0) for reader in find(key)], keyed, enqueue)
        return
    found: dict[Node, list[Any]] = {}
    for pair in keyed:
        for reader in find(pair[0]):
            found.setdefault(reader, []).append(pair)
    for reader, delta in found.items():
        send([(reader, 0)], delta, enqueue)
