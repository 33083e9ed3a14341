"""Relations of a recursion over a lattice that are sets of rows: each row is its own key.

Rows may be made of values, so they also leave while values rise. Rows that depend on each other
within sets (`falls`) first leave and then enter again, if others support them.

State:  per row its round and three numbers.
Cost:   O(1) per derivation.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from reactive.engine.collections.zset import Pair, Pairs, Row
from reactive.engine.operators.fixpoint.rising_relation import (
    RISEN,
    Moves,
    RisingRelation,
    RowCell,
    Value,
    restore_cell,
    restore_row,
)


class SetRelation(RisingRelation):
    """Relation of a recursion over a lattice that is a set of rows.

    Its rows may be made of values, so they leave as values rise. Rows that depend on each other
    (`falls`) first leave and then enter again, if others support them.

    >>> relation = SetRelation()
    >>> relation.take([("a", 1), ("b", 1)])
    >>> relation.rise(2)
    ([], ['a', 'b'], [])
    """

    __slots__ = ("_fresh_cells",)

    def _begin(self) -> None:
        super()._begin()
        self._fresh_cells: dict[RowCell, None] = {}

    def follow(self, derivations: Pairs) -> None:
        """Count derivations that come and go."""
        self.touched += len(derivations)
        logs = not self._was_empty
        cells, fresh, log = self.cells, self._fresh_cells, self._log
        for row, weight in derivations:
            since = weight if weight > 0 else -weight
            sign = 1 if weight > 0 else -1
            finite = 0 if since == RISEN else sign
            cell = cells.get(row)
            if cell is None:
                if logs:
                    log.append((restore_cell, (cells, row, None)))
                cell = cells[row] = RowCell(row, (sign, finite, 0))
                fresh[cell] = None
                continue
            total, ended, late = cell.value
            if logs:
                log.append((restore_row, (cell, row, cell.since, cell.value)))
            if not cell.since:
                cell.value = (total + sign, ended + finite, late)
                fresh[cell] = None
                continue
            if finite and since >= cell.since:
                late += finite
            cell.value = (total + sign, ended + finite, late)
            if sign < 0:
                self._lose(cell)
        gone = sum([weight < 0 for _, weight in derivations])
        self.derivations += len(derivations) - 2 * gone

    def _lose(self, cell: RowCell) -> None:
        """Note a present row that lost a derivation."""
        if self.falls or not self.is_rising:
            self.vanished += 1
            self._lost_cells[cell] = None
        else:
            self._shaken[cell] = None

    def leave(self, *, dated: bool = True) -> Sequence[Pair]:
        """Remove rows without a well-founded derivation."""
        lost, self._lost_cells, self._leaving = self._lost_cells, {}, {}
        out: list[Pair] = []
        for cell in lost:
            _, ended, late = cell.value
            if cell.since and ended <= late:
                out.append(self._put_off(cell))
                self._fresh_cells[cell] = None
        return out

    @property
    def has_fresh(self) -> bool:
        return bool(self._fresh_cells or self._shaken)

    def fresh_rows(self) -> list[Row]:
        return [cell.row for cell in self._fresh_cells]

    def rise(self, now: int) -> Moves:
        fresh, self._fresh_cells = self._fresh_cells, {}
        shaken, self._shaken = self._shaken, {}
        self._leaving, self.restamps = {}, False
        removed: list[Pair] = []
        entering: list[Row] = []
        risen: list[Row] = []
        entered: list[Row] = []
        logs = not self._was_empty
        for cell in fresh:
            total, ended, _ = cell.value
            if cell.since:
                continue
            if total < 1:
                self._doubted[cell] = None
                continue
            if logs:
                self._log.append((restore_row, (cell, cell.row, cell.since, cell.value)))
            cell.value = (total, ended, 0)
            entered.append(cell.row)
            if ended > 0:
                cell.since = now
                entering.append(cell.row)
            else:
                cell.since = RISEN
                risen.append(cell.row)
        for cell in shaken:
            total, ended, late = cell.value
            since = cell.since
            if not since:
                continue
            if total < 1:
                removed.append(self._put_off(cell))
                self._doubted[cell] = None
            elif since != RISEN and ended <= late:
                removed.append(self._put_off(cell, is_gone=False))
                cell.since = RISEN
                risen.append(cell.row)
                self.restamps = True
        self.risen += len(risen)
        if entered:
            self._entered.append(entered)
        return removed, entering, risen

    def _put_off(self, cell: RowCell, *, is_gone: bool = True) -> Pair:
        """Remove a row; return it with its negative round."""
        row, since = cell.row, cell.since
        self._note(restore_row, (cell, row, since, cell.value))
        self._remove_row(row, since)
        total, ended, _ = cell.value
        cell.since, cell.value = 0, (total, ended, 0)
        if is_gone:
            self._left.append((row,))
        return row, -since

    def unsettled(self) -> Iterator[tuple[Row, Value]]:
        return iter(())

    def sweep(self) -> None:
        for cell in self._doubted:
            if not (cell.since or cell.value[0]) and cell.row in self.cells:
                self._note(restore_cell, (self.cells, cell.row, cell))
                del self.cells[cell.row]
        self._doubted = {}

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows, and the bytes of the dictionaries and numbers."""
        size = sys.getsizeof(self.rounds) + sys.getsizeof(self.cells)
        return len(self.rounds), size + sum(map(sys.getsizeof, self.cells.values()))
