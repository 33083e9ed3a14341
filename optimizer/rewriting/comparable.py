"""Rows whose values compare with most others of their order, where no kind is declared.

    group of a key    rows with the kinds of their values (`order_kinds.py`)
                      number 4 times, text twice           shown: the rows with numbers
                      number 4 times, text 5 times         shown: the rows with texts

At each place of a value (of a tuple, each item) most rows decide; of kinds with as many rows, the
first by name. So which rows are refused follows from the rows that are there, not from the order in
which they came. The law is that of `reduce` by a function that keeps its groups.

Values of a class with operators of its own are tried on one another. Of rows that clash those are
refused that clash with most; of two that clash with one another only, both.

State:  the rows, by the kinds of their values; how many there are of each kind; which clash.
Cost:   O(1) for a changed row; all rows whose kinds are shown or hidden where most are of another
        kind than before. Of values with operators of their own, O(such rows of the group).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from optimizer.expressions.knowledge import Shape
from optimizer.expressions.order_kinds import OrderKind, OwnKind, leaves
from optimizer.record import record

Pair: TypeAlias = tuple[Any, int]
Kinds: TypeAlias = "tuple[OrderKind, ...]"
Leaf: TypeAlias = "tuple[int, tuple[int, ...]]"


@record
class Comparable:
    """State of a group in `reduce`: the rows of most kinds, or of the `first` by name; or all
    others if they are `refused`.

    The last `count` items of a row are the kinds of its values.
    """

    count: int
    refused: bool
    shape: Shape = None
    first: bool = False

    def __call__(self, key: Any, rows: Any) -> list[Any]:
        shown = self.kept()().step([(row, 1) for row in rows])
        return [row for row, weight in shown for _ in range(weight)]

    def kept(self) -> Callable[[], ComparableRows]:
        return lambda: ComparableRows(self.count, refused=self.refused, first=self.first)

    def limited(self, item: int, most: int) -> None:
        return None

    def dropping(self) -> Comparable:
        return self


class ComparableRows:
    """One group."""

    __slots__ = (
        "_clashes",
        "_count",
        "_first",
        "_hidden",
        "_own",
        "_refused",
        "_rows",
        "_was",
        "_wins",
    )

    def __init__(self, count: int, *, refused: bool, first: bool = False) -> None:
        self._count = count
        self._first = first
        self._refused = refused
        self._rows: dict[Kinds, dict[Any, int]] = {}
        self._own: dict[Any, dict[Leaf, OwnKind]] = {}
        self._clashes: dict[Any, set[Any]] = {}
        self._hidden: set[Any] = set()
        self._wins: dict[Leaf, str] = {}
        self._was: list[Pair] = []

    @property
    def is_empty(self) -> bool:
        return not self._rows

    def step(self, changes: Sequence[Pair]) -> list[Pair]:
        """Return the changes of what is shown."""
        self._was = list(changes)
        before, hidden = self._wins, self._hidden
        for row, weight in changes:
            self._add(row, weight)
        self._wins, self._hidden = self._most(), self._clashing()
        if hidden or self._hidden:
            return self._difference_of_rows(changes, before, hidden)
        if self._wins == before:
            return [pair for pair in changes if self._shows(self._kinds(pair[0]), before)]
        return self._difference(changes, before)

    def undo(self) -> None:
        """Be as before the last step."""
        for row, weight in self._was:
            self._add(row, -weight)
        self._was, self._wins, self._hidden = [], self._most(), self._clashing()

    def commit(self) -> None:
        self._was = []

    def contents(self) -> Iterable[Pair]:
        if self._hidden:
            changes = [pair for rows in self._rows.values() for pair in rows.items()]
            return [pair for pair in changes if self._shows_row(pair[0], self._wins, self._hidden)]
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
        if row not in rows:
            self._meet(row, kinds)
        rows[row] = rows.get(row, 0) + weight
        if not rows[row]:
            del rows[row]
            self._leave(row)
        if not rows:
            del self._rows[kinds]

    def _meet(self, row: Any, kinds: Kinds) -> None:
        """Try the values of a row that have operators of their own on those of the others."""
        own = {leaf: name for leaf, name in _places(kinds) if isinstance(name, OwnKind)}
        if not own:
            return
        for other, others in self._own.items():
            if any(
                leaf in others and others[leaf] == name and name.clashes(others[leaf])
                for leaf, name in own.items()
            ):
                self._clashes.setdefault(row, set()).add(other)
                self._clashes.setdefault(other, set()).add(row)
        self._own[row] = own

    def _leave(self, row: Any) -> None:
        self._own.pop(row, None)
        for other in self._clashes.pop(row, ()):
            clashes = self._clashes[other]
            clashes.discard(row)
            if not clashes:
                del self._clashes[other]

    def _clashing(self) -> set[Any]:
        """Return the rows to refuse so that no two others clash: those that clash with most."""
        hidden: set[Any] = set()
        left = {row: len(others) for row, others in self._clashes.items()}
        while most := max(left.values(), default=0):
            worst = [row for row, count in left.items() if count == most]
            hidden.update(worst)
            for row in worst:
                del left[row]
            for row in worst:
                for other in self._clashes[row]:
                    if other in left:
                        left[other] -= 1
        return hidden

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
        if self._first:
            return {leaf: min(of) for leaf, of in counts.items()}
        return {leaf: min(of, key=lambda name: (-of[name], name)) for leaf, of in counts.items()}

    def _shows(self, kinds: Kinds, wins: dict[Leaf, str]) -> bool:
        is_comparable = all(wins.get(leaf) == name for leaf, name in _places(kinds))
        return is_comparable is not self._refused

    def _shows_row(self, row: Any, wins: dict[Leaf, str], hidden: set[Any]) -> bool:
        return self._refused if row in hidden else self._shows(self._kinds(row), wins)

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

    def _difference_of_rows(
        self, changes: Sequence[Pair], before: dict[Leaf, str], hidden: set[Any]
    ) -> list[Pair]:
        """Return the changes of the shown rows where rows clash, before or now."""
        delta: dict[Any, int] = {}
        for row, weight in changes:
            delta[row] = delta.get(row, 0) + weight
        out: list[Pair] = []
        now_there = {row: weight for rows in self._rows.values() for row, weight in rows.items()}
        for row in {**now_there, **delta}:
            weight = now_there.get(row, 0)
            now = weight if self._shows_row(row, self._wins, self._hidden) else 0
            was = weight - delta.get(row, 0) if self._shows_row(row, before, hidden) else 0
            if now != was:
                out.append((row, now - was))
        return out


def _places(kinds: Kinds) -> list[tuple[Leaf, str]]:
    return [((n, at), name) for n, kind in enumerate(kinds) for at, name in leaves(kind)]
