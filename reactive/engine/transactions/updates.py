"""Which rows of tables were replaced in a commit, for those who are told of updates.

    update(a, b), update(b, c)              a -> c
    keyed table                             also what else has come with the key of what went

It is noted only of tables from which updates lead to a subscriber (`Node.tracers`), and looked at
only when the commit reaches one, or one asks.

State:  the updates of the commit that is under way.
Cost:   of an update that of appending to a list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from reactive.engine.collections.zset import Batch, Pair, Row
from reactive.engine.dataflow.moves import Chains, Move, Moved, Moves, by_key, standing

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import Node
    from reactive.engine.transactions.base import Base

Change = tuple["Base", Sequence[Pair]]
NONE: Sequence[Move] = ()


class Updates:
    """Notes updates until they have been committed."""

    __slots__ = ("_noted", "_version")

    def __init__(self) -> None:
        self._noted: dict[Node, list[Move]] = {}  # by the source that a table feeds
        self._version = 0

    def note(self, table: Base, changes: Sequence[Pair], version: int) -> None:
        """A row was replaced in the commit that is to be this version."""
        if version != self._version:
            self._noted, self._version = {}, version
        (old, _), (new, _) = changes
        self._noted.setdefault(table._node, []).append((old, new))

    def move_to(self, version: int) -> None:
        """Count what was noted to the commit that is to be another version."""
        if self._noted:
            self._version = version

    def forget(self) -> None:
        """They have been taken back."""
        self._noted = {}

    def of(self, changes: Sequence[Change], version: int) -> Moved | None:
        """What finds the moves of each table, if there may be any that somebody is told of."""
        found: dict[Node, Moves] = {}
        is_noted = version == self._version
        for table, delta in changes:
            node, keyed = table._node, table._keyed
            if not node.tracers or len(delta) < 2 or type(delta) is Batch:
                continue
            noted = self._noted.get(node, NONE) if is_noted else NONE
            if noted or keyed is not None:
                found[node] = _Moves(delta, noted, None if keyed is None else keyed.key)
        return found or None


class _Moves:
    """Finds the moves in a delta of a table, once."""

    __slots__ = ("_delta", "_found", "_key", "_noted")

    def __init__(
        self, delta: Sequence[Pair], noted: Sequence[Move], key: Callable[[Row], Any] | None
    ) -> None:
        self._delta = delta
        self._noted = noted
        self._key = key
        self._found: Sequence[Move] | None = None

    def __call__(self) -> Sequence[Move]:
        if self._found is None:
            self._found = self._find()
        return self._found

    def _find(self) -> Sequence[Move]:
        moves = self._noted if len(self._noted) < 2 else Chains(self._noted).moves()
        found, rest = standing(moves, self._delta)
        return found if self._key is None else [*found, *by_key(self._key, rest)[0]]
