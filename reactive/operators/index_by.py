"""Index by: integrate an input, arranged by a key, for joins to look rows up in.

    step:   index  :=  index + dL          and hands on dL with its keys

It steps before the operators that share it, which so find the rows of *after* the commit;
`before` gives those of before it.

State:  every row of the input, once (`index.py`).
Cost:   O(|dL|).
Source: [dbsp] integration of bilinear operators; shared arrangements of differential dataflow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from reactive.index import NO_MATCH, Index, Key, KeyedPair, itself
from reactive.operators.key_by import KeyBy
from reactive.zset import Pair, Pairs, Row, consolidate


class IndexBy:
    """Keeps an `Index` of its input.

    >>> by_length = IndexBy(len)
    >>> by_length.step([("anna", 1), ("otto", 1)])
    [(4, ('anna', 1)), (4, ('otto', 1))]
    >>> list(by_length.index.pairs(4))
    [('anna', 1), ('otto', 1)]
    """

    __slots__ = ("_keyed", "_last", "index")

    def __init__(
        self, key: Callable[[Row], Key] | None, handle: Callable[[Row], Any] = itself
    ) -> None:
        self._keyed = KeyBy(key, identity=handle is not itself)
        self.index = Index(handle)
        self._last: Sequence[KeyedPair] = ()

    @property
    def touched(self) -> int:
        return self._keyed.touched

    def step(self, delta: Pairs) -> list[KeyedPair]:
        keyed = self._keyed.step(delta)
        add, done = self.index.add, 0
        try:
            for key, pair in keyed:
                add(key, pair)
                done += 1
        except BaseException:
            self._take_back(keyed[:done])
            raise
        self._last = keyed
        return keyed

    def undo(self) -> None:
        self._take_back(self._last)
        self._last = ()

    def commit(self) -> None:
        self._last = ()

    def contents(self) -> Iterable[KeyedPair]:
        return list(self.index.items())

    def footprint(self) -> tuple[int, int]:
        return self.index.rows, self.index.bytes()

    def _take_back(self, keyed: Sequence[KeyedPair]) -> None:
        for key, (row, weight) in reversed(keyed):
            self.index.add(key, (row, -weight))


class Before:
    """An index as it was before a delta that it has already taken in."""

    __slots__ = ("_changed", "_index")

    def __init__(self, index: Index, delta: Iterable[KeyedPair]) -> None:
        self._index = index
        self._changed: dict[Key, list[Pair]] = {}
        for key, (row, weight) in delta:
            self._changed.setdefault(key, []).append((row, -weight))

    def pairs(self, key: Key) -> Collection[Pair]:
        """The rows that the key had."""
        changed = self._changed.get(key)
        if changed is None or key is NO_MATCH:
            return self._index.pairs(key)
        return consolidate([*self._index.pairs(key), *changed])
