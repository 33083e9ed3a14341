"""Previous: the rows of its input as they were before the last commit.

    previous(t)  =  L(t - 1)        d previous(t)  =  dL(t - 1)

What it is given it notes for the next commit, along with which the graph feeds it to its readers
(`dataflow/moment.py`). What it begins with is what there is: nobody knows what was before.

State:  the delta of the last commit.
Cost:   O(|dL|) in this commit, and in the next.
Source: [dbsp] the delay operator, z^-1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from reactive.engine.collections.zset import Pair, Pairs, consolidate, negate


class Previous:
    """Notes each delta for the next commit. There is nothing to undo: what a commit that does not
    stand has noted nobody reads."""

    __slots__ = ("_moment", "touched")

    def __init__(self, moment: Any) -> None:
        self._moment = moment
        self.touched = 0

    def step(self, delta: Pairs) -> Sequence[Pair]:
        self.touched += len(delta)
        changed = consolidate(delta)
        if changed:
            self._moment.set(changed)
        return ()

    def contents(self) -> Iterable[Pair]:
        """The rows of now, without what changed in the last commit."""
        moment = self._moment
        (source,) = moment.nodes[-1].inputs
        return consolidate([*moment.graph.contents(source), *negate(moment.pending)])

    def footprint(self) -> tuple[int, int]:
        pending = self._moment.pending
        return len(pending), sys.getsizeof(pending) if pending else 0
