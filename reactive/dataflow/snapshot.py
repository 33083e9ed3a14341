"""All that a node has emitted so far, as it was, to be given out a piece at a time and forgotten.

    table (rows) --> where --> snapshot: references to the rows that pass
                                 piece, piece, piece, ...          each is forgotten once it is used

Commits that come later do not change it. What a chain of nodes without state makes of a table is
made in pieces too, so that nothing but the references is ever there for all rows.

State:  8 bytes per row that is in the process anyway; 16 where weights are not all 1.
Cost:   O(rows) to make, O(piece) to give a piece out.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from reactive.collections.zset import Batch, Pair, Row
from reactive.dataflow.held import at_hand

if TYPE_CHECKING:
    from reactive.dataflow.graph import Graph
    from reactive.dataflow.node import Node

PIECE = 20_000
"""Rows that are worked on at a time."""


class Snapshot:
    """Rows with weights.

    >>> snapshot = Snapshot([[("a", 1), ("b", 2)], [("c", 1)]])
    >>> snapshot.piece(), len(snapshot)
    ([('a', 1), ('b', 2), ('c', 1)], 3)
    >>> snapshot.forget()
    >>> len(snapshot)
    0
    """

    __slots__ = ("_rows", "_weights")

    def __init__(self, pieces: Iterable[Sequence[Pair]]) -> None:
        self._rows: list[Row] = []
        self._weights: array[int] | None = None
        for piece in pieces:
            self._take(piece)

    def __len__(self) -> int:
        return len(self._rows)

    def pairs(self) -> list[Pair]:
        """What has not been forgotten."""
        return self._last(len(self._rows))

    def piece(self) -> list[Pair]:
        """Some of what has not been forgotten."""
        return self._last(PIECE)

    def _last(self, count: int) -> list[Pair]:
        weights = repeat(1) if self._weights is None else self._weights[-count:]
        return list(zip(self._rows[-count:], weights, strict=False))

    def forget(self) -> None:
        """Forget what `piece` gave."""
        del self._rows[-PIECE:]
        if self._weights is not None:
            del self._weights[-PIECE:]

    def _take(self, piece: Sequence[Pair]) -> None:
        if isinstance(piece, Batch) and piece.weight == 1:
            rows, weights = piece.rows, None
        else:
            rows, found = [row for row, _ in piece], [weight for _, weight in piece]
            weights = None if found.count(1) == len(found) else found
        if weights is not None and self._weights is None:
            self._weights = array("q", [1]) * len(self._rows)
        if not self._rows and isinstance(rows, list):
            self._rows = rows
        else:
            self._rows.extend(rows)
        if self._weights is not None:
            self._weights.extend(weights or repeat(1, len(rows)))


def begin(graph: Graph, node: Node) -> None:
    """Give a node whose work is elsewhere what its inputs hold. Inside the lock."""
    with graph.running(node):
        node.operator.begin([_taken(graph, source) for source in node.inputs])


def _taken(graph: Graph, source: Node) -> Snapshot:
    chain: list[Node] = []
    base = source
    while base.contents is None and len(base.inputs) == 1 and at_hand(base) is None:
        chain.insert(0, base)
        base = base.inputs[0]
    held = graph.contents(base)
    if not chain and not base.inputs and isinstance(held, Batch):
        return Snapshot([held])  # a table makes it anew each time
    pieces = (held[start : start + PIECE] for start in range(0, len(held), PIECE))
    return Snapshot(_through(graph, chain, piece) for piece in pieces)


def _through(graph: Graph, chain: list[Node], delta: Sequence[Any]) -> Sequence[Any]:
    for node in chain:
        with graph.running(node):
            delta = node.run(delta)
    return delta
