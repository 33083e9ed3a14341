"""Parts of a recursion evaluated from scratch: each computes the change of its rows per round.

    InputRows   rows that the recursion sets
    Constant    rows present from the first round on

The parts of nodes are in `changes.py`, `joined_changes.py` and `grouped_changes.py`.
"""

from __future__ import annotations

from typing import Protocol

from reactive.engine.reference.bags import Bag, make_bag


class NodeChange(Protocol):
    """The change of a node in this round, computed from the changes of its inputs."""

    change: Bag

    def step(self) -> None:
        """Compute the change of the next round."""
        ...


class InputRows:
    """Rows that the recursion sets."""

    def __init__(self) -> None:
        self.change = Bag()
        self.following = Bag()

    def step(self) -> None:
        self.change, self.following = self.following, Bag()


class Constant:
    """Rows present from the first round on."""

    def __init__(self, rows: Bag) -> None:
        self.change = Bag()
        self._following = make_bag(rows)

    def step(self) -> None:
        self.change, self._following = self._following, Bag()
