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

State:  none of its own.
Cost:   O(|dL| + |dR| + matches).
Source: [dbsp] bilinear operators; [i3ql] join.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reactive.collections.index import (
    KeyedPair,
)
from reactive.collections.keyed_batch import (
    KeyedBatch,
)
from reactive.collections.zset import Pair
from reactive.operators.index_by import IndexBy
from reactive.runtime.interrupts import reraise_asynchronous


class Pairing:
    """The two indexes of a join, and when its loops may run."""

    __slots__ = ("_finds", "left", "right")

    def __init__(self, left: IndexBy, right: IndexBy) -> None:
        self.left = left
        self.right = right
        self._finds = right.index.find, left.index.find

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
        return ((self.left.index.items(), (), *self._finds),)

    def look_ups(
        self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]
    ) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
        """How to find the partners of a left and of a right row; None if the plain join must."""
        if self.left.poisoned or self.right.poisoned:
            return None
        if left and right:
            if _removes(left):
                return None
            return self.right.index.find, self.left.index.before(left)
        return self._finds


def _removes(delta: Sequence[KeyedPair]) -> bool:
    if type(delta) is KeyedBatch:
        return delta.weight < 0
    return any(pair[1] < 0 for _, pair in delta)


class Joined:
    """Runs the loops into a list; when they may not run, or raise, the plain operators.

    These give their `contents` `plainly`.
    """

    __slots__ = ("_carefully", "_loop", "_pairing", "_plainly", "source", "touched")

    def __init__(
        self,
        pairing: Pairing,
        loop: Callable[..., Any],
        carefully: Callable[..., Sequence[Pair]],
        plainly: Callable[[], Sequence[Pair]],
        source: str,
    ) -> None:
        self._pairing = pairing
        self._loop = loop
        self._carefully = carefully
        self._plainly = plainly
        self.source = source
        self.touched = 0

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> Sequence[Pair]:
        self.touched += len(left) + len(right)
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

    def contents(self) -> Sequence[Pair]:
        out: list[Pair] | None = None
        try:
            for part in self._pairing.all():
                out, _ = self._loop(None, None, *part)
        except Exception as error:
            reraise_asynchronous(error)
            out = None
        return self._plainly() if out is None else out
