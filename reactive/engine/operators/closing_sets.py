"""Set and bag operations whose rows are dropped when no equal row can come from either side.

    clicks.union(views)      rows with the time of both streams; below both watermarks no row comes,
                             and none goes, so that its weights are not read again

State:  the rows above the frontier, with their weights in both inputs.
Cost:   O(log open values) for each value, beside the operation.
"""

from __future__ import annotations

from typing import ClassVar

from reactive.engine.collections.zset import Row
from reactive.engine.operators.closing import Closing, ClosingDistinct, OpenKeys
from reactive.engine.operators.frontiers import follow_clocks
from reactive.engine.operators.set_operators import Law, Pointwise, Union


class ClosingUnion(Union):
    """Distinct rows of two inputs, dropped when they close; views hold them."""

    forgets: ClassVar[bool] = True
    __slots__ = ()

    def __init__(self, closing: Closing) -> None:
        self._distinct: ClosingDistinct = ClosingDistinct(closing)

    @property
    def has_dropped(self) -> bool:
        """True if rows that were emitted are held no more."""
        return self._distinct.has_dropped


class ClosingPointwise(Pointwise):
    """The weights of the rows of two inputs, dropped when the rows close; views hold the rows.

    >>> from reactive.engine.operators.event_time import EventClock
    >>> from reactive.engine.operators.frontiers import DelayedWatermark, Frontier
    >>> clock = EventClock(0)
    >>> closing = Closing(Frontier((DelayedWatermark(clock),)), lambda row: row)
    >>> both = ClosingPointwise(closing, min, usual=1)
    >>> both.step([(3, 1), (5, 1)], [(3, 1)])
    [(3, 1)]
    >>> both.commit()
    >>> clock.move_to(4)
    >>> both.footprint()[0]
    1
    """

    forgets: ClassVar[bool] = True
    __slots__ = ("__weakref__", "_noted", "_open", "has_dropped")

    def __init__(self, closing: Closing, law: Law, *, usual: int, is_set: bool = False) -> None:
        super().__init__(law, usual=usual, is_set=is_set)
        self._open, self.has_dropped = OpenKeys(closing), False
        self._noted: set[Row] = set()
        """The rows that are open."""
        follow_clocks(closing.frontier, self)

    def commit(self) -> None:
        """Note the rows that came, and drop those that are closed."""
        left, right, _ = self._last
        super().commit()
        for side in (left, right):
            for row, _ in side:
                if row not in self._noted:
                    self._noted.add(row)
                    self._open.add(row)
        self.drop_closed()

    def drop_closed(self) -> None:
        """Drop the closed rows; in a commit that has stepped, when it is finished."""
        if self._last[2]:
            return
        for row in self._open.take_closed():
            self.has_dropped = True
            self._noted.discard(row)
            self._held.pop(row, None)
            self._others.pop(row, None)
