"""Readers of which many are not reached by a commit: what they captured is looked at in turns.

    looked at now: 1, 2, 3, 4   at the next commit: 5, 6, 7, 8   ...   and 1 again

A variable that nobody else has any more stays as it is: a reader that captured no others is not
looked at again.

State:  a reference per reader.
Cost:   O(1) per turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import Node

LOOKED_AT = 4
"""Readers of a node whose captured variables are looked at in a commit."""


class Turns:
    """The readers of a node, in the order in which they are looked at."""

    __slots__ = ("_waiting",)

    def __init__(self, readers: Iterable[Node] = ()) -> None:
        self._waiting: deque[Node] | None = None
        """None of those that have none, as most nodes do."""
        for reader in readers:
            self.add(reader)

    def __len__(self) -> int:
        return 0 if self._waiting is None else len(self._waiting)

    def add(self, reader: Node) -> None:
        """A reader has its turn after all others, if it captured anything."""
        if reader.guards:
            if self._waiting is None:
                self._waiting = deque()
            self._waiting.append(reader)

    def look(self, check: Callable[[Node], None]) -> None:
        """Look at what those captured whose turn it is. One that was dropped guards nothing."""
        waiting = self._waiting
        if waiting is None:
            return
        for _ in range(min(LOOKED_AT, len(waiting))):
            reader = waiting.popleft()
            if reader.guards:
                check(reader)
                reader.guards = tuple([guard for guard in reader.guards if not guard[1].is_final])
            if reader.guards:
                waiting.append(reader)

    def drop_idle(self) -> None:
        """Forget readers that guard nothing."""
        self._waiting = deque(reader for reader in self._waiting or () if reader.guards)
