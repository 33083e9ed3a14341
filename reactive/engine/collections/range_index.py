"""Range index: rows are found by comparing their values with the ends of a range.

    key -> rows                     as in `index.py`: a value, or an interval as its two ends
    family -> the keys in order     points: a sorted list; intervals: a tree

Rows with intervals and rows with points find each other:

    points between low and high         a slice of the sorted list
    intervals that contain a point      intervals that begin before it and end after it

A look-up takes the key of a row of the other side. Rows of other families are returned too, since
they have no common order: the expression decides if they match, or raises.

A key that moves from `old` to `new` finds the rows that match only one of them between its ends:

    own low    between old high and new high        for the comparison  own low <= other high
    own high   between new low and old low          for the comparison  other low <= own high

State:  every row, once; 8 bytes per different point, some 12 per interval, and 16 more once a key
        of the other side has moved.
Cost:   O(log n) per inserted or deleted key; a look-up O(log n) plus the rows found, times O(log n)
        for intervals; of a moved key O(log n) plus the rows with an end between its ends.

Interval tree: intervals sorted by low end, with the greatest high end of each part.

    keys    (1, 4) (2, 3)   (5, 9) (6, 7) (8, 9)        leaves of at most `WIDTH` intervals, sorted
    tops          4                  9                  the greatest high end of each

Intervals that meet `low .. high` begin at most at `high`: they are in a prefix of the order. Within
the prefix, a part is visited only if its greatest high end reaches `low`, so every visited part has
a match, except nodes on the path to the end of the prefix.

A full node is split, and an empty node removed. The tree is rebuilt once more intervals have been
deleted than are left, so that its height stays logarithmic.

State:  a reference per interval; lists of nodes.
Cost:   O(log n) to insert or delete, amortized; O((1 + matches) log n) to find, since one visit of
        a leaf finds all its matches.
Source: the augmented trees of T. H. Cormen and others, *Introduction to Algorithms*, section 14.3,
        after H. Edelsbrunner, *Dynamic Data Structures for Orthogonal Intersection Queries*, 1980;
        here with nodes as wide as those of a B-tree, and rebuilt as a whole: M. H. Overmars, *The
        Design of Dynamic Data Structures*, 1983.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import itemgetter, le, lt
from typing import Any, Final

from sortedcontainers import SortedKeyList, SortedList

from reactive.engine.collections.index import (
    ERROR_KEY,
    NOTHING,
    FewRows,
    Form,
    Index,
    KeyedPair,
    Mark,
    Range,
    WeightedRows,
    add_each,
    bucket_pairs,
    itself,
)
from reactive.engine.collections.index import Key as IndexKey
from reactive.engine.collections.zset import Family, KeyedBatch, Pair, Row, consolidate, family_of

ABSENT: Final = object()
"""The bound that no row meets."""


class MovedKey:
    """A key of the other side that has moved: it finds the partners of `new` that `old` has not.

    If `old` is `ABSENT`, it finds all partners of `new`. `key` is the part of the key that is equal
    on both sides, if there is one.
    """

    __slots__ = ("key", "new", "old")

    def __init__(self, new: Any, old: Any, key: IndexKey = ()) -> None:
        self.new = new
        self.old = old
        self.key = key


class Points:
    """Different values, sorted."""

    __slots__ = ("_closed", "_values")

    def __init__(self, closed: tuple[bool, bool]) -> None:
        starts, ends = closed
        self._closed = (ends, starts)
        self._values: SortedList = SortedList()

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[IndexKey]:
        return iter(self._values)

    def update(self, values: Iterable[IndexKey]) -> None:
        self._values.update(values)

    def remove(self, value: IndexKey) -> None:
        self._values.remove(value)

    def by_end(self, place: int) -> SortedList:
        """Return the values in order: both ends of a point are its value."""
        return self._values

    def between(
        self, low: Any, high: Any, closed: tuple[bool, bool] | None = None
    ) -> Iterable[IndexKey]:
        """Return the values between two ends, in order; an end of None is not compared.

        `closed`: whether the low and the high end are included; None is as the index's `Range`.
        """
        found: Iterable[IndexKey] = self._values.irange(low, high, closed or self._closed)
        return found

    def with_end_between(
        self, place: int, low: Any, high: Any, closed: tuple[bool, bool]
    ) -> Iterable[IndexKey]:
        """Return the values between two ends: both ends of a point are its value."""
        return self.between(low, high, closed)

    def bytes(self) -> int:
        return 8 * len(self._values)


class RangeIndex:
    """Rows with their weights, found by keys of the other side of a join.

    >>> index = RangeIndex(Range(own="interval", other="point", closed=(True, False)))
    >>> index.add((1, 4), "a", 1), index.add((2, 3), "b", 2)
    (None, None)
    >>> list(index.pairs(1)), list(index.pairs(2)), list(index.pairs(4))
    ([('a', 1)], [('a', 1), ('b', 2)], [])
    """

    __slots__ = ("_fresh", "_index", "_orders", "_range", "handle")

    def __init__(self, of: Range, handle: Callable[[Row], Any] = itself) -> None:
        self._range = of
        self.handle = handle
        self._index = Index(handle)
        self._orders: dict[Family, Points | IntervalTree] = {}
        self._fresh: dict[IndexKey, None] = {}
        """Keys that are not sorted yet."""

    @property
    def rows(self) -> int:
        return self._index.rows

    @property
    def keys(self) -> int:
        """The number of different keys."""
        return self._index.keys

    def find(self, key: IndexKey, default: Any) -> Any:
        """Return the bucket of rows that may match a key of the other side."""
        found = [] if key.__class__ is Mark else self._find_buckets(key)
        if len(found) < 2:
            return found[0] if found else default
        rows = FewRows()
        for bucket in found:
            if bucket.__class__ is FewRows:
                rows.extend(bucket)
            elif bucket.__class__ is WeightedRows:
                return WeightedRows(enumerate(pair for b in found for pair in bucket_pairs(b)))
            else:
                rows.append(bucket)
        return rows

    def pairs(self, key: IndexKey) -> Sequence[Pair]:
        """Return the rows that may match a key of the other side, with their weights.

        For `ERROR_KEY` they are the rows without a place in the order; other marks match none.
        """
        if key.__class__ is Mark:
            return self._index.pairs(key) if key is ERROR_KEY else ()
        found = self.find(key, NOTHING)
        return () if found is NOTHING else bucket_pairs(found)

    def between(
        self, low: Any, high: Any, closed: tuple[bool, bool]
    ) -> tuple[list[Pair], list[Pair]]:
        """Return the rows of points between two ends, and the rows of other families or of none.

        An end of None is not compared.
        """
        if self._fresh:
            self._order()
        buckets = self._index.buckets
        family = family_of(high if low is None else low)
        inside: list[Pair] = []
        others = [*self._index.pairs(ERROR_KEY)]
        for own, order in self._orders.items():
            if own == family:
                assert isinstance(order, Points)
                keys, found = order.between(low, high, closed), inside
            else:
                keys, found = order, others
            for key in keys:
                found += bucket_pairs(buckets[key])
        return inside, others

    def earlier(self, delta: Iterable[KeyedPair]) -> RangeIndexBefore:
        """Return the index as it was before a delta that is already applied."""
        taken = RangeIndex(self._range, self.handle)
        for key, (row, weight) in delta:
            taken.add(key, row, -weight)
        return RangeIndexBefore(self, taken)

    def find_before(self, delta: Iterable[KeyedPair]) -> Callable[..., Any]:
        return self.earlier(delta).get

    def weight(self, key: IndexKey, row: Row) -> int:
        """Return the weight of a row with a key."""
        return self._index.weight(key, row)

    def items(self) -> Iterator[KeyedPair]:
        """Yield every row with its key."""
        return self._index.items()

    def add(self, key: IndexKey, row: Row, weight: int) -> None:
        """Add a row's weight; nothing changes if something raises."""
        buckets = self._index.buckets
        is_old = key in buckets
        self._index.add(key, row, weight)
        if is_old == (key in buckets) or key.__class__ is Mark:
            return
        try:
            self._forget(key) if is_old else self._fresh.setdefault(key)
        except BaseException:
            self._index.add(key, row, -weight)
            raise

    def extend(self, batch: KeyedBatch) -> None:
        """Add all rows of a batch, or none if one raises."""
        self.change(batch)

    def change(self, keyed: Sequence[KeyedPair]) -> None:
        """Add all pairs of a delta, or none if one raises."""
        add_each(self, keyed)

    def bytes(self) -> int:
        return self._index.bytes() + sum(order.bytes() for order in self._orders.values())

    def _family(self, key: IndexKey, form: Form) -> Family:
        return family_of(key[0] if form == "interval" else key)

    def _forget(self, key: IndexKey) -> None:
        """Remove a key that has no rows left from the order of its family."""
        if key in self._fresh:
            del self._fresh[key]
            return
        family = self._family(key, self._range.own)
        order = self._orders[family]
        order.remove(key)
        if not len(order):
            del self._orders[family]

    def _order(self) -> None:
        """Sort the keys that were inserted since the last look-up."""
        families: dict[Family, list[IndexKey]] = {}
        for key in self._fresh:
            families.setdefault(self._family(key, self._range.own), []).append(key)
        for family, keys in families.items():
            order = self._orders.get(family)
            if order is None:
                kind = IntervalTree if self._range.own == "interval" else Points
                order = self._orders[family] = kind(self._range.closed)
            order.update(keys)
        self._fresh = {}

    def _find_buckets(self, key: IndexKey) -> list[Any]:
        """Return the buckets of keys that match a key of the other side, or are of other
        families."""
        if self._fresh:
            self._order()
        buckets, is_moved = self._index.buckets, key.__class__ is MovedKey
        family = self._family(key.new if is_moved else key, self._range.other)
        found: list[Any] = []
        for other, order in self._orders.items():
            if other != family:
                keys: Iterable[IndexKey] = order
            elif is_moved:
                keys = self._find_moved(order, self._ends(key.new), self._ends(key.old))
            else:
                keys = order.between(*self._ends(key))
            found += [buckets[k] for k in keys]
        return found

    def _ends(self, key: IndexKey) -> tuple[Any, Any]:
        """Return the low and the high end of a key of the other side; None if it has none."""
        form = self._range.other
        low, high = key if form == "interval" else (key, key)
        return None if form == "high" else low, None if form == "low" else high

    def _find_moved(
        self, order: Points | IntervalTree, new: tuple[Any, Any], old: tuple[Any, Any]
    ) -> Iterable[IndexKey]:
        """Return the keys that match the ends `new`, but not `old`.

        They fail one of the comparisons with `old`, so that an own end is between the two.
        """
        (low, high), (old_low, old_high), (starts, ends) = new, old, self._range.closed
        has_ends = low is not None and high is not None
        if has_ends and self._range.own == "point" and (old_high < low or high < old_low):
            return order.between(low, high)  # no point is in both
        keys: list[IndexKey] = []
        if high is not None and old_high < high:
            keys += order.with_end_between(0, old_high, high, (not starts, starts))
        if low is not None and low < old_low:
            keys += order.with_end_between(1, low, old_low, (ends, not ends))
        return [key for key in dict.fromkeys(keys) if self._matches(key, low, high)]

    def _matches(self, key: IndexKey, low: Any, high: Any) -> bool:
        """Return True if an own key matches the ends of a key of the other side."""
        own_low, own_high = key if self._range.own == "interval" else (key, key)
        starts, ends = (le if closed else lt for closed in self._range.closed)
        is_after_high = high is not None and not starts(own_low, high)
        return not is_after_high and (low is None or bool(ends(low, own_high)))


class RangeIndexBefore:
    """Range index before a delta, whose negation is `taken`."""

    __slots__ = ("_index", "_taken")

    def __init__(self, index: RangeIndex, taken: RangeIndex) -> None:
        self._index = index
        self._taken = taken

    def get(self, key: IndexKey, default: Any) -> Any:
        """Return the previous bucket of rows that match a key of the other side."""
        return WeightedRows(enumerate(self.pairs(key))) or default

    def pairs(self, key: IndexKey) -> Sequence[Pair]:
        """Return the previous rows that match a key of the other side, with their weights."""
        now, changed = self._index.pairs(key), self._taken.pairs(key)
        return consolidate([*now, *changed]) if changed else now


Key = tuple[Any, Any]
Test = Callable[[Any, Any], Any]

WIDTH = 32
"""Most intervals of a leaf, or children of a node."""
_low: Callable[[Key], Any] = itemgetter(0)
_high: Callable[[Key], Any] = itemgetter(1)


class IntervalTree:
    """Different intervals, as pairs of a low and a high end, found by intersection.

    Parameters
    ----------
    closed: True if an interval meets one that ends where it begins, and one that begins where it
    ends.

    >>> tree = IntervalTree((True, False))
    >>> tree.update([(1, 4), (2, 3), (5, 9)])
    >>> tree.between(2, 2), tree.between(3, 5), tree.between(9, 9)
    ([(1, 4), (2, 3)], [(1, 4), (5, 9)], [])
    >>> tree.remove((1, 4))
    >>> tree.between(2, 2), len(tree)
    ([(2, 3)], 2)
    """

    __slots__ = ("_bisect", "_by_end", "_gone", "_reaches", "_root", "_size")

    def __init__(self, closed: tuple[bool, bool]) -> None:
        starts, ends = closed
        self._by_end: tuple[Any, Any] | None = None
        """The intervals sorted by their low ends, and by their high ends, once asked for."""
        self._bisect: Callable[..., int] = bisect_right if starts else bisect_left
        self._reaches: Test = le if ends else lt
        self._root: _Leaf | _InnerNode = _Leaf([])
        self._size = 0
        self._gone = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Key]:
        return iter(self._root.all())

    def update(self, keys: Collection[Key]) -> None:
        """Insert intervals that are absent."""
        for order in self._by_end or ():
            order.update(keys)
        if 4 * len(keys) >= self._size:
            self._build([*self._root.all(), *keys])
            return
        for key in keys:
            other = self._root.insert(key)
            if other is not None:
                self._root = _InnerNode([self._root, other])
            self._size += 1

    def remove(self, key: Key) -> None:
        """Remove an interval that is present."""
        for order in self._by_end or ():
            order.remove(key)
        self._root.remove(key)
        self._size -= 1
        self._gone += 1
        if self._gone > self._size + WIDTH:
            self._build(self._root.all())

    def between(self, low: Any, high: Any) -> list[Key]:
        """Return the intervals that meet the range between two ends."""
        found: list[Key] = []
        if self._size:
            self._root.find(low, high, self._bisect, self._reaches, found)
        return found

    def with_end_between(
        self, place: int, low: Any, high: Any, closed: tuple[bool, bool]
    ) -> Iterable[Key]:
        """Return the intervals whose low end (`place` 0) or high end (1) is between two values."""
        found: Iterable[Key] = self.by_end(place).irange_key(low, high, closed)
        return found

    def by_end(self, place: int) -> Any:
        """Return the intervals sorted by their low ends (`place` 0) or high ends (1)."""
        if self._by_end is None:
            keys = self._root.all()
            self._by_end = SortedKeyList(keys, key=_low), SortedKeyList(keys, key=_high)
        return self._by_end[place]

    def bytes(self) -> int:
        """Return the bytes of the tree, without the intervals."""
        return self._root.bytes() + 8 * sum(map(len, self._by_end or ()))

    def _build(self, keys: list[Key]) -> None:
        """Replace the tree by a balanced one of `keys`."""
        nodes: list[_Leaf | _InnerNode] = list(map(_Leaf, _split_evenly(sorted(keys)))) or [
            _Leaf([])
        ]
        while len(nodes) > 1:
            nodes = list(map(_InnerNode, _split_evenly(nodes)))
        self._root, self._size, self._gone = nodes[0], len(keys), 0


class _Leaf:
    """Intervals, sorted."""

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
        """Insert an interval; return the second half as a new leaf if this was full, else None."""
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
        """Remove an interval; return True if any is left."""
        del self.keys[bisect_left(self.keys, key)]
        return bool(self.keys)

    def find(self, low: Any, high: Any, bisect: Any, reaches: Test, found: list[Key]) -> None:
        """Append the intervals that meet a range to `found`."""
        keys = self.keys[: bisect(self.keys, high, key=_low)]
        found += [key for key in keys if reaches(low, key[1])]

    def bytes(self) -> int:
        return sys.getsizeof(self) + sys.getsizeof(self.keys)


class _InnerNode:
    """Sorted nodes, each with its first interval and its greatest high end; none is empty."""

    __slots__ = ("firsts", "nodes", "tops")

    def __init__(self, nodes: list[_Leaf | _InnerNode]) -> None:
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

    def insert(self, key: Key) -> _InnerNode | None:
        """Insert an interval.

        Return the upper half as a new node if the node was full, else None.
        """
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
        upper = _InnerNode(self.nodes[middle:])
        del self.nodes[middle:], self.firsts[middle:], self.tops[middle:]
        return upper

    def remove(self, key: Key) -> bool:
        """Remove an interval that is present; return False if the node is empty now."""
        place = bisect_right(self.firsts, key) - 1
        node = self.nodes[place]
        self._put(place, [node] if node.remove(key) else [])
        return bool(self.nodes)

    def find(self, low: Any, high: Any, bisect: Any, reaches: Test, found: list[Key]) -> None:
        """Append the intervals that meet a range to `found`."""
        for place in range(bisect(self.firsts, high, key=_low)):
            if reaches(low, self.tops[place]):
                self.nodes[place].find(low, high, bisect, reaches, found)

    def bytes(self) -> int:
        lists = sum(map(sys.getsizeof, (self, self.nodes, self.firsts, self.tops)))
        return lists + sum(node.bytes() for node in self.nodes)

    def _put(self, place: int, nodes: list[_Leaf | _InnerNode]) -> None:
        """Replace the node at a place by `nodes`."""
        self.nodes[place : place + 1] = nodes
        self.firsts[place : place + 1] = [node.first for node in nodes]
        self.tops[place : place + 1] = [node.top() for node in nodes]


def _split_evenly(items: list[Any]) -> Iterator[list[Any]]:
    """Yield parts of a list, each half as long as a node may be."""
    size = max(WIDTH // 2, 2)
    return (items[start : start + size] for start in range(0, len(items), size))
