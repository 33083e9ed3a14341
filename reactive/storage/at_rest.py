"""The rows of a store, for views that are made now: one batch of them where they are many.

State:  none.
Cost:   O(rows).
"""

from __future__ import annotations

from collections.abc import Sequence

from reactive.collections.zset import Batch, Pair
from reactive.storage.keyed_store import KeyedStore
from reactive.storage.store import BagStore, Store

MANY = 256
"""From this number of rows on, a view that is made begins with one batch of them."""


def rows_at_rest(store: Store) -> Sequence[Pair]:
    """The rows of a store with their weights.

    >>> rows_at_rest(BagStore())
    []
    """
    rows = None
    if isinstance(store, BagStore | KeyedStore) and len(store) >= MANY:
        rows = store.distinct()
    if rows is None:
        return list(store.pairs())
    batch = Batch(rows, 1)
    batch.differ = True
    return batch
