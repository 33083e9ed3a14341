"""Rows in order of their keys, to be found by key or by place; compact whatever the keys are.

    keys    [1 4 4] [4 7 9]       chunks of keys, sorted
    rows    [a b c] [d e f]       the row of each key
    marks   [     ] [.....]       hashes of rows, of chunks in which a row was looked for by them

A row takes two references: one to its key, one to itself. Rows with equal keys stand beside each
other, in the order of `order.py`: by themselves if they compare, else as they came; where it is
read backwards, all of that is turned round. So the newest of rows that do not compare stands last
of them, or first, and none needs the number of its arrival.

Of many rows with one key that do not compare, one is found by its hash: the hashes of a chunk are
one string of bytes, which is searched by a single call.

State:  16 bytes per row; 8 more where a row was looked for by its hash.
Cost:   O(log rows) to find a key; to insert or delete, moving some hundred references; a place in
        the first or last chunk O(1), another one O(rows / 1,000), many of them between two changes
        O(log rows) each. A row among n with its key that do not compare: n / 8 bytes are looked at.
Source: the lists of lists of G. Jenks, *sortedcontainers*.

The hashes of a list of rows as one string of bytes, in which a row is found by a single call.

    rows     a         b         c
    marks    hash(a)   hash(b)   hash(c)          8 bytes each

State:  8 bytes per row.
Cost:   to find one of n rows, n / 8 bytes are looked at by a search of the interpreter's: 1 us for
        a thousand rows; a comparison for each row of the same hash.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from struct import Struct
from typing import Any

from reactive.engine.collections.order import precedes
from reactive.engine.collections.sorting import chunks_in_order, cut
from reactive.engine.collections.zset import Row

ABSENT: Any = object()
LOAD = 512
"""Rows of a chunk when it has been split."""
MOST, LEAST = 2 * LOAD, LOAD // 4
"""With more rows a chunk is split, with fewer it becomes part of another one."""
FEW = 32
"""Rows with one key that are looked at one by one."""


At = tuple[int, int]
"""Where a row stands: its chunk, and its place in there."""


class RankedIndex:
    """Rows by key. `descending` says that it will be read backwards, so that ties read forwards;
    `one_key` that all copies of a row have the same key, though perhaps another one than before.

    >>> ranked = RankedIndex(descending=False)
    >>> ranked.insert(3, "c"), ranked.insert(1, "a")
    ((0, 0), (0, 0))
    >>> list(ranked), ranked.at(1), len(ranked)
    (['a', 'c'], 'c', 2)
    """

    __slots__ = (
        *("_descending", "_ends", "_keys", "_marks", "_maxes", "_one_key", "_rows", "_sizes"),
        "size",
    )

    def __init__(self, *, descending: bool, one_key: bool = True) -> None:
        self._descending = descending
        self._one_key = one_key
        self.size: int
        """How many rows there are."""
        self._ends: list[int] | None = None  # how many rows there are up to the end of each chunk
        self._fill([], [])

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Row]:
        return chain.from_iterable(self._rows)

    def items(self) -> Iterator[tuple[Any, Row]]:
        """Each row with its key, as they stand here."""
        return zip(chain.from_iterable(self._keys), self, strict=True)

    def insert(self, key: Any, row: Row) -> At:
        """Put a row in, as the newest; nothing has changed if something cannot be compared."""
        maxes = self._maxes
        chunk = bisect_left(maxes, key)
        if chunk < len(maxes):
            keys = self._keys[chunk]
            offset = bisect_left(keys, key)
            if not key < keys[offset]:
                stop = bisect_right(keys, key, offset + 1)
                if stop < len(keys) or not self._goes_on(key, chunk):
                    offset = self._newest(self._rows[chunk], row, offset, stop)
                else:
                    chunk, offset = self._behind(key, row, chunk)
        elif chunk:
            chunk -= 1
            offset = len(self._keys[chunk])
        else:
            self._fill([key], [row])
            return (0, 0)
        return self._put(chunk, offset, key, row)

    def restore(self, key: Any, row: Row, place: int) -> None:
        """Put a row back that was taken out: behind so many with its key."""
        chunk, offset, _ = self._find(key)
        offset += place
        while chunk + 1 < len(self._keys) and offset > len(self._keys[chunk]):
            offset -= len(self._keys[chunk])
            chunk += 1
        if self._keys:
            self._put(chunk, offset, key, row)
        else:
            self._fill([key], [row])

    def _put(self, chunk: int, offset: int, key: Any, row: Row) -> At:
        keys = self._keys[chunk]
        size = len(keys)
        if size >= MOST:
            self._split(chunk)
            if offset > LOAD:
                chunk, offset = chunk + 1, offset - LOAD
            keys = self._keys[chunk]
            size = len(keys)
        marks = self._marks[chunk]
        if marks is not None:
            mark, at = mark_of(row), offset * WIDTH
            marks[at:at] = mark
        keys[offset:offset] = (key,)  # no call from here on: an interrupt comes before, or after
        self._rows[chunk][offset:offset] = (row,)
        if offset == size:
            self._maxes[chunk] = key
        self._sizes[chunk] += 1
        self.size += 1
        self._ends = None
        return chunk, offset

    def place_of(self, key: Any, row: Row) -> At | None:
        """Where a row stands, of equal ones the newest; None if it is not there.

        The key of the only row is not compared: it may compare with nothing, not even itself.
        """
        if self.size == 1:
            only = self._rows[0][0]
            is_there = only is row or only == row
            return (0, 0) if is_there and (self._one_key or self._keys[0][0] == key) else None
        chunk, offset, is_there = self._find(key)
        if not is_there:
            return None
        keys = self._keys[chunk]
        stop = bisect_right(keys, key, offset + 1)
        if stop == len(keys) and self._goes_on(key, chunk):
            return self._among(key, row, chunk)
        offset = self._found(chunk, offset, stop, row)
        return (chunk, offset) if offset >= 0 else None

    def nth(self, at: At, key: Any) -> int:
        """How many rows with its key stand before the one at a place."""
        chunk, offset = at
        if self.size == 1:
            return 0
        first = bisect_left(self._keys[chunk], key, 0, offset)
        if first or not chunk or self._maxes[chunk - 1] < key:
            return offset - first
        start, first, _ = self._find(key)
        return sum(self._sizes[start:chunk]) + offset - first

    def search(self, row: Row) -> Any:
        """The key that a row stands under, looking at all, or `ABSENT`. O(rows).

        For a row of which the user's callable gives another key than it did.
        """
        for keys, rows in zip(self._keys, self._rows, strict=True):
            if row in rows:
                return keys[rows.index(row)]
        return ABSENT

    def delete(self, at: At) -> None:
        """Take a row out."""
        chunk, offset = at
        rows, keys, marks = self._rows[chunk], self._keys[chunk], self._marks[chunk]
        last = len(keys) - 1
        if last:
            if marks is not None:
                del marks[offset * WIDTH : (offset + 1) * WIDTH]
            del rows[offset], keys[offset]  # no call from here on, as above
            self._sizes[chunk] -= 1
            if offset == last:
                self._maxes[chunk] = keys[-1]
        else:
            del self._keys[chunk], self._rows[chunk], self._maxes[chunk]
            del self._sizes[chunk], self._marks[chunk]
        self.size -= 1
        self._ends = None

    def tidy(self, chunk: int) -> None:
        """After rows have gone from a chunk: have it be part of its neighbour, if it is small."""
        if chunk < len(self._keys) and len(self._keys[chunk]) < LEAST and len(self._keys) > 1:
            self._merge(chunk)

    def load(self, keys: list[Any], rows: list[Row]) -> list[Row]:
        """Put keys and rows, as they come, into an empty one, all or none; say how they stand."""
        chunks = chunks_in_order(keys, rows, descending=self._descending, size=LOAD, most=MOST)
        self._hold(*chunks)
        return list(self)

    def between(self, start: int, stop: int) -> list[Row]:
        """The rows from a place up to another one, as they are read."""
        if start >= stop:
            return []
        last = -1 if self._descending else 0
        rows, count = self._rows[last], self._sizes[last]
        if stop <= count:
            return rows[count - stop : count - start][::-1] if last else rows[start:stop]
        if last:
            return self._between(self.size - stop, self.size - start)[::-1]
        return self._between(start, stop)

    def _between(self, start: int, stop: int) -> list[Row]:
        """The same, as they stand here."""
        chunk, rest = self._chunk_at(start)
        found = self._rows[chunk][rest : rest + stop - start]
        while len(found) < stop - start:
            chunk += 1
            found += self._rows[chunk][: stop - start - len(found)]
        return found

    def rank(self, at: At, most: int) -> int:
        """How many rows are read before that at a place; `most` if there are at least `most`."""
        chunk, offset = at
        sizes = self._sizes
        if self._descending:
            chunks, before = len(sizes) - chunk - 1, sizes[chunk] - offset - 1
        else:
            chunks, before = chunk, offset
        if chunks >= most:  # none is empty
            return most
        if chunks:
            before += sum(sizes[chunk + 1 :] if self._descending else sizes[:chunk])
        return before

    def at(self, place: int) -> Row:
        """The row at a place, as they are read."""
        if self._descending:
            if place < self._sizes[-1]:
                return self._rows[-1][-1 - place]
            place = self.size - 1 - place
        if place < self._sizes[0]:
            return self._rows[0][place]
        chunk, rest = self._chunk_at(place)
        return self._rows[chunk][rest]

    def bytes(self) -> int:
        """Bytes of the lists, without rows and keys."""
        marks = [marks for marks in self._marks if marks is not None]
        return sum(map(sys.getsizeof, [self._maxes, self._sizes, *self._keys, *self._rows, *marks]))

    def _find(self, key: Any) -> tuple[int, int, bool]:
        """Where the first row of a key stands, and whether there is one; else where it belongs."""
        maxes = self._maxes
        chunk = bisect_left(maxes, key)
        if chunk == len(maxes):
            return (chunk - 1, len(self._keys[-1]), False) if maxes else (0, 0, False)
        keys = self._keys[chunk]
        offset = bisect_left(keys, key)
        return chunk, offset, not key < keys[offset]

    def _goes_on(self, key: Any, chunk: int) -> bool:
        """Whether the chunk after one begins with a key."""
        return chunk + 1 < len(self._keys) and not key < self._keys[chunk + 1][0]

    def _stretch(self, key: Any, first: int) -> list[tuple[int, int, int]]:
        """The chunks that have rows of a key, from the first: and from where to where."""
        last = bisect_right(self._maxes, key, first)
        if last == len(self._maxes) or not self._goes_on(key, last - 1):
            last = max(last - 1, first)
        found = []
        for chunk in range(first, last + 1):
            keys = self._keys[chunk]
            start = bisect_left(keys, key) if chunk == first else 0
            stop = bisect_right(keys, key, start) if chunk == last else len(keys)
            found.append((chunk, start, stop))
        return found

    def _behind(self, key: Any, row: Row, first: int) -> At:
        """Where a row belongs among those of its key, as the newest."""
        stretch = self._stretch(key, first)
        low, high = 0, len(stretch) - 1
        while low < high:  # by the last row of each chunk
            middle = (low + high) // 2
            chunk, _, stop = stretch[middle]
            if precedes(row, self._rows[chunk][stop - 1]) is self._descending:
                low = middle + 1
            else:
                high = middle
        chunk, start, stop = stretch[low]
        return chunk, self._newest(self._rows[chunk], row, start, stop)

    def _newest(self, rows: list[Row], row: Row, start: int, stop: int) -> int:
        """Where a row belongs among some of its key that stand in one chunk, as the newest."""
        descending = self._descending
        while start < stop:
            middle = (start + stop) // 2
            if precedes(row, rows[middle]) is descending:
                start = middle + 1
            else:
                stop = middle
        return start

    def _among(self, key: Any, row: Row, first: int) -> At | None:
        """Where a row stands among several of its key."""
        stretch = self._stretch(key, first)
        if not self._descending:
            stretch.reverse()
        for chunk, start, stop in stretch:
            offset = self._found(chunk, start, stop, row)
            if offset >= 0:
                return chunk, offset
        return None

    def _found(self, chunk: int, start: int, stop: int, row: Row) -> int:
        """The newest of the rows from one place to another that equals one, or -1."""
        rows = self._rows[chunk]
        if stop - start <= FEW:
            places = range(start, stop) if self._descending else range(stop - 1, start - 1, -1)
            for place in places:
                if rows[place] is row or rows[place] == row:
                    return place
            return -1
        marks = self._marks[chunk]
        if marks is None:
            marks = self._marks[chunk] = marks_of(rows)
        return find_row(marks, rows, row, start, stop, last=not self._descending)

    def _chunk_at(self, place: int) -> At:
        """The chunk that has a place, and where it is in there."""
        if place >= self.size - self._sizes[-1]:
            chunk = len(self._sizes) - 1
            return chunk, place - (self.size - self._sizes[-1])
        if self._ends is None:
            self._ends = list(accumulate(self._sizes))
        chunk = bisect_right(self._ends, place)
        return chunk, place - (self._ends[chunk] - self._sizes[chunk])

    def _fill(self, keys: list[Any], rows: list[Row]) -> None:
        self._hold(cut(keys, LOAD), cut(rows, LOAD))

    def _hold(self, keys: list[list[Any]], rows: list[list[Row]]) -> None:
        maxes, sizes = [chunk[-1] for chunk in keys], list(map(len, keys))
        size, marks = sum(sizes), list[bytearray | None]([None]) * len(keys)
        self._maxes, self._keys, self._rows, self._marks = maxes, keys, rows, marks
        self._sizes, self.size, self._ends = sizes, size, None

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

    def _replace(self, start: int, stop: int, keys: list[list[Any]], rows: list[list[Row]]) -> None:
        maxes, sizes = [chunk[-1] for chunk in keys], list(map(len, rows))
        marks: list[bytearray | None] = [None] * len(keys)
        if any(held is not None for held in self._marks[start:stop]):
            marks = [marks_of(some) for some in rows]
        self._keys[start:stop] = keys
        self._rows[start:stop] = rows
        self._maxes[start:stop] = maxes
        self._sizes[start:stop] = sizes
        self._marks[start:stop] = marks
        self._ends = None


_NUMBER = Struct("q")
_packed: Callable[[int], bytes] = _NUMBER.pack
WIDTH = _NUMBER.size


def mark_of(row: Row) -> bytes:
    """The mark of a row."""
    return _packed(hash(row))


def marks_of(rows: Iterable[Row]) -> bytearray:
    """The marks of rows, one after the other.

    >>> len(marks_of(["a", "b", "a"]))
    24
    """
    return bytearray(b"".join(map(_packed, map(hash, rows))))


def find_row(
    marks: bytearray, rows: Sequence[Row], row: Row, start: int, stop: int, *, last: bool = False
) -> int:
    """The first place from `start` up to `stop`, or the last, of an equal row; -1 without one.

    >>> rows = ["a", "b", "a"]
    >>> find_row(marks_of(rows), rows, "a", 1, 3), find_row(marks_of(rows), rows, "c", 0, 3)
    (2, -1)
    """
    mark, low, high = mark_of(row), start * WIDTH, stop * WIDTH
    while True:
        at = marks.rfind(mark, low, high) if last else marks.find(mark, low, high)
        if at < 0:
            return -1
        place, rest = divmod(at, WIDTH)
        if not rest and (rows[place] is row or rows[place] == row):
            return place
        low, high = (low, at + WIDTH - 1) if last else (at + 1, high)
