"""The readers of a node that does not send each delta to all of them.

    by a field     readers that compare a field of the row with constants    `discrimination.py`
    by a limit     readers that compare a number of the row with a limit     `threshold_readers.py`
    by a key       joins whose other side has the key of the row             `key_readers.py`
    everything     all others

State:  what these keep.
Cost:   per row, of the readers found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reactive.engine.dataflow.discrimination import DiscriminationNetwork, Enqueue
from reactive.engine.dataflow.key_readers import KeyReaders, SideChange, key_reader_of
from reactive.engine.dataflow.node import Turns

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import Node
    from reactive.engine.dataflow.threshold_readers import ThresholdReaders


class Way:
    """The readers of a node, and the joins whose other side it is."""

    __slots__ = (
        "_asked_by",
        "_by_key",
        "_by_limit",
        "_keys",
        "_network",
        "_node",
        "everything",
        "turns",
    )

    def __init__(
        self,
        node: Node,
        network: DiscriminationNetwork | None,
        by_key: KeyReaders | None,
        by_limit: Sequence[ThresholdReaders],
        asked_by: Sequence[KeyReaders],
    ) -> None:
        self._node = node
        self._by_limit = by_limit
        self._network = network
        self._by_key = by_key
        self._keys = key_reader_of(node)
        self._asked_by = asked_by
        """The readers by key of other nodes that ask this one for its keys."""
        found = {
            *(() if network is None else network.found),
            *(() if by_key is None else by_key.readers),
            *(reader for readers in by_limit for reader in readers.readers),
        }
        self.everything = [reader for reader in node.consumers if reader not in found]
        """The readers that get every row."""
        self.turns = Turns(reader[0] for reader in node.consumers if reader in found)
        """Turns of the readers that may get no rows."""

    def send(self, delta: Sequence[Any], enqueue: Enqueue) -> None:
        """Send the readers that are looked up the rows that they need."""
        if self._network is not None:
            self._network.send(delta, enqueue)
        if self._by_key is not None:
            self._by_key.send(delta, enqueue)
        for readers in self._by_limit:
            readers.send(delta, enqueue)

    def side_change(self, delta: Sequence[Any]) -> SideChange | None:
        """Return the step that tells readers by key of a delta of this node; None if none ask."""
        if not self._asked_by:
            return None
        return SideChange(self._asked_by, self._node, self._keys(delta)).begin()
