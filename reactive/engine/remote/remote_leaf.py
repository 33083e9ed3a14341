"""The leaf of a view whose rows are elsewhere: it asks for them when they are read.

State:  how many rows there are.
Cost:   of a commit none; of a lookup that of reading one bucket; of all rows, that of reading all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from operator import itemgetter
from typing import Any

from reactive.engine.collections.edits import Edit
from reactive.engine.collections.zset import Pair, Pairs, Row, canonical, consolidate, repeat
from reactive.engine.remote.remote_operator import RemoteOperator


class RemoteLeaf:
    """The rows of a view, which the operator below keeps elsewhere.

    `size` is how many there are, if that is known; otherwise they are counted when asked for. `key`
    gives that of the group of a row.
    """

    __slots__ = ("_key", "_last", "_operator", "_size", "touched")
    edits: tuple[Edit, ...] = ()

    def __init__(
        self,
        operator: RemoteOperator,
        size: int | None = None,
        key: Callable[[Row], Any] = itemgetter(0),
    ) -> None:
        self._operator = operator
        self._key = key
        self._size = size
        self._last = 0
        self.touched = 0

    def step(self, delta: Pairs) -> Pairs:
        self.touched += len(delta)
        changes = consolidate(delta)
        self._last = sum(weight for _, weight in changes)
        if self._size is not None:
            self._size += self._last
        return changes

    def undo(self) -> None:
        if self._size is not None:
            self._size -= self._last
        self._last = 0

    def commit(self) -> None:
        self._last = 0

    def __len__(self) -> int:
        if self._size is None:
            self._size = self._operator.size()
        return self._size

    def outdated(self) -> None:
        """The rows have changed, and it is not told which."""
        self._size = None

    def count(self, row: Row) -> int:
        return self._operator.count(row)

    def items(self) -> Collection[Pair]:
        return list(self._operator.contents())

    def rows(self) -> list[Row]:
        return list(repeat(self._operator.contents()))

    def find(self, key: Any) -> Row | None:
        """The row of a group, or None."""
        hash(key)
        of = self._operator
        near: Iterable[Pair] = of.at(key) if of.fragment.is_by_group else of.contents()
        for row, _ in near:
            own = self._key(row)
            if own is key or own == key:
                return row
        return None

    def keys(self) -> list[Any]:
        return [canonical(self._key(row)) for row, _ in self._operator.contents()]

    def footprint(self) -> tuple[int, int]:
        return 0, 0
