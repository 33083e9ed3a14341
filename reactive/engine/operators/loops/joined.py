"""A join, what is left of its predicate, and the chain above it, as two loops.

    for key, (row, weight) in left:                 dL join (R + dR)
        found = get(key)
        for other in found:
            ...                                     the rest of the predicate, the chain above
            append((result, weight))
    for key, (other, weight) in right:              L join dR
        ...

Fields of the row that the outer loop has are read before the inner loop begins. What takes the
pairs is written into both loops: a list, or the groups of an aggregate (`grouped.py`).

Where rows of the left go and others of the right come, a pair that never was must not be made. With
`K` the left rows that stay, the two products are then three:

    dL join (R + dR)  +  L join dR   =   L- join R  +  L+ join (R + dR)  +  K join dR

While there are error rows, and where a row is in the delta twice, the plain join does it.

Rows of one weight that meet rows of which each is there once make a batch: no pair of a result and
its weight is made, by loops of their own. So does a single row that has many partners.

State:  none of its own.
Cost:   O(|dL| + |dR| + matches).
Source: [dbsp] bilinear operators; [i3ql] join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reactive.engine.collections.index import NOTHING, Index, KeyedPair, Weighted
from reactive.engine.collections.index_rows import batch_of
from reactive.engine.collections.keyed_batch import KeyedBatch
from reactive.engine.collections.zset import Batch, Pair, Row
from reactive.engine.operators.index_by import FINDS_NOTHING, IndexBy
from reactive.engine.runtime.interrupts import reraise_asynchronous

MANY = 16
"""Partners of a single row from which on their pairs are made as a batch."""
Sides = tuple[Any, Any, Callable[..., Any], Callable[..., Any]]
"""What changes on the left and on the right, and how the partners of either are found."""


class Pairing:
    """The two indexes of a join, and when its loops may run."""

    __slots__ = ("_table", "left", "right")

    def __init__(
        self, left: IndexBy, right: IndexBy, table: Callable[[], Iterable[Any]] | None = None
    ) -> None:
        self.left = left
        self.right = right
        self._table = table
        """What gives the rows that the left index is of, if a table has them."""

    def parts(
        self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]
    ) -> Sequence[tuple[Any, ...]]:
        """What the loops are run over, one after the other; empty if the plain join must."""
        found = self.look_ups(left, right)
        if found is not None:
            return ((left, right, *found),)
        if self.left.poisoned or self.right.poisoned:
            return ()
        if len({pair[0] for _, pair in left}) < len(left):
            return ()  # what goes and what comes is not told apart
        gone = [keyed for keyed in left if keyed[1][1] < 0]
        come = [keyed for keyed in left if keyed[1][1] > 0]
        kept = self.left.index.before(come)
        return (
            (gone, (), self.right.index.before(right), kept),
            (come, right, self.right.index.find, kept),
        )

    def all(self) -> Sequence[tuple[Any, ...]]:
        """What the loops are run over for all pairs that there are."""
        if self.left.poisoned or self.right.poisoned:
            return ()
        return ((self.left.contents(), (), self.right.find(before=False), FINDS_NOTHING),)

    def batch(
        self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]
    ) -> tuple[Sides, int] | None:
        """Keys and rows of one side, or of both, in the place of a delta, and their weight; None
        if they have several, or are too few."""
        if self.left.poisoned or self.right.poisoned:
            return None
        if left and right:
            return self._both(left, right)
        keyed = left or right
        other = self.right if left else self.left
        find = other.look_up or other.find(before=False)
        pairs: Any
        if type(keyed) is KeyedBatch:
            pairs, weight = zip(keyed.keys, keyed.rows, strict=True), keyed.weight
        elif len(keyed) == 1:
            ((key, (row, weight)),) = keyed
            found = find(key, NOTHING)
            if found.__class__ is not Weighted or len(found) < MANY:
                return None
            pairs = ((key, row),)
        else:
            return None
        sides = (pairs, (), find, find) if left else ((), pairs, find, find)
        return sides, weight

    def _both(
        self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]
    ) -> tuple[Sides, int] | None:
        """The same where both sides only get rows."""
        if type(left) is not KeyedBatch or type(right) is not KeyedBatch:
            return None
        if left.weight != 1 or right.weight != 1:
            return None
        found = self.look_ups(left, right)
        if found is None:
            return None
        ours, theirs = (zip(each.keys, each.rows, strict=True) for each in (left, right))
        return (ours, theirs, *found), 1

    def all_as_batch(self) -> Sides | None:
        """The same of all pairs that there are."""
        if self.left.poisoned or self.right.poisoned:
            return None
        keyed = self._as_they_came() or self._as_they_are_held()
        if keyed is None:
            return None
        pairs = zip(keyed.keys, keyed.rows, strict=True)
        return (pairs, (), self.right.find(before=False), FINDS_NOTHING)

    def _as_they_came(self) -> KeyedBatch | None:
        """The rows of the left index as its input has them: so they, and those of the view, stand
        beside each other in memory."""
        if self._table is None or not self.left.is_made or self.left.index.rows < MANY:
            return None
        rows, held = self._table(), self.left.index.rows
        if type(rows) is not Batch or len(rows) > 2 * held:
            return None
        keyed = self.left.keyed(rows)
        return keyed if type(keyed) is KeyedBatch and len(keyed) == held else None

    def _as_they_are_held(self) -> KeyedBatch | None:
        if not self.left.is_made:
            keyed = self.left.contents()
            return keyed if type(keyed) is KeyedBatch else None
        index = self.left.index
        return batch_of(index) if type(index) is Index else None

    def look_ups(
        self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]
    ) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
        """How to find the partners of a left and of a right row; None if the plain join must."""
        if self.left.poisoned or self.right.poisoned:
            return None
        if left and right:
            if self.left.was_empty and self.right.was_empty and len(left) < len(right):
                return FINDS_NOTHING, self.left.find(before=False)  # all there is, by the longer
            if _removes(left):
                return None
            return self.right.find(before=False), self.left.find_before(left)
        if left:
            return self.right.look_up or self.right.find(before=False), FINDS_NOTHING
        return FINDS_NOTHING, self.left.look_up or self.left.find(before=False)


def _removes(delta: Sequence[KeyedPair]) -> bool:
    if type(delta) is KeyedBatch:
        return delta.weight < 0
    return any(pair[1] < 0 for _, pair in delta)


class Joined:
    """Runs the loops into a list; when they may not run, or raise, the plain operators.

    These give their `contents` `plainly`.
    """

    __slots__ = (
        *("_batch", "_carefully", "_loop", "_made", "_pairing", "_plainly"),
        *("source", "touched"),
    )

    def __init__(
        self,
        pairing: Pairing,
        loop: Callable[..., Any],
        made: Callable[[], Callable[..., Any]],
        carefully: Callable[..., Sequence[Pair]],
        plainly: Callable[[], Sequence[Pair]],
        source: str,
    ) -> None:
        self._pairing = pairing
        self._loop = loop
        self._made = made
        self._batch: Callable[..., Any] | None = None
        self._carefully = carefully
        self._plainly = plainly
        self.source = source
        self.touched = 0

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> Sequence[Pair]:
        self.touched += len(left) + len(right)
        batch = self._pairing.batch(left, right)
        if batch is not None and (rows := self._batched(batch[0])) is not None:
            return Batch(rows, batch[1])
        out: list[Pair] | None = None
        try:
            for part in self._pairing.parts(left, right):
                made, pairs = self._loop(None, None, *part)
                self.touched += pairs
                out = made if out is None else out + made
        except Exception as error:  # the plain operators raise it, or see that it does not count
            reraise_asynchronous(error)
            out = None
        return self._carefully(left, right) if out is None else out

    def _batched(self, sides: Sides) -> list[Row] | None:
        """The rows of a batch; None if they have several weights, or raise."""
        if self._batch is None:
            self._batch = self._made()
        try:
            found = self._batch(*sides)
        except Exception as error:  # as above
            reraise_asynchronous(error)
            return None
        if found is None:
            return None
        rows: list[Row] = found[0]
        self.touched += found[1]
        return rows

    def contents(self) -> Sequence[Pair]:
        sides = self._pairing.all_as_batch()
        touched = self.touched
        rows = None if sides is None else self._batched(sides)
        if rows is not None:
            self.touched = touched
            return Batch(rows, 1)
        out: list[Pair] | None = None
        try:
            for part in self._pairing.all():
                out, _ = self._loop(None, None, *part)
        except Exception as error:
            reraise_asynchronous(error)
            out = None
        return self._plainly() if out is None else out
