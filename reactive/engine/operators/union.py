"""Set union: the rows of either side, each once.

    union(L, R)  =  distinct(L + R)

State:  the weight of every distinct row of the two sides together.
Cost:   O(|dL| + |dR|).
Source: [dbsp] section 3, relational operators on Z-sets; [i3ql] union.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reactive.engine.collections.zset import Pair, Pairs, Row
from reactive.engine.operators.distinct import Distinct
from reactive.engine.operators.operator_state import Inputs, State


class Union:
    """A distinct that is fed from two sides.

    >>> union = Union()
    >>> union.step([("a", 1)], [("a", 1), ("b", 1)]), union.step([("a", -1)], [])
    ([('a', 1), ('b', 1)], [])
    """

    __slots__ = ("_distinct",)

    def __init__(self) -> None:
        self._distinct = Distinct()

    @property
    def touched(self) -> int:
        return self._distinct.touched

    @property
    def shown(self) -> dict[Row, int]:
        """The rows of the result, with how often they occur."""
        return self._distinct.shown

    def step(self, left: Pairs, right: Pairs) -> Sequence[Pair]:
        return self._distinct.step([*left, *right])

    def undo(self) -> None:
        self._distinct.undo()

    def commit(self) -> None:
        self._distinct.commit()

    def contents(self) -> Iterable[Pair]:
        return self._distinct.contents()

    def state(self) -> State | None:
        """Return the same state as `Distinct.state`."""
        return self._distinct.state()

    def restore(self, state: State, inputs: Inputs) -> None:
        """Restore it as `Distinct.restore` does."""
        self._distinct.restore(state, inputs)

    def footprint(self) -> tuple[int, int]:
        return self._distinct.footprint()
