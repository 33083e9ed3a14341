"""The rows of a recursive relation: which enter and leave, by the derivations that they have.

Invariants, between two calls
-----------------------------
1. A row that is there has a well-founded derivation, or is in `lost`. So each has a proof from
   inputs alone, by induction over the rounds: what supports itself in a cycle is not well-founded
   all the way.
2. Rounds are dates of arrival, and no distances. A new derivation changes nothing but a count.
3. `support` counts all derivations; a row that left and is still supported can come back at once.

State:  that of `derivations.py`.
Cost:   O(1) per row that enters or leaves.
Source: docs/recursion.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from itertools import islice, repeat
from typing import Any, Self

from reactive.engine.collections.zset import Batch, Pair, Row, consolidate
from reactive.engine.operators.fixpoint.derivations import GIVEN, Derivations
from reactive.engine.operators.operator_state import State, repeated, shortened


class RecursiveRelation(Derivations):
    """One relation of a fixpoint.

    >>> relation = RecursiveRelation()
    >>> relation.take([("b", GIVEN), ("a", GIVEN)])
    >>> relation.enter(2, 0), relation.lost
    (['b', 'a'], [])
    >>> relation.take([("a", -GIVEN), ("b", -GIVEN), ("b", 7)])
    >>> relation.leave(), list(relation.rounds), relation.enter(8, 0)
    ([('a', -2), ('b', -2)], [], ['b'])
    """

    __slots__ = ()

    @property
    def is_losing(self) -> bool:
        """Whether rows have to leave before others may enter."""
        return bool(self.lost or self._gone)

    def enter(self, now: int, depth: int) -> list[Row]:
        """Let all rows in that are supported and not there; say which.

        `depth` is that of the rows from which the last ones were derived.
        """
        rows = self._fresh
        if self._found:
            rows = [*self._found, *self._fresh]
        if rows:
            self._found, self._fresh = {}, []
            self.depth = depth + 1
            self._enter(rows, now)
        return rows

    def _enter(self, rows: list[Row], now: int) -> None:
        try:
            self.rounds.update(zip(rows, repeat(now), strict=False))
        finally:
            self._note(self._take_out, (rows, now))
        if not self._is_single:
            self.well_founded.update([pair for pair in self._supports(rows) if pair[1] != 1])
        self._is_single, self._known = True, len(self.support)
        self._entered.append(rows)

    def _supports(self, rows: list[Row]) -> Iterable[tuple[Row, int]]:
        support = self.support
        if self._known >= 0:  # they are the last keys
            return islice(reversed(support.items()), len(rows))
        return zip(rows, map(support.__getitem__, rows), strict=True)

    def leave(self, *, dated: bool = True) -> Sequence[Pair]:
        """Put all rows out that have no well-founded derivation; say which, and since when they
        were there.

        Where no row has several derivations, dates are of no use, and not given if not `dated`.
        Those that are still supported may come back, when all that depended on them has left too.
        """
        lost, self.lost = self.lost, []
        self._is_single, self._known = False, -1
        rounds, well_founded = self.rounds, self.well_founded
        self._leaving, self._gone = self._gone, {}
        if self._fresh:
            self._found.update(dict.fromkeys(self._fresh))
            self._fresh = []
        if lost:
            more = {
                row: rounds[row] for row in lost if well_founded.get(row, 1) < 1 and row in rounds
            }
            self._found.update([(row, None) for row in more if self.support.get(row, 0) > 0])
            self._put_out(more)
            for row in more:
                del rounds[row]
            self._leaving.update(more)
        if not dated:
            return Batch(list(self._leaving), -GIVEN)
        return [(row, -since) for row, since in self._leaving.items()]

    def since(self, row: Row) -> int:
        """The round of a row that is there, or that was among the last to leave."""
        found = self.rounds.get(row)
        return self._leaving[row] if found is None else found

    @property
    def shown(self) -> Mapping[Row, object]:
        """The rows that the relation has to those outside."""
        return self.rounds

    def net(self, moved: Sequence[Pair]) -> Sequence[Pair]:
        """How the commit has changed what is shown, which are the rows that `moved` here."""
        return moved

    def moved(self) -> Sequence[Pair]:
        """Which rows have entered and left in this commit."""
        entered = self._entered
        came = entered[0] if len(entered) == 1 else [row for rows in entered for row in rows]
        if not self._left:
            return Batch(came, 1) if came else ()
        went = [row for rows in self._left for row in rows]
        if not came:
            return Batch(went, -1)
        return consolidate([*Batch(went, -1), *Batch(came, 1)])

    def undo(self) -> None:
        """Be as before the commit."""
        if self._was_empty:
            self.derivations = 0
            for state in (self.support, self.rounds, self.well_founded):
                state.clear()
        log, self._log = self._log, []
        for take_back, what in reversed(log):
            take_back(what)
        self.commit()

    def set_aside(self) -> Self:
        """Begin from nothing; all that there was, with what is to be undone of it, is returned."""
        before = copy(self)
        self._empty(before)
        self._begin()
        return before

    def _empty(self, before: Any) -> None:
        """Hold nothing in the place of what `before` holds."""
        before.rounds = dict(self.rounds)
        self.rounds.clear()  # which views read
        self.support, self.well_founded, self.derivations = {}, {}, 0

    def bring_back(self, before: Self) -> None:
        """Be as before the commit, at the beginning of which all was set aside, or later."""
        rounds, touched = self.rounds, self.touched
        for each in type(self).__mro__:
            for name in getattr(each, "__slots__", ()):
                setattr(self, name, getattr(before, name))
        self.rounds, self.touched = rounds, touched
        fill(rounds, before.rounds)
        self.undo()

    def commit(self) -> None:
        """Forget how it was before."""
        self._begin()

    def state(self) -> State | None:
        """The rows with their rounds and derivations; None if one may have a negative number."""
        rows = list(self.rounds)
        if self.may_be_negative or len(self.support) != len(rows):
            return None
        supports = list(map(self.support.__getitem__, rows))
        well_founded = self.well_founded
        return {
            "rows": rows,
            "rounds": shortened(list(self.rounds.values())),
            "supports": shortened(supports),
            "well_founded": shortened(list(map(well_founded.get, rows, repeat(1))))
            if well_founded
            else 1,
            "derivations": self.derivations,
        }

    def show(self, state: State) -> None:
        """Hold the rows of a stored state, and nothing else of it; the relation held nothing."""
        rows = state["rows"]
        self.rounds.update(zip(rows, repeated(state["rounds"], len(rows)), strict=True))

    def restore(self, state: State) -> None:
        """Hold a stored state, the rows of which are shown."""
        rows = state["rows"]
        self.support = dict.fromkeys(self.rounds, 1)  # which hashes no row
        self.well_founded = {}
        for held, counts in (
            (self.support, state["supports"]),
            (self.well_founded, state["well_founded"]),
        ):
            if counts != 1:
                pairs = zip(rows, repeated(counts, len(rows)), strict=True)
                held.update([pair for pair in pairs if pair[1] != 1])
        self.derivations = state["derivations"]
        self.commit()

    def footprint(self) -> tuple[int, int]:
        """Rows, and bytes of the dictionaries."""
        return len(self.rounds), sum(
            map(sys.getsizeof, (self.support, self.rounds, self.well_founded))
        )

    def _take_out(self, came: tuple[list[Row], int]) -> None:
        rows, now = came
        for row in rows:
            if self.rounds.get(row) == now:
                del self.rounds[row]
                self.well_founded.pop(row, None)


def fill(rows: dict[Row, Any], others: Mapping[Row, Any]) -> None:
    """Have a dictionary hold what another one does."""
    rows.clear()
    rows.update(others)
