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

import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from reactive.collections.zset import Pair, Pairs, Row, by_group
from reactive.operators.order_by import OrderBy


class Top:
    """Keeps the rows of each group sorted, and tells which enter and leave its window.

    >>> longest = Top(lambda word: word[0], len, limit=1, descending=True)
    >>> longest.step([("to", 1), ("that", 1), ("be", 1)])
    [('that', 1), ('be', 1)]
    >>> longest.step([("that", -1), ("by", 1)])
    [('that', -1), ('to', 1)]
    """

    __slots__ = ("_groups", "_key", "_made", "_order", "_stepped", "touched")

    def __init__(
        self,
        key: Callable[[Row], Any],
        by: Callable[[Row], Any],
        *,
        limit: int,
        offset: int = 0,
        descending: bool = False,
    ) -> None:
        self._key = key
        self._order = partial(OrderBy, by, descending=descending, limit=limit, offset=offset)
        self._groups: dict[Any, OrderBy] = {}
        self._stepped: dict[Any, OrderBy] = {}
        self._made: list[Any] = []  # the keys of groups that were not there before
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        self.touched += len(delta)
        self._stepped, self._made = {}, []
        out: list[Pair] = []
        try:
            for key, changes in by_group(delta, self._key).items():
                out += self._group(key).step(changes)
        except BaseException:
            self.undo()
            raise
        return out

    def undo(self) -> None:
        for group in self._stepped.values():
            group.undo()
        for key in self._made:
            self._groups.pop(key, None)
        self._stepped, self._made = {}, []

    def commit(self) -> None:
        for key, group in self._stepped.items():
            group.commit()
            group.edits = []  # which nobody follows
            if group.is_empty:
                del self._groups[key]
        self._stepped, self._made = {}, []

    def contents(self) -> Iterable[Pair]:
        return [pair for group in self._groups.values() for pair in group.contents()]

    def footprint(self) -> tuple[int, int]:
        rows, size = 0, sys.getsizeof(self._groups)
        for group in self._groups.values():
            held, taken = group.footprint()
            rows += held
            size += taken + sys.getsizeof(group)
        return rows, size

    def _group(self, key: Any) -> OrderBy:
        group = self._groups.get(key)
        if group is None:
            self._made.append(key)
            group = self._groups[key] = self._order()
        self._stepped[key] = group
        return group
