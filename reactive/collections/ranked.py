"""Rows in order of their keys, to be found by key or by place; compact while keys differ.

    keys   [1 4 6] [7 9]        chunks of keys, sorted
    rows   [a b T] [d e]        the row of each key; a `Tied` where several have the same

A row of a key of its own takes two references: one to its key, one to itself. It has no entry, no
number of its arrival, and is found again by its key. Only rows with equal keys need more.

State:  16 bytes per row; some 250 more where a key has several rows.
Cost:   O(log rows) to find a key; to insert or delete, moving some hundred references; a place in
        the first or last chunk O(1), another one O(rows / 1,000), many of them between two changes
        O(log rows) each.
Source: the lists of lists of G. Jenks, *sortedcontainers*.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import Any

from sortedcontainers import SortedList

from reactive.collections.order import Tie
from reactive.collections.zset import Row

ABSENT: Any = object()
LOAD = 512
"""Keys of a chunk when it has been split."""
MOST, LEAST = 2 * LOAD, LOAD // 4
"""With more keys a chunk is split, with fewer it becomes part of another one."""


At = tuple[int, int, int]
"""Where a row stands: its chunk, its key in there, and its place among those of the key."""


class Tied:
    """The rows of one key, as `Tie` orders them."""

    __slots__ = ("_by_row", "ties")

    def __init__(self) -> None:
        self.ties: SortedList = SortedList()
        self._by_row: dict[Row, list[Tie]] = {}

    def add(self, tie: Tie) -> None:
        """Add a row; nothing has changed if it cannot be compared with the others."""
        copies = self._by_row.setdefault(tie.row, [])  # first, for it may raise
        self.ties.add(tie)
        copies.append(tie)

    def last_of(self, row: Row) -> Tie | None:
        """The copy of a row that came last."""
        found = self._by_row.get(row)
        return found[-1] if found else None

    def remove(self, tie: Tie) -> None:
        """Take one out; nothing has changed if it cannot be compared."""
        copies = self._by_row[tie.row]
        place = len(copies) - 1 if copies[-1] is tie else copies.index(tie)
        self.ties.remove(tie)
        del copies[place]
        if not copies:
            del self._by_row[tie.row]

    def bytes(self) -> int:
        lists = sum(map(sys.getsizeof, self._by_row.values()))
        return sys.getsizeof(self._by_row) + lists + len(self.ties) * (8 + TIE)


TIE = sys.getsizeof(Tie(None, 0, False))


class Ranked:
    """Rows by key. `descending` says that it will be read backwards, so that ties read forwards.

    >>> ranked = Ranked(descending=False)
    >>> ranked.insert(3, "c", 1), ranked.insert(1, "a", 2)
    ((0, 0, 0), (0, 0, 0))
    >>> list(ranked), ranked.at(1), len(ranked)
    (['a', 'c'], 'c', 2)
    """

    __slots__ = (
        *("_descending", "_ends", "_keys", "_maxes", "_rows", "_sizes"),
        *("shares", "size", "thin"),
    )

    def __init__(self, *, descending: bool) -> None:
        self._descending = descending
        self.size: int
        """How many rows there are."""
        self.thin: list[Any] = []
        """Keys that may have only one row left, until `settle`."""
        self.shares = False
        """Whether a row has come or gone that shared its key; who asks sets it back."""
        self._ends: list[int] | None = None  # how many rows there are up to the end of each chunk
        self._fill([], [])

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Row]:
        for rows in self._rows:
            yield from _each(rows)

    def insert(self, key: Any, row: Row, arrival: int) -> At:
        """Put a row in; nothing has changed if something cannot be compared."""
        maxes = self._maxes
        chunk = bisect_left(maxes, key)
        if chunk < len(maxes):
            keys = self._keys[chunk]
            size, offset = len(keys), bisect_left(keys, key)
            if not key < keys[offset]:
                return self._tie(chunk, offset, row, arrival)
        elif chunk:
            chunk -= 1
            keys = self._keys[chunk]
            size = offset = len(keys)
        else:
            self._fill([key], [row])
            return (0, 0, 0)
        if size >= MOST:
            self._split(chunk)
            return self.insert(key, row, arrival)
        keys[offset:offset] = (key,)  # no call from here on: an interrupt comes before, or after
        self._rows[chunk][offset:offset] = (row,)
        if offset == size:
            maxes[chunk] = key
        self._sizes[chunk] += 1
        self.size += 1
        self._ends = None
        return chunk, offset, 0

    def restore(self, key: Any, row: Row, arrival: int) -> None:
        """Put a row back that was taken out, where it stood.

        One that is alone stays a `Tied` until `settle`: others may follow that came before it.
        """
        chunk, offset, is_there = self._find(key)
        if is_there:
            self._tie(chunk, offset, row, arrival)
            return
        tied = Tied()
        tied.add(Tie(row, arrival, self._descending))
        self.insert(key, tied, 0)  # it is what stands under the key
        self.thin.append(key)

    def place_of(self, key: Any, row: Row) -> tuple[At, Tie | None] | None:
        """Where a row stands, with its tie if it has one; None if it is not there.

        The key of the only row is not looked at: it may compare with nothing, not even itself.
        """
        is_only = self.size == 1 and self._rows[0][0].__class__ is not Tied
        chunk, offset, is_there = (0, 0, True) if is_only else self._find(key)
        if not is_there:
            return None
        slot = self._rows[chunk][offset]
        if slot.__class__ is Tied:
            tie = slot.last_of(row)
            return None if tie is None else ((chunk, offset, slot.ties.index(tie)), tie)
        return ((chunk, offset, 0), None) if slot is row or slot == row else None

    def search(self, row: Row) -> Any:
        """The key that a row stands under, looking at all, or `ABSENT`. O(rows).

        For a row of which the user's callable gives another key than it did.
        """
        for keys, rows in zip(self._keys, self._rows, strict=True):
            for key, slot in zip(keys, rows, strict=True):
                if slot.__class__ is Tied:
                    if slot.last_of(row) is not None:
                        return key
                elif slot == row:
                    return key
        return ABSENT

    def delete(self, at: At, tie: Tie | None) -> None:
        """Take a row out. One that is left alone under its key stays a `Tied` until `settle`."""
        chunk, offset, _ = at
        rows, keys = self._rows[chunk], self._keys[chunk]
        if tie is not None:
            self.shares = True
            tied = rows[offset]
            is_last = len(tied.ties) == 1
            self.thin.append(keys[offset])
            tied.remove(tie)
            if not is_last:
                self._sizes[chunk] -= 1
                self.size -= 1
                self._ends = None
                return
        last = len(keys) - 1
        if last:
            del rows[offset], keys[offset]  # no call from here on, as above
            self._sizes[chunk] -= 1
            if offset == last:
                self._maxes[chunk] = keys[-1]
        else:
            del self._keys[chunk], self._rows[chunk], self._maxes[chunk], self._sizes[chunk]
        self.size -= 1
        self._ends = None

    def tidy(self, chunk: int) -> None:
        """After rows have gone from a chunk: have it be part of its neighbour, if it is small."""
        if chunk < len(self._keys) and len(self._keys[chunk]) < LEAST and len(self._keys) > 1:
            self._merge(chunk)

    def settle(self) -> None:
        """Hold rows that are alone under their key as such."""
        for key in self.thin:
            chunk, offset, is_there = self._find(key)
            slot = self._rows[chunk][offset] if is_there else None
            if slot.__class__ is Tied and len(slot.ties) == 1:
                self._rows[chunk][offset] = slot.ties[0].row
        self.thin = []

    def load(self, entries: Sequence[tuple[Any, Row, int]]) -> None:
        """Put keys, rows and arrivals into an empty one; all or none."""
        keys: list[Any] = []
        slots: list[Any] = []
        for key, row, arrival in sorted(entries, key=_key):
            if keys and not keys[-1] < key:
                slots[-1] = self._tied(slots[-1])
                slots[-1].add(Tie(row, arrival, self._descending))
            else:
                keys.append(key)
                slots.append(row)
        self._fill(keys, slots)

    def between(self, start: int, stop: int) -> list[Row]:
        """The rows from a place up to another one, as they are read."""
        if start >= stop:
            return []
        last = -1 if self._descending else 0
        rows, count = self._rows[last], self._sizes[last]
        if stop <= count == len(rows):
            return rows[count - stop : count - start][::-1] if last else rows[start:stop]
        if last:
            return self._between(self.size - stop, self.size - start)[::-1]
        return self._between(start, stop)

    def _between(self, start: int, stop: int) -> list[Row]:
        """The same, as they stand here."""
        chunk, behind = self._chunk_at(start)
        if stop - behind <= self._sizes[chunk] == len(self._rows[chunk]):
            return self._rows[chunk][start - behind : stop - behind]
        found: list[Row] = []
        while behind < stop:
            size, rows = self._sizes[chunk], self._rows[chunk]
            some = rows if size == len(rows) else list(_each(rows))
            found += some[max(0, start - behind) : stop - behind]
            behind += size
            chunk += 1
        return found

    def rank(self, at: At, most: int) -> int:
        """How many rows are read before that at a place; `most` if there are at least `most`."""
        chunk, offset, inner = at
        sizes, descending = self._sizes, self._descending
        chunks = len(sizes) - chunk - 1 if descending else chunk
        if chunks >= most:  # none is empty
            return most
        size, rows = sizes[chunk], self._rows[chunk]
        before = inner + (offset if size == len(rows) else _count(rows[:offset]))
        if descending:
            before = size - before - 1
        if chunks:
            before += sum(sizes[chunk + 1 :] if descending else sizes[:chunk])
        return before

    def at(self, place: int) -> Row:
        """The row at a place, as they are read."""
        sizes = self._sizes
        if self._descending:
            rows = self._rows[-1]
            if place < sizes[-1] == len(rows) and rows[-1 - place].__class__ is not Tied:
                return rows[-1 - place]
            place = self.size - 1 - place
        if place < sizes[0]:
            chunk, rest = 0, place
        elif place >= self.size - sizes[-1]:
            chunk, rest = len(sizes) - 1, place - (self.size - sizes[-1])
        else:
            if self._ends is None:
                self._ends = list(accumulate(sizes))
            chunk = bisect_right(self._ends, place)
            rest = place - (self._ends[chunk] - sizes[chunk])
        rows = self._rows[chunk]
        if sizes[chunk] == len(rows) and rows[rest].__class__ is not Tied:
            return rows[rest]
        return next(islice(_each(rows), rest, None))

    def bytes(self) -> int:
        """Bytes of the lists, and of what ties have; without rows and keys."""
        size = sum(map(sys.getsizeof, [self._maxes, self._sizes, *self._keys, *self._rows]))
        tied = (slot for rows in self._rows for slot in rows if slot.__class__ is Tied)
        return size + sum(slot.bytes() for slot in tied)

    def _find(self, key: Any) -> tuple[int, int, bool]:
        """The chunk and offset of a key, and whether it is there; else where it belongs."""
        maxes = self._maxes
        chunk = bisect_left(maxes, key)
        if chunk == len(maxes):
            return (chunk - 1, len(self._keys[-1]), False) if maxes else (0, 0, False)
        keys = self._keys[chunk]
        offset = bisect_left(keys, key)
        return chunk, offset, not key < keys[offset]

    def _tie(self, chunk: int, offset: int, row: Row, arrival: int) -> At:
        tie = Tie(row, arrival, self._descending)
        tied = self._tied(self._rows[chunk][offset])
        place = tied.ties.bisect_left(tie)  # before: it compares
        tied.add(tie)
        self.shares = True
        self._rows[chunk][offset] = tied
        self._sizes[chunk] += 1
        self.size += 1
        self._ends = None
        return chunk, offset, place

    def _tied(self, slot: Any) -> Tied:
        """The rows of a key, to put another one to them; one that is alone came before it."""
        if slot.__class__ is Tied:
            return slot
        tied = Tied()
        tied.add(Tie(slot, 0, self._descending))
        return tied

    def _chunk_at(self, place: int) -> tuple[int, int]:
        """The chunk that has a place, from the end that is nearer; how many rows are before."""
        sizes, chunk, behind = self._sizes, 0, 0
        if place > self.size // 2:
            chunk, behind = len(sizes), self.size
            while behind > place:
                chunk -= 1
                behind -= sizes[chunk]
            return chunk, behind
        while behind + sizes[chunk] <= place:
            behind += sizes[chunk]
            chunk += 1
        return chunk, behind

    def _fill(self, keys: list[Any], slots: list[Any]) -> None:
        places = range(0, len(keys), LOAD)
        rows = [slots[place : place + LOAD] for place in places]
        sizes, size = list(map(_count, rows)), _count(slots)
        chunks = [keys[place : place + LOAD] for place in places]
        self._maxes = [chunk[-1] for chunk in chunks]
        self._keys, self._rows, self._sizes, self.size, self._ends = chunks, rows, sizes, size, None

    def _split(self, chunk: int) -> None:
        keys, rows = self._keys[chunk], self._rows[chunk]
        self._replace(chunk, chunk + 1, [keys[:LOAD], keys[LOAD:]], [rows[:LOAD], rows[LOAD:]])

    def _merge(self, chunk: int) -> None:
        """Have a small chunk be part of its neighbour."""
        first = max(0, chunk - 1)
        keys = self._keys[first] + self._keys[first + 1]
        rows = self._rows[first] + self._rows[first + 1]
        self._replace(first, first + 2, [keys], [rows])
        if len(keys) > MOST:
            self._split(first)

    def _replace(self, start: int, stop: int, keys: list[list[Any]], rows: list[list[Any]]) -> None:
        maxes, sizes = [chunk[-1] for chunk in keys], list(map(_count, rows))
        self._keys[start:stop] = keys
        self._rows[start:stop] = rows
        self._maxes[start:stop] = maxes
        self._sizes[start:stop] = sizes
        self._ends = None


def _key(entry: tuple[Any, Row, int]) -> Any:
    return entry[0]


def _count(slots: Iterable[Any]) -> int:
    """How many rows there are in slots."""
    return sum(len(slot.ties) if slot.__class__ is Tied else 1 for slot in slots)


def _each(slots: Iterable[Any]) -> Iterator[Row]:
    for slot in slots:
        if slot.__class__ is Tied:
            for tie in slot.ties:
                yield tie.row
        else:
            yield slot
