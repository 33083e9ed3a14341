"""Snapshot of all that a node has emitted so far, read in pieces that are then freed.

    table (rows) --> where --> snapshot: references to the rows that pass
                                 piece, piece, piece, ...          each is freed once it is used
    table (rows) --> snapshot: references to the rows
                       piece --> select --> piece, ...             computed as it is read

Later commits do not change a snapshot. If the node computes new rows by a chain without state, the
snapshot holds the rows of the table, and each piece is computed when it is read. The caller reads
pieces inside the lock, since that calls user code. So the computed rows never exist all together.

State:  8 bytes per row that is in the process anyway; 16 where weights are not all 1.
Cost:   O(rows) to create, O(piece) to read a piece.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

from optimizer import plan
from reactive.engine.collections.zset import Pair, Pairs, Row, UniformDelta
from reactive.engine.dataflow.discrimination import view_rows_of

if TYPE_CHECKING:
    from reactive.engine.dataflow.graph import Graph
    from reactive.engine.dataflow.node import Node

PIECE = 20_000
"""Rows of a piece."""


class Snapshot:
    """Rows with weights.

    Parameters
    ----------
    through: computes the rows of a piece when it is read.

    >>> snapshot = Snapshot([[("a", 1), ("b", 2)], [("c", 1)]])
    >>> snapshot.piece(), len(snapshot)
    ([('a', 1), ('b', 2), ('c', 1)], 3)
    >>> snapshot.forget()
    >>> len(snapshot)
    0
    """

    __slots__ = ("_rows", "_through", "_weights")

    def __init__(
        self, pieces: Iterable[Sequence[Pair]], through: Callable[[Pairs], Pairs] | None = None
    ) -> None:
        self._through = through
        self._rows: list[Row] = []
        self._weights: array[int] | None = None
        for piece in pieces:
            self._take(piece)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def is_made(self) -> bool:
        """True if pieces are computed when read, which calls user code that may raise."""
        return self._through is not None

    def piece(self) -> Pairs:
        """Return the next rows; `forget` frees them."""
        weights = repeat(1) if self._weights is None else self._weights[-PIECE:]
        piece = list(zip(self._rows[-PIECE:], weights, strict=False))
        return piece if self._through is None else self._through(piece)

    def forget(self) -> None:
        """Free the rows that `piece` returned."""
        del self._rows[-PIECE:]
        if self._weights is not None:
            del self._weights[-PIECE:]

    def _take(self, piece: Sequence[Pair]) -> None:
        """Append a piece to the snapshot; a first list of rows is kept and not copied."""
        if isinstance(piece, UniformDelta) and piece.weight == 1:
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


def begin_remote_node(graph: Graph, node: Node) -> None:
    """Give a node that works elsewhere the contents of its inputs. Call it inside the lock."""
    with graph.running(node):
        node.operator.begin([_take_snapshot(graph, source) for source in node.inputs])


def _take_snapshot(graph: Graph, source: Node) -> Snapshot:
    """Return a snapshot of what `source` has emitted, read from the nearest node with rows."""
    chain: list[Node] = []
    base = source
    while base.contents is None and len(base.inputs) == 1 and view_rows_of(base) is None:
        chain.insert(0, base)
        base = base.inputs[0]
    held = graph.contents(base)
    is_new = not base.inputs and isinstance(held, UniformDelta)  # a table makes a new list
    starts = range(0, len(held), PIECE)
    pieces = [held] if is_new else (held[start : start + PIECE] for start in starts)
    if not chain:
        return Snapshot(pieces)
    through = partial(_step_through, graph, chain)
    if any(map(_makes_rows, chain)):
        return Snapshot(pieces, through)
    return Snapshot(through(held[start : start + PIECE]) for start in starts)


def _makes_rows(node: Node) -> bool:
    """Return True if the node emits other rows than it reads."""
    read, made = node.inputs[0].plan, node.plan
    while isinstance(made, plan.Where) and made != read:
        made = made.input
    return made is None or made != read


def _step_through(graph: Graph, chain: list[Node], delta: Sequence[Any]) -> Sequence[Any]:
    """Return the delta after all linear nodes of a chain."""
    for node in chain:
        with graph.running(node):
            delta = node.run(delta)
    return delta
