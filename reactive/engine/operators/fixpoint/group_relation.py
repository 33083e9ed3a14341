"""Relations of a recursion whose rows are made of aggregates: one row per group.

    controls  <-  aggregate Sum(s.pct) by (s.owner, s.of), where total > 50

    ("a", "c")    members  ("a", "c", 30), ("a", "c", 25)     total 55     row: control of c by a
    ("a", "d")    members  ("a", "d", 20)                     total 20     no row

The rows of a group are its members, counted and dated as derivations of other relations. Its row is
what the nodes above the aggregate make of the results. A row falls only if the members with
well-founded derivations no longer make it: a total that sinks from 70 to 55 changes nothing above
a test `total > 50`.

State:  per member three numbers; per group its row and round.
Cost:   O(1) per member that comes or goes, and an aggregation of the members of each changed group
        in each round that changes it.
Source: `lattice_relation.py`; [ross] monotonic aggregation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reactive.engine.collections.index import itself
from reactive.engine.collections.zset import Pair, Pairs, Row
from reactive.engine.operators.fixpoint.lattice_relation import LatticeRelation
from reactive.engine.operators.fixpoint.loops import RISEN
from reactive.engine.operators.fixpoint.member_folds import NONE
from reactive.engine.operators.fixpoint.rising_relation import (
    Cell,
    Value,
    restore_cell,
    restore_member,
)

TOTAL, FINITE, FOUNDED = range(3)
"""The derivations of members that count: all, those of a finite round, the well-founded ones."""
_NOTHING = (0, 0, 0)


class GroupRelation(LatticeRelation):
    """Relation with one row per group.

    Parameters
    ----------
    key: member -> the key of its group.
    row_of: members with their counts -> the row of the group, without its key, as a pair in a list;
        an empty list if there is none.
    check: a function that raises for a member that cannot be aggregated in a recursion.
    width: the number of bindings of such a row.

    >>> relation = GroupRelation(
    ...     lambda m: m[0], lambda pairs: [(sum(m[1] * n for m, n in pairs), 1)], lambda m: None, 1)
    >>> relation.take([(("a", 3), 1), (("a", 3), 1), (("b", 4), 1)])
    >>> relation.rise(2)
    ([], [('a', 6), ('b', 4)], [])
    """

    __slots__ = ("_check", "_row_of", "_width")

    def __init__(
        self,
        key: Callable[[Row], Any],
        row_of: Callable[[Sequence[Pair]], Sequence[Pair]],
        check: Callable[[Row], object],
        width: int,
    ) -> None:
        super().__init__(key, itself, _value_itself, _later)
        self._widens = True  # one member is not the value of its group
        self._row_of, self._check, self._width = row_of, check, width

    def follow(self, derivations: Pairs) -> None:
        """Count members that come and go: equal ones count several times."""
        self.touched += len(derivations)
        cells, fresh = self.cells, self._fresh_rows
        for row, since in derivations:
            if since < 0:
                self._uncount(row, -since)
                continue
            key = self._by(row)
            cell = cells.get(key)
            if cell is None:
                self._note(restore_cell, (cells, key, None))
                cell = cells[key] = Cell(key, row)
            members = cell.members
            counts = members.get(row)
            if counts is None:
                self._check(row)
            self._note(restore_member, (cell, row, counts))
            total, finite, late = counts or _NOTHING
            is_finite = since != RISEN
            is_late = is_finite and since >= cell.since > 0
            if is_late:
                cell.put_late(row)
            members[row] = (total + 1, finite + is_finite, late + is_late)
            self.derivations += 1
            fresh.setdefault(cell, []).append(row)

    def _uncount(self, row: Row, since: int) -> None:
        key = self._by(row)
        cell = self.cells.get(key)
        if cell is None:
            self._note(restore_cell, (self.cells, key, None))
            cell = self.cells[key] = Cell(key, row)
        members = cell.members
        counts = members.get(row)
        self._note(restore_member, (cell, row, counts))
        is_finite = since != RISEN
        is_late = bool(is_finite and cell.since and since >= cell.since)
        total, finite, late = counts or _NOTHING
        left = (total - 1, finite - is_finite, late - is_late)
        if left == _NOTHING:
            del members[row]
        else:
            members[row] = left
        self.derivations -= 1
        if not self.is_rising:
            self.vanished += 1
            if cell.since:
                self._lost_cells[cell] = None
        elif cell.since and cell.since != RISEN:
            self._shaken[cell] = None
        self._doubted[cell] = None

    def _raised(self, cell: Cell, rows: list[Row]) -> Value:
        made = self._made(cell, TOTAL)
        if made is NONE:
            self._doubted[cell] = None
            return cell.value
        return made

    def _fold(self, cell: Cell, *, founded: bool) -> Value:
        return self._made(cell, FOUNDED if founded else TOTAL)

    def covers(self, row: Row) -> bool:
        """Return True: members may be replaced by others, as the row of a group is checked when
        all has settled (`unsettled`)."""
        return True

    def _row(self, cell: Cell, rows: list[Row], value: Value) -> Row:
        return value

    def _holds(self, cell: Cell, *, founded: bool) -> bool:
        made = self._made(cell, FOUNDED if founded else TOTAL)
        return made is not NONE and bool(made == cell.value)

    def _is_founded(
        self, cell: Cell, rows: list[Row], value: Value, since: int, *, is_shaken: bool
    ) -> bool:
        made = self._made(cell, FINITE)
        return made is not NONE and bool(made == value)

    def _made(self, cell: Cell, which: int) -> Value:
        """Return the row of a group by some derivations of its members; `NONE` for none."""
        pairs = []
        for row, counts in cell.members.items():
            weight = counts[FINITE] - counts[2] if which == FOUNDED else counts[which]
            if weight > 0 and counts[TOTAL] > 0:
                pairs.append((row, min(weight, counts[TOTAL])))
        self.touched += len(pairs)
        made = self._row_of(pairs) if pairs else ()
        if not made:
            return NONE
        ((row, _),) = made
        return (cell.key, row) if self._width == 1 else (cell.key, *row)


def _value_itself(row: Row, value: Value) -> Row:
    return value


def _later(one: Value, other: Value) -> Value:
    return other
