"""An order evaluated from scratch: rows sorted by their keys, and those that tie by themselves.

Cost: O(n log n); rows are compared with each other only where their keys do not tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from optimizer import plan
from reactive.engine.collections.index import itself
from reactive.engine.collections.order import LAST, sort_key, tie_key
from reactive.engine.collections.sorting import sorted_by
from reactive.engine.collections.zset import Row, repeat
from reactive.engine.reference.bags import Bag, caller

Keyed = tuple[Any, Row]
"""What a row is sorted by, and the row."""


def in_order(node: plan.OrderBy, bag: Bag) -> list[Row]:
    """The rows that an order shows, of all rows."""
    rows = [row for alike in settled(node, bag) for row in alike]
    last = len(rows) if node.limit is None else node.offset + node.limit
    return rows[node.offset : last]


def settled(node: plan.OrderBy, bag: Bag) -> Iterator[list[Row]]:
    """All rows in their order, as they are shown; those that no order tells apart together."""
    for rows in runs(node, bag):
        yield from _by_themselves(rows) if len(rows) > 1 else [rows]


def runs(node: plan.OrderBy, bag: Bag) -> Iterator[list[Row]]:
    """Yield all rows in their order, as they are shown; rows with equal keys together."""
    key = order_key(node)
    keyed = [(key(row), row) for row in repeat(bag.items())]
    if any(key is LAST for key, _ in keyed):
        keyed.sort(key=lambda pair: _Key(pair[0]), reverse=node.descending)
    else:
        keyed.sort(key=_key_of, reverse=node.descending)
    show = node.show or itself
    for tied in _runs(keyed, descending=node.descending):
        yield [*map(show, tied)]


def order_key(node: plan.OrderBy) -> Callable[[Row], Any]:
    """What gives the value that a row is sorted by."""
    read = sorted_by(node.keys, [caller(key.function, node.input) for key in node.keys])
    return lambda row: sort_key(read(row))


def _key_of(keyed: Keyed) -> Any:
    return keyed[0]


def _runs(keyed: list[Keyed], *, descending: bool) -> Iterator[list[Row]]:
    """Rows that the order does not tell apart, together."""
    run: list[Row] = []
    before: Any = None
    for key, row in keyed:
        lesser, greater = (key, before) if descending else (before, key)
        if run and _Key(lesser) < _Key(greater):
            yield run
            run = []
        run.append(row)
        before = key
    if run:
        yield run


def _by_themselves(tied: list[Row]) -> Iterator[list[Row]]:
    """Rows of which the keys are equal."""
    return (list(rows) for _, rows in groupby(sorted(tied, key=tie_key), key=tie_key))


class _Key:
    """A sort key that may be `LAST`."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _Key) -> bool:
        if other.key is LAST:
            return self.key is not LAST
        return self.key is not LAST and bool(self.key < other.key)
