"""Distinct: each row once, however often it occurs.

    distinct(L)(row)  =  1 if L(row) > 0 else 0

Not linear, but a row's own weights before and after tell all:

    d(row)  =  [L(row) + dL(row) > 0]  -  [L(row) > 0]

State:  the weight of every distinct row.
Cost:   O(|dL|).
Source: [dbsp] proposition 4.7, incremental distinct; [i3ql] duplicate elimination.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from reactive.engine.collections.zset import Batch, Pair, Pairs, Row, consolidate
from reactive.engine.operators.operator_state import Inputs, State, columns_of, weighted_rows

if TYPE_CHECKING:
    from reactive.engine.operators.loops.linear import Linear


class Distinct:
    """Tells when a row comes to be, and when its last copy goes.

    `below` makes the rows, if they are not given as they are (`generated/linear.py`).

    >>> distinct = Distinct()
    >>> distinct.step([("a", 2), ("b", 1)]), distinct.step([("a", -1), ("b", -1)])
    ([('a', 1), ('b', 1)], [('b', -1)])
    """

    __slots__ = ("_below", "_last", "_owed", "shown", "source", "touched")

    def __init__(self, below: Linear | None = None) -> None:
        self._below = below
        self.source = None if below is None else below.source
        """The generated code of what is below."""
        self.shown: dict[Row, int] = {}
        """The rows of the result, with how often they occur."""
        self._owed: dict[Row, int] = {}  # those that an unstored table took back too often
        self._last: Iterable[Pair] = ()
        self.touched = 0

    def step(self, delta: Pairs) -> Sequence[Pair]:
        self.touched += len(delta)
        if self._below is not None:
            if type(delta) is Batch:
                counts = self._below.counts(delta)
                is_first = delta.weight > 0 and not (self.shown or self._owed)
                return self._add_counts(counts) if is_first else self._add_net(counts.items())
            delta = self._below.step(delta)
        if type(delta) is Batch and delta.weight > 0 and not self._owed:
            return self._add_all(delta)
        return self._add_net(delta if len(delta) == 1 else consolidate(delta))

    def _add_net(self, changes: Collection[Pair]) -> Sequence[Pair]:
        """A delta in which each row is once."""
        shown, out = self.shown, []
        done = 0
        try:
            for row, change in changes:
                before = shown.get(row, 0)
                if before > -change and (before or not self._owed):
                    shown[row] = before + change
                    is_told = not before
                else:
                    is_told = self._add(row, change)
                done += 1  # at once: an interrupt comes after a call
                if is_told:
                    out.append((row, -1 if before else 1))
        except BaseException:
            self._last = list(islice(changes, done))
            self.undo()
            raise
        self._last = changes
        return out

    def _add_counts(self, counts: dict[Row, int]) -> Batch:
        """The same, of rows that come where there are none."""
        try:
            self.shown.update(counts)
        except BaseException:
            self.shown.clear()
            raise
        self._last = counts.items()
        return Batch(list(counts), 1)

    def _add_all(self, batch: Batch) -> Batch:
        """Rows that come, each as often; those that were not there."""
        shown, weight, new = self.shown, batch.weight, list[Row]()
        get, done = shown.get, 0
        try:
            for row in batch.rows:
                before = get(row)
                if before is None:
                    shown[row] = weight
                    new.append(row)
                else:
                    shown[row] = before + weight
                done += 1
        except BaseException:
            self._last = batch[:done]
            self.undo()
            raise
        self._last = batch
        return Batch(new, 1)

    def undo(self) -> None:
        for row, change in self._last:
            self._add(row, -change)
        self._last = ()

    def commit(self) -> None:
        self._last = ()

    def contents(self) -> Iterable[Pair]:
        return Batch(list(self.shown), 1)

    def state(self) -> State | None:
        """The rows with their weights; None while some weight less than nothing."""
        if self._owed:
            return None
        return columns_of(self.shown)

    def restore(self, state: State, inputs: Inputs) -> None:
        """Hold what another one has told as its state."""
        self.shown.update(weighted_rows(state))

    def footprint(self) -> tuple[int, int]:
        size = sys.getsizeof(self.shown) + sys.getsizeof(self._owed)
        return len(self.shown) + len(self._owed), size

    def _add(self, row: Row, change: int) -> bool:
        """Add to the weight of a row; whether it came to be there, or went."""
        before = self.shown.get(row) or self._owed.get(row, 0)
        weight = before + change
        if weight > 0:
            self.shown[row] = weight
        elif before > 0:
            del self.shown[row]
        if weight < 0:
            self._owed[row] = weight
        elif before < 0:
            del self._owed[row]
        return (before > 0) != (weight > 0)
