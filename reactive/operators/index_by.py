"""Index by: integrate an input, arranged by a key, for joins to look rows up in.

    step:   index  :=  index + dL          and hands on dL with its keys

It steps before the operators that share it, which so find the rows of *after* the commit;
`before` gives those of before it.

Rows that the key rejects are not kept: the index is filtered. Rows that it cannot decide are kept
under `ERROR_KEY`; while there are any, or were before the commit, the index is `poisoned`, and
joins take their careful way (`error_rows.py`).

State:  every row of the input that is not rejected, once (`index.py`).
Cost:   O(|dL|).
Source: [dbsp] integration of bilinear operators; shared arrangements of differential dataflow.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

from reactive.collections.index import (
    ERROR_KEY,
    FILTERED,
    NO_MATCH,
    Index,
    Key,
    KeyedPair,
    Mark,
    itself,
)
from reactive.collections.keyed_batch import (
    KeyedBatch,
)
from reactive.collections.trie import Trie
from reactive.collections.zset import Pair, Pairs, Row, consolidate
from reactive.operators.key_by import KeyBy


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
        *("__weakref__", "_all_rows", "_hidden", "_keeps_rejected", "_keyed", "_last"),
        "_others",
        *("index", "poisoned", "was_empty"),
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
        trie: bool = False,
    ) -> None:
        self._keyed = KeyBy(key, identity=handle is not itself) if keyed is None else keyed
        self._all_rows = all_rows
        self._others: tuple[weakref.ref[IndexBy], ...] = ()
        self._last: Sequence[KeyedPair] = ()
        self._keeps_rejected = keeps_filtered
        self._hidden: Sequence[KeyedPair] = ()
        own: Any = Trie(handle) if trie else Index(handle)
        self.index: Any = own if index is None else index
        self.poisoned = False
        self.was_empty = False
        """Whether it held nothing before the step of this commit."""

    @property
    def source(self) -> str | None:
        """The generated code that computes the keys, if there is any."""
        return getattr(self._keyed, "source", None)

    @property
    def touched(self) -> int:
        return self._keyed.touched

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
        self.was_empty = not self.index.rows
        try:
            if type(keyed) is KeyedBatch:
                self.index.extend(keyed)
            elif len(keyed) > 1 and not self._keyed.emits_filtered:
                self.index.change(keyed)
                self.poisoned = self.poisoned or bool(self.index.pairs(ERROR_KEY))
            else:
                self._add(keyed)
        except BaseException:
            self._last = ()
            raise
        return keyed

    def _add(self, keyed: Sequence[KeyedPair]) -> None:
        """Add pairs, or none, of which some may be rejected."""
        done, add = 0, self.index.add
        try:
            for key, (row, weight) in keyed:
                if key.__class__ is Mark and key is not NO_MATCH:
                    self.poisoned = True
                if key is not FILTERED or self._keeps_rejected:
                    add(key, row, weight)
                done += 1
        except BaseException:
            self.take_back(keyed[:done])
            raise

    def undo(self) -> None:
        self.take_back(self._last)
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
        """What looks a key up, as of now; or as of before this commit."""
        found: Callable[..., Any] = (
            self.index.before(self._last) if before and self._last else self.index.find
        )
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

    def contents(self) -> Iterable[KeyedPair]:
        return list(self.index.items())

    def footprint(self) -> tuple[int, int]:
        return self.index.rows, self.index.bytes()

    def take_back(self, keyed: Sequence[KeyedPair]) -> None:
        """Take a delta out again that the index has taken in."""
        for key, (row, weight) in reversed(keyed):
            if key is not FILTERED or self._keeps_rejected:
                self.index.add(key, row, -weight)
