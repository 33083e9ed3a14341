"""An index: a Z-set at rest, arranged by a key.

    key -> (row, weight)                    the only row of its key
    key -> {handle: (row, weight), ...}     several

The pairs of a delta are kept as they came, so that a row that a table holds, and all indexes
over it, share one pair. The handle is the row itself, or its `id` where the rows are interned
(`properties.keeps_identity`), which is never more than an integer to hash.

A key that is NaN, or has one in it, matches nothing: such rows are kept under `NO_MATCH`, which
every look-up finds empty.

State:  every row, once.
Cost:   O(1) per pair of a delta; look-up O(1) and then one per row found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from reactive.zset import Pair, Row

Key = Any
KeyedPair = tuple[Key, Pair]
Bucket = dict[Any, Pair]


class NoMatch:
    """The key of rows that match nothing."""

    def __repr__(self) -> str:
        return "NO_MATCH"


NO_MATCH: Final = NoMatch()


def match_key(key: Key) -> Key:
    """The key to look up: itself, or `NO_MATCH` if it is NaN or a tuple with a NaN in it."""
    kind = type(key)
    if kind is int or kind is str:
        return key
    if kind is tuple:
        return NO_MATCH if any(part != part for part in key) else key
    return key if key == key else NO_MATCH


def itself(row: Row) -> Row:
    """The handle of rows that are not interned."""
    return row


class Index:
    """Rows with their weights, by key.

    >>> index = Index()
    >>> for pair in [("anna", 1), ("otto", 2), ("bert", 1)]:
    ...     index.add(len(pair[0]), pair)
    >>> list(index.pairs(4)), index.rows
    ([('anna', 1), ('otto', 2), ('bert', 1)], 3)
    """

    __slots__ = ("_buckets", "_handle", "rows")

    def __init__(self, handle: Callable[[Row], Any] = itself) -> None:
        self._handle = handle
        self._buckets: dict[Key, Pair | Bucket] = {}
        self.rows = 0

    def pairs(self, key: Key) -> Collection[Pair]:
        """The rows of a key."""
        bucket = self._buckets.get(key)
        if bucket is None or key is NO_MATCH:
            return ()
        return bucket.values() if type(bucket) is dict else (bucket,)  # type: ignore[return-value]

    def items(self) -> Iterator[KeyedPair]:
        """Every row with its key, those that match nothing too."""
        for key, bucket in self._buckets.items():
            if type(bucket) is dict:
                for pair in bucket.values():
                    yield key, pair
            else:
                yield key, bucket  # type: ignore[misc]

    def add(self, key: Key, pair: Pair) -> None:
        """Add a row's weight; a sum of zero removes the row, its last row removes the key."""
        bucket = self._buckets.get(key)
        if bucket is None:
            self._buckets[key] = pair
            self.rows += 1
        elif type(bucket) is dict:
            self._add_to_bucket(key, bucket, pair)
        else:
            self._add_to_pair(key, bucket, pair)  # type: ignore[arg-type]

    def _add_to_pair(self, key: Key, held: Pair, pair: Pair) -> None:
        handle = self._handle
        if handle(held[0]) != handle(pair[0]):
            self._buckets[key] = {handle(held[0]): held, handle(pair[0]): pair}
            self.rows += 1
            return
        weight = held[1] + pair[1]
        if weight:
            self._buckets[key] = (held[0], weight)
        else:
            del self._buckets[key]
            self.rows -= 1

    def _add_to_bucket(self, key: Key, bucket: Bucket, pair: Pair) -> None:
        handle = self._handle(pair[0])
        held = bucket.get(handle)
        if held is None:
            bucket[handle] = pair
            self.rows += 1
            return
        weight = held[1] + pair[1]
        if weight:
            bucket[handle] = (held[0], weight)
            return
        del bucket[handle]
        self.rows -= 1
        if len(bucket) == 1:
            self._buckets[key] = next(iter(bucket.values()))

    def bytes(self) -> int:
        """Bytes of the index itself: dictionaries and pairs, without the rows and keys."""
        buckets = sum(sys.getsizeof(b) for b in self._buckets.values() if type(b) is dict)
        return sys.getsizeof(self._buckets) + buckets + self.rows * sys.getsizeof((0, 0))
