"""Hash matching: left rows whose value has the hash of a right value with a custom `__eq__`.

Look-ups of such values (`optimizer/rewriting/lookups.py`) join by hash.

    suspects(L, R)(row)  =  L(row)  if R has the hash of the row, or had it since L has rows of it
    alone(L, R)(row)     =  L(row)  -  suspects(L, R)(row)

A suspect that clashes with nothing passes, so a row may stay a suspect longer than needed.
A row that is inserted while the last value of its hash is deleted is a suspect, since both are
looked up in that commit. For the same reason, the values deleted in a commit are recorded.

State:  the weight of R per hash that L has rows of.
Cost:   O(|dL| + |dR| + rows of the hashes that are new in R).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from optimizer.rewriting.clashing import RefusedValues
from reactive.engine.collections.index import Key, KeyedPair
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.matching import Change


class HashMatching:
    """Match by hash; `value` returns the value of a row, `memory` records deleted values.

    >>> from reactive.engine.operators.index_by import IndexBy
    >>> numbers = IndexBy(hash)
    >>> matching = HashMatching(numbers, lambda row: row, RefusedValues())
    >>> matching.step(numbers.step([(7, 1)]), [(7, ("seven", 1))])
    [(7, 0, 1), (7, 1, -1)]
    >>> matching.commit()
    >>> matching.step(numbers.step([(7.0, 1)]), [(7, ("seven", -1))])
    [(7.0, 1, 0)]
    """

    __slots__ = ("_keys", "_last", "_left", "_memory", "_value", "_weights", "touched")

    def __init__(self, left: IndexBy, value: Callable[[Any], Any], memory: RefusedValues) -> None:
        self._left = left
        self._value = value
        self._memory = memory
        self._weights: dict[Key, int] = {}
        self._last: dict[Key, int | None] = {}
        self._keys: set[Key] = set()
        self.touched = 0

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> Sequence[Change]:
        """Return the changes of left rows between alone and suspect."""
        weights, before = self._weights, dict[Key, int | None]()
        self._last, self._keys = before, set()
        self.touched += len(left) + len(right)
        out: list[Change] = []
        for key, (row, weight) in left:
            out.append((row, weight, 0) if key in weights else (row, 0, weight))
            if weight < 0:
                self._memory.leaving.setdefault(key, []).append(self._value(row))
                self._keys.add(key)
        if self._memory.has_any:
            refused = {key for key, _ in left if self._memory.has_hash(key)}
            before.update(dict.fromkeys(refused.difference(weights)))
        for key, (_, weight) in right:
            before.setdefault(key, weights.get(key))
            weights[key] = weights.get(key, 0) + weight
        for key, was in before.items():
            if was is None:
                weights.setdefault(key, 0)
                out += [(row, weight, -weight) for row, weight in self._left.index.pairs(key)]
        return out

    def undo(self) -> None:
        """Restore the weights before the last step, and forget the deleted values."""
        for key, weight in self._last.items():
            if weight is None:
                del self._weights[key]
            else:
                self._weights[key] = weight
        self._last, self._keys = {}, set()
        self._memory.leaving.clear()

    def commit(self) -> None:
        """Drop the hashes of weight zero that no left row has, and forget the deleted values."""
        weights = self._weights
        for key in self._keys.union(self._last):
            if weights.get(key) == 0 and not self._left.index.pairs(key):
                del weights[key]
        self._last, self._keys = {}, set()
        self._memory.leaving.clear()

    def contents(self) -> Iterator[Change]:
        for key, (row, weight) in self._left.contents():
            yield (row, weight, 0) if key in self._weights else (row, 0, weight)

    def footprint(self) -> tuple[int, int]:
        return len(self._weights), sys.getsizeof(self._weights)
