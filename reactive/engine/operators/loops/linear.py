"""A chain of linear operators as one loop.

    d(select(f, where(p, L)))  =  [(f(row), weight) for row, weight in dL if p(row)]

State:  none.
Cost:   O(|dL|), and one per element that an unnest makes.
Source: [i3ql] fusion of selections and projections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reactive.engine.codegen.sinks import CountSink, ListSink
from reactive.engine.collections.zset import Batch, Pair, Pairs, Row, consolidate
from reactive.engine.runtime.interrupts import reraise_asynchronous

Loop = Callable[[Pairs], list[Pair]]
Carefully = Callable[[Pairs], Sequence[Pair]]


class Linear:
    """Runs the loop; when it raises, the plain operators.

    Of a batch it makes a batch, or counts of its rows, by other loops, which are `made` when they
    are first needed.
    """

    __slots__ = ("_batch", "_carefully", "_count", "_loop", "_made", "source", "touched")

    def __init__(
        self,
        loop: Loop,
        carefully: Carefully,
        source: str,
        made: Callable[[type[ListSink | CountSink]], Callable[[Sequence[Row]], Any]],
    ) -> None:
        self._loop = loop
        self._carefully = carefully
        self._made = made
        self._batch: Callable[[Sequence[Row]], list[Row]] | None = None
        self._count: Callable[[Sequence[Row]], dict[Row, int]] | None = None
        self.source = source
        self.touched = 0

    def step(self, delta: Pairs) -> Sequence[Pair]:
        self.touched += len(delta)
        try:
            if type(delta) is not Batch:
                loop = self._loop
                return loop(delta)
            if self._batch is None:
                self._batch = self._made(ListSink)
            return Batch(self._batch(delta.rows), delta.weight)
        except Exception as error:  # the plain operators raise it, or see that it does not count
            reraise_asynchronous(error)
        return self._carefully(delta)

    def counts(self, batch: Batch) -> dict[Row, int]:
        """The rows that it makes of a batch, with their weights; equal ones are not kept apart."""
        self.touched += len(batch)
        try:
            if self._count is None:
                self._count = self._made(CountSink)
            found = self._count(batch.rows)
            return found if batch.weight == 1 else {r: n * batch.weight for r, n in found.items()}
        except Exception as error:  # as above
            reraise_asynchronous(error)
        return dict(consolidate(self._carefully(batch)))
