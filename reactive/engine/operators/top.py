"""Top: of each group the first rows in the order of a key.

    top(n, by) of rows grouped by k  =  order_by(by).limit(n), of each group

    a  5 3 | 1        a row of the group comes or goes: one row at most enters the window,
    b  4 | 4 2        and one leaves it
       n = 2 | rest

Groups have nothing to do with each other, so the law of each is that of an order alone, and the
window moves in it as it does there (`order_by.py`).

State:  every row, sorted, in an order for each group.
Cost:   O(|dL| * log group), whatever the size of the window.
Source: [i3ql] order by, per group; SQL's ROW_NUMBER() OVER (PARTITION BY k ORDER BY by) <= n.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from reactive.engine.collections.zset import Pair, Pairs, Row
from reactive.engine.operators.kept_groups import Groups
from reactive.engine.operators.order_by import OrderBy


class Top(Groups[OrderBy]):
    """Keeps the rows of each group sorted, and tells which enter and leave its window.

    >>> longest = Top(lambda word: word[0], len, limit=1, descending=True)
    >>> longest.step([("to", 1), ("that", 1), ("be", 1)])
    [('that', 1), ('be', 1)]
    >>> longest.step([("that", -1), ("by", 1)])
    [('that', -1), ('to', 1)]
    """

    __slots__ = ()

    def __init__(
        self,
        key: Callable[[Row], Any],
        by: Callable[[Row], Any],
        *,
        limit: int,
        offset: int = 0,
        descending: bool = False,
    ) -> None:
        new = partial(OrderBy, by, descending=descending, limit=limit, offset=offset)
        super().__init__(key, new)

    def step(self, delta: Pairs) -> list[Pair]:
        self.touched += len(delta)
        return super().step(delta)

    def commit(self) -> None:
        stepped = self._stepped.values()
        super().commit()
        for group in stepped:
            group.edits = []  # which nobody follows
