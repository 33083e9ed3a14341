"""The generated loops of the ways, made when they are first needed; None where they cannot run.

What raises in a loop is done again by the plain operators, which raise it, or see that it does not
count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer.traverse import read_functions
from reactive.codegen.functions import source_of
from reactive.codegen.taker import ToList
from reactive.collections.index import KeyedPair
from reactive.collections.zset import Batch, Pairs
from reactive.operators.fixpoint.premise import Premise
from reactive.operators.generated.derived import (
    Way,
    copying,
    entering,
    joined,
    leaving,
    leaving_both,
)
from reactive.operators.generated.linear import delta_loop
from reactive.operators.index_by import IndexBy
from reactive.operators.loops import Below
from reactive.runtime.interrupts import reraise_asynchronous

Loop = Callable[..., Any]


class CopyLoops:
    """A chain over rows that enter or leave."""

    __slots__ = ("_below", "_made")

    def __init__(self, below: Below) -> None:
        self._below = below
        self._made: dict[str, Loop] = {}

    def run(self, delta: Pairs) -> Pairs | None:
        """What comes of them."""
        try:
            if type(delta) is Batch:
                return Batch(self._loop("enter")(delta.rows), delta.weight)
            pairs: Pairs = self._loop("leave")(delta)
            return pairs
        except Exception as error:
            reraise_asynchronous(error)
            return None

    def sources(self) -> list[str]:
        """The text of the loops."""
        return [source_of(self._loop(kind)) for kind in ("enter", "leave")]

    def _loop(self, kind: str) -> Loop:
        if kind not in self._made:
            todo = self._below.plan()
            if kind == "enter":
                self._made[kind] = copying(self._below.chain, todo)
            else:
                called = read_functions(*self._below.chain)
                self._made[kind], _ = delta_loop("delta", todo, called, ToList(todo))
        return self._made[kind]


class PairLoops:
    """Rows of one side that enter or leave, joined with the other side."""

    __slots__ = ("_made", "_makers", "_mine", "_other", "_way")

    def __init__(self, way: Way, mine: Premise, other: Premise | IndexBy) -> None:
        self._way = way
        self._mine = mine
        self._other = other
        self._made: dict[str, Loop] = {}
        if isinstance(other, Premise):
            self._makers = {"enter": entering, "leave": leaving_both}
        else:
            self._makers = {"enter": entering, "leave": leaving, "given": joined}

    def run(self, delta: Pairs) -> Pairs | None:
        """What comes of rows that enter or leave."""
        other = self._other
        index = other.index_by if isinstance(other, Premise) else other
        if index.odd or self._mine.index_by.odd:
            return None
        find = index.index.buckets.get
        try:
            if type(delta) is Batch:
                return Batch(self._loop("enter")(delta.rows, find), delta.weight)
            more = (other.facts.since,) if isinstance(other, Premise) else ()
            pairs: Pairs = self._loop("leave")(delta, find, *more)
            return pairs
        except Exception as error:
            reraise_asynchronous(error)
            return None

    def given(self, keyed: Sequence[KeyedPair]) -> Pairs | None:
        """What comes of rows of the other side, an input, that come or go."""
        mine, other = self._mine, self._other
        assert isinstance(other, IndexBy)
        if other.odd or mine.index_by.odd:
            return None
        find = mine.index_by.index.buckets.get
        try:
            pairs: Pairs = self._loop("given")(keyed, find, mine.facts.rounds)
            return pairs
        except Exception as error:
            reraise_asynchronous(error)
            return None

    def sources(self) -> list[str]:
        """The text of the loops."""
        return [source_of(self._loop(kind)) for kind in self._makers]

    def _loop(self, kind: str) -> Loop:
        if kind not in self._made:
            self._made[kind] = self._makers[kind](self._way)
        return self._made[kind]
