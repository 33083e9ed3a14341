"""Key orders: the rows of some keys of an index, each key's in the order of a value of the rows.

    index       customer 7 -> rows              every key, in no order
    orders      customer 7 -> range index       keys for which a bound of the other side has moved

A join by an equation and a comparison finds its partners by the equation. Once the bound of a key
moves, its rows between the old and the new bound are found by their order. Rows without a value in
an order are found by every bound that moves: the comparison itself decides.

State:  a range index for each key for which a bound has moved and that has many rows.
Cost:   O(log n) per changed row of such a key; O(n log n) when its bound moves for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from reactive.engine.collections.index import ERROR_KEY, Index, Key, KeyedPair, Range
from reactive.engine.collections.range_index import ABSENT, MovedKey, RangeIndex
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.runtime.interrupts import reraise_asynchronous

MANY = 24
"""Least number of rows of a key that are put in order when a bound moves."""


class KeyOrders:
    """Finds the rows of a key between two bounds.

    `value` returns the point or interval of a row, as `of` has them; it may raise.

    >>> index = Index()
    >>> for amount in range(100):
    ...     index.add("anna", amount, 1)
    >>> orders = KeyOrders(int, Range(own="point", other="low"))
    >>> orders.pairs(index, MovedKey(96, 98, "anna"))
    [(96, 1), (97, 1)]
    """

    __slots__ = ("__weakref__", "_by_key", "_of", "_value")

    def __init__(self, value: Callable[[Row], Any], of: Range) -> None:
        self._value = value
        self._of = of
        self._by_key: dict[Key, RangeIndex] = {}

    def pairs(self, index: Index, key: MovedKey, since: Iterable[KeyedPair] = ()) -> list[Pair]:
        """Return the rows that a bound finds, and did not find before it moved.

        They are the rows before the delta `since`, which the index has applied.
        """
        order: Any = self.order(index, key.key)
        changed = [(self._key(pair[0]), pair) for each, pair in since if each == key.key]
        if changed:
            order = order.earlier(changed)
        asked = key.new if key.old is ABSENT else key
        return [*order.pairs(asked), *order.pairs(ERROR_KEY)]

    def follow(self, delta: Iterable[KeyedPair], sign: int = 1) -> None:
        """Apply a delta of the index, or take it back if `sign` is -1."""
        if not self._by_key:
            return
        for key, (row, weight) in delta:
            order = self._by_key.get(key)
            if order is not None:
                order.add(self._key(row), row, sign * weight)
                if order.rows < MANY // 2:
                    del self._by_key[key]

    def clear(self) -> None:
        """Drop the orders of all keys; they are made again when needed."""
        self._by_key.clear()

    def bytes(self) -> int:
        return sum(order.bytes() for order in self._by_key.values())

    def order(self, index: Index, key: Key) -> RangeIndex:
        """Return the rows of a key in order."""
        order = self._by_key.get(key)
        if order is None:
            order = RangeIndex(self._of, index.handle)
            for row, weight in index.pairs(key):
                order.add(self._key(row), row, weight)
            self._by_key[key] = order
        return order

    def _key(self, row: Row) -> Key:
        """Return the value of a row; `ERROR_KEY` if it has none in an order."""
        try:
            value = self._value(row)
            hash(value)
        except Exception as error:
            reraise_asynchronous(error)
            return ERROR_KEY
        return value
