"""Index: an integrated Z-set, arranged by a key.

    key -> row                              the only row of its key, once
    key -> FewRows [row, ...]               a few rows, each once
    key -> WeightedRows {handle: (row, weight)} many rows, or other weights

It stores little more than references to rows. The handle is the row itself, or its `id` if the rows
are interned (`properties.is_interned`), which is an integer, and quick to hash.

A key that is NaN, or contains one, matches nothing: its rows are stored under `NO_MATCH`, and no
look-up finds them.

State:  every row, once.
Cost:   O(1) per pair of a delta; look-up O(1) and then one per row found.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import repeat
from operator import length_hint
from typing import Any, Final, Literal, Protocol

from optimizer.record import record
from reactive.engine.collections.zset import (
    Keyed,
    KeyedBatch,
    Pair,
    Row,
    UniformDelta,
    consolidate,
    delta_keys,
)
from reactive.engine.runtime.interrupts import reraise_asynchronous


class RowReceiver(Protocol):
    """Container that rows are added to by key."""

    def add(self, key: Any, row: Row, weight: int) -> None: ...


def add_each(index: RowReceiver, keyed: Sequence[Keyed]) -> None:
    """Add all pairs of a delta one by one, or none if one raises."""
    done = 0
    try:
        for done, (key, (row, weight)) in enumerate(keyed):  # noqa: B007
            index.add(key, row, weight)
    except BaseException:
        remove_pairs(index, keyed[:done])
        raise


def remove_pairs(index: RowReceiver, keyed: Sequence[Keyed]) -> None:
    """Remove pairs that were added, the last first."""
    for key, (row, weight) in reversed(keyed):
        index.add(key, row, -weight)


Key = Any
KeyedPair = tuple[Key, Pair]

FEW = 12
"""Most rows of a key that are stored as a list."""
SAMPLED = 1_024
"""Number of keys that are compared first."""


class Mark:
    """A key with a special meaning."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


NO_MATCH: Final = Mark("NO_MATCH")
"""Key of rows that match nothing."""
ERROR_KEY: Final = Mark("ERROR_KEY")
"""Key of rows whose key could not be computed: they may match any row."""
FILTERED: Final = Mark("FILTERED")
"""Key of rows that the index leaves out: only error rows of the other side read them."""


NOTHING: Final[Any] = Mark("NOTHING")
"""Result of a look-up without rows."""


class FewRows(list[Row]):
    """A few different rows of a key, each with weight 1."""

    __slots__ = ()


class WeightedRows(dict[Any, Pair]):
    """Rows of a key by their handle."""

    __slots__ = ()


def match_key(key: Key) -> Key:
    """Return the key to look up: `key`, or `NO_MATCH` if it is NaN or a tuple with a NaN."""
    kind = type(key)
    if kind is int or kind is str:
        return key
    if kind is tuple:
        return NO_MATCH if any(part != part for part in key) else key
    return key if key == key else NO_MATCH


def itself(row: Row) -> Row:
    """Return the row itself, the handle of rows that are not interned."""
    return row


class Index:
    """Rows with their weights, by key.

    >>> index = Index()
    >>> for row, weight in [("anna", 1), ("otto", 2), ("bert", 1)]:
    ...     index.add(len(row), row, weight)
    >>> list(index.pairs(4)), index.rows
    ([('anna', 1), ('otto', 2), ('bert', 1)], 3)
    """

    __slots__ = ("buckets", "handle", "rows")

    def __init__(self, handle: Callable[[Row], Any] = itself) -> None:
        self.handle = handle
        self.buckets: dict[Key, Any] = {}
        self.rows = 0

    @property
    def find(self) -> Callable[..., Any]:
        """The look-up of a bucket by key."""
        return self.buckets.get

    @property
    def keys(self) -> int:
        """The number of different keys."""
        return len(self.buckets)

    def find_before(self, delta: Iterable[KeyedPair]) -> Callable[..., Any]:
        """Return `find` as it was before a delta that is already applied."""
        if type(delta) is KeyedBatch and delta.are_new:
            return _find_other_keys(self.buckets.get, set(delta.keys))
        return IndexBefore(self, delta).get

    def earlier(self, delta: Iterable[KeyedPair]) -> IndexBefore:
        """Return the index as it was before a delta that is already applied."""
        return IndexBefore(self, delta)

    def pairs(self, key: Key) -> Sequence[Pair]:
        """Return the rows of a key with their weights; none for `NO_MATCH`."""
        if key is NO_MATCH or key not in self.buckets:
            return ()
        return bucket_pairs(self.buckets[key])

    def weight(self, key: Key, row: Row) -> int:
        """Return the weight of a row."""
        bucket = self.buckets.get(key, NOTHING)
        if bucket.__class__ is WeightedRows:
            held: Pair = bucket.get(self.handle(row), (row, 0))
            return held[1]
        if bucket.__class__ is FewRows:
            return int(self._place(bucket, row) >= 0)
        return int(bucket is not NOTHING and self._is_same(bucket, row))

    def items(self) -> Iterator[KeyedPair]:
        """Yield every row with its key, rows under `NO_MATCH` included."""
        for key, bucket in self.buckets.items():
            kind = bucket.__class__
            if kind is FewRows:
                for row in bucket:
                    yield key, (row, 1)
            elif kind is WeightedRows:
                for pair in bucket.values():
                    yield key, pair
            else:
                yield key, (bucket, 1)

    def add(self, key: Key, row: Row, weight: int) -> None:
        """Add a row's weight; a sum of zero removes the row, and the last row removes the key."""
        buckets = self.buckets
        bucket = buckets.get(key, NOTHING)
        if bucket is NOTHING:
            buckets[key] = row if weight == 1 else self._weigh_rows([(row, weight)])
            self.rows += 1
            return
        kind = bucket.__class__
        if kind is WeightedRows:
            self._add_to_weighted(key, bucket, row, weight)
        elif kind is FewRows:
            self._add_to_few(key, bucket, row, weight)
        elif weight == 1 and not self._is_same(bucket, row):
            buckets[key] = FewRows((bucket, row))
            self.rows += 1
        elif weight == -1 and self._is_same(bucket, row):
            del buckets[key]
            self.rows -= 1
        else:
            self._become_weighted(key, [(bucket, 1), (row, weight)])

    def extend(self, batch: KeyedBatch) -> None:
        """Add all rows of a batch, or none if one raises."""
        if batch.weight != 1:
            self.change(batch)
            return
        try:
            are_new = self.buckets.keys().isdisjoint(batch.keys)
        except Exception as error:  # `_insert` raises it where messages find the row
            reraise_asynchronous(error)
            are_new = False
        if not are_new or not self._fill(batch):
            self._insert(batch.keys, batch.rows)
        batch.are_new = are_new

    def change(self, keyed: Sequence[KeyedPair]) -> None:
        """Add all pairs of a delta, or none if one raises; most of them without a call of `add`."""
        buckets, get, same, done, more = self.buckets, self.buckets.get, self.handle is id, 0, 0
        try:
            for done, (key, pair) in enumerate(keyed):  # noqa: B007
                row, weight = pair
                bucket = get(key, NOTHING)
                if weight == 1 and bucket is NOTHING:
                    buckets[key] = row
                    more += 1
                elif weight == -1 and bucket is row:
                    del buckets[key]
                    more -= 1
                elif bucket.__class__ is WeightedRows:
                    handle, size = id(row) if same else row, len(bucket)
                    held, total = bucket.setdefault(handle, pair)
                    if len(bucket) > size:
                        more += 1
                    elif total + weight:
                        bucket[handle] = held, total + weight
                    elif size > 2:
                        del bucket[handle]
                        more -= 1
                    else:
                        self.add(key, row, weight)
                elif bucket.__class__ is FewRows and weight == 1 and len(bucket) < FEW:
                    if id(row) in map(id, bucket) if same else row in bucket:
                        self.add(key, row, weight)
                    else:
                        bucket.append(row)
                        more += 1
                else:
                    self.add(key, row, weight)
            self.rows += more
        except BaseException:
            self.rows += more
            remove_pairs(self, keyed[:done])
            raise

    def _insert(self, keys: Sequence[Key], rows: Sequence[Row]) -> None:
        """Add one copy of each row, or none if one raises; most of them without a call of `add`."""
        buckets, get, same, more = self.buckets, self.buckets.get, self.handle is id, 0
        left = iter([*rows])
        try:
            for key, row in zip(keys, left, strict=True):
                bucket = get(key, NOTHING)
                if bucket is NOTHING:
                    buckets[key] = row
                    more += 1
                elif bucket.__class__ is WeightedRows:
                    handle, pair = id(row) if same else row, (row, 1)
                    found = bucket.setdefault(handle, pair)
                    if found is pair:
                        more += 1
                    elif found[1] == -1:
                        self.add(key, row, 1)
                    else:
                        bucket[handle] = found[0], found[1] + 1
                elif bucket.__class__ is FewRows and len(bucket) < FEW:
                    if id(row) in map(id, bucket) if same else row in bucket:
                        self.add(key, row, 1)
                    else:
                        bucket.append(row)
                        more += 1
                else:
                    self.add(key, row, 1)
            self.rows += more
        except BaseException:
            self.rows += more
            done = len(rows) - length_hint(left) - 1
            remove_pairs(self, KeyedBatch(keys, rows, 1)[:done])
            raise

    def _fill(self, batch: KeyedBatch) -> bool:
        """Add different rows with new keys, without searching the rows of a key.

        Return False, changing nothing, unless rows are known to differ: because their keys do, or
        because the rows are interned.
        """
        buckets, keys, rows = self.buckets, batch.keys, batch.rows
        size, count = len(buckets), len(rows)
        try:
            if _are_different(keys):
                buckets.update(zip(keys, rows, strict=True))
            elif self.handle is id and (batch.differ or len({*map(id, rows)}) == len(rows)):
                self._group(keys, rows)
            else:
                return False
        except BaseException:
            while len(buckets) > size:  # the last entries are the new ones
                buckets.popitem()
            raise
        self.rows += count
        return True

    def _group(self, keys: Sequence[Key], rows: Sequence[Row]) -> None:
        """Add interned rows that differ, by their keys, which are new."""
        buckets, several = self.buckets, list[Key]()
        get = buckets.get
        for key, row in zip(keys, rows, strict=True):
            bucket = get(key, NOTHING)
            if bucket is NOTHING:
                buckets[key] = row
            elif bucket.__class__ is FewRows:
                bucket.append(row)
            else:
                buckets[key] = FewRows((bucket, row))
                several.append(key)
        for key in several:
            bucket = buckets[key]
            if len(bucket) > FEW:
                buckets[key] = WeightedRows(
                    zip(map(id, bucket), zip(bucket, repeat(1)), strict=False)
                )

    def _add_to_few(self, key: Key, bucket: FewRows, row: Row, weight: int) -> None:
        """Add to the weight of a row of a key with a few rows; change the form if necessary."""
        place = self._place(bucket, row)
        if place < 0 and weight == 1 and len(bucket) < FEW:
            bucket.append(row)
            self.rows += 1
        elif place >= 0 and weight == -1:
            if len(bucket) == 2:
                self.buckets[key] = bucket[1 - place]
            else:
                del bucket[place]
            self.rows -= 1
        else:
            self._become_weighted(key, [*bucket_pairs(bucket), (row, weight)])

    def _add_to_weighted(self, key: Key, bucket: WeightedRows, row: Row, weight: int) -> None:
        """Add to the weight of a row of a key with weighted rows; all of it, or nothing."""
        handle = self.handle(row)
        held, total = bucket.get(handle, (row, 0))
        if total + weight:
            bucket[handle] = (held, total + weight)
            self.rows += total == 0
            return
        held = bucket.pop(handle)
        try:
            if len(bucket) <= 1:
                self._shrink(key, bucket)
        except BaseException:  # the key raised when hashed
            bucket[handle] = held
            raise
        self.rows -= 1

    def _shrink(self, key: Key, bucket: WeightedRows) -> None:
        """Delete a key without rows; store a single row of weight 1 as itself."""
        if not bucket:
            del self.buckets[key]
            return
        ((row, weight),) = bucket.values()
        if weight == 1:
            self.buckets[key] = row

    def _become_weighted(self, key: Key, pairs: list[Pair]) -> None:
        """Replace the rows of a key by `pairs`, with equal rows added up."""
        bucket = self._weigh_rows(pairs)
        held = self.buckets[key]
        if len(bucket) > 1 or any(weight != 1 for _, weight in bucket.values()):
            self.buckets[key] = bucket
        else:
            self._shrink(key, bucket)
        self.rows += len(bucket) - (len(held) if held.__class__ is FewRows else 1)

    def _weigh_rows(self, pairs: list[Pair]) -> WeightedRows:
        """Return pairs as weighted rows by handle; rows whose weights cancel are left out."""
        bucket, handle = WeightedRows(), self.handle
        for row, weight in pairs:
            held, total = bucket.pop(handle(row), (row, 0))
            if total + weight:
                bucket[handle(row)] = (held, total + weight)
        return bucket

    def _place(self, bucket: FewRows, row: Row) -> int:
        """Return the place of a row in a bucket; -1 if absent. Interned rows are not compared."""
        for place, held in enumerate(bucket):
            if held is row:
                return place
        return bucket.index(row) if self.handle is itself and row in bucket else -1

    def _is_same(self, held: Row, row: Row) -> bool:
        """Return True if rows are one object or, unless they are interned, equal."""
        return held is row or (self.handle is itself and bool(held == row))

    def bytes(self) -> int:
        """Return the bytes of dictionaries and lists, without the rows and keys."""
        size = sys.getsizeof(self.buckets)
        for bucket in self.buckets.values():
            if bucket.__class__ is FewRows or bucket.__class__ is WeightedRows:
                size += sys.getsizeof(bucket)
            if bucket.__class__ is WeightedRows:
                size += len(bucket) * sys.getsizeof((0, 0))
        return size


def _are_different(keys: Sequence[Key]) -> bool:
    """Return True if no key occurs twice; a sample rejects most other batches."""
    few = keys[:SAMPLED]
    return len(set(few)) == len(few) and len(set(keys)) == len(keys)


def _find_other_keys(find: Callable[..., Any], new: set[Key]) -> Callable[..., Any]:
    """Return the look-up without the keys that are new."""

    def find_other(key: Key, default: Any) -> Any:
        return default if key in new else find(key, default)

    return find_other


class IndexBefore:
    """Index before a delta that is already applied.

    Few keys of a delta are usually looked up, so its pairs are grouped by key at the first look-up.
    If the new rows of a key are the last of its few rows, as usual, the old rows are those before
    them; an inserted batch need not be grouped to check that.
    """

    __slots__ = ("_by_key", "_come", "_delta", "_found", "_index", "_keys")

    def __init__(self, index: Any, delta: Iterable[KeyedPair]) -> None:
        self._index = index
        self._delta = delta if type(delta) is KeyedBatch else list(delta)
        self._keys = Counter(delta_keys(self._delta))
        self._by_key: dict[Key, list[Pair]] = {}
        self._come: set[int] = set()  # the ids of the rows of a batch
        self._found: dict[Key, Any] = {}  # looked up changed keys

    def get(self, key: Key, default: Any) -> Any:
        """Return the previous bucket of a key; `default` if it had no rows."""
        if key not in self._keys:
            return self._index.buckets.get(key, default)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._had(key)
        return default if found is NOTHING else found

    def _had(self, key: Key) -> Any:
        """Return the previous bucket of a changed key; `NOTHING` if it had no rows."""
        bucket = self._index.buckets.get(key, NOTHING)
        rows = bucket if bucket.__class__ is FewRows else (bucket,)
        left = len(rows) - self._keys[key]
        if bucket.__class__ is WeightedRows or left < 0 or not self._have_come(key, rows[left:]):
            return WeightedRows(enumerate(self.pairs(key))) or NOTHING
        return NOTHING if left == 0 else rows[0] if left == 1 else FewRows(rows[:left])

    def _have_come(self, key: Key, rows: Sequence[Row]) -> bool:
        """Return True if the last rows of a key are its inserted rows."""
        delta = self._delta
        if type(delta) is KeyedBatch and delta.weight == 1:
            self._come = self._come or {*map(id, delta.rows)}
            return self._come.issuperset(map(id, rows))
        pairs = zip(rows, self._find_changed_pairs(key), strict=True)
        return all(weight == 1 and held is row for held, (row, weight) in pairs)

    def pairs(self, key: Key) -> Collection[Pair]:
        """Return the previous rows of a key."""
        held: Sequence[Pair] = self._index.pairs(key)
        if key not in self._keys or key is NO_MATCH:
            return held
        return consolidate(
            [*held, *((row, -weight) for row, weight in self._find_changed_pairs(key))]
        )

    def _find_changed_pairs(self, key: Key) -> Sequence[Pair]:
        """Return the pairs of a changed key; the first call groups the delta by key."""
        if not self._by_key:
            for each, pair in self._delta:
                self._by_key.setdefault(each, []).append(pair)
        return self._by_key[key]


def bucket_pairs(bucket: Any) -> Sequence[Pair]:
    """Return the rows of a bucket, with their weights."""
    kind = bucket.__class__
    if kind is FewRows:
        return UniformDelta(bucket, 1)
    return list(bucket.values()) if kind is WeightedRows else ((bucket, 1),)


# Keys of an index in order that match a key of the other side of a join.

Form = Literal["point", "interval", "low", "high"]
"""Form of a key: a point, both ends of an interval, or one of them."""


@record
class Range:
    """Condition for keys of an index to match a key of the other side.

        own low <= other high   and   other low <= own high

    `closed` is True for each comparison that is `<=`, not `<`. A missing end is not compared.
    """

    own: Form
    other: Form
    closed: tuple[bool, bool] = (True, True)
