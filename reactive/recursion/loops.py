"""The generated loops of the ways, made when they are first needed; None where they cannot run.

What raises in a loop is done again by the plain operators, which raise it, or see that it does not
count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer.traverse import read_functions
from reactive.fuse import Below
from reactive.generated.derived import Way, copying, entering, joined, leaving, leaving_both
from reactive.generated.linear import delta_loop
from reactive.generated.taker import ToList
from reactive.index import KeyedPair
from reactive.operators.index_by import IndexBy
from reactive.recursion.premise import Premise
from reactive.zset import Batch, Pairs

Loop = Callable[..., Any]


class CopyLoops:
    """A chain over rows that enter or leave."""

    __slots__ = ("_below", "_pairs", "_rows")

    def __init__(self, below: Below) -> None:
        self._below = below
        self._rows: Loop | None = None
        self._pairs: Loop | None = None

    def run(self, delta: Pairs) -> Pairs | None:
        """What comes of them."""
        try:
            if isinstance(delta, Batch):
                if self._rows is None:
                    self._rows = copying(self._below.chain, self._below.plan())
                return Batch(self._rows(delta.rows), delta.weight)
            if self._pairs is None:
                self._pairs = self._made_for_pairs()
            pairs: Pairs = self._pairs(delta)
            return pairs
        except Exception:
            return None

    def _made_for_pairs(self) -> Loop:
        todo = self._below.plan()
        loop, _ = delta_loop("delta", todo, read_functions(*self._below.chain), ToList(todo))
        return loop


class PairLoops:
    """Rows of one side that enter or leave, joined with the other side."""

    __slots__ = ("_enter", "_join", "_leave", "_mine", "_other", "_way")

    def __init__(self, way: Way, mine: Premise, other: Premise | IndexBy) -> None:
        self._way = way
        self._mine = mine
        self._other = other
        self._enter: Loop | None = None
        self._leave: Loop | None = None
        self._join: Loop | None = None

    def run(self, delta: Pairs) -> Pairs | None:
        """What comes of rows that enter or leave."""
        other = self._other
        index = other.index_by if isinstance(other, Premise) else other
        if index.odd or self._mine.index_by.odd:
            return None
        find = index.index.buckets.get
        try:
            if isinstance(delta, Batch):
                if self._enter is None:
                    self._enter = entering(self._way)
                return Batch(self._enter(delta.rows, find), delta.weight)
            pairs: Pairs
            if isinstance(other, Premise):
                if self._leave is None:
                    self._leave = leaving_both(self._way)
                pairs = self._leave(delta, find, other.facts.since)
            else:
                if self._leave is None:
                    self._leave = leaving(self._way)
                pairs = self._leave(delta, find)
            return pairs
        except Exception:
            return None

    def given(self, keyed: Sequence[KeyedPair]) -> Pairs | None:
        """What comes of rows of the other side, an input, that come or go."""
        mine, other = self._mine, self._other
        assert isinstance(other, IndexBy)
        if other.odd or mine.index_by.odd:
            return None
        if self._join is None:
            self._join = joined(self._way)
        try:
            pairs: Pairs = self._join(keyed, mine.index_by.index.buckets.get, mine.facts.rounds)
            return pairs
        except Exception:
            return None
