"""Moving window: the rows of an order up to a limit that is a row of another input.

    order_by(k).limit(n())      =  the first n rows, for the current value of the parameter n

A limit that moves inserts or deletes the rows between its old and its new place, at the end of the
window. Then the rows of the order change, as in `order_by.py`.

State:  as of `order_by.py`.
Cost:   O(log |L|) for a changed row, and the rows between two limits for a moved one.
Source: [i3ql] order by; the law is SQL's LIMIT and OFFSET.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from reactive.engine.collections.order import Edit, checked_count
from reactive.engine.collections.zset import Pair, Pairs, consolidate
from reactive.engine.operators.order_by import OrderBy


class MovingWindow(OrderBy):
    """Maintain sorted rows, and the edits of a window whose limit is a row.

    >>> top = MovingWindow(lambda row: row)
    >>> top.step([(5, 1), (3, 1), (8, 1)], [(2, 1)])
    [(3, 1), (5, 1)]
    >>> top.step([], [(2, -1), (3, 1)]), top.sequence()
    ([(8, 1)], [3, 5, 8])
    """

    __slots__ = ("_before", "_offset")

    def __init__(self, *key: Any, offset: int = 0, **options: Any) -> None:
        super().__init__(*key, **options)
        self._offset = offset
        self._before: tuple[int, int] | None = None
        self._move_to(0)

    def step(self, delta: Pairs, limits: Pairs = ()) -> Sequence[Pair]:
        """Return the changes of the window; a limit that is no count of rows raises."""
        self._before = self.first, self.last
        edits = self._moved(limits) if limits else []
        if not delta:
            self.edits, self._log = edits, []
            return self._net()
        found = super().step(delta)
        if not edits:
            return found
        self.edits = [*edits, *self.edits]
        self._shorten()
        return self._net()

    def undo(self) -> None:
        super().undo()
        if self._before is not None:
            self.first, self.last = self._before
            self._before = None

    def commit(self) -> None:
        super().commit()
        self._before = None

    def _moved(self, limits: Pairs) -> list[Edit]:
        """Move the limit, and return the edits at the end of the window."""
        inserted = [limit for limit, weight in consolidate(limits) if weight > 0]
        if not inserted:
            return []
        limit = checked_count(inserted[0])
        old_size, size = len(self), max(0, min(limit, self._ranked.size - self._offset))
        self.touched += abs(size - old_size)
        if size < old_size:
            gone = self.between(size, old_size)
            self._move_to(limit)
            return [Edit(size + place, row, -1) for place, row in reversed([*enumerate(gone)])]
        self._move_to(limit)
        come = self.between(old_size, size) if size > old_size else []
        return [Edit(old_size + place, row, 1) for place, row in enumerate(come)]

    def _move_to(self, limit: int) -> None:
        """Set the limit; without rows, no place is inside or before the window."""
        self.first = self._offset if limit else sys.maxsize
        self.last = self._offset + limit if limit else sys.maxsize
