"""The rows of a table as of the last commit: as a store that others read while a transaction is
open, and as one batch.

    rows of now  -  net changes of the transaction

State:  the net changes of the transaction so far.
Cost:   of a look-up as of the table; of all rows O(rows).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reactive.engine.collections.zset import Batch, Pair, Row, consolidate, negate
from reactive.engine.storage.keyed_store import KeyedStore
from reactive.engine.storage.store import BagStore, Store

MANY = 256
"""From this number of rows on, a view that is made begins with one batch of them."""


class Committed:
    """What can be read of a store, without changes that are not committed.

    >>> from reactive.engine.storage.store import BagStore
    >>> store = BagStore()
    >>> changes = [store.add("a", 2), store.add("b", 1)]
    >>> before = Committed(store, changes[1:])
    >>> len(before), before.count("b"), before.pairs()
    (2, 0, [('a', 2)])
    """

    __slots__ = ("_changes", "_key", "_store")

    def __init__(
        self, store: Store, changes: Sequence[Pair], key: Callable[[Row], Any] | None = None
    ) -> None:
        self._store = store
        self._changes = changes
        self._key = key

    def __len__(self) -> int:
        return len(self._store) - sum(weight for _, weight in self._changes)

    def count(self, row: Row) -> int:
        """How often a row was there."""
        return self._store.count(row) - sum(n for changed, n in self._changes if changed == row)

    def pairs(self) -> list[Pair]:
        """Each row with how often it was there."""
        return consolidate([*self._store.pairs(), *negate(self._changes)])

    def get(self, key: Any) -> Row | None:
        """The row that a key had, of a keyed table; or None."""
        assert self._key is not None
        changed = [(row, weight) for row, weight in self._changes if self._key(row) == key]
        if changed:
            return next((row for row, weight in changed if weight < 0), None)
        get: Callable[[Any], Row | None] = getattr(self._store, "get")  # noqa: B009
        return get(key)


def rows_at_rest(store: Store) -> Sequence[Pair]:
    """The rows of a store with their weights, for views that are made now. Cost: O(rows).

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
