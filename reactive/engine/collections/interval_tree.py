"""Intervals by their low ends, with the greatest high end of every part of the order.

    keys    (1, 4) (2, 3)   (5, 9) (6, 7) (8, 9)        leaves of at most `WIDTH` intervals, sorted
    tops          4                  9                  the greatest high end of each

Those that meet `low .. high` begin at most at `high`: a prefix of the order. Within it, a part is
looked into only if its greatest high end reaches `low`, so that every one looked into has a match,
except nodes on the path to the end of the prefix.

A node is split when it is full, and goes when it is empty. Once as many intervals have gone as are
left, the tree is made anew, so that its height stays logarithmic.

State:  a reference per interval; lists of nodes.
Cost:   O(log n) to insert or delete, amortized; O((1 + matches) log n) to find, as all matches of
        a leaf are found by one look at it.
Source: the augmented trees of T. H. Cormen and others, *Introduction to Algorithms*, section 14.3,
        after H. Edelsbrunner, *Dynamic Data Structures for Orthogonal Intersection Queries*, 1980;
        here with nodes as wide as those of a B-tree, and rebuilt as a whole: M. H. Overmars, *The
        Design of Dynamic Data Structures*, 1983.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator
from operator import itemgetter, le, lt
from typing import Any

Key = tuple[Any, Any]
Test = Callable[[Any, Any], Any]

WIDTH = 32
"""Intervals of a leaf, or nodes below a node, at most."""
_low: Callable[[Key], Any] = itemgetter(0)


class IntervalTree:
    """Different intervals, as pairs of a low and a high end, to be found by what they meet.

    Parameters
    ----------
    closed: whether an interval meets what ends where it begins, and what begins where it ends.

    >>> tree = IntervalTree((True, False))
    >>> tree.update([(1, 4), (2, 3), (5, 9)])
    >>> tree.between(2, 2), tree.between(3, 5), tree.between(9, 9)
    ([(1, 4), (2, 3)], [(1, 4), (5, 9)], [])
    >>> tree.remove((1, 4))
    >>> tree.between(2, 2), len(tree)
    ([(2, 3)], 2)
    """

    __slots__ = ("_bisect", "_gone", "_reaches", "_root", "_size")

    def __init__(self, closed: tuple[bool, bool]) -> None:
        starts, ends = closed
        self._bisect: Callable[..., int] = bisect_right if starts else bisect_left
        self._reaches: Test = le if ends else lt
        self._root: _Leaf | _Inner = _Leaf([])
        self._size = 0
        self._gone = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Key]:
        return iter(self._root.all())

    def update(self, keys: Collection[Key]) -> None:
        """Put intervals in that are not there."""
        if 4 * len(keys) >= self._size:
            self._build([*self._root.all(), *keys])
            return
        for key in keys:
            other = self._root.insert(key)
            if other is not None:
                self._root = _Inner([self._root, other])
            self._size += 1

    def remove(self, key: Key) -> None:
        """Take an interval out that is there."""
        self._root.remove(key)
        self._size -= 1
        self._gone += 1
        if self._gone > self._size + WIDTH:
            self._build(self._root.all())

    def between(self, low: Any, high: Any) -> list[Key]:
        """Those that meet what is between two ends."""
        found: list[Key] = []
        if self._size:
            self._root.find(low, high, self._bisect, self._reaches, found)
        return found

    def bytes(self) -> int:
        """Bytes of the tree, without the intervals."""
        return self._root.bytes()

    def _build(self, keys: list[Key]) -> None:
        nodes: list[_Leaf | _Inner] = list(map(_Leaf, _cut(sorted(keys)))) or [_Leaf([])]
        while len(nodes) > 1:
            nodes = list(map(_Inner, _cut(nodes)))
        self._root, self._size, self._gone = nodes[0], len(keys), 0


class _Leaf:
    """Intervals in order."""

    __slots__ = ("keys",)

    def __init__(self, keys: list[Key]) -> None:
        self.keys = keys

    @property
    def first(self) -> Key:
        return self.keys[0]

    def top(self) -> Any:
        return max([high for _, high in self.keys])

    def all(self) -> list[Key]:
        return list(self.keys)

    def insert(self, key: Key) -> _Leaf | None:
        """Put an interval in; the second half, if the leaf was full."""
        keys = self.keys
        place = bisect_left(keys, key)
        keys[place:place] = (key,)
        if len(keys) <= WIDTH:
            return None
        middle = len(keys) // 2
        other = _Leaf(keys[middle:])
        del keys[middle:]
        return other

    def remove(self, key: Key) -> bool:
        """Take an interval out; whether any is left."""
        del self.keys[bisect_left(self.keys, key)]
        return bool(self.keys)

    def find(self, low: Any, high: Any, bisect: Any, reaches: Test, found: list[Key]) -> None:
        keys = self.keys[: bisect(self.keys, high, key=_low)]
        found += [key for key in keys if reaches(low, key[1])]

    def bytes(self) -> int:
        return sys.getsizeof(self) + sys.getsizeof(self.keys)


class _Inner:
    """Nodes in order, each with its first interval and its greatest high end; none is empty."""

    __slots__ = ("firsts", "nodes", "tops")

    def __init__(self, nodes: list[_Leaf | _Inner]) -> None:
        self.nodes = nodes
        self.firsts = [node.first for node in nodes]
        self.tops = [node.top() for node in nodes]

    @property
    def first(self) -> Key:
        return self.firsts[0]

    def top(self) -> Any:
        return max(self.tops)

    def all(self) -> list[Key]:
        return [key for node in self.nodes for key in node.all()]

    def insert(self, key: Key) -> _Inner | None:
        place = max(bisect_right(self.firsts, key) - 1, 0)
        other = self.nodes[place].insert(key)
        if other is None:
            if key < self.firsts[place]:
                self.firsts[place] = key
            if self.tops[place] < key[1]:
                self.tops[place] = key[1]
            return None
        self._put(place, [self.nodes[place], other])
        if len(self.nodes) <= WIDTH:
            return None
        middle = len(self.nodes) // 2
        upper = _Inner(self.nodes[middle:])
        del self.nodes[middle:], self.firsts[middle:], self.tops[middle:]
        return upper

    def remove(self, key: Key) -> bool:
        place = bisect_right(self.firsts, key) - 1
        node = self.nodes[place]
        self._put(place, [node] if node.remove(key) else [])
        return bool(self.nodes)

    def find(self, low: Any, high: Any, bisect: Any, reaches: Test, found: list[Key]) -> None:
        for place in range(bisect(self.firsts, high, key=_low)):
            if reaches(low, self.tops[place]):
                self.nodes[place].find(low, high, bisect, reaches, found)

    def bytes(self) -> int:
        lists = sum(map(sys.getsizeof, (self, self.nodes, self.firsts, self.tops)))
        return lists + sum(node.bytes() for node in self.nodes)

    def _put(self, place: int, nodes: list[_Leaf | _Inner]) -> None:
        """Have nodes stand for the one at a place."""
        self.nodes[place : place + 1] = nodes
        self.firsts[place : place + 1] = [node.first for node in nodes]
        self.tops[place : place + 1] = [node.top() for node in nodes]


def _cut(items: list[Any]) -> Iterator[list[Any]]:
    size = max(WIDTH // 2, 2)
    return (items[start : start + size] for start in range(0, len(items), size))
