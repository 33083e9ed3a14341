"""Aggregate: one row per group, its key and what each fold shows; a group lives while it has rows.

    d(row of g)  =  - (g, results before)  +  (g, results after)      for each group touched

Without a key there is one group that is always there, so that "of no rows" is a row as well. Its
row, if it has one aggregate only, is the bare value.

A group in state is a list: how many rows it has, the state of each fold, the row it shows. All
callables are evaluated before any group changes. Folds may still raise (values that cannot be
compared, a user's `remove`), so each group is remembered as it was until the commit stands.

State:  one list per group; what the folds hold (`folds.py`).
Cost:   O(|dL|) for Count, Sum, Avg; times log group for Min, Max and Monoid.
Source: [dbsp] section 4.2, aggregation; [i3ql] aggregation operators.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reactive.folds import Fold
from reactive.zset import Pair, Pairs, Row, canonical

Value = Callable[[Row], Any]
Group = list[Any]
Evaluated = tuple[Any, int, list[Any]]

WEIGHT = 0
STATES = slice(1, -1)
SHOWN = -1


class Aggregate:
    """Keeps groups; `folds` are pairs of a fold and the value that it reads (None: the row).

    >>> from reactive.folds import CountFold, SumFold
    >>> totals = Aggregate(len, [(CountFold(), None), (SumFold(), len)])
    >>> totals.step([("anna", 1), ("otto", 1), ("eva", 1)])
    [((4, 2, 8), 1), ((3, 1, 3), 1)]
    >>> totals.step([("otto", -1), ("eva", -1)])
    [((4, 2, 8), -1), ((4, 1, 4), 1), ((3, 1, 3), -1)]
    """

    __slots__ = ("_bare", "_before", "_done", "_folds", "_groups", "_key", "_values", "touched")

    def __init__(self, key: Value | None, folds: Sequence[tuple[Fold, Value | None]]) -> None:
        self._key = key
        self._bare = key is None and len(folds) == 1
        self._folds = [fold for fold, _ in folds]
        self._values = [value for _, value in folds]
        self._groups: dict[Any, Group] = {}
        self._before: dict[Any, Group | None] = {}
        self._done: list[tuple[int, Any, Any, int]] = []  # fold, state, value, weight
        self.touched = 0
        if key is None:
            self._groups[()] = group = self._new()
            group[SHOWN] = self._show((), group)

    def step(self, delta: Pairs) -> list[Pair]:
        self.touched += len(delta)
        evaluated = self._evaluate(delta)
        self._before, self._done = {}, []
        try:
            for key, weight, values in evaluated:
                self._add(key, weight, values)
            return self._out(self._differences())
        except BaseException:
            self.undo()
            raise

    def undo(self) -> None:
        for position, state, value, weight in reversed(self._done):
            self._folds[position].add(state, value, -weight)
        for key, group in self._before.items():
            if group is None:
                self._groups.pop(key, None)
            else:
                self._groups[key] = group
        self.commit()

    def commit(self) -> None:
        self._before, self._done = {}, []

    def contents(self) -> Iterable[Pair]:
        shown = (group[SHOWN] for group in self._groups.values())
        return self._out([(row, 1) for row in shown if row is not None])

    def footprint(self) -> tuple[int, int]:
        size = sys.getsizeof(self._groups)
        for group in self._groups.values():
            size += sys.getsizeof(group) + sum(map(sys.getsizeof, group[STATES]))
            size += sys.getsizeof(group[SHOWN])
        return len(self._groups), size

    def _out(self, pairs: list[Pair]) -> list[Pair]:
        return [(row[0], weight) for row, weight in pairs] if self._bare else pairs

    def _evaluate(self, delta: Pairs) -> list[Evaluated]:
        key, values = self._key, self._values
        return [
            (
                () if key is None else canonical(key(row)),
                weight,
                [row if value is None else value(row) for value in values],
            )
            for row, weight in delta
        ]

    def _new(self) -> Group:
        return [0, *(fold.zero() for fold in self._folds), None]

    def _add(self, key: Any, weight: int, values: list[Any]) -> None:
        group = self._groups.get(key)
        if key not in self._before:
            self._before[key] = None if group is None else group.copy()
        if group is None:
            group = self._groups[key] = self._new()
        group[WEIGHT] += weight
        for position, fold in enumerate(self._folds):
            state = fold.add(group[position + 1], values[position], weight)
            group[position + 1] = state
            if fold.in_place:
                self._done.append((position, state, values[position], weight))

    def _differences(self) -> list[Pair]:
        """Say what the touched groups showed and now show; drop those without rows."""
        out: list[Pair] = []
        for key, before in self._before.items():
            group = self._groups[key]
            old = None if before is None else before[SHOWN]
            new = group[SHOWN] = self._show(key, group)
            if old is not None and old != new:
                out.append((old, -1))
            if new is not None and old != new:
                out.append((new, 1))
            if not group[WEIGHT] and self._key is not None:
                del self._groups[key]
        return out

    def _show(self, key: Any, group: Group) -> Row | None:
        """The row of a group as a tuple, or None while it has no rows."""
        if group[WEIGHT] <= 0 and self._key is not None:
            return None
        results = [fold.result(s) for fold, s in zip(self._folds, group[STATES], strict=True)]
        return tuple(results) if self._key is None else (key, *results)
