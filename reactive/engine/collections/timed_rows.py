"""Rows by their times, of one key of one side of an as-of join.

State:  the sorted times, and the rows of each.
Cost:   O(log times) per changed row, and O(log rows) among several right rows of one time.
Source: sorted lists, with bisection.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Any

from reactive.engine.collections import values
from reactive.engine.collections.sorted_copies import value_key
from reactive.engine.collections.zset import Pair, Row

Held = Any
"""The rows of one time: `(row, weight)`, or several: a dictionary, on the right `TiedRows`."""


class TimedRows:
    """Rows of one key of one side, by their times.

        times    3 5 8                         sorted; a `SortedList` if there are many
        rows     {3: one, 5: several, 8: one}  a row with its weight, or rows with theirs

    Several rows of the right are in the order of their values. Rows of negative weight are there on
    the left only.
    """

    __slots__ = ("_is_left", "rows", "times")

    def __init__(self, *, is_left: bool = False) -> None:
        self._is_left = is_left
        self.times: Any = []
        self.rows: dict[Any, Held] = {}

    def add(self, time: Any, row: Row, weight: int) -> None:
        """Add to the weight of a row, or change nothing if its time does not compare."""
        rows, is_left = self.rows, self._is_left
        held = rows.get(time)
        if held is None:
            if weight > 0 or (weight and is_left):
                times = self.times
                if type(times) is list and len(times) < values.MANY:
                    insort(times, time)
                else:
                    self.times = values.insert_in_order(times, time)
            if weight:
                rows[time] = (row, weight)
            return
        new: Held
        if held.__class__ is tuple and (held[0] is row or held[0] == row):
            total = held[1] + weight
            was, is_there = is_left or held[1] > 0, total > 0 or (is_left and total != 0)
            new = (row, total)
        else:
            new = self._several(held) if held.__class__ is tuple else held
            was = self._are_there(held)
            total = self._change_several(new, row, weight)
            is_there = len(new) > 0
        if is_there != was:
            if is_there:
                self.times = values.insert_in_order(self.times, time)
            else:
                values.delete_from_order(self.times, time)
        if total:
            rows[time] = new
        else:
            del rows[time]

    def _several(self, held: Held) -> Held:
        """Return rows of one time, with one to begin with."""
        row, weight = held
        if self._is_left:
            return {row: weight}
        found = TiedRows()
        found.add(row, weight)
        return found

    def _change_several(self, held: Held, row: Row, weight: int) -> int:
        """Add to the weight of one of several rows; return the number of these."""
        weights = held
        if not self._is_left:
            held.add(row, weight)
            weights = held.weights
        elif total := weights.get(row, 0) + weight:
            weights[row] = total
        else:
            weights.pop(row, None)
        return len(weights)

    def _are_there(self, held: Held) -> bool:
        if held.__class__ is tuple:
            return self._is_left or held[1] > 0
        return len(held) > 0

    def has_time(self, time: Any) -> bool:
        """Return True if a row with a time may be a partner."""
        held = self.rows.get(time)
        return held is not None and self._are_there(held)

    def drop(self, time: Any) -> bool:
        """Drop the rows with a time; return True if there were any."""
        held = self.rows.pop(time, None)
        if held is not None and self._are_there(held):
            values.delete_from_order(self.times, time)
        return held is not None

    def first_at(self, time: Any, default: Row) -> Row:
        """Return the least row with a time; a default if there is none."""
        held = self.rows.get(time)
        if held is None:
            return default
        if held.__class__ is tuple:
            return held[0] if held[1] > 0 or self._is_left else default
        return held.first() if len(held) > 0 else default

    def place(self, time: Any, *, after: bool) -> int:
        """Return the number of times before a time, or up to it."""
        times = self.times
        if type(times) is list:
            return bisect_right(times, time) if after else bisect_left(times, time)
        return int(times.bisect_right(time) if after else times.bisect_left(time))

    def between(self, start: int, stop: int | None) -> list[Pair]:
        """Return the left rows, with weights, of the times from one place to another."""
        found: list[Pair] = []
        for held in map(self.rows.__getitem__, self.times[start:stop]):
            if held.__class__ is tuple:
                found.append(held)
            else:
                found += held.items()
        return found

    def timed(self, start: int, stop: int | None) -> Iterator[tuple[Any, Row, int]]:
        """Return the times from one place to another, with each left row and its weight."""
        for time in self.times[start:stop]:
            held = self.rows[time]
            for row, weight in (held,) if held.__class__ is tuple else held.items():
                yield time, row, weight

    @property
    def is_zero(self) -> bool:
        """True if all that was added has been removed."""
        return not self.rows

    def __len__(self) -> int:
        return sum(1 if held.__class__ is tuple else len(held) for held in self.rows.values())

    def __sizeof__(self) -> int:
        parts = (self.rows, *self.rows.values())
        return object.__sizeof__(self) + 8 * len(self.times) + sum(map(sys.getsizeof, parts))


class TiedRows:
    """Right rows of one time with their weights, those of positive weight in the order of values.

    >>> rows = TiedRows()
    >>> rows.add("b", 1), rows.add("a", 1), rows.add("a", -1), rows.first()
    (None, None, None, 'b')
    """

    __slots__ = ("_number", "_order", "weights")

    def __init__(self) -> None:
        self.weights: dict[Row, tuple[int, Any]] = {}
        """The weights, and the entries of rows in the order."""
        self._order: Any = []
        self._number = 0

    def add(self, row: Row, weight: int) -> None:
        """Add to the weight of a row, or change nothing if its value does not compare."""
        old, entry = self.weights.get(row, (0, None))
        new = old + weight
        if new > 0 >= old:
            self._number += 1
            entry = (value_key(row), self._number, row)
            self._order = values.insert_in_order(self._order, entry)
        elif old > 0 >= new:
            values.delete_from_order(self._order, entry)
            entry = None
        if new:
            self.weights[row] = (new, entry)
        elif old:
            del self.weights[row]

    def first(self) -> Row:
        """Return the least row; there is one."""
        return self._order[0][2]

    def __len__(self) -> int:
        return len(self._order)

    def __sizeof__(self) -> int:
        size = object.__sizeof__(self) + sys.getsizeof(self.weights)
        return size + 144 * len(self._order)
