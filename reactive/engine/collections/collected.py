"""The values of a group as a bag, to which the changes of a commit are added at once.

    add(value, weight)     notes a change
    bag()                  adds what is noted: what is between is never made

A value that was taken away more often than added has a negative weight: it is not in the bag until
it has been added that many times.

State:  the bag; while a commit is under way, its changes; values of negative weight.
Cost:   O(1) per change, and O(log values) per value that changed, for the bag.
"""

from __future__ import annotations

import sys
from itertools import chain
from typing import Any

from reactive.engine.collections.bag import Bag, bag_of, changed
from reactive.engine.collections.weight_tree import added_up
from reactive.engine.collections.zset import EXACT, canonical

EMPTY: Bag[Any] = bag_of({})


class Collected:
    """The values of one group.

    >>> values = Collected()
    >>> values.add("a", 1), values.add("b", 1), values.add("a", 1), values.add("c", -1)
    (None, None, None, None)
    >>> values.bag(), values.negative
    (Bag({'a': 2, 'b': 1}), {'c': -1})
    """

    __slots__ = ("_bag", "_changes", "negative")

    def __init__(self) -> None:
        self._bag = EMPTY
        self._changes: dict[Any, int] = {}
        self.negative: dict[Any, int] | None = None
        """The values of negative weight, with it."""

    def add(self, value: Any, weight: int) -> None:
        """Add to the weight of a value; `add(value, -weight)` takes that back."""
        if value.__class__ not in EXACT:
            value = canonical(value)
        changes = self._changes
        new = changes.get(value, 0) + weight
        if new:
            changes[value] = new
        else:
            changes.pop(value, 0)

    def plus(self, value: Any, weight: int) -> Collected:
        """The same with a change; what this one has stays."""
        made: Collected = Collected.__new__(Collected)
        bag, negative = self._bag, self.negative
        made._bag, made.negative, made._changes = bag, negative, self._changes.copy()
        if negative is not None or made._changes or bag is EMPTY:
            made.add(value, weight)
            return made
        if value.__class__ not in EXACT:
            value = canonical(value)
        below: dict[Any, int] = {}
        made._bag = changed(bag, {value: weight}, below)
        if below:
            made.negative = below
        return made

    def bag(self) -> Bag[Any]:
        """All values of positive weight."""
        changes = self._changes
        if changes:
            below: dict[Any, int] = {}
            bag, negative = self._bag, self.negative
            if negative is not None:
                bag = changed(bag, added_up(chain(negative.items(), changes.items())), below)
            elif bag is EMPTY and min(changes.values()) > 0:
                bag = bag_of(changes)
            else:
                bag = changed(bag, changes, below)
            self._bag, self.negative, self._changes = bag, below or None, {}
        return self._bag

    def __len__(self) -> int:
        """How many different values there are."""
        return len(self.bag().items())

    def __sizeof__(self) -> int:
        parts = (self._bag, self._changes, self.negative)
        return object.__sizeof__(self) + sum(map(sys.getsizeof, parts))
