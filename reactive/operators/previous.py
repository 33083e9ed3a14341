"""Previous: the rows of its input as they were before the last commit.

    previous(t)  =  L(t - 1)        d previous(t)  =  dL(t - 1)

What it is given it keeps for the next commit, along with which the graph feeds it to its readers
(`dataflow/moment.py`). What it begins with is what there is: nobody knows what was before.

State:  the delta of the last commit.
Cost:   O(|dL|) in this commit, and in the next.
Source: [dbsp] the delay operator, z^-1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from reactive.collections.zset import Pair, Pairs, consolidate, negate


class Previous:
    """Keeps each delta for a commit. `moment` takes it once the commit stands."""

    __slots__ = ("_arrived", "_has_begun", "_moment", "touched")

    def __init__(self, moment: Any) -> None:
        self._moment = moment
        self._has_begun = False
        self._arrived: Sequence[Pair] = ()
        self.touched = 0

    def step(self, delta: Pairs) -> Sequence[Pair]:
        if not self._has_begun:  # with all rows
            self._has_begun = True
            return ()
        self.touched += len(delta)
        self._arrived = consolidate(delta)
        return ()

    def undo(self) -> None:
        self._arrived = ()

    def commit(self) -> None:
        if self._arrived:
            self._moment.set(self._arrived)
            self._arrived = ()

    def contents(self) -> Iterable[Pair]:
        """The rows of now, without what changed in the last commit."""
        moment = self._moment
        (source,) = moment.node.inputs
        return consolidate([*moment.graph.contents(source), *negate(moment.pending)])

    def footprint(self) -> tuple[int, int]:
        pending = self._moment.pending
        return len(pending), sys.getsizeof(pending) if pending else 0
