"""Relations of a recursion over a lattice: one row per key, whose value is a join.

A key has members: the values of the rows that are derived for it, each with the number of its
derivations. The row of the key has the join of all members. While a change is followed, values
first fall as far as they must, then they rise:

    fall     a key that lost a well-founded derivation is reset, unless the members with
             well-founded derivations still have its value as their join; what was derived from
             its row loses these derivations
    rise     the value of a key is joined with its new members; the old row is replaced

Invariants, between two calls
-----------------------------
1. A row that is present since a finite round has the join of its members with well-founded
   derivations (of earlier rounds). So by induction over the rounds its value is justified by inputs
   alone.
2. A row whose value no round justifies is present since `RISEN`, later than all rounds. It stays
   while none of its derivations is lost: then its equations are as they were, and so is their
   least solution.
3. A value never falls while others rise. So each key is reset at most once per commit, and a value
   that rises round a loop in many steps falls in one.

State:  per member three numbers; per key its row, value and round; a tree of joins for a key with
        many members (`member_folds.py`).
Cost:   O(1) per derivation; per key that rises, a join per new member; per key that lost a
        derivation, a join per member if there are few, else O(log members) joins.
Source: docs/lattices.md; [laddder]; keys that are derived again: [dred].
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

from reactive.engine.collections.zset import EXACT, Pair, Pairs, Row, UniformDelta
from reactive.engine.operators.fixpoint.joined_relation import JoinedRelation
from reactive.engine.operators.fixpoint.loops import RISEN
from reactive.engine.operators.fixpoint.member_folds import (
    NO_COUNTS,
    NONE,
    MemberFolds,
    is_founded,
)
from reactive.engine.operators.fixpoint.rising_relation import (
    Cell,
    Change,
    Moves,
    Value,
    restore_cell,
    restore_member,
    restore_row,
)


class LatticeRelation(JoinedRelation):
    """Relation with one row per key: the join of the rows that are derived for it.

    Parameters
    ----------
    by: row -> its key.
    of: row -> its value.
    put_value: row, value -> the row with that value.
    join: the join of two values.
    bottom: the value of no row, in a tuple; () if there is none.
    widen: value -> a value that is as large or larger; None for none.
    widen_at: row -> True if its value is widened; None for all.
    is_checked: True if rows with equal keys may differ in more than the value.

    >>> relation = LatticeRelation(
    ...     lambda row: row[0], lambda row: row[1], lambda row, value: (row[0], value), max)
    >>> relation.take([(("a", 3), 1), (("b", 4), 1), (("a", 5), 1)])
    >>> relation.rise(2)
    ([], [('a', 5), ('b', 4)], [])
    """

    __slots__ = ()

    def follow(self, derivations: Pairs) -> None:
        """Count derivations that come and go; those of a batch come from rows of one round."""
        self.touched += len(derivations)
        if type(derivations) is UniformDelta and derivations.weight > 0:
            self._count_rows(derivations.rows, repeat(derivations.weight))
            return
        rows: list[Row] = []
        sinces: list[int] = []
        for row, since in derivations:
            if since < 0:
                if rows:
                    self._count_rows(rows, sinces)
                    rows, sinces = [], []
                self._uncount(row, -since)
            else:
                rows.append(row)
                sinces.append(since)
        if rows:
            self._count_rows(rows, sinces)

    def _count_rows(self, rows: Sequence[Row], sinces: Iterable[int]) -> None:
        """Count derived rows, each with the round that it is derived from."""
        cells, bottom, fresh = self.cells, self._bottom, self._fresh_rows
        logs, log, is_checked = not self._was_empty, self._log, self._is_checked
        number = 0
        given = zip(rows, map(self._by, rows), map(self._of, rows), sinces, strict=False)
        for row, key, value, since in given:
            if bottom and value == bottom[0]:
                continue
            cell = cells.get(key)
            if cell is None:
                if logs:
                    log.append((restore_cell, (cells, key, None)))
                cell = cells[key] = Cell(key, row)
                cell.members[value] = (1, 0 if since == RISEN else 1, 0)
                fresh[cell] = [row]
                number += 1
                continue
            if is_checked:
                self._check_rest(cell, row)
            members = cell.members
            counts = members.get(value)
            if logs:
                log.append((restore_member, (cell, value, counts)))
            number += 1
            late = 0 if since == RISEN or not since >= cell.since > 0 else 1
            if late:
                cell.put_late(value)
            if counts is None:
                new = members[value] = (1, 0 if since == RISEN else 1, late)
                counts = NO_COUNTS
            else:
                total, finite, lates = counts
                new = members[value] = (
                    total + 1,
                    finite if since == RISEN else finite + 1,
                    lates + late,
                )
            if cell.folds is not None:
                cell.folds.change(value, counts, new)
            if counts[0] > 0:
                continue
            known = fresh.get(cell)
            if known is None:
                fresh[cell] = [row]
            else:
                known.append(row)
        self.derivations += number

    def _uncount(self, row: Row, since: int) -> None:
        value = self._of(row)
        if self._bottom and value == self._bottom[0]:
            return
        key = self._by(row)
        cell = self.cells.get(key)
        if cell is None:
            self._note(restore_cell, (self.cells, key, None))
            cell = self.cells[key] = Cell(key, row)
        members = cell.members
        counts = members.get(value)
        self._note(restore_member, (cell, value, counts))
        finite = int(since != RISEN)
        is_late = int(bool(finite and cell.since and since >= cell.since))
        total, ended, late = old = counts or NO_COUNTS
        new = (total - 1, ended - finite, late - is_late)
        if total == 1:
            del members[value]
        else:
            members[value] = new
        if cell.folds is not None:
            cell.folds.change(value, old, new)
        self.derivations -= 1
        was_founded = finite and not is_late and ended - finite <= late
        if not self.is_rising:
            self.vanished += 1
            if cell.since == RISEN or (cell.since and was_founded):
                self._lost_cells[cell] = None
        elif cell.since != RISEN and was_founded:
            self._shaken[cell] = None
        if total == 1:
            self._doubted[cell] = None

    def leave(self, *, dated: bool = True) -> Sequence[Pair]:
        """Reset the keys whose well-founded derivations do not give their value; return the rows
        that leave."""
        lost, self._lost_cells, self._leaving = self._lost_cells, {}, {}
        out: list[Pair] = []
        for cell in lost:
            since = cell.since
            if not since or self._holds(cell, founded=True):
                continue
            self._end_lates(cell)
            self._set(cell, cell.row, 0, cell.value)
            self._remove_row(cell.row, since)
            self._left.append((cell.row,))
            out.append((cell.row, -since))
            if cell.members:
                self._fresh_rows[cell] = []
            else:
                self._doubted[cell] = None
        return out

    @property
    def has_fresh(self) -> bool:
        return bool(self._fresh_rows or self._shaken)

    def fresh_rows(self) -> list[Row]:
        return [row for rows in self._fresh_rows.values() for row in rows]

    def rise(self, now: int) -> Moves:
        fresh, self._fresh_rows = self._fresh_rows, {}
        shaken, self._shaken = self._shaken, {}
        self._leaving, self.restamps = {}, False
        if self._waiting:
            fresh = {cell: [*self._waiting.pop(cell, ()), *rows] for cell, rows in fresh.items()}
        removed: list[Pair] = []
        entering: list[Row] = []
        risen: list[Row] = []
        entered: list[Row] = []
        gone: list[Pair] = []
        logs, targets = not self._was_empty, self.targets
        is_plain = not (self._widens or targets)
        for cell, rows in fresh.items():
            since = cell.since
            if is_plain and not since and len(rows) == 1 == len(cell.members):
                ((value, counts),) = cell.members.items()  # a new key with one value
                if counts[0] < 1:
                    continue
                row = rows[0]
                if counts[0] > 1:
                    value = self._of(row)
                if value == value:
                    entered.append(row)
                    cell.row, cell.value = row, value
                    if logs:
                        self._log.append((restore_row, (cell, row, 0, None)))
                    if counts[1] > 0:
                        cell.since = now
                        entering.append(row)
                    else:
                        cell.since = RISEN
                        risen.append(row)
                    continue
            if since:
                value = self._raised(cell, rows)
                if value is cell.value or value == cell.value:
                    continue
            else:
                value = self._fold(cell, founded=False)
                if value is NONE:
                    continue
            is_given = False
            if targets:
                value, is_given = self._awaited(cell, rows, value)
                if value is NONE:
                    continue
            row = self._row(cell, rows, value)
            if cell.lates:
                self._end_lates(cell)
            is_dated = not is_given and self._is_founded(
                cell, rows, value, since, is_shaken=cell in shaken
            )
            if shaken:
                shaken.pop(cell, None)
            if since:
                gone.append((cell.row, since))
                removed.append((cell.row, -since))
                if targets is None:
                    self._count_rise(cell)
            entered.append(row)
            if logs:
                self._log.append((restore_row, (cell, cell.row, since, cell.value)))
            cell.row, cell.value = row, value
            cell.since = now if is_dated else RISEN
            (entering if is_dated else risen).append(row)
        if gone:
            self._remove_rows(gone)
            self._left.append([row for row, _ in gone])
        for cell in shaken:
            since = cell.since
            if not since or since == RISEN or self._holds(cell, founded=True):
                continue
            self._remove_row(cell.row, since)
            removed.append((cell.row, -since))
            self._end_lates(cell)
            self._set(cell, cell.row, RISEN, cell.value)
            risen.append(cell.row)
            self.restamps = True
        self.risen += len(risen)
        self._is_forced = False
        if entered:
            self._entered.append(entered)
        return removed, entering, risen

    def start_ahead(self, *, retracts: bool) -> Change:
        """Return the rows that the next rise replaces, and those that replace them or are new."""
        ahead = self._ahead = {}
        gone: list[Row] = []
        came: list[Row] = []
        for cell, rows in self._fresh_rows.items():
            value = self._raised(cell, rows) if cell.since else self._fold(cell, founded=False)
            if value is NONE or (cell.since and value == cell.value):
                continue
            row = self._row(cell, rows, value)
            ahead[cell.key] = (value, row)
            came.append(row)
            if cell.since:
                gone.append(cell.row)
        return gone, came

    def _set(self, cell: Cell, row: Row, since: int, value: Value) -> None:
        """Set the row of a key."""
        if not self._was_empty:
            self._log.append((restore_row, (cell, cell.row, cell.since, cell.value)))
        cell.row, cell.since, cell.value = row, since, value

    def _end_lates(self, cell: Cell) -> None:
        """Count all finite derivations of a key as well-founded: its row gets a later round."""
        if not cell.lates:
            return
        members, lates, cell.lates = cell.members, cell.lates, None
        for value in lates:
            counts = members.get(value)
            if counts is not None and counts[2]:
                self._note(restore_member, (cell, value, counts))
                new = members[value] = (counts[0], counts[1], 0)
                if cell.folds is not None:
                    cell.folds.change(value, counts, new)

    def _fold(self, cell: Cell, *, founded: bool) -> Value:
        """Return the widened join of the members, or of those with well-founded derivations;
        `NONE` if there are none."""
        members, join, made = cell.members, self._join, NONE
        if len(members) > MANY_MEMBERS and (cell.since or not self._was_empty):
            if cell.folds is None:
                cell.folds = MemberFolds(join, members)
            made = cell.folds.join(founded=founded)
        else:
            cell.folds = None
            for value, counts in members.items():
                if is_founded(counts) if founded else counts[0] > 0:
                    made = value if made is NONE else join(made, value)
        return made if made is NONE else self._widened(cell.row, made)

    def _row(self, cell: Cell, rows: list[Row], value: Value) -> Row:
        """Return the row of a key with a value: a derived row, if there is one."""
        of = self._of
        for row in rows:
            own = of(row)
            if own is value or (own == value and own.__class__ is value.__class__):
                return row
        return self._put_value(rows[0] if rows else cell.row, value)

    def _raised(self, cell: Cell, rows: list[Row]) -> Value:
        """Return the join of the value of a key and those of new rows."""
        value, join, of, members = cell.value, self._join, self._of, cell.members
        for row in rows:
            own = of(row)
            if own in members and members[own][0] > 0:
                value = join(value, own)
        if not self._widens and value.__class__ in EXACT:
            return value
        return self._widened(cell.row, value)

    def _holds(self, cell: Cell, *, founded: bool) -> bool:
        """Return True if the members have the value of the key as their join; with `founded`, the
        members with well-founded derivations."""
        wanted = cell.value
        counts = cell.members.get(wanted, NO_COUNTS)
        if is_founded(counts) if founded else counts[0] > 0:
            return True
        made = self._fold(cell, founded=founded)
        return made is wanted or (made is not NONE and bool(made == wanted))

    def _is_founded(
        self, cell: Cell, rows: list[Row], value: Value, since: int, *, is_shaken: bool
    ) -> bool:
        """Return True if the finite derivations of a key, all well-founded, give its new value."""
        members, of = cell.members, self._of
        is_ordinary = since and since != RISEN and not is_shaken
        if is_ordinary and all(members.get(of(row), NO_COUNTS)[1] for row in rows):
            return True
        counts = members.get(value)
        if counts is not None and counts[1] > 0:
            return True
        made = self._fold(cell, founded=True)
        return made is value or (made is not NONE and bool(made == value))

    def _check_rest(self, cell: Cell, row: Row) -> None:
        """Refuse a row that differs from another one of its key in more than the value."""
        put, value = self._put_value, self._of(row)
        if put(cell.row, value) != row:
            raise ValueError(
                f"two rows of the key {cell.key!r:.60} differ in more than the value that is"
                f" joined: {cell.row!r:.60} and {row!r:.60}\n"
                "  by= must name all other fields of the row"
            )

    def unsettled(self) -> Iterator[tuple[Row, Value]]:
        for cell in self._doubted:
            if cell.since and not self._holds(cell, founded=False):
                given = self._fold(cell, founded=False)
                yield cell.row, None if given is NONE else given

    def covers(self, row: Row) -> bool:
        """Return True if the members of the key of a row make a value as large as its own."""
        value, cell = self._of(row), self.cells.get(self._by(row))
        if self._bottom and value == self._bottom[0]:
            return True
        made = NONE if cell is None else self._fold(cell, founded=False)
        return made is not NONE and bool(self._join(made, value) == made)

    def sweep(self) -> None:
        for cell in self._doubted:
            if not cell.members and not cell.since and cell.key in self.cells:
                self._note(restore_cell, (self.cells, cell.key, cell))
                del self.cells[cell.key]
        self._doubted = {}

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows, and the bytes of the dictionaries and members."""
        size = sys.getsizeof(self.rounds) + sys.getsizeof(self.cells)
        for cell in self.cells.values():
            size += sys.getsizeof(cell) + sys.getsizeof(cell.members)
        return len(self.rounds), size


MANY_MEMBERS = 32
"""Most members of a key whose join is made of all of them each time."""
