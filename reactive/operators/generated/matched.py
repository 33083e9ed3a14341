"""A join that tells rows with a partner from rows alone, and the chain above it, as loops.

    for key, (row, weight) in left: ...         pairs, as `joined.py`: of outer joins
    for row, weight in alone_left: ...          rows that come to be alone, or are no longer

Who is alone is counted by the plain operators (`matching.py`); rows are made in the loops.

State:  that of the matchings.
Cost:   as the plain operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reactive.collections.index import KeyedPair
from reactive.collections.zset import Pair, Pairs
from reactive.operators.generated.joined import Pairing
from reactive.operators.matching import MatchingJoin
from reactive.operators.outer_join import OuterJoin
from reactive.runtime.interrupts import reraise_asynchronous


class Matched:
    """Runs the loops over what the plain join matched; when they may not run, or raise, the plain
    operators.

    `pairing` is that of an outer join; other joins make no pairs. `chained` is what the plain
    operators of the chain make of a delta.
    """

    __slots__ = ("_chained", "_loop", "_met", "_pairing", "_plain", "source")

    def __init__(
        self,
        plain: OuterJoin | MatchingJoin,
        pairing: Pairing | None,
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

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> Sequence[Pair]:
        plain = self._plain
        alone = plain.match(left, right)
        try:
            out = self._looped(left, right, alone)
            return self._chained(plain.rows(left, right, alone)) if out is None else out
        except BaseException:
            plain.undo()
            raise

    def _looped(
        self,
        left: Sequence[KeyedPair],
        right: Sequence[KeyedPair],
        alone: Sequence[Sequence[Pair]],
    ) -> Sequence[Pair] | None:
        sides: Sequence[Any] = ()
        if self._pairing is not None:
            found = self._pairing.look_ups(left, right)
            if found is None:
                return None
            sides = (left, right, *found)
        try:
            out, met = self._loop(*sides, *alone)
        except Exception as error:  # the plain operators raise it, or see that it does not count
            reraise_asynchronous(error)
            return None
        self._met += met
        return out

    def undo(self) -> None:
        self._plain.undo()

    def commit(self) -> None:
        self._plain.commit()

    def contents(self) -> Iterable[Pair]:
        return self._chained(list(self._plain.contents()))

    def footprint(self) -> tuple[int, int]:
        return self._plain.footprint()
