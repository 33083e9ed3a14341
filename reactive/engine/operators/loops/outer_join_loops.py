"""Outer join and the chain above it, as loops.

    for key, (row, weight) in left: ...         pairs, as `join_loops.py`
    for row, weight in alone_left: ...          rows that lost their last partner, or got a first

The plain operators (`matching.py`) count which rows are alone; the loops compute the output rows,
into a list or into the groups of an aggregate.

State:  that of the matchings, and of the groups.
Cost:   as the plain operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from reactive.engine.collections.index import KeyedPair
from reactive.engine.collections.zset import Pair, Pairs
from reactive.engine.operators.aggregate import GroupAggregates
from reactive.engine.operators.loops.grouped import GroupLoopRunner
from reactive.engine.operators.loops.join_loops import JoinIndexes
from reactive.engine.operators.matching import OuterJoin
from reactive.engine.operators.operator import DetachedState
from reactive.engine.runtime.interrupts import reraise_asynchronous


class OuterJoinRunner:
    """Run the loops over the rows that the plain join matched; run the plain operators if the loops
    cannot run, or raise.

    `chained` applies the plain operators of the chain to a delta.
    """

    change_cost: ClassVar[float] = 0
    emits_changes: ClassVar[bool] = False
    __slots__ = ("_chained", "_loop", "_met", "_pairing", "_plain", "source")

    def __init__(
        self,
        plain: OuterJoin,
        pairing: JoinIndexes,
        loop: Callable[..., tuple[list[Pair], int]],
        source: str,
        chained: Callable[[Pairs], Sequence[Pair]],
    ) -> None:
        self._plain = plain
        self._pairing = pairing
        self._loop = loop
        self._chained = chained
        self._met = 0
        self.source = source

    @property
    def touched(self) -> int:
        return self._plain.touched + self._met

    def next_change(self, side: int, moment: datetime) -> datetime | None:
        """Return the next moment at which a clock, the side 0 or 1, changes the pairs.

        Return `moment` if it is not known, and None if there is none.
        """
        return self._pairing.next_change(side, moment)

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> Sequence[Pair]:
        """Match the rows, and compute the output by loops, or else by the plain operators."""
        plain = self._plain
        alone = plain.match(left, right)
        try:
            out = self._run_loops(left, right, alone)
            return self._chained(plain.rows(left, right, alone)) if out is None else out
        except BaseException:
            plain.undo()
            raise

    def _run_loops(
        self,
        left: Sequence[KeyedPair],
        right: Sequence[KeyedPair],
        alone: Sequence[Sequence[Pair]],
    ) -> Sequence[Pair] | None:
        """Return the output of the loops; None if the plain operators must run."""
        arguments = partial(self._pairing.arguments, left, right)
        found = _run_matched_loop(self._loop, (None, None), arguments, alone)
        if found is None:
            return None
        out, met = found
        self._met += met
        return out

    @property
    def is_detachable(self) -> bool:
        return self._plain.is_detachable

    def detach_state(self) -> DetachedState:
        """Empty the matchings."""
        return self._plain.detach_state()

    def fill(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> None:
        """Fill the empty matchings, without output."""
        self._plain.fill(left, right)

    def undo(self) -> None:
        self._plain.undo()

    def commit(self) -> None:
        self._plain.commit()

    def contents(self) -> Iterable[Pair]:
        """Return all rows: by the loops, or else by the plain operators."""
        plain = self._plain
        found = _run_matched_loop(self._loop, (None, None), self._pairing.all, plain.alone())
        return self._chained(list(plain.contents())) if found is None else found[0]

    def footprint(self) -> tuple[int, int]:
        return self._plain.footprint()


class GroupedOuterJoin(GroupLoopRunner):
    """Run the loops into the groups of a plain operator; otherwise as `OuterJoinRunner`."""

    __slots__ = ("_chained", "_join", "_met", "_sides")

    def __init__(
        self,
        plain: GroupAggregates,
        join: OuterJoin,
        pairing: JoinIndexes,
        loop: Callable[..., Any],
        source: str,
        chained: Callable[[Pairs], Sequence[Pair]],
    ) -> None:
        self._join = join
        super().__init__(plain, loop, _never, source)
        self._sides = pairing
        self._chained = chained
        self.step = self._step_matched

    @property
    def touched(self) -> int:
        return self._join.touched + self._met

    @touched.setter
    def touched(self, rows: int) -> None:
        self._met = rows

    def _step_matched(
        self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]
    ) -> Sequence[Pair]:
        """Match the rows, and aggregate them by loops, or else by the plain operators."""
        join = self._join
        alone = join.match(left, right)
        try:
            self._before = {} if self.new_before is None else self.new_before()
            out = self._run_loops(left, right, alone)
            if out is None:
                self._restore()
                self._was_plain = True
                out = self._plain.step(self._chained(join.rows(left, right, alone)))
            return out
        except BaseException:
            join.undo()
            raise

    def _run_loops(
        self,
        left: Sequence[KeyedPair],
        right: Sequence[KeyedPair],
        alone: Sequence[Sequence[Pair]],
    ) -> Sequence[Pair] | None:
        """Return the changed groups by the loops; None if the plain operators must run."""
        arguments = partial(self._sides.arguments, left, right)
        found = _run_matched_loop(self._loop, (self._groups, self._before), arguments, alone)
        if found is None:
            return None
        out, met = found
        self._met += met
        return out

    def undo(self) -> None:
        self._join.undo()
        super().undo()

    def commit(self) -> None:
        self._join.commit()
        super().commit()

    def footprint(self) -> tuple[int, int]:
        (rows, size), (more, larger) = super().footprint(), self._join.footprint()
        return rows + more, size + larger


def _never(*deltas: Sequence[Any]) -> Sequence[Pair]:
    raise AssertionError("it is done with what was matched")


def _run_matched_loop(
    loop: Callable[..., Any],
    into: tuple[Any, Any],
    arguments: Callable[[], tuple[Any, ...] | None],
    alone: Sequence[Sequence[Pair]],
) -> tuple[Sequence[Pair], int] | None:
    """Return the output of a loop, and the number of joined rows; None to run plain operators."""
    try:
        found = arguments()
        return None if found is None else loop(*into, *found, *alone)
    except Exception as error:  # the plain operators raise it, or find that it is ignored
        reraise_asynchronous(error)
        return None
