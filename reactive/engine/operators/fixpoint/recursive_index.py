"""A recursive relation as one side of a join: its rows by key.

It is an index that takes several deltas in one commit, and can take all of them back. Where the
other side is an input, it is read when that input changes and at no other time: then it is brought
up to date once, at the end of a commit. Otherwise it follows each round.

State:  the rows, by key (`row_index.py`).
Cost:   O(rows that enter or leave).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reactive.engine.collections.index import KeyedPair
from reactive.engine.collections.zset import Batch, Pair, Pairs
from reactive.engine.operators.fixpoint.recursive_relation import RecursiveRelation
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.key_by import KeyBy

Held = tuple[dict[Any, Any], int, bool, list[Sequence[KeyedPair]]]
"""What is in an index, and what this commit has taken in."""


class RecursiveIndex:
    """The rows of a relation, by key.

    >>> recursive_index = RecursiveIndex(RecursiveRelation(), IndexBy(len), follows=False)
    >>> recursive_index.change([("anna", 3)])
    >>> list(recursive_index.index_by.index.pairs(4))
    [('anna', 1)]
    """

    __slots__ = ("_taken", "follows", "index_by", "relation")

    def __init__(self, relation: RecursiveRelation, index_by: IndexBy, *, follows: bool) -> None:
        self.relation = relation
        self.index_by = index_by
        self.follows = follows
        """Whether it follows each round."""
        self._taken: list[Sequence[KeyedPair]] = []

    def keyed(self, delta: Pairs) -> Sequence[KeyedPair]:
        """Rows that enter or leave, with their keys; they are not taken in."""
        return self.index_by.keyed(_weighted(delta))

    def change(self, delta: Pairs) -> None:
        """Take in rows that enter or leave; the weights in the index are 1."""
        self._taken.append(self.index_by.step(_weighted(delta)))

    def undo(self) -> None:
        """Be as before the commit."""
        for keyed in reversed(self._taken):
            self.index_by.take_back(keyed)
        self.commit()

    def set_aside(self) -> Held:
        """Begin from nothing; what there was is returned."""
        index = self.index_by.index
        held = (index.buckets, index.rows, self.index_by.poisoned, self._taken)
        index.buckets, index.rows, self._taken = {}, 0, []
        self.index_by.poisoned = False
        return held

    def bring_back(self, held: Held) -> None:
        """Be as before the commit, in which all was set aside."""
        index = self.index_by.index
        index.buckets, index.rows, self.index_by.poisoned, self._taken = held
        self.undo()

    def commit(self) -> None:
        """Forget how it was before."""
        self._taken = []
        self.index_by.commit()


class FilteredKeys:
    """The keys of rows that pass some wheres.

    >>> from reactive.engine.operators.key_by import KeyBy
    >>> FilteredKeys(lambda pairs: [p for p in pairs if p[0] != "otto"], KeyBy(len)).step(
    ...     [("anna", 1), ("otto", 1)])
    [(4, ('anna', 1))]
    """

    __slots__ = ("_keys", "_wheres")

    def __init__(self, wheres: Callable[[Pairs], Pairs], keys: KeyBy) -> None:
        self._wheres = wheres
        self._keys = keys

    @property
    def touched(self) -> int:
        return self._keys.touched

    @property
    def emits_filtered(self) -> bool:
        """Whether rows that the key rejects are told of."""
        return self._keys.emits_filtered

    @emits_filtered.setter
    def emits_filtered(self, value: bool) -> None:
        self._keys.emits_filtered = value

    def step(self, delta: Pairs) -> Sequence[KeyedPair]:
        return self._keys.step(self._wheres(delta))


def _weighted(delta: Pairs) -> Sequence[Pair]:
    if type(delta) is Batch:
        return Batch(delta.rows, 1 if delta.weight > 0 else -1)
    return [(row, 1 if weight > 0 else -1) for row, weight in delta]
