"""Relations of a recursion over a lattice that are sets of rows.

Rows may be made of values, so they also leave while values rise. Rows that depend on each other
within sets (`falls`) first leave and then enter again, if others support them.

    rounds   row -> the round that it is present since
    cells    row -> numbers of its derivations: all, those of a finite round, and the late ones
             among these; a row that is not listed has one, and it is well-founded

State:  per row its round; three numbers if it has not exactly one well-founded derivation.
Cost:   O(1) per derivation.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from reactive.engine.collections.zset import Pair, Pairs, Row, UniformDelta
from reactive.engine.operators.fixpoint.loops import RISEN
from reactive.engine.operators.fixpoint.member_folds import NO_COUNTS, Counts
from reactive.engine.operators.fixpoint.rising_relation import (
    Change,
    Moves,
    RisingRelation,
    Value,
    restore_cell,
)

ONE: Counts = (1, 1, 0)
"""The numbers of a row with one derivation, which is well-founded."""


class SetRelation(RisingRelation):
    """Relation of a recursion over a lattice that is a set of rows.

    Its rows may be made of values, so they leave as values rise. Rows that depend on each other
    (`falls`) first leave and then enter again, if others support them.

    >>> relation = SetRelation()
    >>> relation.take([("a", 1), ("b", 1)])
    >>> relation.rise(2)
    ([], ['a', 'b'], [])
    """

    __slots__ = ("_ahead", "_fresh_rows")

    def _begin(self) -> None:
        super()._begin()
        self._fresh_rows: dict[Row, None] = {}  # derived, but not present
        self._ahead: dict[Row, int] = {}  # numbers of derivations when looking ahead

    def follow(self, derivations: Pairs) -> None:
        """Count derivations that come and go."""
        self.touched += len(derivations)
        if type(derivations) is UniformDelta and self._are_first(derivations):
            return
        rounds, counts, fresh = self.rounds, self.cells, self._fresh_rows
        logs, log = not self._was_empty, self._log
        for row, weight in derivations:
            sign = 1 if weight > 0 else -1
            since = weight * sign
            finite = 0 if since == RISEN else sign
            at, known = rounds.get(row), counts.get(row)
            if known is None:
                known = ONE if at or row in fresh else NO_COUNTS
                held = None
            else:
                held = known
            total, ended, late = known
            if at and finite and since >= at:
                late += finite
            if logs:
                log.append((restore_cell, (counts, row, held)))
            new = (total + sign, ended + finite, late)
            if new == ONE:
                counts.pop(row, None)
            else:
                counts[row] = new
            if not at:
                fresh[row] = None
            elif sign < 0:
                self._lose(row)
            self.derivations += sign

    def _are_first(self, derivations: UniformDelta) -> bool:
        """Count the derivations of a batch if each is the first one of its row, and well-founded;
        else return False."""
        rows, fresh = derivations.rows, self._fresh_rows
        if not 0 < derivations.weight < RISEN or not self.rounds.keys().isdisjoint(rows):
            return False
        new = dict.fromkeys(rows)
        if len(new) < len(rows) or (fresh and not fresh.keys().isdisjoint(new)):
            return False
        fresh.update(new)
        self.derivations += len(rows)
        return True

    def _lose(self, row: Row) -> None:
        """Note a present row that lost a derivation."""
        if self.falls or not self.is_rising:
            self.vanished += 1
            self._lost_cells[row] = None
        else:
            self._shaken[row] = None

    def reset_risen(self) -> None:
        if self.risen:
            risen = [row for row, since in self.rounds.items() if since == RISEN]
            self._lost_cells.update(dict.fromkeys(risen))

    def leave(self, *, dated: bool = True) -> Sequence[Pair]:
        """Remove rows without a well-founded derivation."""
        lost, self._lost_cells, self._leaving = self._lost_cells, {}, {}
        out: list[Pair] = []
        for row in lost:
            _, ended, late = self.cells.get(row, ONE)
            if row in self.rounds and ended <= late:
                out.append(self._put_off(row))
                self._fresh_rows[row] = None
        return out

    @property
    def has_fresh(self) -> bool:
        return bool(self._fresh_rows or self._shaken)

    def fresh_rows(self) -> list[Row]:
        return [*self._fresh_rows]

    def rise(self, now: int) -> Moves:
        fresh, self._fresh_rows = self._fresh_rows, {}
        shaken, self._shaken = self._shaken, {}
        self._leaving, self.restamps = {}, False
        removed: list[Pair] = []
        risen: list[Row] = []
        counts, rounds = self.cells, self.rounds
        if counts.keys().isdisjoint(fresh):
            entering = [*fresh]
        else:
            entering = []
            for row in fresh:
                if row not in rounds:
                    self._decide(row, entering, risen)
        entered = [*entering, *risen]
        for row in shaken:
            since = rounds.get(row)
            if since is None:
                continue
            total, ended, late = counts.get(row, ONE)
            if total < 1:
                removed.append(self._put_off(row))
                self._forget_count(row)
            elif since != RISEN and ended <= late:
                removed.append(self._put_off(row, is_gone=False))
                risen.append(row)
                self.restamps = True
        self.risen += len(risen)
        if entered:
            self._entered.append(entered)
        return removed, entering, risen

    def _decide(self, row: Row, entering: list[Row], risen: list[Row]) -> None:
        """Append an absent row to the rows that enter in this round, or in `RISEN`, if it is
        derived."""
        total, ended, late = self.cells.get(row, ONE)
        if total < 1:
            self._forget_count(row)
            return
        if late:
            self._note(restore_cell, (self.cells, row, (total, ended, late)))
            self.cells[row] = (total, ended, 0)
        (entering if ended > 0 else risen).append(row)

    def _forget_count(self, row: Row) -> None:
        """Forget the numbers of an absent row without derivations."""
        held = self.cells.get(row)
        if held is not None and not held[0]:
            self._note(restore_cell, (self.cells, row, held))
            del self.cells[row]

    def _put_off(self, row: Row, *, is_gone: bool = True) -> Pair:
        """Remove a row; return it with its negative round."""
        since, held = self.rounds[row], self.cells.get(row)
        self._remove_row(row, since)
        if held is not None and held[2]:
            self._note(restore_cell, (self.cells, row, held))
            self.cells[row] = (held[0], held[1], 0)
        if is_gone:
            self._left.append((row,))
        return row, -since

    def start_ahead(self, *, retracts: bool) -> Change:
        """Return the rows that leave and enter in the next rise; none leave without `retracts`."""
        counts, rounds = self.cells, self.rounds
        ahead = self._ahead = {
            row: number
            for row in self._fresh_rows
            if row not in rounds and (number := counts.get(row, ONE)[0]) > 0
        }
        came = [*ahead]
        gone: list[Row] = []
        if retracts:
            gone = [row for row in self._shaken if row in rounds and counts.get(row, ONE)[0] < 1]
            ahead.update([(row, counts[row][0]) for row in gone])
        return gone, came

    def go_ahead(self, gone: list[Row], rows: list[Row], *, retracts: bool) -> Change:
        """Count derivations that come and, if it retracts, go; return as `start_ahead` does."""
        self.touched += len(gone) + len(rows)
        ahead, rounds = self._ahead, self.rounds
        if not retracts:
            new = [row for row in dict.fromkeys(rows) if row not in rounds and row not in ahead]
            ahead.update(dict.fromkeys(new, 1))
            return (), new
        before: dict[Row, bool] = {}
        for changed, sign in ((gone, -1), (rows, 1)):
            for row in changed:
                number = ahead.get(row)
                if number is None:
                    number = self.cells.get(row, ONE)[0] if row in rounds else 0
                before.setdefault(row, number > 0)
                ahead[row] = number + sign
        return (
            [row for row, was in before.items() if was and ahead[row] < 1],
            [row for row, was in before.items() if not was and ahead[row] > 0],
        )

    def end_ahead(self, *, is_found: bool) -> Change:
        """Forget the numbers; return the rows of now that are not ahead, and the other way."""
        ahead, self._ahead, rounds = self._ahead, {}, self.rounds
        return (
            [row for row, number in ahead.items() if number < 1 and row in rounds],
            [row for row, number in ahead.items() if number > 0 and row not in rounds],
        )

    def unsettled(self) -> Iterator[tuple[Row, Value]]:
        return iter(())

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows, and the bytes of the dictionaries and numbers."""
        size = sys.getsizeof(self.rounds) + sys.getsizeof(self.cells)
        return len(self.rounds), size + sum(map(sys.getsizeof, self.cells.values()))
