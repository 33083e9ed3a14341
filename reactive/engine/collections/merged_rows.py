"""Merged rows: rows of a key that a reader cannot tell apart, as one row with their weights.

    index       customer 7 -> 20,000 orders
    merged      customer 7 -> one order for each amount, with the number of orders

An aggregate over a join that reads only the amounts of orders has the same result for the merged
rows. When a customer with many orders moves from one group to another, their different amounts move
in place of the orders.

Values are the same if they have one class and one text: 1, 1.0 and True differ, and so do 0.0 and
-0.0. The rows of a key with other values, or with values that repeat less than twice, are not
merged.

State:  a row for each different value of each key that has moved and that has many rows.
Cost:   O(1) per changed row of such a key; O(rows) when it moves for the first time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import copysign
from types import NoneType
from typing import Any

from reactive.engine.collections.index import Key, KeyedPair, WeightedRows
from reactive.engine.collections.zset import Row
from reactive.engine.runtime.interrupts import reraise_asynchronous

MANY = 64
"""Least number of rows of a key that are merged."""
PLAIN = frozenset({int, str, bytes, bool, NoneType, date, timedelta})
"""Classes whose equal instances are the same value."""


class MergedRows:
    """Merges the rows of a key that have the same values.

    `values` returns the values of a row that are read; it may raise.

    >>> merged = MergedRows(lambda order: (order[1],))
    >>> orders = WeightedRows({n: ((n, n % 2), 1) for n in range(100)})
    >>> list(merged.bucket("anna", orders).values())
    [((0, 0), 50), ((1, 1), 50)]
    """

    __slots__ = ("__weakref__", "_by_key", "_different", "_values")

    def __init__(self, values: Callable[[Row], Sequence[Any]]) -> None:
        self._values = values
        self._by_key: dict[Key, WeightedRows] = {}
        self._different: dict[Key, int] = {}
        """The number of rows of keys that it did not pay to merge."""

    def bucket(self, key: Key, rows: WeightedRows) -> WeightedRows:
        """Return the merged rows of a key; the `rows` themselves if they are few or differ."""
        if len(rows) < MANY or len(rows) < 2 * self._different.get(key, 0):
            return rows
        merged = self._by_key.get(key)
        if merged is None:
            merged = self._merge(rows)
        if merged is None or 2 * len(merged) > len(rows):
            self._by_key.pop(key, None)
            self._different[key] = len(rows)
            return rows
        self._by_key[key] = merged
        return merged

    def follow(self, delta: Iterable[KeyedPair], sign: int = 1) -> None:
        """Apply a delta of the index, or take it back if `sign` is -1."""
        by_key = self._by_key
        if not by_key:
            return
        for key, (row, weight) in delta:
            merged = by_key.get(key)
            if merged is not None and not (self._add(merged, row, sign * weight) and merged):
                del by_key[key]

    def clear(self) -> None:
        """Drop the rows of all keys; they are merged again when needed."""
        self._by_key.clear()
        self._different.clear()

    def bytes(self) -> int:
        return sum(sys.getsizeof(rows) + 200 * len(rows) for rows in self._by_key.values())

    def _merge(self, rows: WeightedRows) -> WeightedRows | None:
        """Return rows merged by their values; None if values cannot be compared."""
        merged = WeightedRows()
        done = all(self._add(merged, row, weight) for row, weight in rows.values())
        return merged if done else None

    def _add(self, merged: WeightedRows, row: Row, weight: int) -> bool:
        """Add to the weight of a row's values; return False if they cannot be compared."""
        try:
            same = tuple(map(_identity, self._values(row)))
        except Exception as error:  # the loop that reads the row raises it, too
            reraise_asynchronous(error)
            return False
        shown, total = merged.get(same, (row, 0))
        if total + weight:
            merged[same] = shown, total + weight
        else:
            merged.pop(same, None)
        return True


def _identity(value: Any) -> Hashable:
    """Return a value that is equal for values that cannot be told apart.

    Raises `TypeError` for other classes, and for NaN.
    """
    kind = value.__class__
    if kind in PLAIN:
        return kind, value
    if kind is tuple:
        return kind, tuple(map(_identity, value))
    if kind is float and value == value:
        return kind, value, copysign(1.0, value)
    if kind is Decimal:
        return kind, value.as_tuple()
    if kind is datetime and value.tzinfo is None:
        return kind, value, value.fold
    raise TypeError(f"{kind.__name__} values may differ although they are equal")
