"""How many ways of three steps lead back to where they began, along the edges of a graph.

    u --> v --> x --> u         M[u][v] is how many rows lead from u to v

    trace((M + D)³) - trace(M³)  =  3 w (M²)[v][u]              D is w at (u, v), else nothing
                                  + 3 w² M[u][u]  +  w³         if u is v

A join of an input with itself in a cycle of three has this number of rows. Where none of them is
read, no more of the input is kept than which ends its rows have.

State:  each pair of ends, twice; how many rows it has, if it is not one.
Cost:   of a row, O(the fewer of those that lead to u and those that v leads to).
Source: closed walks are counted by traces of powers; [dbsp] multilinear operators.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Hashable, MutableSequence
from typing import Any

End = Hashable
Below = dict[Any, set[Any]]


class TriangleCount:
    """Counts ways around. Edges come, and go with a negative weight.

    >>> count = TriangleCount()
    >>> [count.turn(u, v, 1) for u, v in [("a", "b"), ("b", "c"), ("c", "a")]]
    [0, 0, 3]
    >>> count.turn("b", "c", -1)
    -3
    """

    __slots__ = ("_sources", "_targets", "_times", "log")

    def __init__(self) -> None:
        self._targets: Below = {}  # where each end leads
        self._sources: Below = {}  # from where each is reached
        self._times: dict[tuple[Any, Any], int] = {}  # the weights that are not one
        self.log: MutableSequence[tuple[End, End, int]] = []
        """Edges as they were before what has been done since the last commit."""

    def turn(self, u: End, v: End, weight: int) -> int:
        """Add a weight at an edge: how many more ways around there are now."""
        onward, back = self._targets.get(v), self._sources.get(u)
        found = old = 0
        if onward is not None and back is not None:
            if self._times:
                found = 3 * weight * self._ways(v, onward & back, u)
            else:
                found = 3 * weight * len(onward & back)
        targets = self._targets.get(u)
        if targets is not None and v in targets:
            old = self._times.get((u, v), 1) if self._times else 1
        if u == v:
            found += weight * weight * (3 * old + weight)
        self.log.append((u, v, old))
        if not old and weight == 1:
            if targets is None:
                self._targets[u] = {v}
            else:
                targets.add(v)
            sources = self._sources.get(v)
            if sources is None:
                self._sources[v] = {u}
            else:
                sources.add(u)
        elif old == 1 and weight == -1 and targets is not None:
            if len(targets) > 1:
                targets.remove(v)
            else:
                del self._targets[u]
            sources = self._sources[v]
            if len(sources) > 1:
                sources.remove(u)
            else:
                del self._sources[v]
        else:
            self._put(u, v, old + weight)
        return found

    def _ways(self, u: End, through: set[Any], v: End) -> int:
        """How many ways of two steps lead from one end to another."""
        times = self._times.get
        return sum([times((u, x), 1) * times((x, v), 1) for x in through])

    def _put(self, u: End, v: End, weight: int) -> None:
        """Let an edge have a weight, whatever it had, or had half."""
        for below, one, other in ((self._targets, u, v), (self._sources, v, u)):
            if weight:
                below.setdefault(one, set()).add(other)
                continue
            held = below.get(one, set())
            held.discard(other)
            if not held:
                below.pop(one, None)
        if weight in (0, 1):
            self._times.pop((u, v), None)
        else:
            self._times[u, v] = weight

    def begin(self) -> None:
        """Many edges come. If there are none, nothing has to be noted of them."""
        if not self._targets:
            self.log = deque(maxlen=0)

    def commit(self) -> None:
        """What has been done stands."""
        self.log = []

    def undo(self) -> None:
        """Let all be as it was at the last commit; also if an edge was added partially."""
        if self.log.__class__ is deque:
            for held in (self._targets, self._sources, self._times):
                held.clear()
        while self.log:
            self._put(*self.log[-1])
            self.log.pop()
        self.commit()

    def footprint(self) -> tuple[int, int]:
        """How many edges there are, and the bytes of sets and dictionaries."""
        size = sum(map(sys.getsizeof, (self._targets, self._sources, self._times)))
        size += len(self._times) * sys.getsizeof((0, 0))
        for below in (self._targets, self._sources):
            size += sum(map(sys.getsizeof, below.values()))
        return sum(map(len, self._targets.values())), size
