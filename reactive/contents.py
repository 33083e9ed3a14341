"""The leaves of the graph: what a view holds, and what leaves towards subscribers.

A leaf steps like every operator. After the commit its `changes` are the net delta of what it
stands for, and its `feed` hands them to whoever subscribed; then it is told to `forget` them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from reactive.operators.order_by import Edit, OrderBy
from reactive.zset import Batch, Pair, Pairs, Row, consolidate, insert_new, integrate, negate

Key = Callable[[Row], Any]
MANY = 16
"""Rows of a delta from which on it is worth a try that all are new."""
NONE_BEFORE: Mapping[Any, Row | None] = MappingProxyType({})


class Bag:
    """The rows of a view with their weights.

    >>> bag = Bag()
    >>> bag.step([("a", 2), ("b", 1), ("b", -1)])
    >>> len(bag), list(bag.items())
    (2, [('a', 2)])
    """

    __slots__ = ("_last", "_weights", "changes", "size", "touched")
    edits: tuple[Edit, ...] = ()

    def __init__(self) -> None:
        self._weights: dict[Row, int] = {}
        self._last: Pairs = ()
        self.changes: Pairs = ()
        self.size = 0
        self.touched = 0

    def step(self, delta: Pairs) -> None:
        self.touched += len(delta)
        if len(delta) > MANY and insert_new(self._weights, delta):
            self.changes = self._last = changes = delta
        else:
            changes = self._integrate(delta)
        self.size += sum(weight for _, weight in changes)

    def _integrate(self, delta: Pairs) -> Pairs:
        self.changes = self._last = changes = consolidate(delta)
        try:
            integrate(self._weights, changes)
        except BaseException:
            self._last = ()
            raise
        return changes

    def undo(self) -> None:
        integrate(self._weights, negate(self._last))
        self.size -= sum(weight for _, weight in self._last)
        self.changes = self._last = ()

    def commit(self) -> None:
        self._last = ()

    def forget(self) -> None:
        self.changes = ()

    def __len__(self) -> int:
        return self.size

    def count(self, row: Row) -> int:
        return self._weights.get(row, 0)

    def items(self) -> ItemsView[Row, int]:
        return self._weights.items()

    def footprint(self) -> tuple[int, int]:
        return len(self._weights), sys.getsizeof(self._weights)


class Groups:
    """The rows of a grouped view by their group: one row of weight 1 each."""

    __slots__ = ("_before", "changes", "rows", "touched")
    edits: tuple[Edit, ...] = ()

    def __init__(self) -> None:
        self.rows: dict[Any, Row] = {}
        self._before: Mapping[Any, Row | None] = NONE_BEFORE
        self.changes: Pairs = ()
        self.touched = 0

    def step(self, delta: Pairs) -> None:
        """An aggregate gives out different rows, of a group the old one before the new one."""
        self.touched += len(delta)
        self.changes = delta
        rows = self.rows
        before: dict[Any, Row | None] = {}
        self._before = before
        for row, weight in delta:
            key = row[0]
            if key not in before:
                before[key] = rows.get(key)
            if weight > 0:
                rows[key] = row
            else:
                rows.pop(key, None)

    def undo(self) -> None:
        for key, row in self._before.items():
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row
        self.changes, self._before = (), NONE_BEFORE

    def commit(self) -> None:
        self._before = NONE_BEFORE

    def forget(self) -> None:
        self.changes = ()

    def __len__(self) -> int:
        return len(self.rows)

    def count(self, row: Row) -> int:
        return int(isinstance(row, tuple) and bool(row) and self.rows.get(row[0]) == row)

    def items(self) -> Collection[Pair]:
        return [(row, 1) for row in self.rows.values()]

    def footprint(self) -> tuple[int, int]:
        return len(self.rows), sys.getsizeof(self.rows)


class Sequence:
    """The rows of an ordered view, in order. The operator below holds them."""

    __slots__ = ("_order", "changes", "touched")

    def __init__(self, order: OrderBy) -> None:
        self._order = order
        self.changes: Pairs = ()
        self.touched = 0

    @property
    def edits(self) -> Iterable[Edit]:
        return self._order.edits

    def step(self, delta: Pairs) -> None:
        self.touched += len(delta)
        self.changes = delta

    def undo(self) -> None:
        self.changes = ()

    def commit(self) -> None: ...

    def forget(self) -> None:
        self.changes = ()
        _forget_edits(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def count(self, row: Row) -> int:
        return sum(1 for other in self.rows() if other == row)

    def items(self) -> list[Pair]:
        return consolidate((row, 1) for row in self.rows())

    def rows(self) -> Iterator[Row]:
        return self._order.sequence()

    def at(self, position: int) -> Row:
        return self._order.at(position)

    def footprint(self) -> tuple[int, int]:
        return 0, 0


class Members:
    """The rows of a recursive relation, each once. The operator below holds them.

    >>> members = Members({"a": 2, "b": 3})
    >>> len(members), list(members.items())
    (2, [('a', 1), ('b', 1)])
    """

    __slots__ = ("_rows", "changes", "touched")
    edits: tuple[Edit, ...] = ()

    def __init__(self, rows: Mapping[Row, object]) -> None:
        self._rows = rows
        self.changes: Pairs = ()
        self.touched = 0

    def step(self, delta: Pairs) -> None:
        self.touched += len(delta)
        self.changes = delta

    def undo(self) -> None:
        self.changes = ()

    def commit(self) -> None: ...

    def forget(self) -> None:
        self.changes = ()

    def __len__(self) -> int:
        return len(self._rows)

    def count(self, row: Row) -> int:
        return int(row in self._rows)

    def items(self) -> Collection[Pair]:
        return Batch(list(self._rows), 1)

    def footprint(self) -> tuple[int, int]:
        return 0, 0


class Tap:
    """Changes only: the leaf of a subscription to a relation that nobody reads."""

    __slots__ = ("_order", "changes", "touched")

    def __init__(self, order: OrderBy | None = None) -> None:
        self._order = order
        self.changes: Pairs = ()
        self.touched = 0

    @property
    def edits(self) -> Iterable[Edit]:
        return () if self._order is None else self._order.edits

    def step(self, delta: Pairs) -> None:
        self.touched += len(delta)
        self.changes = consolidate(delta)

    def undo(self) -> None:
        self.changes = ()

    def commit(self) -> None: ...

    def forget(self) -> None:
        self.changes = ()
        _forget_edits(self._order)

    def footprint(self) -> tuple[int, int]:
        return 0, 0


def _forget_edits(order: OrderBy | None) -> None:
    if order is not None:
        order.edits = []
