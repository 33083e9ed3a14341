"""The generated loops of the delta rules; None where they cannot run.

What raises in a loop is done again by the plain operators, which raise it, or see that it does not
count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer.traverse import read_functions
from reactive.engine.codegen.functions import source_of
from reactive.engine.codegen.sinks import ListSink
from reactive.engine.collections.index import KeyedPair
from reactive.engine.collections.zset import Batch, Pairs
from reactive.engine.operators.fixpoint.recursive_index import RecursiveIndex
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.loops.nests import (
    DeltaRule,
    delta_loop,
    entering,
    leaving,
    leaving_both,
    meeting,
)
from reactive.engine.operators.pipelines import PipelineSource
from reactive.engine.runtime.interrupts import reraise_asynchronous

Loop = Callable[..., Any]


class UnaryLoops:
    """A chain over rows that enter or leave."""

    __slots__ = ("_enter", "_leave")

    def __init__(self, below: PipelineSource) -> None:
        self._enter, self._leave = (_copying(below, batch=batch) for batch in (True, False))

    def run(self, delta: Pairs) -> Pairs | None:
        """What comes of them."""
        try:
            if type(delta) is Batch:
                return Batch(self._enter(delta.rows), delta.weight)
            pairs: Pairs = self._leave(delta)
            return pairs
        except Exception as error:
            reraise_asynchronous(error)
            return None

    def sources(self) -> list[str]:
        """The text of the loops."""
        return [source_of(loop) for loop in (self._enter, self._leave)]


def _copying(below: PipelineSource, *, batch: bool) -> Loop:
    pipeline, called = below.pipeline(), read_functions(*below.chain)
    sink = ListSink(pipeline, batch=batch)
    return delta_loop("delta", pipeline, called, sink, batch=batch)[0]


class BinaryLoops:
    """Rows of one side that enter or leave, joined with the other side."""

    __slots__ = ("_loops", "_mine", "_other")

    def __init__(
        self, rule: DeltaRule, mine: RecursiveIndex, other: RecursiveIndex | IndexBy
    ) -> None:
        self._mine = mine
        self._other = other
        makers = {"enter": entering, "leave": leaving, "given": meeting}
        if isinstance(other, RecursiveIndex):
            makers = {"enter": entering, "leave": leaving_both}
        self._loops: dict[str, Loop] = {kind: make(rule)[0] for kind, make in makers.items()}

    def run(self, delta: Pairs) -> Pairs | None:
        """What comes of rows that enter or leave."""
        other = self._other
        index = other.index_by if isinstance(other, RecursiveIndex) else other
        if index.poisoned or self._mine.index_by.poisoned:
            return None
        find = index.index.buckets.get
        try:
            if type(delta) is Batch:
                return Batch(self._loops["enter"](delta.rows, find), delta.weight)
            more = (other.relation.since,) if isinstance(other, RecursiveIndex) else ()
            pairs: Pairs = self._loops["leave"](delta, find, *more)
            return pairs
        except Exception as error:
            reraise_asynchronous(error)
            return None

    def given(self, keyed: Sequence[KeyedPair]) -> Pairs | None:
        """What comes of rows of the other side, an input, that come or go."""
        mine, other = self._mine, self._other
        assert isinstance(other, IndexBy)
        if other.poisoned or mine.index_by.poisoned:
            return None
        find = mine.index_by.index.buckets.get
        try:
            pairs: Pairs = self._loops["given"](keyed, find, mine.relation.rounds)
            return pairs
        except Exception as error:
            reraise_asynchronous(error)
            return None

    def sources(self) -> list[str]:
        """The text of the loops."""
        return list(map(source_of, self._loops.values()))
