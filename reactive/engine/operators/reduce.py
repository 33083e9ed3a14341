"""Reduce: the rows that a callable makes of each group, made anew where the group has changed.

    d(g)  =  f(g, rows after)  -  f(g, rows before)      for each group touched

It needs to know nothing of the callable but that equal groups give equal rows. So it is what every
operator of groups can be held against, and what one writes that there is no operator for.

A row is in its group while its weight is positive, and a group is shown while it has a row. A group
in state is never changed: a step makes others, and the old ones are put back if it is undone.

State:  every row with its weight, by group; the rows that each group shows.
Cost:   O(rows of the touched groups), and one call for each of these.
Source: `reduce` of differential dataflow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reactive.engine.collections.bag import Bag, bag_of
from reactive.engine.collections.returned import rows_returned
from reactive.engine.collections.zset import Pair, Pairs, Row, by_group, canonical

Weights = dict[Row, int]


class Group:
    """The rows of a group with their weights, and what is shown of it with theirs."""

    __slots__ = ("key", "shown", "weights")

    def __init__(self, key: Any, weights: Weights, shown: Weights) -> None:
        self.key = key
        self.weights = weights
        self.shown = shown


class Reduce:
    """Calls `function(key, rows)` for each group that changes, and tells how its rows differ.

    >>> longest = Reduce(lambda word: word[0], lambda key, words: [max(map(len, words))])
    >>> longest.step([("to", 1), ("that", 1), ("be", 1)])
    [(('t', 4), 1), (('b', 2), 1)]
    >>> longest.step([("that", -1), ("by", 1)])
    [(('t', 4), -1), (('t', 2), 1)]
    """

    __slots__ = ("_before", "_function", "_groups", "_key", "touched")

    def __init__(
        self, key: Callable[[Row], Any], function: Callable[[Any, Bag[Row]], Iterable[Row]]
    ) -> None:
        self._key = key
        self._function = function
        self._groups: dict[Any, Group] = {}
        self._before: dict[Any, Group | None] = {}  # touched groups, as they were
        self.touched = 0

    def step(self, delta: Pairs) -> list[Pair]:
        before: dict[Any, Group | None] = {}
        after: dict[Any, Group] = {}
        out: list[Pair] = []
        for key, changes in by_group(delta, self._key).items():
            old = before[key] = self._groups.get(key)
            group = after[key] = _changed(Group(key, {}, {}) if old is None else old, changes)
            self.touched += len(group.weights)
            out += self._renew(group, {} if old is None else old.shown)
        self._replace(before, after)
        return out

    def undo(self) -> None:
        for key, group in self._before.items():
            if group is None:
                self._groups.pop(key, None)
            else:
                self._groups[key] = group
        self._before = {}

    def commit(self) -> None:
        self._before = {}

    def contents(self) -> Iterable[Pair]:
        return [pair for group in self._groups.values() for pair in group.shown.items()]

    def footprint(self) -> tuple[int, int]:
        rows, size = 0, sys.getsizeof(self._groups)
        for group in self._groups.values():
            rows += len(group.weights)
            size += sum(map(sys.getsizeof, (group, group.weights, group.shown)))
            size += sum(map(sys.getsizeof, group.shown))
        return rows, size

    def _renew(self, group: Group, old: Weights) -> list[Pair]:
        """Make the rows that a group shows; how they differ from the old ones.

        A row that is equal to an old one, and perhaps of another type, stays the old one.
        """
        new = self._counted(group.key, self._rows_of(group.key, group.weights))
        group.shown = shown = dict.fromkeys([row for row in old if row in new], 0)
        shown.update(new)
        gone = [(row, -weight) for row, weight in old.items() if row not in shown]
        changed = [(row, weight - old.get(row, 0)) for row, weight in shown.items()]
        return [*gone, *(pair for pair in changed if pair[1])]

    def _rows_of(self, key: Any, group: Weights) -> list[Row]:
        """What the callable makes of the rows that are there."""
        if group and min(group.values()) < 0:
            group = {row: weight for row, weight in group.items() if weight > 0}
        rows = bag_of(dict(group))
        return list(rows_returned(self._function(key, rows), "reduce")) if group else []

    def _counted(self, key: Any, made: list[Row]) -> Weights:
        counts: Weights = {}
        for row in made:
            shown = (key, canonical(row))
            counts[shown] = counts.get(shown, 0) + 1
        return counts

    def _replace(self, before: dict[Any, Group | None], after: dict[Any, Group]) -> None:
        self._before = before
        try:
            for key, group in after.items():
                if group.weights:
                    self._groups[key] = group
                else:
                    self._groups.pop(key, None)
        except BaseException:
            self.undo()
            raise


def _changed(group: Group, changes: Sequence[Pair]) -> Group:
    """A copy of a group in which rows have other weights; nothing is shown of it yet."""
    weights = dict(group.weights)
    for row, change in changes:
        weight = weights.get(row, 0) + change
        if weight:
            weights[row] = weight
        else:
            del weights[row]
    return Group(group.key, weights, {})
