"""The leaf of a view whose rows are elsewhere: it asks for them when they are read.

State:  how many rows there are.
Cost:   of a commit none; of a lookup that of reading one bucket; of all rows, that of reading all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from reactive.operators.order_by import Edit
from reactive.remote import RemoteOperator
from reactive.zset import Pair, Pairs, Row, canonical, consolidate


class Away:
    """The rows of a view, which the operator below keeps elsewhere.

    `size` is how many there are, if that is known; otherwise they are counted when asked for.
    """

    __slots__ = ("_last", "_operator", "_size", "changes", "touched")
    edits: tuple[Edit, ...] = ()

    def __init__(self, operator: RemoteOperator, size: int | None = None) -> None:
        self._operator = operator
        self._size = size
        self._last = 0
        self.changes: Pairs = ()
        self.touched = 0

    def step(self, delta: Pairs) -> None:
        self.touched += len(delta)
        self.changes = consolidate(delta)
        self._last = sum(weight for _, weight in self.changes)
        if self._size is not None:
            self._size += self._last

    def undo(self) -> None:
        if self._size is not None:
            self._size -= self._last
        self.changes, self._last = (), 0

    def commit(self) -> None:
        self._last = 0

    def forget(self) -> None:
        self.changes = ()

    def __len__(self) -> int:
        if self._size is None:
            self._size = sum(weight for _, weight in self._operator.contents())
        return self._size

    def count(self, row: Row) -> int:
        return self._operator.count(row)

    def items(self) -> Collection[Pair]:
        return list(self._operator.contents())

    @property
    def rows(self) -> Mapping[Any, Row]:
        """The rows by group, of an aggregate."""
        return _ByGroup(self._operator, self)

    def footprint(self) -> tuple[int, int]:
        return 0, 0


class _ByGroup(Mapping[Any, Row]):
    """Rows of an aggregate by their first value."""

    def __init__(self, operator: RemoteOperator, leaf: Away) -> None:
        self._operator = operator
        self._leaf = leaf

    def __getitem__(self, key: Any) -> Row:
        hash(key)
        for row, _ in self._near(key):
            if row[0] is key or row[0] == key:
                return row
        raise KeyError(key)

    def _near(self, key: Any) -> Iterable[Pair]:
        of = self._operator
        return of.at(key) if of.part.is_by_group else of.contents()

    def __iter__(self) -> Iterator[Any]:
        return (canonical(row[0]) for row, _ in self._operator.contents())

    def __len__(self) -> int:
        return len(self._leaf)
