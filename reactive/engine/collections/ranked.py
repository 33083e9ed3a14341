"""Ranked index: rows sorted by key, found by key or by place, in compact lists.

    keys    [1 4 4] [4 7 9]       chunks of keys, sorted
    rows    [a b c] [d e f]       the row of each key
    marks   [     ] [.....]       hashes of rows, for chunks in which a row was searched by hash

A row takes two references: its key and itself. Rows with equal keys are neighbours, in the order of
`order.py`: by themselves if they are comparable, else by arrival; reading backwards reverses all of
that. So the newest of incomparable rows is the last of them, or the first, and needs no arrival
number.

Among many incomparable rows of one key, a row is found by its hash: the hashes of a chunk are one
byte string, which a single call searches.

State:  16 bytes per row; 8 more after a search by hash.
Cost:   O(log rows) to find a key; inserting or deleting moves some hundred references; a place in
        the first or last chunk O(1), another one O(rows / 1,000), further ones before the next
        change O(log rows). A search among n incomparable rows of a key scans n / 8 bytes.
Source: the lists of lists of G. Jenks, *sortedcontainers*.

Marks: the hashes of a list of rows as one byte string, in which a single call finds a row.

    rows     a         b         c
    marks    hash(a)   hash(b)   hash(c)          8 bytes each

State:  8 bytes per row.
Cost:   finding one of n rows scans n / 8 bytes in C: 1 us for a thousand rows; a comparison for
        each row of the same hash.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from struct import Struct
from typing import Any

from reactive.engine.collections.sorting import chunks_in_order, cut_chunks
from reactive.engine.collections.ties import precedes
from reactive.engine.collections.zset import Row

ABSENT: Any = object()
LOAD = 512
"""Rows of a chunk after a split."""
MOST, LEAST = 2 * LOAD, LOAD // 4
"""Chunks with more than `MOST` rows are split, with fewer than `LEAST` merged."""
FEW = 32
"""Most rows with one key that are compared one by one."""


At = tuple[int, int]
"""Place of a row: its chunk, and its offset in the chunk."""


class RankedIndex:
    """Rows by key.

    `descending` tells that it is read backwards, so that ties read forwards; `one_key` that all
    copies of a row have the same key, perhaps another than before.

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
        """Number of rows."""
        self._ends: list[int] | None = None  # total rows up to the end of each chunk
        self._fill([], [])

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Row]:
        return chain.from_iterable(self._rows)

    def items(self) -> Iterator[tuple[Any, Row]]:
        """Yield each row with its key, in stored order."""
        return zip(chain.from_iterable(self._keys), self, strict=True)

    def columns(self) -> tuple[list[Any], list[Row]]:
        """Return the keys and the rows, in stored order."""
        return list(chain.from_iterable(self._keys)), list(self)

    def insert(self, key: Any, row: Row) -> At:
        """Insert a row as the newest; nothing changes if a comparison raises."""
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
        """Restore a deleted row behind `place` rows with its key."""
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
        """Insert a row at an offset of a chunk, which is split if full; return its place."""
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
        keys[offset:offset] = (key,)  # no call from here on: an interrupt arrives before, or after
        self._rows[chunk][offset:offset] = (row,)
        if offset == size:
            self._maxes[chunk] = key
        self._sizes[chunk] += 1
        self.size += 1
        self._ends = None
        return chunk, offset

    def place_of(self, key: Any, row: Row) -> At | None:
        """Return the place of a row, of equal rows the newest; None if it is absent.

        If the index has one row, its key is not ordered: it may not be comparable, even with
        itself.
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
        offset = self._find_newest(chunk, offset, stop, row)
        return (chunk, offset) if offset >= 0 else None

    def nth(self, at: At, key: Any) -> int:
        """Return the number of rows with the key of the row at a place that are before it."""
        chunk, offset = at
        if self.size == 1:
            return 0
        first = bisect_left(self._keys[chunk], key, 0, offset)
        if first or not chunk or self._maxes[chunk - 1] < key:
            return offset - first
        start, first, _ = self._find(key)
        return sum(self._sizes[start:chunk]) + offset - first

    def search(self, row: Row) -> Any:
        """Return the key of a row by a scan, or `ABSENT`. O(rows).

        Used if the user's callable returns another key than before.
        """
        for keys, rows in zip(self._keys, self._rows, strict=True):
            if row in rows:
                return keys[rows.index(row)]
        return ABSENT

    def delete(self, at: At) -> None:
        """Delete the row at a place."""
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
        """Merge a chunk with its neighbour, if deletions made it small."""
        if chunk < len(self._keys) and len(self._keys[chunk]) < LEAST and len(self._keys) > 1:
            self._merge(chunk)

    def load(self, keys: list[Any], rows: list[Row]) -> list[Row]:
        """Load keys and rows into an empty index, all or none; return the rows in stored order."""
        chunks = chunks_in_order(keys, rows, descending=self._descending, size=LOAD, most=MOST)
        self._hold(*chunks)
        return list(self)

    def between(self, start: int, stop: int) -> list[Row]:
        """Return the rows from a place up to another, in reading order."""
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
        """Return the rows from a place up to another, in stored order."""
        chunk, rest = self._chunk_at(start)
        found = self._rows[chunk][rest : rest + stop - start]
        while len(found) < stop - start:
            chunk += 1
            found += self._rows[chunk][: stop - start - len(found)]
        return found

    def rank(self, at: At, most: int) -> int:
        """Return the number of rows read before the row at a place, or `most` if there are more."""
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

    def places(self, key: Any) -> tuple[int, int]:
        """Return the places of the rows with a key, in reading order: the first, and the end."""
        if self.size == 1:
            return 0, 1  # its key may not be comparable
        chunk, _, is_there = self._find(key)
        if not is_there:
            return 0, 0
        spans = self._stretch(key, chunk)
        first = sum(self._sizes[:chunk]) + spans[0][1]
        count = sum(stop - start for _, start, stop in spans)
        if self._descending:
            first = self.size - first - count
        return first, first + count

    def at(self, place: int) -> Row:
        """Return the row at a place, in reading order."""
        if self._descending:
            if place < self._sizes[-1]:
                return self._rows[-1][-1 - place]
            place = self.size - 1 - place
        if place < self._sizes[0]:
            return self._rows[0][place]
        chunk, rest = self._chunk_at(place)
        return self._rows[chunk][rest]

    def bytes(self) -> int:
        """Return the bytes of the lists, without rows and keys."""
        marks = [marks for marks in self._marks if marks is not None]
        return sum(map(sys.getsizeof, [self._maxes, self._sizes, *self._keys, *self._rows, *marks]))

    def _find(self, key: Any) -> tuple[int, int, bool]:
        """Return the place of the first row of a key, and True if there is one; else its new
        place."""
        maxes = self._maxes
        chunk = bisect_left(maxes, key)
        if chunk == len(maxes):
            return (chunk - 1, len(self._keys[-1]), False) if maxes else (0, 0, False)
        keys = self._keys[chunk]
        offset = bisect_left(keys, key)
        return chunk, offset, not key < keys[offset]

    def _goes_on(self, key: Any, chunk: int) -> bool:
        """Return True if the next chunk begins with the key."""
        return chunk + 1 < len(self._keys) and not key < self._keys[chunk + 1][0]

    def _stretch(self, key: Any, first: int) -> list[tuple[int, int, int]]:
        """Return the chunks that have rows of a key, from `first` on, with start and end in
        each."""
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
        """Return the place of a new row among the rows of its key, as the newest."""
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
        """Return the offset of a new row among the rows of its key in one chunk, as the newest."""
        descending = self._descending
        while start < stop:
            middle = (start + stop) // 2
            if precedes(row, rows[middle]) is descending:
                start = middle + 1
            else:
                stop = middle
        return start

    def _among(self, key: Any, row: Row, first: int) -> At | None:
        """Return the place of a row among the rows of its key in several chunks; None if absent."""
        stretch = self._stretch(key, first)
        if not self._descending:
            stretch.reverse()
        for chunk, start, stop in stretch:
            offset = self._find_newest(chunk, start, stop, row)
            if offset >= 0:
                return chunk, offset
        return None

    def _find_newest(self, chunk: int, start: int, stop: int, row: Row) -> int:
        """Return the newest row in a range of a chunk that equals `row`, or -1."""
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
        """Return the chunk of a place, and the offset in it."""
        if place >= self.size - self._sizes[-1]:
            chunk = len(self._sizes) - 1
            return chunk, place - (self.size - self._sizes[-1])
        if self._ends is None:
            self._ends = list(accumulate(self._sizes))
        chunk = bisect_right(self._ends, place)
        return chunk, place - (self._ends[chunk] - self._sizes[chunk])

    def _fill(self, keys: list[Any], rows: list[Row]) -> None:
        """Replace all rows by sorted ones, cut to chunks."""
        self._hold(cut_chunks(keys, LOAD), cut_chunks(rows, LOAD))

    def _hold(self, keys: list[list[Any]], rows: list[list[Row]]) -> None:
        """Replace all chunks; marks are computed at the first search by hash."""
        maxes, sizes = [chunk[-1] for chunk in keys], list(map(len, keys))
        size, marks = sum(sizes), list[bytearray | None]([None]) * len(keys)
        self._maxes, self._keys, self._rows, self._marks = maxes, keys, rows, marks
        self._sizes, self.size, self._ends = sizes, size, None

    def _split(self, chunk: int) -> None:
        """Split a full chunk in two."""
        keys, rows = self._keys[chunk], self._rows[chunk]
        self._replace(chunk, chunk + 1, [keys[:LOAD], keys[LOAD:]], [rows[:LOAD], rows[LOAD:]])

    def _merge(self, chunk: int) -> None:
        """Merge a small chunk with its neighbour."""
        first = max(0, chunk - 1)
        keys = self._keys[first] + self._keys[first + 1]
        rows = self._rows[first] + self._rows[first + 1]
        self._replace(first, first + 2, [keys], [rows])
        if len(keys) > MOST:
            self._split(first)

    def _replace(self, start: int, stop: int, keys: list[list[Any]], rows: list[list[Row]]) -> None:
        """Replace a range of chunks; marks are made if one of the old chunks had marks."""
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
    """Return the mark of a row."""
    return _packed(hash(row))


def marks_of(rows: Iterable[Row]) -> bytearray:
    """Return the marks of rows, concatenated.

    >>> len(marks_of(["a", "b", "a"]))
    24
    """
    return bytearray(b"".join(map(_packed, map(hash, rows))))


def find_row(
    marks: bytearray, rows: Sequence[Row], row: Row, start: int, stop: int, *, last: bool = False
) -> int:
    """Return the first (or last) place from `start` to `stop` of an equal row; -1 if there is none.

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
