"""Rows of a partition in order, found by sort key or by place.

    keys    [k0 k1 k2] [k3 k4]      chunks of sort keys
    heads   [h0 h1 h2] [h3 h4]      the bindings that a row is shown with
    cells   [c0 c1 c2] [c3 c4]      the arguments of the functions
    shown   [s0 s1 s2] [s3 HIDDEN]  its answer, or its answers in a tuple

The lists hold the objects of the row itself, not copies: one binding or argument stands alone, and
so does the only answer. Each chunk caches what functions computed from all its rows, until one of
them changes.

State:  32 bytes per row.
Cost:   O(log rows) to find a key; to insert or delete, moving some hundred references, and
        O(rows / 500) to count places anew.
Source: the lists of lists of G. Jenks, *sortedcontainers*.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, islice
from typing import Any

from reactive.engine.operators.windows.chunks import (
    Chunk,
    count_changes,
    count_changes_of,
    runs_of_equals,
)

HIDDEN: Any = object()
"""In the place of the answers of a row that is new, or beyond a limit."""
LOAD = 256
"""The rows of a chunk after a split; a chunk with more than twice as many is split."""
FEW = 8
"""Most peers among which a row is searched one by one."""
PEERS = 8
"""Most peers among which a row is searched to be changed within its chunk."""
Place = tuple[int, int]
"""The number of a chunk, and an offset in it."""
Pieces = Iterator[tuple["Chunk", int, int]]
Tie = Callable[[Any, Any], Any]
"""Returns what orders rows with equal keys, from a head and a cell."""
Row = tuple[Any, Any, Any]
"""A row in the partition: its sort key, its head, and its cell."""
Edit = tuple[int, int, int, list[Any], list[Any], list[Any], int, int, list[Any]]
"""A change within a chunk: its number; the span of rows that are replaced, and the sort keys, heads
and cells of the new rows; the span of answers that are replaced, and the new answers."""


class Entries:
    """The rows of a partition, with their keys and answers.

    >>> entries = Entries(lambda head, cell: head)
    >>> for key, head in [(3, "c"), (1, "a"), (2, "b")]:
    ...     entries.insert(entries.place_of((key, head, None)), (key, head, None))
    >>> list(entries.heads(0, 3)), entries.place(2), entries.find((3, "c", None))
    (['a', 'b', 'c'], 1, 2)
    """

    __slots__ = ("_maxes", "_sizes", "_starts", "_tie", "chunks", "size")
    chunks: list[Chunk]
    """The rows, in chunks that have one at least."""
    size: int
    """The number of rows."""
    _starts: list[int] | None
    """The number of rows before each chunk, if that is known."""

    def __init__(self, tie: Tie) -> None:
        self._tie = tie
        self._hold([])

    # Places.

    def place(self, key: Any) -> int:
        """Return the number of rows before a key."""
        chunk = bisect_left(self._maxes, key)
        if chunk == len(self._maxes):
            return self.size
        offset = bisect_left(self.chunks[chunk].keys, key)
        return self._count_before(chunk) + offset if chunk else offset

    def behind(self, key: Any) -> int:
        """Return the number of rows with a key up to `key`."""
        chunk = bisect_right(self._maxes, key)
        if chunk == len(self._maxes):
            return self.size
        return self._count_before(chunk) + bisect_right(self.chunks[chunk].keys, key)

    def place_of(self, row: Row) -> int:
        """Return the place at which a row belongs: behind its equals."""
        key, head, cell = row
        number = bisect_left(self._maxes, key)
        if number == len(self._maxes):
            return self.size
        keys = self.chunks[number].keys
        offset = bisect_left(keys, key)
        first = self._count_before(number) + offset if number else offset
        if keys[offset] != key:
            return first
        return self._tied(self._tie(head, cell), first, self.behind(key))

    def find(self, row: Row) -> int:
        """Return the place of a row; -1 if it is absent.

        One that is alone was compared with no other: its key may have no order.
        """
        key, head, _ = row
        number = bisect_left(self._maxes, key) if self.size > 1 else 0
        if number == len(self._maxes):
            return -1
        chunk = self.chunks[number]
        offset = bisect_left(chunk.keys, key) if self.size > 1 else 0
        if chunk.keys[offset] != key:
            return -1
        first = self._count_before(number) + offset if number else offset
        if chunk.heads[offset] is head or chunk.heads[offset] == head:
            return first
        return self._find_among_peers(row, first, self.behind(key) if self.size > 1 else 1)

    def locate(self, row: Row) -> Place | None:
        """Return a row's chunk and the offset in it; None if it is not among few peers there."""
        key, head, _ = row
        number = bisect_left(self._maxes, key)
        if number == len(self._maxes):
            return None
        chunk = self.chunks[number]
        keys, heads = chunk.keys, chunk.heads
        offset = bisect_left(keys, key)
        for at in range(offset, min(offset + PEERS, len(keys))):
            if keys[at] != key:
                break
            if heads[at] is head or heads[at] == head:
                return number, at
        return None

    def locate_new(self, row: Row) -> Place | None:
        """Return the chunk of a new row, and the offset; None if its peers may be in several."""
        key, head, cell = row
        number = bisect_left(self._maxes, key)
        if number == len(self._maxes):
            return (number - 1, len(self.chunks[-1].keys)) if number else None
        chunk = self.chunks[number]
        offset = bisect_left(chunk.keys, key)
        if chunk.keys[offset] != key:
            return number, offset
        stop = bisect_right(chunk.keys, key, offset)
        if stop == len(chunk.keys) and number + 1 < len(self.chunks):
            return None
        tie = self._tie(head, cell)
        while offset < stop:
            middle = (offset + stop) // 2
            its = self._tie(chunk.heads[middle], chunk.cells[middle])
            if its < tie or its == tie:
                offset = middle + 1
            else:
                stop = middle
        return number, offset

    def beside(self, at: Place, row: Row) -> Place | None:
        """Return the place of a row that replaces one with its keys; `at` if it has no peers."""
        number, offset = at
        key, keys = row[0], self.chunks[number].keys
        if 0 < offset < len(keys) - 1 and keys[offset - 1] != key and keys[offset + 1] != key:
            return at
        return self.locate_new(row)

    def _find_among_peers(self, row: Row, first: int, stop: int) -> int:
        """Return the place of a row in a span of rows with its key; -1 if it is absent."""
        _, head, cell = row
        if stop - first > FEW:
            tie = self._tie(head, cell)
            first = self._tied(tie, first, stop, before=True)
            stop = self._tied(tie, first, stop)
        for place, other in enumerate(islice(self.heads(first, stop), stop - first), first):
            if other is head or other == head:
                return place
        return -1

    def _tied(self, tie: Any, first: int, stop: int, *, before: bool = False) -> int:
        """Return the place behind the peers up to `tie`, or `before` those that equal it."""
        while first < stop:
            middle = (first + stop) // 2
            chunk, offset = self.at(middle)
            its = self._tie(chunk.heads[offset], chunk.cells[offset])
            if its < tie or (not before and its == tie):
                first = middle + 1
            else:
                stop = middle
        return first

    # Rows.

    def at(self, place: int) -> tuple[Chunk, int]:
        """Return the chunk of the row at a place, and the row's offset in it."""
        if len(self.chunks) == 1:
            return self.chunks[0], place
        starts = self._all_starts()
        number = bisect_right(starts, place) - 1
        return self.chunks[number], place - starts[number]

    def key(self, place: int) -> Any:
        """Return the sort key of the row at a place."""
        chunk, offset = self.at(place)
        return chunk.keys[offset]

    def cell(self, place: int) -> Any:
        """Return the arguments of the row at a place."""
        chunk, offset = self.at(place)
        return chunk.cells[offset]

    def row(self, place: int) -> tuple[Row, Any]:
        """Return the row at a place, and its answers."""
        chunk, offset = self.at(place)
        row = (chunk.keys[offset], chunk.heads[offset], chunk.cells[offset])
        return row, chunk.shown[offset]

    def answers(self, place: int) -> Any:
        """Return the answers at a place."""
        chunk, offset = self.at(place)
        return chunk.shown[offset]

    def by_chunk(self, places: Sequence[int]) -> Iterable[tuple[Chunk, Sequence[int]]]:
        """Return the chunks of the rows at places, which ascend, and the offsets in each."""
        if len(self.chunks) == 1:
            return ((self.chunks[0], places),)
        return self._offsets(places)

    def _offsets(self, places: Sequence[int]) -> Iterator[tuple[Chunk, Sequence[int]]]:
        starts, done = self._all_starts(), 0
        while done < len(places):
            number = bisect_right(starts, places[done]) - 1
            first, stop = starts[number], bisect_left(places, starts[number + 1], done)
            yield self.chunks[number], [place - first for place in places[done:stop]]
            done = stop

    def keys(self, start: int, stop: int) -> Iterator[Any]:
        """Return the sort keys from a place up to another."""
        pieces = self.pieces(start, stop)
        return chain.from_iterable(islice(c.keys, first, last) for c, first, last in pieces)

    def all_keys(self) -> list[Any]:
        """Return all sort keys in order, not to be changed."""
        if len(self.chunks) == 1:
            return self.chunks[0].keys
        return [key for chunk in self.chunks for key in chunk.keys]

    def heads(self, start: int, stop: int) -> Iterator[Any]:
        """Return the heads from a place up to another."""
        pieces = self.pieces(start, stop)
        return chain.from_iterable(islice(c.heads, first, last) for c, first, last in pieces)

    def cells(self, start: int, stop: int) -> list[Any]:
        """Return the arguments of the rows from a place up to another."""
        if len(self.chunks) == 1:
            return self.chunks[0].cells[start:stop]
        found = [chunk.cells[first:last] for chunk, first, last in self.pieces(start, stop)]
        return found[0] if len(found) == 1 else list(chain.from_iterable(found))

    def cells_from(self, start: int) -> Iterator[Any]:
        """Yield the arguments of the rows from a place on, lazily."""
        for chunk, first, last in self.pieces(start, self.size):
            yield from islice(chunk.cells, first, last)

    def all_shown(self, start: int, stop: int) -> Iterator[Any]:
        """Return the answers from a place up to another."""
        if len(self.chunks) == 1:
            return islice(self.chunks[0].shown, start, stop)
        pieces = self.pieces(start, stop)
        return chain.from_iterable(islice(c.shown, first, last) for c, first, last in pieces)

    def all_shown_back(self, start: int, stop: int) -> Iterator[Any]:
        """Yield the answers from `stop` back to `start`."""
        for chunk, first, last in reversed(list(self.pieces(start, stop))):
            yield from reversed(chunk.shown[first:last])

    def pieces(self, start: int, stop: int) -> Pieces:
        """Yield the chunks with the rows from a place up to another, and the places in them."""
        if start >= stop:
            return
        number = self._chunk_of(start)
        before = self._count_before(number)
        while before < stop:
            chunk = self.chunks[number]
            size = len(chunk.keys)
            yield chunk, max(0, start - before), min(size, stop - before)
            before, number = before + size, number + 1

    def spread(self, stop: int) -> Iterator[tuple[Chunk, int, int]]:
        """Yield the chunks of the rows up to a place: the place of the first, and their number."""
        before = 0
        for chunk, _, count in self.pieces(0, stop):
            yield chunk, before, count
            before += count

    def split_span(self, start: int, stop: int) -> tuple[list[list[Any]], list[Chunk]]:
        """Return the cells from a place up to another: of partial chunks, and whole chunks."""
        if start >= stop:
            return [], []
        starts = self._all_starts()
        first = bisect_left(starts, start)  # the first chunk that may be whole
        last = bisect_right(starts, stop) - 1
        if first > last:
            return [self.cells(start, stop)], []
        edges = (start, starts[first]), (starts[last], stop)
        return [self.cells(*edge) for edge in edges if edge[0] < edge[1]], self.chunks[first:last]

    # Changes.

    def insert(self, place: int, row: Row, shown: Any = HIDDEN) -> None:
        """Insert a row at a place; an interrupt can occur only before or after."""
        key, head, cell = row
        if not self.chunks:
            self._hold([Chunk([key], [head], [cell], [shown])])
            return
        number = self._chunk_of(place) if place < self.size else len(self.chunks) - 1
        offset, chunk = place - self._count_before(number), self.chunks[number]
        keys = chunk.keys
        keys[offset:offset] = (key,)  # no call from here on
        chunk.heads[offset:offset] = (head,)
        chunk.cells[offset:offset] = (cell,)
        chunk.shown[offset:offset] = (shown,)
        chunk.known = None
        self._maxes[number] = keys[-1]
        self._sizes[number] += 1
        self.size += 1
        self._starts = None
        if self._sizes[number] > 2 * LOAD:
            self._cut(number)

    def delete(self, place: int) -> None:
        """Delete the row at a place; an interrupt can occur only before or after."""
        number = self._chunk_of(place)
        chunk, offset = self.chunks[number], place - self._count_before(number)
        del chunk.keys[offset], chunk.heads[offset], chunk.cells[offset], chunk.shown[offset]
        chunk.known = None
        if chunk.keys:
            self._maxes[number] = chunk.keys[-1]
            self._sizes[number] -= 1
        else:
            del self.chunks[number], self._maxes[number], self._sizes[number]
        self.size -= 1
        self._starts = None
        if len(chunk.keys) < LOAD // 4 and number and chunk.keys:
            self._merge(number - 1)

    def can_grow(self, number: int) -> bool:
        """Return True if a chunk with one more row need not be cut."""
        return self._sizes[number] < 2 * LOAD

    def can_shrink(self, number: int) -> bool:
        """Return True if a chunk with a row less has one, and need not be merged."""
        return self._sizes[number] > (max(1, LOAD // 4) if number else 1)

    def edit(self, edit: Edit, undo: Edit | None, log: list[Any]) -> None:
        """Change rows and answers of a chunk, and append `undo` to `log`.

        An interrupt can occur only before or after. The chunk keeps a row.
        """
        number, first, last, keys, heads, cells, start, stop, shown = edit
        chunk, end, more = self.chunks[number], len(log), len(keys) - (last - first)
        log[end:end] = (("edited", undo),)  # no call from here on
        chunk.keys[first:last] = keys
        chunk.heads[first:last] = heads
        chunk.cells[first:last] = cells
        chunk.shown[start:stop] = shown
        chunk.known = None
        self._maxes[number] = chunk.keys[-1]
        self._sizes[number] += more
        self.size += more
        self._starts = None

    def note_last(self, number: int) -> None:
        """Note the sort key of the last row of a chunk, if another row may be the last."""
        self._maxes[number] = self.chunks[number].keys[-1]

    def chunk_of(self, one: Any, other: Any) -> int:
        """Return the number of the chunk to which two keys belong; -1 if they are not in one."""
        number, also = bisect_left(self._maxes, one), bisect_left(self._maxes, other)
        return number if number == also < len(self._maxes) else -1

    def with_more(self, keys: list[Any], heads: list[Any], cells: list[Any]) -> Entries:
        """Return a copy with more rows, given by columns, which are hidden; the entries stay."""
        size, shown = self.size, [HIDDEN] * len(keys)
        if size:
            keys = [*self.keys(0, size), *keys]
            heads = [*self.heads(0, size), *heads]
            cells = [*self.cells(0, size), *cells]
            shown = [*self.all_shown(0, size), *shown]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        keys = [keys[place] for place in order]
        for start, stop in runs_of_equals(keys):
            if order[stop - 1] >= size:  # the new rows are behind the others, which are in order
                order[start:stop] = sorted(
                    order[start:stop], key=lambda n: self._tie(heads[n], cells[n])
                )
        columns = [[column[place] for place in order] for column in (heads, cells, shown)]
        return self._of(_chunks_of([keys, *columns]))

    def shared(self) -> Entries:
        """Return a copy that shares its lists with the entries: `separate` before any change."""
        return self._of([Chunk(c.keys, c.heads, c.cells, c.shown) for c in self.chunks])

    def separate(self, place: int) -> None:
        """Copy the lists of the chunk that a change at a place changes."""
        if self.chunks:
            number = self._chunk_of(place) if place < self.size else len(self.chunks) - 1
            c = self.chunks[number]
            self.chunks[number] = Chunk([*c.keys], [*c.heads], [*c.cells], [*c.shown])

    def groups_up_to(self, place: int) -> int:
        """Return the number of groups of equal keys from the first row to the one at a place.

        Cost: O(rows / 500), and some hundred rows in the chunk of the place.
        """
        groups, before = 0, HIDDEN
        for chunk, _, last in self.pieces(0, place + 1):
            groups += before is HIDDEN or (before is not chunk.keys[0] and before != chunk.keys[0])
            if last == len(chunk.keys):
                groups += chunk.cached("groups", partial(count_changes_of, chunk))
            else:
                groups += count_changes(chunk.keys[:last])
            before = chunk.keys[last - 1]
        return groups

    def of_part(self, keys: list[Any], cells: list[Any]) -> Entries:
        """Return entries of some rows in order, without heads and answers."""
        return self._of([Chunk(keys, [], cells, [])] if keys else [])

    def hide(self) -> Entries:
        """Return a copy whose rows are hidden."""
        hidden = [[HIDDEN] * len(chunk.keys) for chunk in self.chunks]
        each = zip(self.chunks, hidden, strict=True)
        return self._of([Chunk(c.keys, c.heads, c.cells, shown) for c, shown in each])

    def bytes(self) -> int:
        """Return the size of the lists in bytes, without the rows."""
        lists = [self._maxes, self.chunks, self._sizes]
        lists += [each for c in self.chunks for each in (c.keys, c.heads, c.cells, c.shown)]
        return sum(map(sys.getsizeof, lists))

    def _of(self, chunks: list[Chunk]) -> Entries:
        """Return entries of some chunks."""
        made = Entries(self._tie)
        made._hold(chunks)
        return made

    def _hold(self, chunks: list[Chunk]) -> None:
        """Replace all chunks; each is in order, and has a row."""
        maxes, sizes = [c.keys[-1] for c in chunks], [len(c.keys) for c in chunks]
        size = sum(sizes)
        self.chunks, self._maxes, self._sizes, self.size = chunks, maxes, sizes, size
        self._starts = None

    def _count_before(self, number: int) -> int:
        """Return the number of rows before a chunk."""
        return self._all_starts()[number] if number else 0

    def _chunk_of(self, place: int) -> int:
        """Return the number of the chunk that has the row at a place."""
        return bisect_right(self._all_starts(), place) - 1 if len(self.chunks) > 1 else 0

    def _all_starts(self) -> list[int]:
        """Return the number of rows before each chunk, then of all; cached until rows change."""
        starts = self._starts
        if starts is None:
            starts = self._starts = list(accumulate(self._sizes, initial=0))
        return starts

    def _cut(self, number: int) -> None:
        """Split a chunk behind its first `LOAD` rows."""
        chunk = self.chunks[number]
        columns = [chunk.keys, chunk.heads, chunk.cells, chunk.shown]
        parts = slice(None, LOAD), slice(LOAD, None)
        chunks = [Chunk(*(column[part] for column in columns)) for part in parts]
        self._replace(number, number + 1, chunks)

    def _merge(self, number: int) -> None:
        """Merge a chunk with the next one."""
        one, other = self.chunks[number : number + 2]
        made = Chunk(
            one.keys + other.keys,
            one.heads + other.heads,
            one.cells + other.cells,
            one.shown + other.shown,
        )
        self._replace(number, number + 2, [made])
        if len(made.keys) > 2 * LOAD:
            self._cut(number)

    def _replace(self, start: int, stop: int, chunks: list[Chunk]) -> None:
        """Replace the chunks from `start` up to `stop`; the number of all rows stays."""
        maxes, sizes = [c.keys[-1] for c in chunks], [len(c.keys) for c in chunks]
        self.chunks[start:stop] = chunks
        self._maxes[start:stop] = maxes
        self._sizes[start:stop] = sizes
        self._starts = None


def _chunks_of(columns: list[list[Any]]) -> list[Chunk]:
    """Return the chunks of columns of rows in order; a single chunk takes the lists themselves."""
    size = len(columns[0])
    if 0 < size <= LOAD:
        return [Chunk(*columns)]
    return [Chunk(*(column[n : n + LOAD] for column in columns)) for n in range(0, size, LOAD)]
