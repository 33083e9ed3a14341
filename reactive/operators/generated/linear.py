"""A chain of linear operators as one loop.

    d(select(f, where(p, L)))  =  [(f(row), weight) for row, weight in dL if p(row)]

State:  none.
Cost:   O(|dL|), and one per element that an unnest makes.
Source: [i3ql] fusion of selections and projections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optimizer.expr import Lifted
from reactive.codegen.body import Body, Plan, row_names
from reactive.codegen.functions import Values, build
from reactive.codegen.taker import Taker, ToCounts, ToList
from reactive.collections.zset import Batch, Pair, Pairs, Row, consolidate
from reactive.runtime.interrupts import reraise_asynchronous

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
        made: Callable[[type[ToList | ToCounts]], Callable[[Sequence[Row]], Any]],
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
                self._batch = self._made(ToList)
            return Batch(self._batch(delta.rows), delta.weight)
        except Exception as error:  # the plain operators raise it, or see that it does not count
            reraise_asynchronous(error)
        return self._carefully(delta)

    def counts(self, batch: Batch) -> dict[Row, int]:
        """The rows that it makes of a batch, with their weights; equal ones are not kept apart."""
        self.touched += len(batch)
        try:
            if self._count is None:
                self._count = self._made(ToCounts)
            found = self._count(batch.rows)
            return found if batch.weight == 1 else {r: n * batch.weight for r, n in found.items()}
        except Exception as error:  # as above
            reraise_asynchronous(error)
        return dict(consolidate(self._carefully(batch)))


def delta_loop(
    parameters: str, todo: Plan, called: Iterable[Lifted], taker: Taker, *, batch: bool = False
) -> tuple[Callable[..., Any], str]:
    """The function that runs over the pairs of a delta, or the rows of a batch, and its text."""
    values = Values()
    body = Body(values, row_names(called, todo.bindings), todo.shapes, 2)
    body.begin(todo.acts, taker.exprs())
    body.write(todo.acts)
    taker.write(body, "weight")
    each = "row" if batch else "row, weight"
    head = [f"def step({parameters}):", *taker.prologue(), f"    for {each} in delta:"]
    text = "\n".join([*head, *body.lines, *taker.epilogue(), ""])
    values.bind(taker.bound)
    return build("step", text, values), text
