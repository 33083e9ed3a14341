"""At: the rows of an index that have one key.

State:  none; the index is shared with all that want other keys, and with joins.
Cost:   O(|dL|); to begin with, O(rows of the key), however large the index is.
Source: alpha memories of C. L. Forgy, *Rete*, 1982; shared arrangements of differential dataflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from reactive.collections.index import KeyedPair
from reactive.collections.zset import Pair
from reactive.operators.index_by import IndexBy


class At:
    """Hands on the rows of a key; it is given no others (`walk.py`).

    >>> by_length = IndexBy(len)
    >>> four = At(by_length, 4)
    >>> four.step(by_length.step([("anna", 1)])), list(four.contents())
    ([('anna', 1)], [('anna', 1)])
    """

    __slots__ = ("_index", "_key", "touched")

    def __init__(self, index: IndexBy, key: Any) -> None:
        self._index = index
        self._key = key
        self.touched = 0

    def step(self, delta: Sequence[KeyedPair]) -> list[Pair]:
        self.touched += len(delta)
        return [pair for _, pair in delta]

    def contents(self) -> Iterable[Pair]:
        return list(self._index.index.pairs(self._key))
