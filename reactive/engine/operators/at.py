"""At: the rows of an index whose key is a value, one of several, or in a range.

Rows without a key, or with one of another kind than the range has, are asked the condition that is
looked up: it may let them through, or raise.

State:  none; the index is shared with all that want other keys, and with joins.
Cost:   O(|dL|); to begin with, O(rows found), however large the index is, and of rows to be asked.
Source: alpha memories of C. L. Forgy, *Rete*, 1982; shared arrangements of differential dataflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optimizer.plans.wanted import AnyOf, Between
from reactive.engine.collections.families import family_of
from reactive.engine.collections.index import ERROR_KEY, KeyedPair, Mark
from reactive.engine.collections.zset import Pair
from reactive.engine.operators.index_by import IndexBy

Ask = Callable[[Sequence[Pair]], Sequence[Pair]]
"""Those of some rows that pass the condition."""


class At:
    """Hands on the rows that are wanted; it is given those, and what is to be asked (`routes.py`).

    >>> by_length = IndexBy(len)
    >>> four = At(by_length, 4, list)
    >>> four.step(by_length.step([("anna", 1)])), list(four.contents())
    ([('anna', 1)], [('anna', 1)])
    """

    __slots__ = ("_ask", "_family", "_index", "_wanted", "touched")

    def __init__(self, index: IndexBy, wanted: Any, ask: Ask) -> None:
        self._index = index
        self._wanted = wanted
        self._ask = ask
        self._family: Any = None
        if isinstance(wanted, Between):
            self._family = family_of(wanted.high if wanted.low is None else wanted.low)
        self.touched = 0

    def step(self, delta: Sequence[KeyedPair]) -> list[Pair]:
        self.touched += len(delta)
        if len(delta) == 1:  # as below, for one row
            ((key, pair),) = delta
            return list(self._ask([pair])) if self._is_to_ask(key) else [pair]
        to_ask = [pair for key, pair in delta if self._is_to_ask(key)]
        if not to_ask:
            return [pair for _, pair in delta]
        found = [pair for key, pair in delta if not self._is_to_ask(key)]
        return [*found, *self._ask(to_ask)]

    def contents(self) -> Iterable[Pair]:
        index, wanted = self._index.index, self._wanted
        if isinstance(wanted, Between):
            found, to_ask = index.between(wanted.low, wanted.high, wanted.closed)
        else:
            keys = wanted.values if isinstance(wanted, AnyOf) else (wanted,)
            found = [pair for key in keys for pair in index.pairs(key)]
            to_ask = index.pairs(ERROR_KEY)
        return [*found, *self._ask(to_ask)] if to_ask else found

    def _is_to_ask(self, key: Any) -> bool:
        if key.__class__ is Mark:
            return True
        return self._family is not None and family_of(key) != self._family
