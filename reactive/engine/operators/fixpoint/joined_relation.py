"""Relations whose rows have joined values, and the values of their keys ahead of the rounds.

    ahead      key -> the value, and a row with it, that the rounds will reach
    targets    key -> its last value, from when the commit has looked ahead
    waiting    cells whose members do not give their target yet, with their new rows

State:  during a commit, a value per key that rises after the commit has looked ahead.
Cost:   a join per derived row.
Source: docs/lattices.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactive.engine.collections.zset import Row, canonical
from reactive.engine.operators.fixpoint.member_folds import NONE
from reactive.engine.operators.fixpoint.rising_relation import Cell, Change, RisingRelation, Value


class JoinedRelation(RisingRelation):
    """Relation with one row per key; see `LatticeRelation` for the parameters."""

    __slots__ = (
        *("_ahead", "_bottom", "_by", "_fresh_rows", "_is_checked", "_is_forced", "_join", "_of"),
        *("_put_value", "_rises", "_waiting", "_widen", "_widen_at", "_widens"),
        "targets",
    )

    def __init__(
        self,
        by: Callable[[Row], Any],
        of: Callable[[Row], Value],
        put_value: Callable[[Row, Value], Row],
        join: Callable[[Value, Value], Value],
        *,
        bottom: tuple[Value, ...] = (),
        widen: Callable[[Value], Value] | None = None,
        widen_at: Callable[[Row], object] | None = None,
        is_checked: bool = False,
    ) -> None:
        self._by, self._of, self._put_value, self._join = by, of, put_value, join
        self._bottom, self._widen, self._widen_at = bottom, widen, widen_at
        self._widens = widen is not None
        self._is_checked = is_checked
        super().__init__()

    def _begin(self) -> None:
        super()._begin()
        self._fresh_rows: dict[Cell, list[Row]] = {}
        self._rises: dict[Cell, int] = {}
        self.targets: dict[Any, Value] | None = None
        """The last values of keys that rise; None if the commit has not looked ahead."""
        self._ahead: dict[Any, tuple[Value, Row]] = {}
        self._waiting: dict[Cell, list[Row]] = {}
        self._is_forced = False

    def _count_rise(self, cell: Cell) -> None:
        """Count the steps of a key."""
        number = self._rises[cell] = self._rises.get(cell, 0) + 1
        if number == FEW_STEPS:
            self.climbs = True

    def _awaited(self, cell: Cell, rows: list[Row], value: Value) -> tuple[Value, bool]:
        """Return the value that a key rises to, and whether it is given: its members do not make
        it yet. `NONE` if the key waits."""
        target = self.targets.get(cell.key, NONE)  # type: ignore[union-attr]
        if target is NONE or value == target or self._join(target, value) != target:
            return value, False
        if self._is_forced:
            self._doubted[cell] = None
            return target, True
        self._waiting[cell] = rows
        return NONE, False

    def force(self) -> bool:
        """Let the keys that wait rise to their targets in the next round; return False if none
        waits."""
        waiting, self._waiting = self._waiting, {}
        self._fresh_rows.update(waiting)
        self._is_forced = bool(waiting)
        return self._is_forced

    def go_ahead(self, gone: list[Row], rows: list[Row], *, retracts: bool) -> Change:
        """Join derived rows with the values so far; return as `start_ahead` does."""
        self.touched += len(rows)
        ahead, cells, bottom, join = self._ahead, self.cells, self._bottom, self._join
        before: dict[Any, Row] = {}
        for key, value, row in zip(map(self._by, rows), map(self._of, rows), rows, strict=True):
            if bottom and value == bottom[0]:
                continue
            held = ahead.get(key)
            if held is None:
                cell = cells.get(key)
                if cell is None or not cell.since:
                    ahead[key], before[key] = (self._widened(row, value), row), NONE
                    continue
                held = cell.value, cell.row
            old, old_row = held
            new = join(old, value)
            if self._widens:
                new = self._widened(row, new)
            if new is not old and new != old:
                before.setdefault(key, old_row)
                ahead[key] = (new, row)
        return self._rows_ahead(before)

    def _rows_ahead(self, before: dict[Any, Row]) -> Change:
        """Make the rows of keys that rose; return as `start_ahead` does, of the rows before."""
        of, ahead = self._of, self._ahead
        came: list[Row] = []
        for key in before:
            value, row = ahead[key]
            if of(row) is not value:
                row = self._put_value(row, value)
                ahead[key] = (value, row)
            came.append(row)
        return [row for row in before.values() if row is not NONE], came

    def end_ahead(self, *, is_found: bool) -> Change:
        """Set the targets, none if they are not found; return the rows of now and those ahead."""
        ahead, self._ahead, cells = self._ahead, {}, self.cells
        self.climbs = False
        self.targets = {key: value for key, (value, _) in ahead.items()} if is_found else {}
        known = [cells[key] for key in ahead if key in cells]
        return [cell.row for cell in known if cell.since], [row for _, row in ahead.values()]

    def _widened(self, row: Row, value: Value) -> Value:
        if self._widens and (self._widen_at is None or self._widen_at(row)):
            value = self._widen(value)  # type: ignore[misc]
        return value if value == value else canonical(value)


FEW_STEPS = 4
"""Steps of a key in a commit from which on it looks ahead."""
