"""Which values rows lead from and to: the rows of a binary relation, of which nothing else is read.

    u --> v     onward  u -> {v, ...}
                back    v -> {u, ...}
                times   (u, v) -> how many rows there are, if not one

A join of which no row is read needs no more of an input. What follows two values is intersected as
sets.

State:  each pair of ends, twice; how many rows it has, if it is not one.
Cost:   O(1) per change.
Source: worst-case optimal joins: Ngo, Porat, Re, Rudra, 2012.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import Any

End = Hashable
Below = dict[Any, set[Any]]


class Neighbours:
    """Pairs of ends with weights. Generated code reads the dictionaries, and changes them where a
    pair comes once or goes. Where rows have one end, all pairs lead
    from the same, and nothing leads back (`is_unary`).

    >>> held = Neighbours()
    >>> for u, v in [("a", "b"), ("a", "c"), ("a", "b")]:
    ...     held.put(u, v, held.weight(u, v) + 1)
    >>> sorted(held.onward["a"]), held.back["c"], held.times
    (['b', 'c'], {'a'}, {('a', 'b'): 2})
    """

    __slots__ = ("_is_unary", "back", "onward", "times")

    def __init__(self, *, is_unary: bool = False) -> None:
        self._is_unary = is_unary
        self.onward: Below = {}
        self.back: Below = {}
        self.times: dict[tuple[Any, Any], int] = {}

    def weight(self, u: End, v: End) -> int:
        """How many rows lead from one end to the other."""
        held = self.onward.get(u)
        return self.times.get((u, v), 1) if held is not None and v in held else 0

    def put(self, u: End, v: End, weight: int) -> None:
        """Let a pair have a weight, whatever it had, or had half."""
        sides = ((self.onward, u, v), (self.back, v, u))
        for below, one, other in sides[: 1 if self._is_unary else 2]:
            if weight:
                below.setdefault(one, set()).add(other)
                continue
            held = below.get(one, set())
            held.discard(other)
            if not held:
                below.pop(one, None)
        if weight in (0, 1):
            self.times.pop((u, v), None)
        else:
            self.times[u, v] = weight

    def clear(self) -> None:
        """Hold nothing."""
        for held in (self.onward, self.back, self.times):
            held.clear()

    def footprint(self) -> tuple[int, int]:
        """How many pairs there are, and the bytes of sets and dictionaries."""
        size = sum(map(sys.getsizeof, (self.onward, self.back, self.times)))
        size += len(self.times) * sys.getsizeof((0, 0))
        for below in (self.onward, self.back):
            size += sum(map(sys.getsizeof, below.values()))
        return sum(map(len, self.onward.values())), size
