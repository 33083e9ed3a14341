"""Leaves of the graph: they hold the rows of a view, or read them in the operator below.

A leaf steps like every operator. It emits the net delta of its view, which its `channel` delivers
to the subscribers.

If the operator below holds exactly the rows of the view, as it does for an order, a recursion, a
distinct, a difference or an aggregate, the leaf holds no second copy. It reads the rows there,
between commits (`Gate.read`).

State:  the rows of the view; none in leaves that read the operator below.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, ItemsView, Iterable, Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import Any, ClassVar

from reactive.engine.collections import whole_rows
from reactive.engine.collections.index import NOTHING
from reactive.engine.collections.order import Edit
from reactive.engine.collections.zset import (
    Pair,
    Pairs,
    Row,
    UniformDelta,
    consolidate,
    have_one_hash,
    integrate,
    negate,
    repeat_by_weight,
    repeat_rows,
)
from reactive.engine.operators import order_by
from reactive.engine.operators.operator import DetachedState

Key = Callable[[Row], Any]
MANY = 16
"""Minimum number of rows of a delta to try a bulk insert or delete first."""
NONE_BEFORE: Mapping[Any, Row | None] = MappingProxyType({})


class ViewRows:
    """The rows of a view with their weights.

    >>> bag = ViewRows()
    >>> bag.step([("a", 2), ("b", 1), ("b", -1)])
    [('a', 2)]
    >>> len(bag), list(bag.items())
    (2, [('a', 2)])
    """

    change_cost: ClassVar[float] = 2.5
    emits_changes: ClassVar[bool] = True
    is_detachable: ClassVar[bool] = True
    __slots__ = ("_last", "_weights", "size", "touched")
    edits: tuple[Edit, ...] = ()

    def __init__(self) -> None:
        self._weights: dict[Row, int] = {}
        self._last: Pairs = ()
        self.size = 0
        self.touched = 0

    def step(self, delta: Pairs) -> Pairs:
        """Apply a delta and return its net changes; if it raises, the rows stay as they were."""
        count = len(delta)
        self.touched += count
        self._last = ()
        if count > 2 or delta.__class__ is not list:
            return self._step_many(delta)
        if count == 2:
            (one, _), (other, _) = delta
            try:
                is_one = one is other or one == other
            except Exception as error:
                is_one = have_one_hash(one, other, error)
            if is_one:
                return self._step_many(delta)
        weights, size, done = self._weights, self.size, 0
        try:
            for row, weight in delta:  # as `integrate`, inlined for speed
                total = weights.get(row, 0) + weight
                if total:
                    weights[row] = total
                else:
                    del weights[row]
                size += weight
                done += 1
        except BaseException:
            integrate(weights, negate(delta[:done]))
            raise
        self._last = delta
        self.size = size
        return delta

    def _step_many(self, delta: Pairs) -> Pairs:
        """Apply a delta of any size, and return its net changes."""
        if len(delta) > MANY and whole_rows.change_whole_rows(self._weights, delta):
            changes = delta
        else:
            changes = consolidate(delta)
            integrate(self._weights, changes)
        self._last = changes
        if type(changes) is UniformDelta:
            self.size += changes.weight * len(changes)
        else:
            self.size += sum([weight for _, weight in changes])
        return changes

    def undo(self) -> None:
        """Undo the last step."""
        integrate(self._weights, negate(self._last))
        self.size -= sum(weight for _, weight in self._last)
        self._last = ()

    def commit(self) -> None:
        self._last = ()

    def detach_state(self) -> DetachedState:
        """Empty the view."""
        kept, size = self._weights, self.size
        self._weights, self.size = {}, 0

        def restore() -> None:
            self._weights, self.size, self._last = kept, size, ()

        return DetachedState(restore, lambda: self._changes_since(kept, size))

    def _changes_since(self, kept: dict[Row, int], size: int) -> list[Pair]:
        """Return the difference from the rows `kept`, which were `size` with repeated ones."""
        if size == len(kept) and self.size == len(self._weights):
            return whole_rows.different_keys(kept, self._weights)
        return whole_rows.different_weights(kept, self._weights)

    def __len__(self) -> int:
        return self.size

    def count(self, row: Row) -> int:
        return self._weights.get(row, 0)

    def items(self) -> ItemsView[Row, int]:
        return self._weights.items()

    def rows(self) -> list[Row]:
        return repeat_rows(self._weights, self.size)

    def footprint(self) -> tuple[int, int]:
        return len(self._weights), sys.getsizeof(self._weights)


class SignedBag(ViewRows):
    """The rows of a view over a table that is not stored, which may delete rows it never inserted.

    Such rows have a negative weight, and are absent until their weight is positive.

    >>> bag = SignedBag()
    >>> bag.step([("a", -1), ("b", 2), ("c", 2)])
    [('a', -1), ('b', 2), ('c', 2)]
    >>> len(bag), bag.rows(), bag.count("a")
    (4, ['b', 'b', 'c', 'c'], -1)
    """

    __slots__ = ()

    def __len__(self) -> int:
        return sum(weight for weight in self._weights.values() if weight > 0)

    def rows(self) -> list[Row]:
        return list(repeat_by_weight(self._weights.items()))


class SingleRow:
    """The row of an aggregate without groups, unless a condition above drops it.

    >>> only = SingleRow()
    >>> only.step([(3, 1)]), only.step([(4, 1), (3, -1)])
    ([(3, 1)], [(4, 1), (3, -1)])
    >>> only.rows()
    [4]
    """

    __slots__ = ("_before", "_row", "touched")
    edits: tuple[Edit, ...] = ()

    def __init__(self) -> None:
        self._row: Any = NOTHING
        self._before: Any = NOTHING
        """The row after the last commit, even if an interrupt precedes a step."""
        self.touched = 0

    def step(self, delta: Pairs) -> Pairs:
        """Replace the row as the delta says, and return the net delta."""
        count = len(delta)
        self.touched += count
        if count == 2:
            (one, weight), (row, _) = delta
            try:
                is_one = one is row or one == row
            except Exception as error:
                is_one = have_one_hash(one, row, error)
            if is_one:
                return self._step_many(delta)
            if weight > 0:
                row = one  # the other row is deleted
        elif count == 1:
            ((row, weight),) = delta
            if weight < 0:
                row = NOTHING
        else:
            return self._step_many(delta)
        self._row = row
        return delta

    def _step_many(self, delta: Pairs) -> Pairs:
        """Replace the row as the net delta says, and return the net delta."""
        changes = consolidate(delta)
        if changes:
            self._row = next((row for row, weight in changes if weight > 0), NOTHING)
        return changes

    def undo(self) -> None:
        self._row = self._before

    def commit(self) -> None:
        self._before = self._row

    def __len__(self) -> int:
        return int(self._row is not NOTHING)

    def count(self, row: Row) -> int:
        """Return 1 if it is the row, else 0; raises `TypeError` if it has no hash."""
        hash(row)  # as all views do
        return int(self._row is row or bool(self._row == row))

    def items(self) -> Collection[Pair]:
        return [(row, 1) for row in self.rows()]

    def rows(self) -> list[Row]:
        return [] if self._row is NOTHING else [self._row]

    def footprint(self) -> tuple[int, int]:
        return len(self), 0


class GroupRows:
    """The rows of a grouped view by group: one row of weight 1 each."""

    __slots__ = ("_before", "_rows", "touched")
    edits: tuple[Edit, ...] = ()

    def __init__(self) -> None:
        self._rows: dict[Any, Row] = {}
        self._before: Mapping[Any, Row | None] = NONE_BEFORE
        self.touched = 0

    def step(self, delta: Pairs) -> Pairs:
        """Apply a delta of differing rows, per group the old one and the new one in any order."""
        self.touched += len(delta)
        rows = self._rows
        before: dict[Any, Row | None] = {}
        self._before = before
        for row, weight in delta:
            key = row[0]
            if key not in before:
                before[key] = rows.get(key)
            if weight > 0:
                rows[key] = row
            elif rows.get(key) is before[key]:  # else the new row has taken its place
                rows.pop(key, None)
        return delta

    def undo(self) -> None:
        """Restore the rows that the last step replaced."""
        for key, row in self._before.items():
            if row is None:
                self._rows.pop(key, None)
            else:
                self._rows[key] = row
        self._before = NONE_BEFORE

    def commit(self) -> None:
        self._before = NONE_BEFORE

    def __len__(self) -> int:
        return len(self._rows)

    def count(self, row: Row) -> int:
        return int(isinstance(row, tuple) and bool(row) and self._rows.get(row[0]) == row)

    def items(self) -> Collection[Pair]:
        return [(row, 1) for row in self._rows.values()]

    def rows(self) -> list[Row]:
        return list(self._rows.values())

    def find(self, key: Any) -> Row | None:
        """Return the row of a group, or None."""
        return self._rows.get(key)

    def keys(self) -> list[Any]:
        return list(self._rows)

    def footprint(self) -> tuple[int, int]:
        return len(self._rows), sys.getsizeof(self._rows)


class Records(ViewRows):
    """The rows of a view with their weights, also found by key.

    >>> records = Records(len)
    >>> records.step([("to", 1), ("not", 1)])
    [('to', 1), ('not', 1)]
    >>> records.find(3), records.keys(), len(records)
    ('not', [2, 3], 2)
    """

    __slots__ = ("_by_key", "_key")

    def __init__(self, key: Key) -> None:
        super().__init__()
        self._key = key
        self._by_key: dict[Any, Row] = {}

    def step(self, delta: Pairs) -> Pairs:
        changes = super().step(delta)
        self._arrange(changes)
        return changes

    def undo(self) -> None:
        changes = self._last
        super().undo()
        self._arrange(negate(changes))

    def detach_state(self) -> DetachedState:
        """Empty the view, and the rows by key."""
        detached, by_key = super().detach_state(), self._by_key
        self._by_key = {}

        def restore() -> None:
            detached.restore()
            self._by_key = by_key

        return DetachedState(restore, detached.changes)

    def find(self, key: Any) -> Row | None:
        """Return the row of a key, or None."""
        return self._by_key.get(key)

    def keys(self) -> list[Any]:
        return list(self._by_key)

    def footprint(self) -> tuple[int, int]:
        rows, size = super().footprint()
        return rows, size + sys.getsizeof(self._by_key)

    def _arrange(self, changes: Pairs) -> None:
        """Update the row of each key; a deleted row gives way to an inserted one of its key."""
        by_key, of, weights = self._by_key, self._key, self._weights
        for row, _ in changes:
            if weights.get(row, 0) <= 0 and by_key.get(key := of(row)) == row:
                del by_key[key]
        by_key.update((of(row), row) for row, _ in changes if weights.get(row, 0) > 0)


class SignedRecords(Records, SignedBag):
    """The rows of a view by key, over a table that is not stored.

    Rows of negative weight are not found.

    >>> records = SignedRecords(len)
    >>> records.step([("to", -2), ("not", 1)])
    [('to', -2), ('not', 1)]
    >>> records.keys(), len(records)
    ([3], 1)
    """

    __slots__ = ()


_shown = itemgetter(-1)


class BorrowedLeaf:
    """Base of the leaves without rows: they emit the output of the operator below."""

    __slots__ = ()
    edits: Iterable[Edit] = ()
    touched = 0

    def step(self, delta: Pairs) -> Pairs:
        return delta

    def footprint(self) -> tuple[int, int]:
        return 0, 0


class BorrowedRows(BorrowedLeaf):
    """Rows of weight 1 each: the keys of a mapping.

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
        return UniformDelta(list(self._rows), 1)

    def rows(self) -> list[Row]:
        return list(self._rows)


class BorrowedGroups(BorrowedLeaf):
    """The rows of an aggregate by group, each the last item of a list.

    Every group shows a row, which holds while no row has a negative weight.
    """

    __slots__ = ("_groups",)

    def __init__(self, groups: Mapping[Any, list[Any]]) -> None:
        self._groups = groups

    def __len__(self) -> int:
        return len(self._groups)

    def count(self, row: Row) -> int:
        """Return 1 if the row is the result of its group, else 0."""
        if not isinstance(row, tuple) or not row:
            return 0
        group = self._groups.get(row[0])
        return int(group is not None and group[-1] == row)

    def items(self) -> Collection[Pair]:
        return UniformDelta(self.rows(), 1)

    def rows(self) -> list[Row]:
        return list(map(_shown, self._groups.values()))

    def find(self, key: Any) -> Row | None:
        """Return the row of a group, or None."""
        group = self._groups.get(key)
        return None if group is None else group[-1]

    def keys(self) -> list[Any]:
        return list(self._groups)


class BorrowedOrder(BorrowedLeaf):
    """The rows of an ordered view, in order, held by the operator below."""

    takes_joined: ClassVar[bool] = True
    __slots__ = ("order",)

    def __init__(self, order: order_by.OrderBy) -> None:
        self.order = order

    def step(self, delta: Pairs) -> Pairs:
        """Return the delta; a batch, or a delta with moved parts, is consolidated when read."""
        if delta.__class__ is UniformDelta or self.order.shows_parts:
            return whole_rows.NetDelta(delta)
        return delta

    @property
    def edits(self) -> Iterable[Edit]:  # type: ignore[override]
        return self.order.edits

    def forget(self) -> None:
        """Discard the edits, once they are delivered."""
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

    def position(self, row: Row) -> int | None:
        """Return the first position of a row; None if it is not found by its key."""
        return self.order.position(row)

    def between(self, start: int, stop: int) -> list[Row]:
        """Return the rows from one position up to another."""
        return self.order.between(start, stop)


class ChangesOnly(BorrowedLeaf):
    """The leaf of a subscription to a relation without a view: no rows, only changes."""

    __slots__ = ("order",)

    def __init__(self, order: order_by.OrderBy | None = None) -> None:
        self.order = order

    @property
    def edits(self) -> Iterable[Edit]:  # type: ignore[override]
        return () if self.order is None else self.order.edits

    def forget(self) -> None:
        """Discard the edits, once they are delivered."""
        if self.order is not None:
            self.order.edits = []

    def step(self, delta: Pairs) -> Pairs:
        """Return the net delta; nothing is stored. A batch is consolidated when read."""
        if hasattr(delta, "is_net"):
            return delta
        moves = self.order is not None and self.order.shows_parts
        is_late = moves or delta.__class__ is UniformDelta
        return whole_rows.NetDelta(delta) if is_late else consolidate(delta)
