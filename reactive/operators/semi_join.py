"""Semi-join: the left rows that have a partner on the right (EXISTS), with their own weights.

    L semi_join R  =  partnered(L, R)

State:  the index of the left, and what `matching.py` counts.
Cost:   O(|dL| + |dR| + rows whose presence flips); with a predicate, plus the pairs it is asked.
Source: [i3ql] exists; [dbsp] section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reactive.index import KeyedPair
from reactive.operators.matching import Matching, partnered
from reactive.zset import Pair


class SemiJoin:
    """Hands on the rows that have a partner on the right.

    >>> from reactive.operators.index_by import IndexBy
    >>> from reactive.operators.matching import KeyMatching
    >>> names = IndexBy(len)
    >>> join = SemiJoin(KeyMatching(names.index))
    >>> first = join.step(names.step([("anna", 1)]), [])
    >>> join.step([], [(4, ("otto", 1))])
    [('anna', 1)]
    """

    __slots__ = ("_matching",)

    def __init__(self, matching: Matching) -> None:
        self._matching = matching

    @property
    def touched(self) -> int:
        return self._matching.touched

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> list[Pair]:
        both_changed = bool(left and right)
        return partnered(self._matching.step(left, right), both_changed=both_changed)

    def undo(self) -> None:
        self._matching.undo()

    def commit(self) -> None:
        self._matching.commit()

    def contents(self) -> Iterable[Pair]:
        return partnered(self._matching.contents(), both_changed=False)

    def footprint(self) -> tuple[int, int]:
        return self._matching.footprint()
