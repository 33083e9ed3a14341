"""All rows of an index with their keys, as a batch.

Cost: O(keys + rows), no call per row but for keys that many rows have.
"""

from __future__ import annotations

from reactive.engine.collections.index import Index, Key, Rows, Weighted
from reactive.engine.collections.keyed_batch import KeyedBatch
from reactive.engine.collections.zset import Row


def batch_of(index: Index) -> KeyedBatch | None:
    """The rows, in order of the keys' arrival; None if one is not there once.

    >>> index = Index()
    >>> for row in ("anna", "eva", "otto"):
    ...     index.add(len(row), row, 1)
    >>> list(batch_of(index))
    [(4, ('anna', 1)), (4, ('otto', 1)), (3, ('eva', 1))]
    """
    keys: list[Key] = []
    rows: list[Row] = []
    for key, bucket in index.buckets.items():
        kind = bucket.__class__
        if kind is Rows:
            rows += bucket
            keys += [key] * len(bucket)
        elif kind is Weighted:
            more = [row for row, weight in bucket.values() if weight == 1]
            if len(more) < len(bucket):
                return None
            rows += more
            keys += [key] * len(more)
        else:
            keys.append(key)
            rows.append(bucket)
    return KeyedBatch(keys, rows, 1)
