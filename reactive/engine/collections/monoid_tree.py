"""A bag of values under an associative, commutative combination, kept as a balanced tree.

              a+b+c+d                 nodes[1]
          a+b         c+d             nodes[2], nodes[3]
        a     b     c     d           leaves: nodes[capacity + slot]

A change marks the path from its leaf to the root as unknown; reading the root combines along
what is unknown. Changing never calls the user's function, so a change can always be undone.

State:  two nodes per distinct value.
Cost:   O(1) look-ups and O(log n) marks per change, O(log n) combinations per read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_UNKNOWN = object()


class MonoidTree:
    """Values with weights, and their combination.

    >>> tree = MonoidTree(0, max)
    >>> for value, weight in [(3, 1), (9, 1), (5, 2), (9, -1)]:
    ...     tree.add(value, weight)
    >>> tree.total(), len(tree)
    (5, 2)
    """

    __slots__ = ("_combine", "_nodes", "_slots", "_values", "_weights", "_zero")

    def __init__(self, zero: Any, combine: Callable[[Any, Any], Any]) -> None:
        self._zero = zero
        self._combine = combine
        self._slots: dict[Any, int] = {}  # value -> slot
        self._values: list[Any] = []  # slot -> value
        self._weights: list[int] = []
        self._nodes: list[Any] = [_UNKNOWN, _UNKNOWN]

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: Any, weight: int) -> None:
        """Change the weight of a value; a weight of zero removes it."""
        slot = self._slots.get(value)
        if slot is None:
            self._append(value, weight)
            return
        self._weights[slot] += weight
        self._forget(slot)
        if not self._weights[slot]:
            self._remove(slot)

    def total(self) -> Any:
        """All values combined, each repeated by its weight; the zero if there are none."""
        return self._known(1) if self._values else self._zero

    def _append(self, value: Any, weight: int) -> None:
        self._slots[value] = slot = len(self._values)
        self._values.append(value)
        self._weights.append(weight)
        if 2 * len(self._values) > len(self._nodes):
            self._nodes = [_UNKNOWN] * (2 * len(self._nodes))
        else:
            self._forget(slot)

    def _remove(self, slot: int) -> None:
        """The last leaf takes the place of the one that goes."""
        last = len(self._values) - 1
        self._forget(last)
        del self._slots[self._values[slot]]
        value, weight = self._values.pop(), self._weights.pop()
        if slot != last:
            self._values[slot], self._weights[slot] = value, weight
            self._slots[value] = slot
        if len(self._nodes) > 4 and 4 * len(self._values) <= len(self._nodes) // 2:
            self._nodes = [_UNKNOWN] * (len(self._nodes) // 2)

    def _forget(self, slot: int) -> None:
        node = slot + len(self._nodes) // 2
        while node:
            self._nodes[node] = _UNKNOWN
            node //= 2

    def _known(self, node: int) -> Any:
        value = self._nodes[node]
        if value is _UNKNOWN:
            leaf = node - len(self._nodes) // 2
            if leaf >= 0:
                value = self._leaf(leaf)
            else:
                value = self._combine(self._known(2 * node), self._known(2 * node + 1))
            self._nodes[node] = value
        return value

    def _leaf(self, slot: int) -> Any:
        if slot >= len(self._values):
            return self._zero
        return self._power(self._values[slot], self._weights[slot])

    def _power(self, value: Any, weight: int) -> Any:
        """`value` combined with itself, by repeated doubling."""
        result = self._zero
        while weight > 0:
            if weight & 1:
                result = self._combine(result, value)
            weight >>= 1
            if weight:
                value = self._combine(value, value)
        return result
