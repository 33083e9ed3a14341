"""A recursive relation as one side of a join: its rows by key, and the deltas of an index.

It is an `IndexBy` that takes several deltas in one commit, one in each round, and can take all of
them back. The weights in it are 1; when a row came is in `Facts`.
"""

from __future__ import annotations

from collections.abc import Sequence

from reactive.index import KeyedPair
from reactive.operators.index_by import IndexBy
from reactive.zset import Batch, Pair, Pairs


class Premise:
    """The rows of a relation, by key.

    >>> premise = Premise(0, IndexBy(len))
    >>> premise.change([("anna", 3)])
    [(4, ('anna', 1))]
    >>> list(premise.index_by.index.pairs(4))
    [('anna', 1)]
    """

    __slots__ = ("_taken", "index_by", "relation")

    def __init__(self, relation: int, index_by: IndexBy) -> None:
        self.relation = relation
        self.index_by = index_by
        self._taken: list[Sequence[KeyedPair]] = []

    def change(self, delta: Pairs) -> Sequence[KeyedPair]:
        """Take in rows that enter or leave, with rounds as weights; the same with their keys."""
        keyed = self.index_by.step(_weighted(delta))
        self._taken.append(keyed)
        return keyed

    def undo(self) -> None:
        for keyed in reversed(self._taken):
            self.index_by.take_back(keyed)
        self.commit()

    def commit(self) -> None:
        self._taken = []
        self.index_by.commit()


def _weighted(delta: Pairs) -> Sequence[Pair]:
    if isinstance(delta, Batch):
        return Batch(delta.rows, 1 if delta.weight > 0 else -1)
    return [(row, 1 if weight > 0 else -1) for row, weight in delta]
