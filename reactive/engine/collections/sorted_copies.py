"""Values in the order of a key, for aggregates that ask for a place in the order.

Ordered copies: every copy of a value, so that the value at a place is found in O(log copies).
Keyed values: the different values, by a key that may be any sort key.

A value that is removed more often than it was added is owed: it is not in the order until it has
been added that many times. Adding a value and then removing it leaves the state as it was.

State:  16 bytes per copy; some 120 per different value for keyed values.
Cost:   O(log values) per change of a value; a weight of n copies is n changes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from sortedcontainers import SortedKeyList

from optimizer.kinds.fields import compared_names
from reactive.engine.collections.order import LAST, from_sortable, sort_key, tie_key, to_sortable
from reactive.engine.collections.zset import NAN, canonical, is_nan


class OrderedCopies:
    """A multiset of values in ascending order, with NaN last.

    >>> copies = OrderedCopies()
    >>> copies.add(5, 2), copies.add(3, 1), copies.add(5, -1), copies.add(8, 1)
    (None, None, None, None)
    >>> len(copies), copies.at(0), copies.at(2)
    (3, 3, 8)
    """

    __slots__ = ("_order", "_owed")

    def __init__(self) -> None:
        self._order = SortedKeyList(key=sort_key)
        self._owed: Counter[Any] = Counter()

    def add(self, value: Any, weight: int) -> None:
        """Add copies of a value, or remove them; change nothing if it does not compare."""
        value = canonical(value)
        value = LAST if is_nan(value) else to_sortable(value)
        if weight > 0 and self._owed:
            weight -= _pay(self._owed, value, weight)
        for _ in range(weight):
            self._order.add(value)
        for _ in range(-weight):
            try:
                self._order.remove(value)
            except (ValueError, TypeError):  # absent; a class that does not compare is absent, too
                self._owed[value] += 1

    def at(self, place: int) -> Any:
        """Return the value at a place of the order, counted from 0."""
        found = from_sortable(self._order[place])
        return NAN if found is LAST else found

    def __getitem__(self, place: int) -> Any:
        """Return `at(place)`, so that a function of sorted values can be called."""
        return self.at(place)

    def __len__(self) -> int:
        return len(self._order)

    @property
    def is_zero(self) -> bool:
        """True if all that was added has been removed."""
        return not (self._order or self._owed)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + 16 * len(self._order) + sys.getsizeof(self._owed)


class KeyedValues:
    """Different values with weights, in the order of a key of the value and its weight.

    Parameters
    ----------
    by_weight: the key depends on the weight.
    keeps_negative: values of negative weight are in the order, too.

    >>> names = KeyedValues(lambda name, weight: (len(name), name))
    >>> names.add("three", 1), names.add("to", 2), names.add("be", 1)
    (None, None, None)
    >>> list(names), names.weight("to")
    (['be', 'to', 'three'], 2)
    """

    __slots__ = ("_by_weight", "_keeps_negative", "_key", "_order", "_weights")

    def __init__(
        self,
        key: Callable[[Any, int], Any],
        *,
        by_weight: bool = False,
        keeps_negative: bool = False,
    ) -> None:
        self._key = key
        self._by_weight = by_weight
        self._keeps_negative = keeps_negative
        self._weights: dict[Any, int] = {}
        self._order = SortedKeyList(key=_first)

    def add(self, value: Any, weight: int) -> None:
        """Add to the weight of a value, or change nothing if its key does not compare."""
        value = canonical(value)
        old = self._weights.get(value, 0)
        new = old + weight
        was, is_there = (self._is_there(weight) for weight in (old, new))
        moves = self._by_weight or was != is_there
        if is_there and moves:
            self._order.add((self._key(value, new), value))
        if was and moves:
            self._order.remove((self._key(value, old), value))
        if new:
            self._weights[value] = new
        elif old:
            del self._weights[value]

    def _is_there(self, weight: int) -> bool:
        return weight > 0 or (self._keeps_negative and weight < 0)

    def weight(self, value: Any) -> int:
        """Return the weight of a value."""
        return self._weights.get(value, 0)

    def first(self) -> Any:
        """Return the value with the least key; there is at least one."""
        return self._order[0][1]

    def first_of_greatest(self, is_with: Callable[[Any], Any]) -> Any:
        """Return the first of the values whose `is_with(key)` equals that of the greatest key."""
        least = is_with(self._order[-1][0])
        return self._order[self._order.bisect_key_left(least)][1]

    def take(self, count: int) -> list[Any]:
        """Return at most `count` values, those with the least keys, in their order."""
        return [value for _, value in self._order.islice(0, count)]

    def __iter__(self) -> Any:
        return (value for _, value in self._order)

    def __len__(self) -> int:
        return len(self._order)

    @property
    def is_zero(self) -> bool:
        """True if all that was added has been removed."""
        return not self._weights

    def __sizeof__(self) -> int:
        size = object.__sizeof__(self) + sys.getsizeof(self._weights)
        return size + 88 * len(self._order)


def value_key(value: Any) -> tuple[Any, ...]:
    """Return a key by which values of any classes compare: by fields, if the class has no order.

    Values of a class without order and fields are in the order of their hashes.
    """
    if isinstance(value, tuple):
        keys = [
            (1, part)
            if part.__class__ is int
            else (3, part)
            if part.__class__ is str
            else value_key(part)
            for part in value
        ]
        return (5, tuple(keys))  # of the commonest classes without a call
    found = tie_key(value)
    if found != (9,):
        return found
    names = compared_names(type(value))
    if names:
        fields = tuple(value_key(getattr(value, name)) for name in names)
        return (6, type(value).__qualname__, fields)
    return (9, hash(value))


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _pay(owed: Counter[Any], value: Any, weight: int) -> int:
    """Take up to `weight` copies of a value from what is owed; return their number."""
    paid = min(owed[value], weight)
    owed[value] -= paid
    if not owed[value]:
        del owed[value]
    return paid
