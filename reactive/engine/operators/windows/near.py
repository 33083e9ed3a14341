"""A changed row of a window, applied within the chunks that hold it.

    keys      1  3  4  7  9          the row with key 4 becomes one with key 5
    answers   a [b  c  d  e]         the rows whose answers read it, if each reads two before it

If functions read a few rows beside a row, then a change affects the answers of a few rows, and all
that these depend on is near, in slices of the lists of a chunk. The answers are computed from the
slices, and then parts of the lists are replaced. With a limit, all rows up to the limit are near.

A change at the border of two chunks, or among many peers, is left to the partition.

State:  none.
Cost:   O(log rows) to find a row; some list operations, and a step for each row that is affected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactive.engine.collections.zset import Pair, canonical
from reactive.engine.operators.windows.chunks import Chunk
from reactive.engine.operators.windows.entries import HIDDEN, Row
from reactive.engine.operators.windows.facts import NearFunctions, Packed, WindowFacts
from reactive.engine.operators.windows.frames import Order
from reactive.engine.operators.windows.near_update import Update, make_update

Rows = tuple[list[Any], list[Any], list[Any], list[Any]]
"""Sort keys, heads, cells and earlier answers of rows."""
NO_ROWS: Rows = ([], [], [], [])
Answers = tuple[int, int, int, int, list[Any]]
"""The number of output rows after a change; the span of affected rows before it, and how many of
them may be output rows; the answers that replace theirs."""
CLOSE = 16
"""Most rows between a deleted and an inserted row that are applied together."""


class NearChanges:
    """The changes of partitions by one row that is deleted, one that is inserted, or both."""

    __slots__ = ("_functions", "_made", "_said", "update")

    def __init__(self, made: WindowFacts, functions: NearFunctions) -> None:
        self._made = made
        self._functions = functions
        only = len(functions.answers) == 1
        self._said = functions.answers[0] if only else functions.all_answers
        self.update: Update = self._make_update
        """Replaces a row by another within a chunk; generated when it is called first."""

    def _make_update(
        self, order: Order, sight: int, key: Any, gone: Packed, came: Packed, log: list[Any]
    ) -> tuple[int, list[Pair]] | None:
        """Generate the function that replaces a row within a chunk, and call it."""
        self.update = make_update(self._made, self._functions, self._said, CLOSE)
        return self.update(order, sight, key, gone, came, log)

    def apply(
        self, order: Order, sight: int, changes: Sequence[Pair], log: list[Any], out: list[Pair]
    ) -> int:
        """Apply changes; return the number of output rows, which are the first ones.

        The changes of the output are appended to `out`, those that undo the changes of the order to
        `log`. Return -1 if a change is not near, also after having applied another.
        """
        gone: Row | None = None
        came: Row | None = None
        parts = self._made.parts
        for packed, times in changes:
            if times == 1 and came is None:
                came = parts(packed)
            elif times == -1 and gone is None:
                gone = parts(packed)
            else:
                return -1
        entries, edit = order.entries, self._edit
        if gone is None:
            to = None if came is None else entries.locate_new(came)
            return -1 if to is None else edit(order, sight, to[0], None, to[1], came, log, out)
        at = entries.locate(gone)
        if at is None:
            return -1
        number, place = at
        if came is None:
            return edit(order, sight, number, place, None, None, log, out)
        if gone[0] == came[0] and gone[1] == came[1]:
            return -1  # equal rows
        to = entries.locate_new(came) if gone[0] != came[0] else entries.beside(at, came)
        if to is None:
            return -1
        other, into = to
        if number == other and (self._functions.is_limited or -CLOSE < place - into < CLOSE):
            return edit(order, sight, number, place, into, came, log, out)
        sight = edit(order, sight, number, place, None, None, log, out)
        into -= number == other and place < into
        return sight if sight < 0 else edit(order, sight, other, None, into, came, log, out)

    def _edit(
        self,
        order: Order,
        sight: int,
        number: int,
        gone: int | None,
        place: int | None,
        came: Row | None,
        log: list[Any],
        out: list[Pair],
    ) -> int:
        """Delete a row of a chunk, and insert one before the row at `place`, or do one of both.

        Return the number of output rows, or -1.
        """
        chunk = order.entries.chunks[number]
        rows = NO_ROWS
        if gone is None:
            if not order.entries.can_grow(number):
                return -1
            first = last = place or 0
        elif place is None:
            if not order.entries.can_shrink(number):
                return -1
            first, last = gone, gone + 1
        else:
            first, last = (place, gone + 1) if place <= gone else (gone, place)
        if came is not None:
            if gone is None or last - first == 1:
                key, head, cell = came
                rows = [key], [head], [cell], [HIDDEN]
            else:
                rows = _replace_row(chunk, first, last, gone, place or 0, came)
        near = self._answer_limited if self._functions.is_limited else self._answer_unlimited
        found = near(order, sight, number, first, last, rows)
        if found is None:
            return -1
        sight, start, stop, seen, answers = found
        output_row, olds = self._made.output_row, chunk.shown[start:stop]
        undo = (
            *(number, first, first + len(rows[0])),
            *(chunk.keys[first:last], chunk.heads[first:last], chunk.cells[first:last]),
            *(start, start + len(answers), olds),
        )
        if gone is not None and olds[gone - start] is not HIDDEN:
            out.append((output_row(chunk.heads[gone], olds[gone - start]), -1))
        heads, olds = chunk.heads[start:stop], olds.copy()
        heads[first - start : last - start] = rows[1]
        olds[first - start : last - start] = rows[3]
        for at in range(min(seen, len(answers))):
            old, new = olds[at], answers[at]
            if new != new:
                answers[at] = new = canonical(new)
            if old is new:
                continue
            if old is not HIDDEN:
                if old == new:
                    answers[at] = old
                    continue
                out.append((output_row(heads[at], old), -1))
            if new is not HIDDEN:
                out.append((output_row(heads[at], new), 1))
        edit = (number, first, last, rows[0], rows[1], rows[2], start, stop, answers)
        order.entries.edit(edit, undo, log)
        return sight

    def _answer_unlimited(
        self, order: Order, sight: int, number: int, first: int, last: int, rows: Rows
    ) -> Answers | None:
        """Return what rows affect that replace those of a span."""
        chunks, functions = order.entries.chunks, self._functions
        chunk, before, behind = chunks[number], functions.before, functions.behind
        start, stop = first - behind, last + before
        low, high, size = start - before, stop + behind, len(chunk.keys)
        if low < 0:
            if number:
                return None
            low = 0
            if start < 0:
                start = 0
        if high > size:
            if number + 1 < len(chunks):
                return None
            high = size
            if stop > size:
                stop = size
        cells = chunk.cells[low:high]
        cells[first - low : last - low] = rows[2]
        more = len(rows[0]) - (last - first)
        keys = cells
        if functions.reads_keys:
            keys = chunk.keys[low:high]
            keys[first - low : last - low] = rows[0]
        answers = self._said(order, keys, cells, start - low, stop + more - low)
        return sight + more, start, stop, len(answers), answers

    def _answer_limited(
        self, order: Order, sight: int, number: int, first: int, last: int, rows: Rows
    ) -> Answers | None:
        """Return the same for a partition whose first rows are shown."""
        chunks, behind = order.entries.chunks, self._functions.behind
        beyond = (first if not number else len(chunks[0].keys)) - behind
        if beyond > sight or (beyond == sight and not rows[0]):
            return sight, first, last, 0, rows[3]
        if number:
            return None
        chunk, more = chunks[0], len(rows[0]) - (last - first)
        keys, cells = chunk.keys.copy(), chunk.cells.copy()
        keys[first:last], cells[first:last] = rows[0], rows[2]
        end = self._made.cut(order.of_part(keys, cells))
        if len(chunks) > 1 and (end + behind >= len(keys) or sight >= len(chunk.keys)):
            return None
        start = min(end, max(0, first - behind))
        stop = min(len(chunk.keys), max(sight, last, end - more))
        answers = self._said(order, keys, cells, start, end)
        hidden = [HIDDEN] * (stop + more - end)
        return end, start, stop, max(end, sight + 1) - start, answers + hidden


def _replace_row(chunk: Chunk, first: int, last: int, gone: int, place: int, came: Row) -> Rows:
    """Return the rows of a span without the one at `gone`, with another inserted at `place`."""
    rows = (
        *(chunk.keys[first:last], chunk.heads[first:last], chunk.cells[first:last]),
        chunk.shown[first:last],
    )
    for column, part in zip(rows, (*came, HIDDEN), strict=True):
        del column[gone - first]
        column.insert(place - first - (gone < place), part)
    return rows
