"""Tries, numberings of values, and batches of an index.

Trie: an integrated Z-set arranged by a key of two parts, one below the other.

    by_first   key -> {key below -> rows, as in an index}

A cyclic join intersects the dictionaries below two keys of two tries, so it visits no row for which
the cycle does not close: worst-case optimal for three inputs.

State:  every row, once; a dictionary per first part.
Cost:   O(1) per pair of a delta; the smaller side per intersection.
Source: tries of leapfrog triejoin: Veldhuizen, 2014; generic join: Ngo, Re, Rudra, 2013.

Numbering: values by small numbers, which are reused.

State:  a dictionary entry and a place in a list per value; a place per free number.
Cost:   O(1) each.

Batch of an index: all its rows with their keys.

Cost: O(keys + rows); no call per row, except for keys with many rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from typing import Any

from reactive.engine.collections.index import (
    NOTHING,
    FewRows,
    Index,
    Key,
    KeyedPair,
    Mark,
    WeightedRows,
    bucket_pairs,
    itself,
    remove_pairs,
)
from reactive.engine.collections.zset import KeyedBatch, Pair, Row, consolidate

Below = dict[Any, Any]
SEVERAL = frozenset({FewRows, WeightedRows})
"""Classes of buckets that hold several rows."""
MANY_TIMES = 32
"""Dictionaries larger than `MANY_TIMES` their change are not copied."""


class Trie:
    """Rows with their weights, by keys of two parts. It can replace an `Index`.

    >>> trie = Trie()
    >>> for edge in [(1, 2), (1, 3), (2, 3)]:
    ...     trie.add(edge, edge, 1)
    >>> sorted(common_keys(trie.by_first[1], trie.by_first[2]))
    [3]
    """

    __slots__ = ("_below", "by_first", "rows")

    def __init__(self, handle: Callable[[Row], Any] = itself) -> None:
        self.by_first: dict[Any, Below] = {}
        self._below = Index(handle)  # index over one inner dictionary, set before each use
        self.rows = 0
        """Number of different rows."""

    @property
    def find(self) -> Callable[..., Any]:
        """The look-up of the dictionary below a first part."""
        return self.by_first.get

    def find_before(self, delta: Sequence[KeyedPair]) -> Callable[..., Any]:
        """Return `find` as it was before a delta that is already applied."""
        if len(delta) != 1:
            return TrieBefore(self, delta).get
        ((key, pair),) = delta
        return TrieBeforeOne(self, key, pair).get

    def add(self, key: Key, row: Row, weight: int) -> None:
        """Add a row's weight; a row of weight zero is dropped."""
        first, second = _key_parts(key)
        below = self.by_first.get(first)
        if weight == 1:
            if below is None:
                self.by_first[first] = {second: row}
                self.rows += 1
                return
            if second not in below:
                below[second] = row
                self.rows += 1
                return
        elif weight == -1 and below is not None and below.get(second, NOTHING) is row:
            if len(below) > 1:
                del below[second]
            else:
                del self.by_first[first]
            self.rows -= 1
            return
        self._add(first, second, row, weight)

    def _add(self, first: Any, second: Any, row: Row, weight: int) -> None:
        """Add to the weight of a row, in all cases that `add` does not handle itself."""
        held = self.by_first.get(first)
        index = self._below
        index.buckets, index.rows = {} if held is None else held, 0
        index.add(second, row, weight)
        try:
            if held is None and index.buckets:
                self.by_first[first] = index.buckets
            elif held is not None and not held:
                del self.by_first[first]
        except BaseException:  # the key raised when hashed
            index.add(second, row, -weight)
            raise
        self.rows += index.rows

    def extend(self, batch: KeyedBatch) -> None:
        """Add all rows of a batch; none if one raises."""
        self.change(batch)

    def change(self, keyed: Sequence[KeyedPair]) -> None:
        """Add all pairs of a delta, or none if one raises; most of them without a call of `add`."""
        by_first, get, done = self.by_first, self.by_first.get, 0
        try:
            for done, (key, (row, weight)) in enumerate(keyed):  # noqa: B007
                first, second = (key, key) if key.__class__ is Mark else key
                below = get(first)
                if below is None and weight == 1:
                    by_first[first] = {second: row}
                    self.rows += 1
                elif below is None:
                    self._add(first, second, row, weight)
                elif weight == 1 and second not in below:
                    below[second] = row
                    self.rows += 1
                elif weight == -1 and len(below) > 1 and below.get(second, NOTHING) is row:
                    del below[second]
                    self.rows -= 1
                else:
                    self.add(key, row, weight)
        except BaseException:
            remove_pairs(self, keyed[:done])
            raise

    def pairs(self, key: Key) -> list[Pair]:
        """Return the rows of a key."""
        first, second = _key_parts(key)
        self._below.buckets = self.by_first.get(first, {})
        return list(self._below.pairs(second))

    def items(self) -> Iterator[KeyedPair]:
        """Yield every row with its key."""
        for first, below in list(self.by_first.items()):
            self._below.buckets = below
            for second, pair in list(self._below.items()):
                yield first if first.__class__ is Mark else (first, second), pair

    def bytes(self) -> int:
        """Return the bytes of the dictionaries and lists, without the rows and keys."""
        size = sys.getsizeof(self.by_first)
        for below in self.by_first.values():
            self._below.buckets = below
            size += self._below.bytes()
        return size


class TrieBefore:
    """Trie before a delta that is already applied."""

    __slots__ = ("_changed", "_found", "_trie")

    def __init__(self, trie: Trie, delta: Iterable[KeyedPair]) -> None:
        self._trie = trie
        self._changed: dict[Any, list[tuple[Any, Pair]]] = {}
        self._found: dict[Any, Below | BelowBefore] = {}  # looked up changed keys
        for key, pair in delta:
            first, second = _key_parts(key)
            self._changed.setdefault(first, []).append((second, pair))

    def get(self, first: Any, default: Any) -> Any:
        """Return the dictionary below a first part, before the delta."""
        now = self._trie.by_first.get(first, default)
        if first not in self._changed:
            return now
        found = self._found.get(first)
        if found is None:
            changed = self._changed[first]
            now = {} if now is NOTHING else now
            was = (
                _old_rows_of_one(*changed[0], now) if len(changed) == 1 else _old_rows(changed, now)
            )
            found = self._found[first] = _with_old_rows(now, was, len(changed))
        return found


class TrieBeforeOne:
    """Trie before a delta of one pair, the most frequent case."""

    __slots__ = ("_by_first", "_first", "_found", "_pair", "_second")

    def __init__(self, trie: Trie, key: Key, pair: Pair) -> None:
        self._by_first = trie.by_first
        self._first, self._second = _key_parts(key)
        self._pair = pair
        self._found: Below | BelowBefore | None = None

    def get(self, first: Any, default: Any) -> Any:
        """Return the dictionary below a first part, before the delta."""
        if not (first is self._first or first == self._first):
            return self._by_first.get(first, default)
        if self._found is None:
            now = self._by_first.get(first, {})
            self._found = _with_old_rows(now, _old_rows_of_one(self._second, self._pair, now), 1)
        return self._found


def _with_old_rows(now: Below, was: Below, changed: int) -> Below | BelowBefore:
    """Return a dictionary of a trie with other rows for some keys; a copy, if it is small."""
    if len(now) > MANY_TIMES * changed:
        return BelowBefore(now, was)
    copied = now.copy()
    for second, rows in was.items():
        if rows is NOTHING:
            copied.pop(second, None)
        else:
            copied[second] = rows
    return copied


def _old_rows_of_one(second: Any, pair: Pair, now: Below) -> Below:
    """Return the previous rows below a key with one changed row."""
    row, weight = pair
    if weight == 1 and now.get(second, NOTHING) is row:
        return {second: NOTHING}
    if weight == -1 and second not in now:
        return {second: row}
    return _old_rows([(second, pair)], now)


def _old_rows(changed: Sequence[tuple[Any, Pair]], now: Below) -> Below:
    """Return the previous rows below keys with changed rows."""
    had: dict[Any, list[Pair]] = {}
    for second, (row, weight) in changed:
        rows = had.get(second)
        if rows is None:
            rows = had[second] = list(bucket_pairs(now[second])) if second in now else []
        rows.append((row, -weight))
    return {second: _make_bucket(rows) for second, rows in had.items()}


class BelowBefore:
    """A dictionary of a trie, with other rows for some keys."""

    __slots__ = ("_had", "_now")

    def __init__(self, now: Below, had: Below) -> None:
        self._now = now
        self._had = had

    def __getitem__(self, key: Any) -> Any:
        found = self._had.get(key)
        return self._now[key] if found is None else found

    def __contains__(self, key: object) -> bool:
        found = self._had.get(key)
        return key in self._now if found is None else found is not NOTHING

    def meets(self, other: Below | BelowBefore) -> Set[Any]:
        """Return the keys that another dictionary also has."""
        found = {*common_keys(self._now, other)}
        for key, rows in self._had.items():
            if rows is NOTHING:
                found.discard(key)
            elif key in other:
                found.add(key)
        return found


def common_keys(one: Below | BelowBefore, other: Below | BelowBefore) -> Set[Any]:
    """Return the common keys of two dictionaries; iterates over the smaller one."""
    if type(one) is BelowBefore:
        return one.meets(other)
    if type(other) is BelowBefore:
        return other.meets(one)
    return one.keys() & other.keys()  # type: ignore[union-attr]


def joined_pairs(
    one: Below | BelowBefore, other: Below | BelowBefore
) -> list[tuple[Row, Row, int]]:
    """Return all pairs of rows below common keys, with the product of their weights."""
    found = []
    for key in common_keys(one, other):
        left, right = one[key], other[key]
        if left.__class__ in SEVERAL or right.__class__ in SEVERAL:
            found += [(a, b, n * m) for a, n in bucket_pairs(left) for b, m in bucket_pairs(right)]
        else:
            found.append((left, right, 1))
    return found


def count_joined_pairs(one: Below | BelowBefore, other: Below | BelowBefore) -> int:
    """Return the number of pairs of rows below common keys."""
    found = 0
    for key in common_keys(one, other):
        left, right = one[key], other[key]
        if left.__class__ in SEVERAL or right.__class__ in SEVERAL:
            found += _total_weight(left) * _total_weight(right)
        else:
            found += 1
    return found


def _total_weight(bucket: Any) -> int:
    """Return the total weight of the rows of a bucket."""
    return sum(weight for _, weight in bucket_pairs(bucket))


def _make_bucket(pairs: list[Pair]) -> Any:
    """Return rows of a key as a bucket of the index; `NOTHING` if they cancel out."""
    net = consolidate(pairs)
    if len(net) == 1 and net[0][1] == 1:
        return net[0][0]
    return WeightedRows(enumerate(net)) if net else NOTHING


def _key_parts(key: Key) -> tuple[Any, Any]:
    """Return the two parts of a key; a mark is both."""
    return (key, key) if key.__class__ is Mark else key


class UnlikeValue(Exception):
    """Raised for a value that equals a value of another class, or does not equal itself."""


class Numbering:
    """Assigns numbers to values; equal values get the same number.

    >>> numbering = Numbering()
    >>> [numbering.number(name) for name in ("anna", "otto", "anna")], numbering.values
    ([0, 1, 0], ['anna', 'otto'])
    """

    __slots__ = ("_free", "fresh", "numbers", "values")

    def __init__(self) -> None:
        self.numbers: dict[Hashable, int] = {}
        self.values: list[Any] = []
        self.fresh: list[int] = []
        """The numbers assigned since the caller last emptied the list."""
        self._free: list[int] = []

    def number(self, value: Any) -> int:
        """Return the number of a value.

        Raises `UnlikeValue` for NaN, and for a value that equals a numbered value of another class:
        one could not represent both.
        """
        found = self.numbers.get(value)
        if found is None:
            return self._new(value)
        if self.values[found].__class__ is not value.__class__:
            raise UnlikeValue(value)
        return found

    def _new(self, value: Any) -> int:
        """Give a value a number, a reused one if possible. Raises `UnlikeValue` for NaN."""
        if not value == value:
            raise UnlikeValue(value)
        if self._free:
            number = self._free[-1]
            self.numbers[value] = number
            self._free.pop()
            self.values[number] = value
        else:
            number = self.numbers[value] = len(self.values)
            self.values.append(value)
        self.fresh.append(number)
        return number

    def restore(self, values: Sequence[Any], free: Sequence[int]) -> None:
        """Load values, numbered by their places, except free numbers."""
        self.values += values
        self._free += free
        is_free = {*free}
        self.numbers.update({v: n for n, v in enumerate(values) if n not in is_free})

    @property
    def free(self) -> Sequence[int]:
        """The unused numbers."""
        return self._free

    def release(self, numbers: Iterable[int]) -> None:
        """Remove the values of numbers, which become free."""
        for number in numbers:
            del self.numbers[self.values[number]]
            self.values[number] = None
            self._free.append(number)
        if not self.numbers:
            self.values, self._free = [], []


def index_as_batch(index: Index) -> KeyedBatch | None:
    """Return the rows in order of their keys' arrival; None if a weight is not 1.

    >>> index = Index()
    >>> for row in ("anna", "eva", "otto"):
    ...     index.add(len(row), row, 1)
    >>> list(index_as_batch(index))
    [(4, ('anna', 1)), (4, ('otto', 1)), (3, ('eva', 1))]
    """
    keys: list[Key] = []
    rows: list[Row] = []
    for key, bucket in index.buckets.items():
        kind = bucket.__class__
        if kind is FewRows:
            rows += bucket
            keys += [key] * len(bucket)
        elif kind is WeightedRows:
            more = [row for row, weight in bucket.values() if weight == 1]
            if len(more) < len(bucket):
                return None
            rows += more
            keys += [key] * len(more)
        else:
            keys.append(key)
            rows.append(bucket)
    return KeyedBatch(keys, rows, 1)
