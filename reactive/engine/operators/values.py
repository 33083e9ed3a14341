"""Values: the rows that are written in a query; they are there from the start, and stay.

State:  the rows.
Cost:   none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reactive.engine.collections.zset import Pair, Row


class Values:
    """What a literal relation is made of; one of no rows for an empty relation.

    >>> values = Values(["a", "a"])
    >>> values.contents(), values.step()
    ([('a', 1), ('a', 1)], [])
    """

    __slots__ = ("_rows", "touched")

    def __init__(self, rows: Sequence[Row] = ()) -> None:
        self._rows = rows
        self.touched = 0

    def step(self) -> list[Pair]:
        return []

    def contents(self) -> Iterable[Pair]:
        return [(row, 1) for row in self._rows]
