"""Index by: integrate an input, arranged by a key, for joins to look rows up in.

    step:   index  :=  index + dL          and hands on dL with its keys

It steps before the operators that share it, which so find the rows of *after* the commit;
`before` gives those of before it.

**The index of a table is made when somebody first looks something up in it.** Until then the table
itself is enough to make it of, and a commit only hands on its delta with its keys. A table that
others refer to, and that refers to them, changes as much as it likes: an index of it by what it
refers to is asked for when they change, or rows of theirs come. From then on it is kept.

    while nobody looks up    hash the keys of dL, which is all that could raise
    first look-up            index := the rows of the table, with those of this commit
    undo                     index := index - dL, if it was made in this commit too

Rows that the key rejects are not kept: the index is filtered. Rows that it cannot decide are kept
under `ERROR_KEY`; while there are any, or were before the commit, the index is `poisoned`, and
joins take their careful way (`join.py`).

State:  every row of the input that is not rejected, once (`index.py`), or nothing yet.
Cost:   O(|dL|); of the first look-up O(|L|), which loading the table has saved.
Source: [dbsp] integration of bilinear operators; shared arrangements of differential dataflow.

Key by: put a key beside every pair of a delta, for an operator that matches by it.

What comes and goes in the same delta is cancelled first: a change of fields that a select has
dropped should not go through all matches of a join twice. Rows known by identity never cancel.

State:  none.
Cost:   O(|dL|).
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import NoneType
from typing import Any, ClassVar, Protocol

from reactive.engine.collections.index import (
    ERROR_KEY,
    FILTERED,
    NO_MATCH,
    Index,
    Key,
    KeyedBatch,
    KeyedPair,
    Mark,
    itself,
)
from reactive.engine.collections.trie import Trie
from reactive.engine.collections.zset import Pair, Pairs, Row, consolidate, is_mixed

PLAIN = frozenset({int, str, float, bool, NoneType})
"""Classes of keys that can be hashed."""
FINDS_NOTHING: Callable[..., Any] = dict[Any, Any]().get
"""What looks a key up where there is no row."""


class Keyer(Protocol):
    """What puts keys beside the pairs of a delta."""

    touched: int
    emits_filtered: bool

    def step(self, delta: Pairs) -> Sequence[KeyedPair]: ...


class IndexBy:
    """Keeps an `Index` of its input; rows that the key rejects too, if so told.

    >>> by_length = IndexBy(len)
    >>> by_length.step([("anna", 1), ("otto", 1)])
    [(4, ('anna', 1)), (4, ('otto', 1))]
    >>> list(by_length.index.pairs(4))
    [('anna', 1), ('otto', 1)]
    """

    gives_keys: ClassVar[bool] = True
    __slots__ = (
        *("__weakref__", "_all_rows", "_hidden", "_index", "_is_empty", "_keeps_rejected"),
        *("_keyed", "_last", "_others", "_table"),
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
        """What gives all rows of the input, while no index has been made of them."""
        self._is_empty = True
        """Whether no row has come while no index has been made."""
        self.look_up: Callable[..., Any] | None = None
        """What looks a key up as of now, once there is an index."""
        if table is None:
            self.look_up = getattr(self._index, "find", None)
        self.poisoned = False
        self.was_empty = False
        """Whether it held nothing before the step of this commit."""

    @property
    def index(self) -> Any:
        """The index, which is kept from now on."""
        if self._table is not None:
            self._make(self._table)
        return self._index

    @property
    def handle(self) -> Callable[[Row], Any]:
        """What tells its rows apart."""
        found: Callable[[Row], Any] = self._index._handle
        return found

    @property
    def is_made(self) -> bool:
        """Whether there is an index, since somebody has looked something up."""
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

    def keyed(self, delta: Pairs) -> Sequence[KeyedPair]:
        """A delta with its keys, not taken in. With an error row in it, the index is poisoned from
        now on."""
        if self._others:
            self._decide_on_filtered()
        keyed = self._keyed.step(delta)
        if type(keyed) is not KeyedBatch:
            self.poisoned = self.poisoned or any(key is ERROR_KEY for key, _ in keyed)
        return keyed

    def _decide_on_filtered(self) -> None:
        """Whether others have to be told of rows that the key rejects."""
        others = [reference() for reference in self._others]
        told = self._keeps_rejected or any(o is not None and o.poisoned for o in others)
        self._keyed.emits_filtered = told

    def step(self, delta: Pairs) -> Sequence[KeyedPair]:
        if self._others:
            self._decide_on_filtered()
        keyed = self._last = self._keyed.step(delta)
        try:
            if self._table is None:
                self.was_empty = not self._index.rows
                self._take(keyed)
            else:
                self.was_empty = self._is_empty
                self._is_empty = self._is_empty and not keyed
                if self._keyed.emits_filtered or not are_hashable(keyed):
                    self._make(self._table)
                    self._note_marks(keyed)
        except BaseException:
            self._last = ()
            raise
        return keyed

    def _make(self, table: Callable[[], Pairs]) -> None:
        """Make the index of the rows that there are, with those that have come in this commit.

        The table already has these. What breaks it off leaves it to the next who asks.
        """
        told, self._keyed.emits_filtered = self._keyed.emits_filtered, False
        try:
            self._take(self._keyed.step(table()))
        finally:
            self._keyed.emits_filtered = told
        self._table, self.look_up = None, self._index.find

    def _take(self, keyed: Sequence[KeyedPair]) -> None:
        if type(keyed) is KeyedBatch:
            self._index.extend(keyed)
        elif len(keyed) > 1 and not self._keyed.emits_filtered:
            self._index.change(keyed)
            self.poisoned = self.poisoned or bool(self._index.pairs(ERROR_KEY))
        else:
            self._add(keyed)

    def _note_marks(self, keyed: Sequence[KeyedPair]) -> None:
        if any(key.__class__ is Mark and key is not NO_MATCH for key, _ in keyed):
            self.poisoned = True

    def _add(self, keyed: Sequence[KeyedPair]) -> None:
        """Add pairs, or none, of which some may be rejected."""
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
        if self._table is None:
            self.take_back(self._last)
        else:
            self._is_empty = self.was_empty
        self.commit()

    def commit(self) -> None:
        self._last = ()
        self.was_empty = False
        if self.poisoned:
            self.poisoned = bool(self.index.pairs(ERROR_KEY))

    def meets(self, other: IndexBy) -> None:
        """Be told that a join pairs these rows, some rejected, with those of another index."""
        self._others = (*(r for r in self._others if r() is not None), weakref.ref(other))

    def all_rows(self, since: Sequence[KeyedPair] = ()) -> Iterable[Pair]:
        """The rows of the input, those too that the index leaves out, as they were before `since`.

        Of an input that nobody keeps those are gone: only the rows of the index are left.
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
        """What looks a key up in this commit, as of now; or as of before it.

        It is not to be kept: while no row has come, an index is not made for it.
        """
        if before and self._last:
            return self.find_before(self._last)
        if self._table is not None and self._is_empty:
            return FINDS_NOTHING
        found: Callable[..., Any] = self.index.find
        return found

    def find_before(self, keyed: Sequence[KeyedPair]) -> Callable[..., Any]:
        """What looks a key up as it was before a delta that has been taken in."""
        if self.was_empty:
            return FINDS_NOTHING
        if not keyed:
            return self.find(before=False)
        found: Callable[..., Any] = self.index.before(keyed)
        return found

    @contextmanager
    def without(self, keyed: Sequence[KeyedPair]) -> Iterator[None]:
        """As it would be without a delta that it has taken in."""
        self.take_back(keyed)
        self._hidden = keyed
        try:
            yield
        finally:
            self._hidden = ()
            self.take_back([(key, (row, -weight)) for key, (row, weight) in keyed])

    @contextmanager
    def as_stepped(self, keyed: Sequence[KeyedPair]) -> Iterator[None]:
        """Be as in the commit that has brought a delta."""
        self._last = keyed
        try:
            yield
        finally:
            self.commit()

    def contents(self) -> Iterable[KeyedPair]:
        if self._table is None or self._keyed.emits_filtered:
            return list(self.index.items())
        rows = self._table()
        keyed = self._keyed.step(rows)
        if 2 * len(keyed) < len(rows):  # an index has less than the table: the next one asks it
            self._take(keyed)
            self._table, self.look_up = None, self._index.find
        return keyed

    def footprint(self) -> tuple[int, int]:
        return self._index.rows, self._index.bytes()

    def take_back(self, keyed: Sequence[KeyedPair]) -> None:
        """Take a delta out again that the index has taken in."""
        if self._table is not None:
            self._make(self._table)
        self._take_back(keyed)

    def _take_back(self, keyed: Sequence[KeyedPair]) -> None:
        for key, (row, weight) in reversed(keyed):
            if key is not FILTERED or self._keeps_rejected:
                self._index.add(key, row, -weight)


def are_hashable(keyed: Sequence[KeyedPair]) -> bool:
    """Whether all keys could be computed; raises if one cannot be hashed, as an index would."""
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
    """Raise with the row at hand whose key cannot be hashed, so that the error can name it."""
    for key, (row, _) in keyed:  # noqa: B007 (the row is looked for in this frame)
        hash(key)


class KeyedStream:
    """Pairs with their keys; a row without a key function has the key `()`.

    The key may be one of the marks of `index.py`. Rejected rows are passed over, unless the other
    side of a join has error rows, which must be told of them.

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
