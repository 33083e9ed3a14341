"""Order by: the rows in order of a key, all of them or a window of them.

    order_by(k).limit(n, offset)  =  rows offset .. offset + n of the sorted rows

A row that comes or goes shifts the window by one place at most, so each changes at most one row
at either edge:

    comes before the window   the first row of the rest enters in front, the last one leaves
    comes inside              it enters, the last one leaves
    comes behind              nothing

    going is the mirror image

The window's edits (position and row) are kept for those who follow the order.

State:  every row, sorted; one entry per copy.
Cost:   O(|dL| * log |L|), whatever the size of the window.
Source: [i3ql] order by; the law is SQL's LIMIT and OFFSET.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from sortedcontainers import SortedList

from reactive.order import Entry, Tie, sort_key
from reactive.zset import Pair, Pairs, Row, consolidate


class Edit(NamedTuple):
    """One step of turning the old sequence into the new one, to be taken in order.

    `weight` 1: insert `row` before `position`; -1: take it out of `position`.

    >>> from reactive import Database
    >>> numbers = Database().table(int)
    >>> watching = numbers.order_by(lambda n: n).subscribe(lambda delta: print(delta.edits))
    >>> numbers.add(7)
    (Edit(position=0, row=7, weight=1),)
    """

    position: int
    row: Row
    weight: int


MANY = 16
"""From so many rows on they are inserted together, into a window at most so much larger."""


class OrderBy:
    """Keeps rows sorted and tells how the window moves.

    >>> top = OrderBy(lambda row: row, limit=2)
    >>> top.step([(5, 1), (3, 1), (8, 1)])
    [(5, 1), (3, 1)]
    >>> top.step([(3, -1)]), list(top.sequence())
    ([(3, -1), (8, 1)], [5, 8])
    """

    __slots__ = (
        *("_arrivals", "_descending", "_entries", "_key", "_log"),
        *("_sorted", "edits", "first", "last", "touched"),
    )

    def __init__(
        self,
        key: Callable[[Row], Any],
        *,
        descending: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> None:
        self._key = key
        self._descending = descending
        self._sorted: SortedList = SortedList()
        self._entries: dict[Row, list[Entry]] = {}
        self._arrivals = 0
        self._log: list[tuple[Row, Entry, int]] = []
        self.first = offset
        self.last = sys.maxsize if limit is None else offset + limit
        if limit == 0:
            self.first = self.last = sys.maxsize  # no place is inside, none is before
        self.edits: list[Edit] = []
        self.touched = 0

    def __len__(self) -> int:
        """How many rows the window has."""
        return max(0, min(len(self._sorted), self.last) - self.first)

    def step(self, delta: Pairs) -> list[Pair]:
        self.touched += len(delta)
        changes = consolidate(delta)
        key = self._key
        new = []
        for row, weight in changes:
            if weight > 0:
                new.append((row, weight, sort_key(key(row))))
        self.edits, self._log = [], []
        try:
            for row, weight in changes:
                for _ in range(-weight):
                    self._remove(row)
            if len(new) > MANY and self.last - self.first <= MANY * len(new):
                self._insert_many(new)
            else:
                for row, weight, order in new:
                    for _ in range(weight):
                        self._insert(row, order)
        except BaseException:
            self.undo()
            raise
        return consolidate((edit.row, edit.weight) for edit in self.edits)

    def undo(self) -> None:
        for row, entry, weight in reversed(self._log):
            if weight > 0:
                self._take_out(row, entry)
            else:
                self._put_in(row, entry)
        self.edits, self._log = [], []

    def commit(self) -> None:
        self._log = []

    def contents(self) -> Iterable[Pair]:
        return [(row, 1) for row in self.sequence()]

    def follow(self, other: OrderBy) -> None:
        """Have rows that no order tells apart stand as they do in another, which has the same."""
        left = Counter({row: len(entries) for row, entries in self._entries.items()})
        rows = []
        for place in range(len(other._sorted)):
            row = other._at(place)
            if left[row] > 0:
                rows.append(row)
                left[row] -= 1
        rows += left.elements()
        self._sorted, self._entries, self._arrivals = SortedList(), {}, 0
        for row in rows:
            self._put_in(row, self._entry(row, sort_key(self._key(row))))

    def sequence(self) -> Iterator[Row]:
        """The rows of the window, in order."""
        return (self._at(p) for p in range(self.first, self.first + len(self)))

    def at(self, position: int) -> Row:
        """The row at a position of the window; from the end for a negative one."""
        size = len(self)
        if not -size <= position < size:
            raise IndexError(f"position {position} of an ordered view of {size} rows")
        return self._at(self.first + position % size)

    def footprint(self) -> tuple[int, int]:
        lists = sum(map(sys.getsizeof, self._entries.values()))
        entry = sys.getsizeof((0, 0)) + 56
        size = sys.getsizeof(self._entries) + lists + len(self._sorted) * (entry + 8)
        return len(self._sorted), size

    def _insert(self, row: Row, order: Any) -> None:
        entry = self._entry(row, order)
        self._put_in(row, entry)
        self._log.append((row, entry, 1))
        place, size = self._place(entry), len(self._sorted)
        if self.first <= place < self.last:
            self._edit(place, 1)
        elif place < self.first < size:
            self._edit(self.first, 1)
        if place < self.last < size:
            self._edit(self.last, -1)

    def _insert_many(self, new: list[tuple[Row, int, Any]]) -> None:
        """As `_insert` each of them, for a window that is not large beside their number."""
        before = self._window()
        entries = [self._entry(row, order) for row, weight, order in new for _ in range(weight)]
        lists = [self._entries.setdefault(entry[1].row, []) for entry in entries]
        try:
            self._sorted.update(entries)
        except BaseException:
            self._sorted = SortedList(e for held in self._entries.values() for e in held)
            for entry in entries:
                self._drop_empty(entry[1].row)
            raise
        for entry, held in zip(entries, lists, strict=True):
            held.append(entry)
            self._log.append((entry[1].row, entry, 1))
        self._compare(before, self._window())

    def _compare(self, before: list[Entry], after: list[Entry]) -> None:
        """The edits from one window to another: what goes, from behind; what comes, in order."""
        old, new = set(map(id, before)), set(map(id, after))
        for place in reversed(range(len(before))):
            if id(before[place]) not in new:
                self.edits.append(Edit(place, before[place][1].row, -1))
        for place, entry in enumerate(after):
            if id(entry) not in old:
                self.edits.append(Edit(place, entry[1].row, 1))

    def _window(self) -> list[Entry]:
        return [self._entry_at(p) for p in range(self.first, self.first + len(self))]

    def _remove(self, row: Row) -> None:
        entries = self._entries.get(row)
        if not entries:
            return  # an unstored table may take back what it never gave
        entry = entries[-1]
        place, size = self._place(entry), len(self._sorted)
        if self.first <= place < self.last:
            self._edit(place, -1)
        elif place < self.first < size:
            self._edit(self.first, -1)
        if place < self.last < size:
            self.edits.append(Edit(self.last - 1 - self.first, self._at(self.last), 1))
        self._take_out(row, entry)
        self._log.append((row, entry, -1))

    def _edit(self, place: int, weight: int) -> None:
        self.edits.append(Edit(place - self.first, self._at(place), weight))

    def _at(self, place: int) -> Row:
        return self._entry_at(place)[1].row

    def _entry_at(self, place: int) -> Entry:
        if self._descending:
            place = len(self._sorted) - 1 - place
        entry: Entry = self._sorted[place]
        return entry

    def _entry(self, row: Row, order: Any) -> Entry:
        self._arrivals += 1
        return (order, Tie(row, self._arrivals, self._descending))

    def _place(self, entry: Entry) -> int:
        place: int = self._sorted.bisect_left(entry)
        return len(self._sorted) - 1 - place if self._descending else place

    def _put_in(self, row: Row, entry: Entry) -> None:
        held = self._entries.setdefault(row, [])  # first, for it may raise; an empty one is none
        try:
            self._sorted.add(entry)
        except BaseException:
            self._drop_empty(row)
            raise
        held.append(entry)

    def _take_out(self, row: Row, entry: Entry) -> None:
        entries = self._entries[row]
        self._sorted.remove(entry)
        if entries[-1] is entry:
            entries.pop()
        else:
            entries.remove(entry)
        if not entries:
            self._drop_empty(row)

    def _drop_empty(self, row: Row) -> None:
        with suppress(Exception):  # an empty list is as good as none
            if not self._entries.get(row, True):
                del self._entries[row]
