"""Relations of a recursion over a lattice: their cells, rounds and undo log.

A cell is a key with its row. A commit first lets rows fall, then rise (`lattice_relation.py`).

State:  per key its row and round.
Cost:   O(1) per row that is removed or inserted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

from reactive.engine.collections.zset import Pair, Pairs, Row, UniformDelta
from reactive.engine.operators.aggregate import State
from reactive.engine.operators.fixpoint.loops import RISEN
from reactive.engine.operators.fixpoint.member_folds import Counts, MemberFolds
from reactive.engine.operators.fixpoint.recursive_relation import RecursiveRelation

Value = Any
Moves = tuple[list[Pair], list[Row], list[Row]]
"""Replaced rows with their negative rounds; new rows of this round; new rows of `RISEN`."""
Change = tuple[Sequence[Row], Sequence[Row]]
"""Rows that leave, and rows that enter."""


class RowCell:
    """A row with what is known of it; absent if `since` is 0."""

    __slots__ = ("row", "since", "value")

    def __init__(self, row: Row, value: Value) -> None:
        self.row = row
        self.since = 0
        self.value = value


class Cell(RowCell):
    """The members of a key, and its row."""

    __slots__ = ("folds", "key", "lates", "members")

    def __init__(self, key: Any, row: Row) -> None:
        self.key = key
        self.row = row
        self.since = 0
        self.value: Value = None
        self.members: dict[Value, Counts] = {}
        self.lates: list[Value] | None = None
        """All members with derivations of a finite round that are not well-founded, and others."""
        self.folds: MemberFolds | None = None
        """The joins of many members; None while nothing asks for them."""

    def put_late(self, value: Value) -> None:
        """Note a member with a derivation of a finite round that is not well-founded."""
        if self.lates is None:
            self.lates = [value]
        else:
            self.lates.append(value)


class RisingRelation(RecursiveRelation):
    """A relation of a recursion over a lattice, whose rows fall and rise."""

    __slots__ = (
        *("_began", "_counted", "_doubted", "_lost_cells", "_shaken"),
        *("cells", "climbs", "falls", "is_rising", "restamps", "risen"),
    )

    def __init__(self) -> None:
        self.cells: dict[Any, Any] = {}
        self.risen = 0
        """Number of rows that are present since `RISEN`."""
        self.falls = False
        """True if rows also fall while others rise: those that depend on each other as a set."""
        super().__init__()

    def _begin(self) -> None:
        super()._begin()
        self.is_rising = False
        self.climbs = False
        """True if a key rises in so many steps that looking ahead pays."""
        self.restamps = False
        """True if the last rise gave a present row another round."""
        self._was_empty = not (self.cells or self.rounds)
        self._began = self.touched
        self._counted = self.derivations, self.risen
        self._lost_cells: dict[Any, None] = {}
        self._shaken: dict[Any, None] = {}
        self._doubted: dict[Any, None] = {}

    @property
    def has_only_ones(self) -> bool:
        return False

    def take(self, derivations: Pairs) -> None:
        self.follow(derivations)

    def follow(self, derivations: Pairs) -> None:
        raise NotImplementedError

    def reset_risen(self) -> None:
        """Note all rows that no round justifies, as if each had lost a derivation."""
        if self.risen:
            self._lost_cells.update(
                [(cell, None) for cell in self.cells.values() if cell.since == RISEN]
            )

    @property
    def is_losing(self) -> bool:
        return bool(self._lost_cells)

    @property
    def has_fresh(self) -> bool:
        """True if values may rise."""
        raise NotImplementedError

    def force(self) -> bool:
        """Let rows that wait for their targets rise; return False if none waits."""
        return False

    def fresh_rows(self) -> list[Row]:
        """Return some rows that `rise` would look at."""
        raise NotImplementedError

    def rise(self, now: int) -> Moves:
        """Remove replaced rows; return them and the rows that replace them or are new."""
        raise NotImplementedError

    def unsettled(self) -> Iterator[tuple[Row, Value]]:
        """Iterate over rows that are not what their members give, each with what they give."""
        raise NotImplementedError

    def sweep(self) -> None:
        """Forget keys without members."""

    def put(self, rows: list[Row], since: int) -> None:
        """Insert rows that `rise` returned."""
        if rows:
            if not self._was_empty:
                self._log.append((restore_rounds, (self.rounds, [(row, None) for row in rows])))
            self.rounds.update(zip(rows, repeat(since), strict=False))

    def _remove_row(self, row: Row, since: int) -> None:
        if not self._was_empty:
            self._log.append((restore_rounds, (self.rounds, [(row, since)])))
        self._leaving[row] = since
        del self.rounds[row]
        if since == RISEN:
            self.risen -= 1

    def _remove_rows(self, rows: list[Pair]) -> None:
        """Remove rows, each given with its round."""
        rounds = self.rounds
        if not self._was_empty:
            self._log.append((restore_rounds, (rounds, rows)))
        self._leaving.update(rows)
        for row, since in rows:
            del rounds[row]
            if since == RISEN:
                self.risen -= 1

    def leave(self, *, dated: bool = True) -> Sequence[Pair]:
        raise NotImplementedError

    def moved_rows(self) -> Sequence[Pair]:
        if self._was_empty:
            return UniformDelta(list(self.rounds), 1) if self.rounds else ()
        return super().moved_rows()

    def commit(self) -> None:
        if self.touched != self._began or self._entered or self._left or self._log:
            self._begin()
        self.is_rising = False

    def undo(self) -> None:
        if self._was_empty:
            self.cells.clear()
            self.rounds.clear()
            self._log = []
        self.derivations, self.risen = self._counted
        super().undo()
        self._begin()

    def _empty(self, before: Any) -> None:
        super()._empty(before)
        self.cells, self.risen = {}, 0

    def state(self) -> State | None:
        """Return None: the recursion is evaluated again when it is opened."""
        return None


# Each function below restores what was there before a change, so that it may be called for a
# change that was not made.


def restore_cell(change: tuple[dict[Any, Any], Any, Any]) -> None:
    """Restore the cell of a key, or that there was none."""
    cells, key, cell = change
    if cell is None:
        cells.pop(key, None)
    else:
        cells[key] = cell


def restore_member(change: tuple[Cell, Value, Counts | None]) -> None:
    """Restore the numbers of a value, or that there were none."""
    cell, value, counts = change
    cell.folds = None
    if counts is None:
        cell.members.pop(value, None)
        return
    cell.members[value] = counts
    if counts[2]:
        cell.put_late(value)


def restore_row(change: tuple[RowCell, Row, int, Value]) -> None:
    """Restore the row of a key, with its round and value."""
    cell, row, since, value = change
    cell.row, cell.since, cell.value = row, since, value


def restore_rounds(change: tuple[dict[Row, int], list[tuple[Row, int | None]]]) -> None:
    """Restore the rounds of rows, or that they were not present."""
    rounds, before = change
    for row, since in before:
        if since is None:
            rounds.pop(row, None)
        else:
            rounds[row] = since
