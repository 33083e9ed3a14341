"""Row index: the rows of a set by key, more compact than an `Index`, which holds a bag.

    key -> row                  the only row of its key
    key -> ManyRows {row: None} several

State:  a reference per row; a dictionary per key that has several.
Cost:   O(1) per row; a look-up O(1).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reactive.engine.collections.index import (
    NO_MATCH,
    NOTHING,
    IndexBefore,
    Key,
    KeyedPair,
    add_each,
)
from reactive.engine.collections.zset import KeyedBatch, Pair, Row, UniformDelta


class ManyRows(dict[Row, None]):
    """Rows of a key, in order of arrival."""

    __slots__ = ()


class RowIndex:
    """Rows by key, with the methods of an `Index` that operators use; all weights are 1.

    >>> index = RowIndex()
    >>> for name in ("anna", "otto", "eva"):
    ...     index.add(len(name), name, 1)
    >>> index.add(4, "anna", -1)
    >>> list(index.pairs(4)), list(index.pairs(5)), index.rows
    ([('otto', 1)], [], 2)
    """

    __slots__ = ("buckets", "rows")

    def __init__(self) -> None:
        self.buckets: dict[Key, Any] = {}
        self.rows = 0

    def pairs(self, key: Key) -> Sequence[Pair]:
        """Return the rows of a key, each with weight 1; none for `NO_MATCH`."""
        return (
            ()
            if key is NO_MATCH
            else UniformDelta(_rows_of_bucket(self.buckets.get(key, NOTHING)), 1)
        )

    def earlier(self, delta: Iterable[KeyedPair]) -> IndexBefore:
        """Return the index as it was before a delta that is already applied."""
        return IndexBefore(self, delta)

    def items(self) -> Iterator[KeyedPair]:
        """Yield every row with its key, rows under `NO_MATCH` included."""
        for key, bucket in self.buckets.items():
            for row in _rows_of_bucket(bucket):
                yield key, (row, 1)

    def add(self, key: Key, row: Row, weight: int) -> None:
        """Insert an absent row (1), or delete a present one (-1)."""
        if weight > 0:
            self._add_all(((key, row),))
        else:
            self._remove_all(((key, row),))
        self.rows += weight

    def extend(self, batch: KeyedBatch) -> None:
        """Insert or delete all rows of a batch, or none if one raises."""
        pairs = zip(batch.keys, batch.rows, strict=True)
        try:
            if batch.weight > 0:
                self._add_all(pairs)
                self.rows += len(batch)
            else:
                self._remove_all(pairs)
                self.rows -= len(batch)
        except BaseException:
            done = len(batch) - len(list(pairs)) - 1
            self.rows += done * batch.weight
            for key, row in zip(batch.keys[:done], batch.rows, strict=False):
                self.add(key, row, -batch.weight)
            raise

    def change(self, keyed: Sequence[KeyedPair]) -> None:
        """Apply all pairs of a delta, or none if one raises."""
        add_each(self, keyed)

    def _add_all(self, pairs: Iterable[tuple[Key, Row]]) -> None:
        """Add rows that are absent, each with its key."""
        buckets = self.buckets
        get = buckets.get
        for key, row in pairs:
            bucket = get(key, NOTHING)
            if bucket is NOTHING:
                buckets[key] = row
            elif bucket.__class__ is ManyRows:
                bucket[row] = None
            else:
                buckets[key] = ManyRows(((bucket, None), (row, None)))

    def _remove_all(self, pairs: Iterable[tuple[Key, Row]]) -> None:
        """Remove rows that are present, each with its key."""
        buckets = self.buckets
        for key, row in pairs:
            bucket = buckets[key]
            if bucket.__class__ is not ManyRows:
                del buckets[key]
                continue
            del bucket[row]
            if len(bucket) == 1:
                self._shrink(key, bucket, row)

    def _shrink(self, key: Key, bucket: ManyRows, gone: Row) -> None:
        """Store the only row left of a key as itself; if that raises, restore the row `gone`."""
        try:
            (self.buckets[key],) = bucket
        except BaseException:  # hashing the key raised: restore the row
            bucket[gone] = None
            raise

    def bytes(self) -> int:
        """Return the bytes of the dictionaries, without the rows and keys."""
        several = (bucket for bucket in self.buckets.values() if bucket.__class__ is ManyRows)
        return sys.getsizeof(self.buckets) + sum(map(sys.getsizeof, several))


def _rows_of_bucket(bucket: Any) -> Sequence[Row]:
    if bucket is NOTHING:
        return ()
    return list(bucket) if bucket.__class__ is ManyRows else (bucket,)
