"""Rows whose values compare with most others of their order, where no kind is declared.

    group of a key    rows with the kinds of their values (`order_kinds.py`)
                      number 4 times, text twice           shown: the rows with numbers
                      number 4 times, text 5 times         shown: the rows with texts

At each place of a value (of a tuple, each item) most rows decide; of kinds with as many rows, the
first by name. So which rows are refused follows from the rows that are there, not from the order in
which they came. The law is that of `reduce` by a function that keeps its groups.

State:  the rows, by the kinds of their values; how many there are of each kind.
Cost:   O(1) for a changed row; all rows whose kinds are shown or hidden where most are of another
        kind than before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from optimizer.expressions.knowledge import Shape
from optimizer.expressions.order_kinds import OrderKind, leaves
from optimizer.record import record

Pair: TypeAlias = tuple[Any, int]
Kinds: TypeAlias = "tuple[OrderKind, ...]"
Leaf: TypeAlias = "tuple[int, tuple[int, ...]]"


@record
class Comparable:
    """State of a group in `reduce`: the rows of most kinds, or all others if they are `refused`.

    The last `count` items of a row are the kinds of its values.
    """

    count: int
    refused: bool
    shape: Shape = None

    def __call__(self, key: Any, rows: Any) -> list[Any]:
        shown = self.kept()().step([(row, 1) for row in rows])
        return [row for row, weight in shown for _ in range(weight)]

    def kept(self) -> Callable[[], ComparableRows]:
        return lambda: ComparableRows(self.count, refused=self.refused)

    def limited(self, item: int, most: int) -> None:
        return None

    def dropping(self) -> Comparable:
        return self


class ComparableRows:
    """One group."""

    __slots__ = ("_count", "_refused", "_rows", "_was", "_wins")

    def __init__(self, count: int, *, refused: bool) -> None:
        self._count = count
        self._refused = refused
        self._rows: dict[Kinds, dict[Any, int]] = {}
        self._wins: dict[Leaf, str] = {}
        self._was: list[Pair] = []

    @property
    def is_empty(self) -> bool:
        return not self._rows

    def step(self, changes: Sequence[Pair]) -> list[Pair]:
        """Return the changes of what is shown."""
        self._was = list(changes)
        before = self._wins
        for row, weight in changes:
            self._add(row, weight)
        self._wins = self._most()
        if self._wins == before:
            return [pair for pair in changes if self._shows(self._kinds(pair[0]), before)]
        return self._difference(changes, before)

    def undo(self) -> None:
        """Be as before the last step."""
        for row, weight in self._was:
            self._add(row, -weight)
        self._was, self._wins = [], self._most()

    def commit(self) -> None:
        self._was = []

    def contents(self) -> Iterable[Pair]:
        return [
            pair
            for kinds, rows in self._rows.items()
            if self._shows(kinds, self._wins)
            for pair in rows.items()
        ]

    def footprint(self) -> tuple[int, int]:
        held = [len(rows) for rows in self._rows.values()]
        return sum(held), sum(map(sys.getsizeof, self._rows.values()))

    def _kinds(self, row: Any) -> Kinds:
        return row[-self._count :]  # type: ignore[no-any-return]

    def _add(self, row: Any, weight: int) -> None:
        kinds = self._kinds(row)
        rows = self._rows.setdefault(kinds, {})
        rows[row] = rows.get(row, 0) + weight
        if not rows[row]:
            del rows[row]
        if not rows:
            del self._rows[kinds]

    def _most(self) -> dict[Leaf, str]:
        """The kind that most distinct rows have at each place; the first by name of several."""
        if len(self._rows) == 1:
            (kinds,) = self._rows
            return dict(_places(kinds))
        counts: dict[Leaf, dict[str, int]] = {}
        for kinds, rows in self._rows.items():
            for leaf, name in _places(kinds):
                found = counts.setdefault(leaf, {})
                found[name] = found.get(name, 0) + len(rows)
        return {leaf: min(of, key=lambda name: (-of[name], name)) for leaf, of in counts.items()}

    def _shows(self, kinds: Kinds, wins: dict[Leaf, str]) -> bool:
        is_comparable = all(wins.get(leaf) == name for leaf, name in _places(kinds))
        return is_comparable is not self._refused

    def _difference(self, changes: Sequence[Pair], before: dict[Leaf, str]) -> list[Pair]:
        """Return the changes of the shown rows after another kind became that of most rows."""
        changed: dict[Kinds, dict[Any, int]] = {}
        for row, weight in changes:
            of = changed.setdefault(self._kinds(row), {})
            of[row] = of.get(row, 0) + weight
        out: list[Pair] = []
        for kinds in {**self._rows, **changed}:
            was, now = self._shows(kinds, before), self._shows(kinds, self._wins)
            rows, delta = self._rows.get(kinds, {}), changed.get(kinds, {})
            if was and now:
                out += delta.items()
            elif now:
                out += rows.items()
            elif was:
                for row in {**rows, **delta}:
                    out.append((row, delta.get(row, 0) - rows.get(row, 0)))
        return [(row, weight) for row, weight in out if weight]


def _places(kinds: Kinds) -> list[tuple[Leaf, str]]:
    return [((n, at), name) for n, kind in enumerate(kinds) for at, name in leaves(kind)]
