"""An index by values in order: rows are found by what their values are between.

    key -> rows                     as in `index.py`: a value, or an interval as its two ends
    family -> the keys in order     points: a sorted list; intervals: `interval_tree.py`

The rows of an interval and of a point find each other:

    points between low and high         a slice of the sorted list
    intervals that have a point         those that begin before it and end after it

A look-up is by the key of a row of the other side. Keys of other families have no place in its
order: their rows are found too, and the expression tells whether they match, or raises.

State:  every row, once; 8 bytes per different key of points, some 12 of intervals.
Cost:   O(log n) per different key that comes or goes; a look-up O(log n) and then as many steps as
        it finds, times O(log n) for intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sortedcontainers import SortedList

from reactive.engine.collections.families import Family, family_of
from reactive.engine.collections.index import (
    ERROR_KEY,
    NOTHING,
    Index,
    Key,
    KeyedPair,
    Mark,
    Rows,
    Weighted,
    itself,
    rows_of,
)
from reactive.engine.collections.interval_tree import IntervalTree
from reactive.engine.collections.key_range import Form, Range
from reactive.engine.collections.keyed_batch import (
    KeyedBatch,
    add_each,
)
from reactive.engine.collections.zset import Pair, Row, consolidate


class Points:
    """Different values in order."""

    __slots__ = ("_closed", "_values")

    def __init__(self, closed: tuple[bool, bool]) -> None:
        starts, ends = closed
        self._closed = (ends, starts)
        self._values: SortedList = SortedList()

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._values)

    def update(self, values: Iterable[Key]) -> None:
        self._values.update(values)

    def remove(self, value: Key) -> None:
        self._values.remove(value)

    def between(
        self, low: Any, high: Any, closed: tuple[bool, bool] | None = None
    ) -> Iterable[Key]:
        """The values between two ends, of which None is none."""
        found: Iterable[Key] = self._values.irange(low, high, closed or self._closed)
        return found

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

    __slots__ = ("_fresh", "_handle", "_index", "_orders", "_range")

    def __init__(self, of: Range, handle: Callable[[Row], Any] = itself) -> None:
        self._range = of
        self._handle = handle
        self._index = Index(handle)
        self._orders: dict[Family, Points | IntervalTree] = {}
        self._fresh: dict[Key, None] = {}
        """Keys that are not put in order yet."""

    @property
    def rows(self) -> int:
        return self._index.rows

    @property
    def keys(self) -> int:
        """How many different keys there are."""
        return self._index.keys

    def find(self, key: Key, default: Any) -> Any:
        """The rows that a key of the other side may match, in one of the forms of an index."""
        found = [] if key.__class__ is Mark else self._found(key)
        if len(found) < 2:
            return found[0] if found else default
        rows = Rows()
        for bucket in found:
            if bucket.__class__ is Rows:
                rows.extend(bucket)
            elif bucket.__class__ is Weighted:
                return Weighted(enumerate(pair for b in found for pair in rows_of(b)))
            else:
                rows.append(bucket)
        return rows

    def pairs(self, key: Key) -> Sequence[Pair]:
        """The same with their weights; of `ERROR_KEY`, the rows that have no place in the order."""
        if key.__class__ is Mark:
            return self._index.pairs(key) if key is ERROR_KEY else ()
        found = self.find(key, NOTHING)
        return () if found is NOTHING else rows_of(found)

    def between(
        self, low: Any, high: Any, closed: tuple[bool, bool]
    ) -> tuple[list[Pair], list[Pair]]:
        """The rows of points between two ends, of which None is none; and those that have no place
        in the order of these."""
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
                found += rows_of(buckets[key])
        return inside, others

    def earlier(self, delta: Iterable[KeyedPair]) -> Earlier:
        """The same as it was before a delta that it has taken in."""
        taken = RangeIndex(self._range, self._handle)
        for key, (row, weight) in delta:
            taken.add(key, row, -weight)
        return Earlier(self, taken)

    def before(self, delta: Iterable[KeyedPair]) -> Callable[..., Any]:
        return self.earlier(delta).get

    def items(self) -> Iterator[KeyedPair]:
        """Every row with its key."""
        return self._index.items()

    def add(self, key: Key, row: Row, weight: int) -> None:
        """Add a row's weight; nothing has changed if something raises."""
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
        """Add all rows of a batch, or none."""
        self.change(batch)

    def change(self, keyed: Sequence[KeyedPair]) -> None:
        """Add all pairs of a delta, or none."""
        add_each(self, keyed)

    def bytes(self) -> int:
        return self._index.bytes() + sum(order.bytes() for order in self._orders.values())

    def _family(self, key: Key, form: Form) -> Family:
        return family_of(key[0] if form == "interval" else key)

    def _forget(self, key: Key) -> None:
        if key in self._fresh:
            del self._fresh[key]
            return
        family = self._family(key, self._range.own)
        order = self._orders[family]
        order.remove(key)
        if not len(order):
            del self._orders[family]

    def _order(self) -> None:
        """Put the keys in order that have come since the last look-up."""
        families: dict[Family, list[Key]] = {}
        for key in self._fresh:
            families.setdefault(self._family(key, self._range.own), []).append(key)
        for family, keys in families.items():
            order = self._orders.get(family)
            if order is None:
                kind = IntervalTree if self._range.own == "interval" else Points
                order = self._orders[family] = kind(self._range.closed)
            order.update(keys)
        self._fresh = {}

    def _found(self, key: Key) -> list[Any]:
        """What the keys have that match a key of the other side, or are of other families."""
        if self._fresh:
            self._order()
        form, buckets = self._range.other, self._index.buckets
        family = self._family(key, form)
        low, high = key if form == "interval" else (key, key)
        low, high = None if form == "high" else low, None if form == "low" else high
        found: list[Any] = []
        for other, order in self._orders.items():
            keys = order.between(low, high) if other == family else order
            found += [buckets[k] for k in keys]
        return found


class Earlier:
    """An index as it was before a delta, which is `taken` from it."""

    __slots__ = ("_index", "_taken")

    def __init__(self, index: RangeIndex, taken: RangeIndex) -> None:
        self._index = index
        self._taken = taken

    def get(self, key: Key, default: Any) -> Any:
        """The rows that a key of the other side matched, in a form of the index."""
        return Weighted(enumerate(self.pairs(key))) or default

    def pairs(self, key: Key) -> Sequence[Pair]:
        now, changed = self._index.pairs(key), self._taken.pairs(key)
        return consolidate([*now, *changed]) if changed else now
