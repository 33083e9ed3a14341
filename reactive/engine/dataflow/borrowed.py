"""The leaves of the graph that hold no rows: they read the rows of the operator below, or none.

Views of an order, a recursion, a distinct, a difference or an aggregate show just what their
operator holds, so that there is no second copy. It is read between commits (`Gate.read`).

State:  none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, overload

from reactive.engine.collections.edits import Edit
from reactive.engine.collections.zset import Batch, Pair, Pairs, Row, consolidate
from reactive.engine.operators import order_by

_shown = itemgetter(-1)


class Borrowed:
    """What these leaves share: what the operator below emits is what they stand for."""

    __slots__ = ()
    edits: Iterable[Edit] = ()
    touched = 0

    def step(self, delta: Pairs) -> Pairs:
        return delta

    def footprint(self) -> tuple[int, int]:
        return 0, 0


class BorrowedRows(Borrowed):
    """Rows that are there once each: the keys of a mapping.

    >>> members = BorrowedRows({"a": 2, "b": 3})
    >>> len(members), list(members.items())
    (2, [('a', 1), ('b', 1)])
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: Mapping[Row, object]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def count(self, row: Row) -> int:
        return int(row in self._rows)

    def items(self) -> Collection[Pair]:
        return Batch(list(self._rows), 1)

    def rows(self) -> list[Row]:
        return list(self._rows)


class BorrowedGroups(Borrowed):
    """The rows of an aggregate by their group, each the last part of a list.

    All groups show one, as they do while no row has a negative weight.
    """

    __slots__ = ("_groups",)

    def __init__(self, groups: Mapping[Any, list[Any]]) -> None:
        self._groups = groups

    def __len__(self) -> int:
        return len(self._groups)

    def count(self, row: Row) -> int:
        if not isinstance(row, tuple) or not row:
            return 0
        group = self._groups.get(row[0])
        return int(group is not None and group[-1] == row)

    def items(self) -> Collection[Pair]:
        return Batch(self.rows(), 1)

    def rows(self) -> list[Row]:
        return list(map(_shown, self._groups.values()))

    def find(self, key: Any) -> Row | None:
        """The row of a group, or None."""
        group = self._groups.get(key)
        return None if group is None else group[-1]

    def keys(self) -> list[Any]:
        return list(self._groups)


class BorrowedOrder(Borrowed):
    """The rows of an ordered view, in order. The operator below holds them."""

    __slots__ = ("order",)

    def __init__(self, order: order_by.OrderBy) -> None:
        self.order = order

    def step(self, delta: Pairs) -> Pairs:
        return _Net(delta) if delta.__class__ is Batch or self.order.shows_parts else delta

    @property
    def edits(self) -> Iterable[Edit]:  # type: ignore[override]
        return self.order.edits

    def forget(self) -> None:
        """Everybody has been told of the edits."""
        self.order.edits = []

    def __len__(self) -> int:
        return len(self.order)

    def count(self, row: Row) -> int:
        return self.rows().count(row)

    def items(self) -> list[Pair]:
        return consolidate([(row, 1) for row in self.rows()])

    def rows(self) -> list[Row]:
        return self.order.sequence()

    def at(self, position: int) -> Row:
        return self.order.at(position)

    def between(self, start: int, stop: int) -> list[Row]:
        """The rows from a position up to another."""
        return self.order.between(start, stop)


class ChangesOnly(Borrowed):
    """Changes only: the leaf of a subscription to a relation that nobody reads."""

    __slots__ = ("order",)

    def __init__(self, order: order_by.OrderBy | None = None) -> None:
        self.order = order

    @property
    def edits(self) -> Iterable[Edit]:  # type: ignore[override]
        return () if self.order is None else self.order.edits

    def forget(self) -> None:
        """Everybody has been told of the edits."""
        if self.order is not None:
            self.order.edits = []

    def step(self, delta: Pairs) -> Pairs:
        if hasattr(delta, "is_net"):
            return delta
        moves = self.order is not None and self.order.shows_parts
        return _Net(delta) if moves else consolidate(delta)


class _Net(Sequence[Pair]):
    """A delta, consolidated once somebody looks: a load of which nobody is told hashes no row. It
    is there also where rows have only moved."""

    __slots__ = ("_delta", "_pairs")

    def __init__(self, delta: Pairs) -> None:
        self._delta = delta
        self._pairs: Pairs | None = None

    def __bool__(self) -> bool:
        return bool(self._delta)

    def __len__(self) -> int:
        return len(self._net())

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._net())

    @overload
    def __getitem__(self, place: int) -> Pair: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Pair]: ...
    def __getitem__(self, place: int | slice) -> Pair | Sequence[Pair]:
        return self._net()[place]

    def _net(self) -> Pairs:
        if self._pairs is None:
            self._pairs = consolidate(self._delta)
        return self._pairs
