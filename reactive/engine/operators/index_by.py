"""Index by: integrate an input into an index by key, for the look-ups of joins.

    step:   index  :=  index + dL          and emit dL with its keys

The node steps before the operators that share its index, so that they look up the rows *after* the
commit; `find_before` looks up the rows before it.

**The index of a table is built at the first look-up.** Until then a commit only emits its delta
with keys, since the index can still be built from the table itself. An index of a table by a
foreign key, for example, is needed only when a referenced row is inserted or changes.
Once built, it is maintained.

    before any look-up       hash the keys of dL: only that could raise
    first look-up            index := the rows of the table, with this commit's
    undo                     index := index - dL, if it was built in this commit too

The index is filtered: it holds no row that the key rejects. Rows for which the key raises are
stored under `ERROR_KEY`. The index is `poisoned` while it has such rows, or had some before the
commit; joins then use their slow path (`join.py`).

State:  every row of the input that is not rejected, once (`index.py`); nothing before the build.
Cost:   O(|dL|); of the first look-up O(|L|), which loading the table has saved.
Source: [dbsp] integration of bilinear operators; shared arrangements of differential dataflow.

Key by: emit each pair of a delta with its key, for an operator that matches by key.

A delta is consolidated first: a change of a field that a select has dropped must not pass twice
through all matches of a join. Rows with identity never cancel.

State:  none.
Cost:   O(|dL|).
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import NoneType
from typing import Any, ClassVar, Protocol, TypeVar

from reactive.engine.collections.index import (
    ERROR_KEY,
    FILTERED,
    NO_MATCH,
    Index,
    Key,
    KeyedPair,
    Mark,
    itself,
)
from reactive.engine.collections.trie import Trie
from reactive.engine.collections.zset import KeyedBatch, Pair, Pairs, Row, consolidate, is_mixed
from reactive.engine.operators.operator import DetachedState

PLAIN = frozenset({int, str, float, bool, NoneType})
"""Key classes whose instances are always hashable."""
SEVERAL_FILLS = 3
"""Joins that are filled by a pass over a table before its index is built to fill the next ones."""
FINDS_NOTHING: Callable[..., Any] = dict[Any, Any]().get
"""Look-up in an empty index."""


class Keyer(Protocol):
    """Operator that emits the pairs of a delta with their keys."""

    touched: int
    emits_filtered: bool

    def step(self, delta: Pairs) -> Sequence[KeyedPair]: ...


class IndexFollower(Protocol):
    """Arranges the rows of some keys of an index, which tells it its deltas."""

    def follow(self, delta: Sequence[KeyedPair], sign: int = 1) -> None: ...
    def clear(self) -> None: ...
    def bytes(self) -> int: ...


IndexFollowerT = TypeVar("IndexFollowerT", bound=IndexFollower)


class IndexBy:
    """Maintain an `Index` of the input, with filtered rows only if `keeps_filtered`.

    >>> by_length = IndexBy(len)
    >>> by_length.step([("anna", 1), ("otto", 1)])
    [(4, ('anna', 1)), (4, ('otto', 1))]
    >>> list(by_length.index.pairs(4))
    [('anna', 1), ('otto', 1)]
    """

    gives_keys: ClassVar[bool] = True
    change_cost: ClassVar[float] = 3.5
    emits_changes: ClassVar[bool] = False
    __slots__ = (
        *("__weakref__", "_all_rows", "_hidden", "_index", "_is_empty", "_keeps_rejected"),
        *("_keyed", "_last", "_followers", "_others", "_table", "_wanted"),
        *("look_up", "poisoned", "was_empty"),
    )

    def __init__(
        self,
        key: Callable[[Row], Key] | None,
        handle: Callable[[Row], Any] = itself,
        all_rows: Callable[[], Iterable[Pair]] | None = None,
        keyed: Keyer | None = None,
        index: Any = None,
        *,
        keeps_filtered: bool = False,
        table: Callable[[], Pairs] | None = None,
        trie: bool = False,
    ) -> None:
        self._keyed = KeyedStream(key, identity=handle is not itself) if keyed is None else keyed
        self._all_rows = all_rows
        self._others: tuple[weakref.ref[IndexBy], ...] = ()
        self._last: Sequence[KeyedPair] = ()
        self._keeps_rejected = keeps_filtered
        self._hidden: Sequence[KeyedPair] = ()
        own: Any = Trie(handle) if trie else Index(handle)
        self._index: Any = own if index is None else index
        self._table = table
        """Lists all rows of the input, until the index is built from them; then None."""
        self._wanted = 0
        """The number of joins that the index would have helped to fill, while it is not built."""
        self._is_empty = True
        """True if no row has arrived and the index is not built."""
        self.look_up: Callable[..., Any] | None = None
        """Looks up the current rows of a key, once there is an index."""
        if table is None:
            self.look_up = getattr(self._index, "find", None)
        self._followers: weakref.WeakValueDictionary[Hashable, IndexFollower] | None = None
        """Arrangements of the rows of some keys, for joins in which rows of such keys move."""
        self.poisoned = False
        self.was_empty = False
        """True if the index was empty before the step of this commit."""

    @property
    def index(self) -> Any:
        """The index. Reading it builds it; it is maintained from then on."""
        if self._table is not None:
            self._make(self._table)
        return self._index

    @property
    def has_plain_keys(self) -> bool:
        """True if rows match by equal keys alone: no ranges, and no keys of two parts."""
        return type(self._index) is Index

    @property
    def is_empty(self) -> bool:
        """True if no row has arrived and the index is not built."""
        return self._is_empty and self._table is not None

    def held_keys(self) -> Collection[Key]:
        """Return the keys that have rows, as they are at any later time."""
        found: Collection[Key] = self._index.buckets
        return found

    @property
    def handle(self) -> Callable[[Row], Any]:
        """The function that gives the identity of a row."""
        found: Callable[[Row], Any] = self._index.handle
        return found

    @property
    def is_made(self) -> bool:
        """True once the index is built, because of a look-up."""
        return self._table is None

    @property
    def source(self) -> str | None:
        """The generated code that computes the keys, if there is any."""
        return getattr(self._keyed, "source", None)

    @property
    def touched(self) -> int:
        return self._keyed.touched

    def defer(self) -> None:
        """Build the index at the first look-up, over rows that an earlier process has indexed.

        No key of these rows raises, or is without a hash.
        """
        self._is_empty = False

    def add_keys(self, delta: Pairs) -> Sequence[KeyedPair]:
        """Return `delta` with its keys, not stored. An error row in it poisons the index."""
        if self._others:
            self._decide_on_filtered()
        keyed = self._keyed.step(delta)
        if type(keyed) is not KeyedBatch:
            self.poisoned = self.poisoned or any(key is ERROR_KEY for key, _ in keyed)
        return keyed

    def keys_of_batch(self) -> Callable[..., Any] | None:
        """Return the loop from rows to their keys and the rows that have one; None if there is
        none, or filtered rows are kept."""
        keyed: Any = self._keyed
        if self._others:
            self._decide_on_filtered()
        return None if keyed.emits_filtered else getattr(keyed, "batch", None)

    def _decide_on_filtered(self) -> None:
        """Emit filtered rows if this index keeps them, or a joined index is poisoned."""
        others = [reference() for reference in self._others]
        told = self._keeps_rejected or any(o is not None and o.poisoned for o in others)
        self._keyed.emits_filtered = told

    def step(self, delta: Pairs) -> Sequence[KeyedPair]:
        """Return the delta with keys, and apply it to the index if that is built."""
        if self._others:
            self._decide_on_filtered()
        keyed = self._last = self._keyed.step(delta)
        try:
            if self._table is None:
                self.was_empty = not self._index.rows
                if self._followers is not None:
                    self._follow(keyed)
                self._take(keyed)
            else:
                self.was_empty = self._is_empty
                self._is_empty = self._is_empty and not keyed
                if self._keyed.emits_filtered or not has_valid_keys(keyed):
                    self._make(self._table)
                    self._note_marks(keyed)
        except BaseException:
            self._last = ()
            self._clear_followers()
            raise
        return keyed

    def _make(self, table: Callable[[], Pairs]) -> None:
        """Build the index from all rows of the table, including the rows of this commit.

        If that raises, the next look-up builds it.
        """
        told, self._keyed.emits_filtered = self._keyed.emits_filtered, False
        try:
            self._take(self._keyed.step(table()))
        finally:
            self._keyed.emits_filtered = told
        self._table, self.look_up = None, self._index.find

    def _take(self, keyed: Sequence[KeyedPair]) -> None:
        """Apply keyed pairs to the built index, and note if it has error rows."""
        if type(keyed) is KeyedBatch:
            self._index.extend(keyed)
        elif len(keyed) > 1 and not self._keyed.emits_filtered:
            self._index.change(keyed)
            self.poisoned = self.poisoned or bool(self._index.pairs(ERROR_KEY))
        else:
            self._add(keyed)

    def follower(self, of: Hashable, make: Callable[[], IndexFollowerT]) -> IndexFollowerT:
        """Return the arrangement that is found by `of`, which follows the index while it is
        used."""
        if self._followers is None:
            self._followers = weakref.WeakValueDictionary()
        found: Any = self._followers.get(of)
        if found is None:
            found = self._followers[of] = make()
        return found  # type: ignore[no-any-return]

    def _follow(self, keyed: Sequence[KeyedPair], sign: int = 1) -> None:
        """Apply a delta of the index to its followers, or take it back."""
        try:
            for follower in list(self._followers.values()) if self._followers else ():
                follower.follow(keyed, sign)
        except BaseException:
            self._clear_followers()
            raise

    def _clear_followers(self) -> None:
        """Drop the arrangements of all keys, which are made again when needed."""
        for follower in list(self._followers.values()) if self._followers else ():
            follower.clear()

    def _note_marks(self, keyed: Sequence[KeyedPair]) -> None:
        """Mark the index as poisoned if a key is an error or filtered."""
        if any(key.__class__ is Mark and key is not NO_MATCH for key, _ in keyed):
            self.poisoned = True

    def _add(self, keyed: Sequence[KeyedPair]) -> None:
        """Add pairs one by one, filtered rows included; all of them, or none if one raises."""
        done, add = 0, self._index.add
        try:
            for key, (row, weight) in keyed:
                if key.__class__ is Mark and key is not NO_MATCH:
                    self.poisoned = True
                if key is not FILTERED or self._keeps_rejected:
                    add(key, row, weight)
                done += 1
        except BaseException:
            self._take_back(keyed[:done])
            raise

    def undo(self) -> None:
        """Undo the last step; an index that this commit built stays built, without its changes."""
        if self._table is None:
            self.take_back(self._last)
        else:
            self._is_empty = self.was_empty
        self.commit()

    def commit(self) -> None:
        """Drop the undo state, and check if error rows are left."""
        self._last = ()
        self.was_empty = False
        if self.poisoned:
            self.poisoned = bool(self.index.pairs(ERROR_KEY))

    def meets(self, other: IndexBy) -> None:
        """Register the other index of a join; while it has error rows, emit filtered rows."""
        self._others = (*(r for r in self._others if r() is not None), weakref.ref(other))

    def all_rows(self, since: Sequence[KeyedPair] = ()) -> Iterable[Pair]:
        """Return the rows of the input as they were before `since`, filtered rows included.

        Only the rows of the index are returned if the input stores no rows.
        """
        tells_all = self._all_rows is not None or self._keeps_rejected
        changed = [
            (row, -weight) for key, (row, weight) in since if tells_all or key is not FILTERED
        ]
        rows: Iterable[Pair]
        if self._all_rows is None:
            rows = [pair for _, pair in self.index.items()]
        else:
            rows = self._all_rows()
            changed += [(row, -weight) for _, (row, weight) in self._hidden]
        return consolidate([*rows, *changed]) if changed else rows

    def find(self, *, before: bool) -> Callable[..., Any]:
        """Return the look-up of a key: of current rows, or of rows before this commit.

        Do not store the function: for an empty index it is a constant, and no index is built.
        """
        if before and self._last:
            return self.find_before(self._last)
        if self._table is not None and self._is_empty:
            return FINDS_NOTHING
        found: Callable[..., Any] = self.index.find
        return found

    def find_before(self, keyed: Sequence[KeyedPair]) -> Callable[..., Any]:
        """Return the look-up of a key in the rows before `keyed`, a delta already applied."""
        if self.was_empty:
            return FINDS_NOTHING
        if not keyed:
            return self.find(before=False)
        found: Callable[..., Any] = self.index.find_before(keyed)
        return found

    @contextmanager
    def hide_delta(self, keyed: Sequence[KeyedPair]) -> Iterator[None]:
        """Hide the delta `keyed`, already applied, inside the context."""
        self.take_back(keyed)
        self._hidden = keyed
        try:
            yield
        finally:
            self._hidden = ()
            self.take_back([(key, (row, -weight)) for key, (row, weight) in keyed])

    @contextmanager
    def as_stepped(self, keyed: Sequence[KeyedPair]) -> Iterator[None]:
        """Act inside the context as in the commit of the delta `keyed`."""
        self._last = keyed
        try:
            yield
        finally:
            self.commit()

    @contextmanager
    def as_filled(self) -> Iterator[None]:
        """Act inside the context as in a commit that inserts all rows."""
        was, self.was_empty = self.was_empty, True
        try:
            yield
        finally:
            self.was_empty = was

    def is_worth_building(self) -> bool:
        """Return True if the index is to be built to fill a join; each call counts as one join."""
        self._wanted += 1
        return self._wanted > SEVERAL_FILLS

    def contents(self) -> Iterable[KeyedPair]:
        """Return all pairs with keys; builds the index if most rows of the table are filtered."""
        if self._table is None or self._keyed.emits_filtered:
            return list(self.index.items())
        rows = self._table()
        keyed = self._keyed.step(rows)
        if 2 * len(keyed) < len(rows):  # the next call reads the smaller index
            self._take(keyed)
            self._table, self.look_up = None, self._index.find
        return keyed

    @property
    def held_rows(self) -> int | None:
        """The number of rows in the index; None if it is not built."""
        return self._index.rows if self._table is None else None

    @property
    def is_detachable(self) -> bool:
        return type(self._index) is Index and not (self.poisoned or self._keeps_rejected)

    def detach_state(self) -> DetachedState | None:
        """Empty the index, whose dictionary is the same from then on: loops refer to it."""
        if self._table is not None:
            return None
        index = self._index
        kept, rows = dict(index.buckets), index.rows
        self._clear_followers()

        def restore() -> None:
            self._clear_followers()
            self.commit()
            self.poisoned = False
            index.buckets.clear()
            index.buckets.update(kept)
            index.rows = rows

        index.buckets.clear()
        index.rows = 0
        return DetachedState(restore)

    def footprint(self) -> tuple[int, int]:
        arranged = sum(follower.bytes() for follower in (self._followers or {}).values())
        return self._index.rows, self._index.bytes() + arranged

    def take_back(self, keyed: Sequence[KeyedPair]) -> None:
        """Remove a delta that was applied."""
        if self._table is not None:
            self._make(self._table)
        self._follow(keyed, -1)
        self._take_back(keyed)

    def _take_back(self, keyed: Sequence[KeyedPair]) -> None:
        """Remove applied pairs from the index, the last first."""
        for key, (row, weight) in reversed(keyed):
            if key is not FILTERED or self._keeps_rejected:
                self._index.add(key, row, -weight)


def has_valid_keys(keyed: Sequence[KeyedPair]) -> bool:
    """Return True if no key is an error; raises, as an index would, if a key cannot be hashed."""
    keys = keyed.keys if type(keyed) is KeyedBatch else [key for key, _ in keyed]
    kinds = set(map(type, keys))
    if kinds <= PLAIN:
        return True
    try:
        deque(map(hash, keys), maxlen=0)
    except Exception:
        _check_each(keyed)
        raise
    return Mark not in kinds or all(key is not ERROR_KEY for key in keys)


def _check_each(keyed: Sequence[KeyedPair]) -> None:
    """Raise for the row whose key cannot be hashed, as the variable `row`, for the error note."""
    for key, (row, _) in keyed:  # noqa: B007 (the error note reads `row` from this frame)
        hash(key)


class KeyedStream:
    """Emit pairs with their keys; without a key function, every row has the key `()`.

    A key may be one of the marks of `index.py`. Filtered rows are skipped, unless `emits_filtered`
    is set because the other side of a join has error rows.

    >>> KeyedStream(len).step([("anna", 1)])
    [(4, ('anna', 1))]
    """

    gives_keys: ClassVar[bool] = True
    __slots__ = ("_identity", "_key", "emits_filtered", "touched")

    def __init__(self, key: Callable[[Row], Key] | None, *, identity: bool = False) -> None:
        self._key = key
        self._identity = identity
        self.emits_filtered = False
        self.touched = 0

    def step(self, delta: Pairs) -> list[KeyedPair]:
        """Return the pairs with their keys; filtered rows only if `emits_filtered`."""
        self.touched += len(delta)
        if not self._identity and is_mixed(delta):
            delta = consolidate(delta)
        key = self._key
        if key is None:
            return [((), pair) for pair in delta]
        keyed = []
        for pair in delta:
            found = key(pair[0])
            if found is not FILTERED or self.emits_filtered:
                keyed.append((found, pair))
        return keyed
