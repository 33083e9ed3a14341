"""Nothing: no rows, ever.

State:  none.
Cost:   none.
"""

from __future__ import annotations

from collections.abc import Iterable

from reactive.collections.zset import Pair


class Nothing:
    """What a plan of an empty relation is made of.

    >>> Nothing().step()
    []
    """

    __slots__ = ("touched",)

    def __init__(self) -> None:
        self.touched = 0

    def step(self) -> list[Pair]:
        return []

    def contents(self) -> Iterable[Pair]:
        return ()
