"""The keys of a delta for an index, with the chain below it, as one loop.

    for row, weight in delta:
        ...                             the chain below, the tests of the side
        append((key, (row, weight)))

A key found in a predicate must not raise: when the loop does, the plain key is asked row by row.

State:  none.
Cost:   O(|dL|).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from reactive.engine.collections.index import (
    KeyedPair,
)
from reactive.engine.collections.keyed_batch import (
    KeyedBatch,
)
from reactive.engine.collections.zset import Batch, Pairs, consolidate, is_mixed
from reactive.engine.operators.key_by import KeyBy
from reactive.engine.runtime.interrupts import reraise_asynchronous


class KeyLoop:
    """A `KeyBy` that runs the loop; when it raises, the plain one over the plain chain.

    `made` gives the loop over pairs, or over the rows of a batch, and its text.
    """

    gives_keys: ClassVar[bool] = True
    __slots__ = (
        *("_batch", "_identity", "_loop", "_made", "_plain", "_rows"),
        *("source", "emits_filtered", "touched"),
    )

    def __init__(
        self,
        made: Callable[[bool], tuple[Callable[..., Any], str]],
        plain: KeyBy,
        rows: Callable[[Pairs], Pairs],
        *,
        identity: bool,
    ) -> None:
        self._made = made
        self._loop, self.source = made(False)
        self._batch: Callable[..., Any] | None = None
        self._plain = plain
        self._rows = rows
        self._identity = identity
        self.emits_filtered = False
        self.touched = 0

    def step(self, delta: Pairs) -> Sequence[KeyedPair]:
        self.touched += len(delta)
        keyed: Sequence[KeyedPair] | None = None
        if not self.emits_filtered:
            try:
                if type(delta) is Batch:
                    keyed = self._of_batch(delta)
                else:
                    loop = self._loop
                    keyed = loop(delta)
            except Exception as error:  # the plain key raises it, or sees that it does not count
                reraise_asynchronous(error)
                keyed = None
        if keyed is None:
            return self._carefully(delta)
        if self._identity or len(keyed) < 2 or not is_mixed(delta):
            return keyed
        return _net(keyed)

    def make_batch(self) -> Callable[..., Any]:
        """Generate the loop over batches now: it is otherwise done with the first one."""
        self._batch, _ = self._made(True)
        return self._batch

    def _of_batch(self, delta: Batch) -> KeyedBatch:
        batch = self._batch or self.make_batch()
        keys, rows = batch(delta.rows)
        keyed = KeyedBatch(keys, rows, delta.weight)
        keyed.differ = delta.differ and self._identity  # no row is made, so none is made twice
        return keyed

    def _carefully(self, delta: Pairs) -> list[KeyedPair]:
        self._plain.emits_filtered = self.emits_filtered
        return self._plain.step(self._rows(delta))


def _net(keyed: Sequence[KeyedPair]) -> Sequence[KeyedPair]:
    """Without the rows that come and go."""
    gone = {pair[0] for _, pair in keyed if pair[1] < 0}
    if gone.isdisjoint([pair[0] for _, pair in keyed if pair[1] > 0]):
        return keyed
    by_row = {pair[0]: key for key, pair in keyed}
    return [(by_row[pair[0]], pair) for pair in consolidate([pair for _, pair in keyed])]
