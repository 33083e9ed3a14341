"""The nodes of a graph that do not send each delta to all readers, and how they find the readers.

It holds for one set of nodes, and is made anew when a node comes or goes.

State:  a `Way` per node with such readers, made at the first commit that reaches the node.
Cost:   O(readers) per node, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimizer.plans.field_values import path_text
from reactive.engine.dataflow import discrimination
from reactive.engine.dataflow.node import NOWHERE

if TYPE_CHECKING:
    from reactive.engine.dataflow.key_readers import KeyReaders
    from reactive.engine.dataflow.node import Node
    from reactive.engine.dataflow.threshold_readers import ThresholdReaders
    from reactive.engine.dataflow.way import Way


class Routing(dict["Node", "Way | None"]):
    """The ways of nodes, made on use; None for a node that sends each delta to all readers."""

    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        super().__init__()
        self._by_key: dict[Node, KeyReaders | None] = {}

    def __missing__(self, node: Node) -> Way | None:
        made = None
        is_read_by_many = len(node.consumers) >= discrimination.WORTHWHILE
        if is_read_by_many or [reader for reader, _ in node.consumers if reader.partnered]:
            made = self._make(node)
        self[node] = made
        return made

    def _make(self, node: Node) -> Way | None:
        """Return the way of a node; None if no readers are found by fields or keys, nor ask it."""
        network, by_key = discrimination.find_network(node.consumers), self._readers_by_key(node)
        asked_by = self._readers_that_ask(node)
        by_limit = self._readers_by_limit(node)
        if network is None and by_key is None and not by_limit and not asked_by:
            return None
        from reactive.engine.dataflow.way import Way

        return Way(node, network, by_key, by_limit, asked_by)

    def _readers_by_limit(self, node: Node) -> list[ThresholdReaders]:
        """Return the readers of a node that are found by a limit."""
        if len(node.consumers) < discrimination.WORTHWHILE:
            return []
        from reactive.engine.dataflow.threshold_readers import find_threshold_readers

        return find_threshold_readers(node)

    def concerns(self, node: Node) -> bool:
        """Return True if the ways depend on the readers of a node."""
        return self.get(node) is not None or self._by_key.get(node) is not None

    def _readers_by_key(self, node: Node) -> KeyReaders | None:
        """Return the readers of a node that are found by key: those it had, as of now."""
        if node not in self._by_key:
            if len(node.consumers) < discrimination.WORTHWHILE:
                node.by_key = None
            else:
                from reactive.engine.dataflow.key_readers import renew_key_readers

                renew_key_readers(node)
            self._by_key[node] = node.by_key
        return self._by_key[node]

    def _readers_that_ask(self, node: Node) -> list[KeyReaders]:
        """Return the readers by key of other nodes that ask this one."""
        found: dict[KeyReaders, None] = {}
        for reader, port in node.consumers:
            if reader.partner_of(1 - port) is node:
                by_key = self._readers_by_key(reader.inputs[1 - port])
                if by_key is not None:
                    found[by_key] = None
        return list(found)


def describe_route(node: Node) -> str | None:
    """Return how a row finds a node among the readers of an input; None if it gets all rows."""
    if node.at is not NOWHERE:
        return f"1 of {len(node.inputs[0].routes)} readers, found by the key of a row"
    for port, source in enumerate(node.inputs):
        network = discrimination.find_network(source.consumers)
        group = None if network is None else network.group_of(node)
        if group is not None:
            return f"1 of {group[1]} readers, found by {path_text(group[0])}"
        if source.by_key is not None and node.partner_of(port) is not None:
            joins = [each for each, at in source.consumers if each.partner_of(at) is not None]
            return f"1 of {len(joins)} joins, found by the key of a row"
    return None
