"""A window partition with state: its rows in order, their answers, and the effect of a change.

    a row is deleted     the rows that see it              ---+
    a row is inserted    the rows that see it, and itself  ---+--> spans of rows, per function
                                               each span is evaluated up to the first unchanged
                                               answer; rows with changed answers are emitted

Spans move with every row that is inserted or deleted before them (`spans.py`).
Many changes at a time evaluate all rows again, by columns. An output row is made when it is
emitted, of the row and its answers: it is not stored. With a limit, rows beyond it are ordered,
too, but no function is evaluated for them.

State:  every row with its sort key and its answers, in order.
Cost:   O(log rows) for a change, plus the cost of its functions, and O(1) for each changed output.
Source: SQL:2003, window functions; spans by Leis et al., 2015 (`totals.py`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import Any

from reactive.engine.collections.zset import Pair, canonical
from reactive.engine.operators.windows.chunks import Chunk
from reactive.engine.operators.windows.entries import HIDDEN, Entries, Row
from reactive.engine.operators.windows.facts import Packed, WindowFacts
from reactive.engine.operators.windows.function import Told, canonical_answers
from reactive.engine.operators.windows.near import NearChanges
from reactive.engine.operators.windows.spans import Spans, ask_backward, ask_forward, merge_spans
from reactive.engine.runtime.interrupts import reraise_asynchronous

CAME, GONE, SHOWN, COPIED = "came", "gone", "shown", "copied"
MANY = 4_096
"""The number of changes, less in small partitions, from which all rows are evaluated again."""
FEW = 8
"""Most changes that are applied in any order."""
Answers = Sequence[dict[int, Any]]
"""The new answers of each function, by place."""


class WindowPartition:
    """One partition."""

    __slots__ = ("_broken", "_log", "_made", "_near", "_order", "_owed", "_was", "sight")

    def __init__(self, made: WindowFacts, near: NearChanges | None = None) -> None:
        self._made = made
        self._near = near
        self._order = made.order_of(Entries(made.tie))
        self.sight = 0
        """The number of output rows, which are the first ones."""
        self._owed: dict[Packed, int] | None = None
        """Rows that were deleted before they were inserted."""
        self._broken: dict[Packed, int] | None = None
        """The changes since a function raises; meanwhile the order stays, with hidden rows."""
        self._log: list[tuple[Any, ...]] = []
        self._was: tuple[Any, ...] | None = None  # all of the above, as it was

    @property
    def is_empty(self) -> bool:
        """True if the partition holds nothing."""
        return not (self._order.entries.size or self._owed or self._broken is not None)

    def update(self, key: Any, gone: Packed, came: Packed) -> list[Pair] | None:
        """Replace a row by another if that is near; return the output's changes, each with `key`.

        Return None, with nothing done, if it must be a step.
        """
        if self._near is None or self._owed is not None or self._broken is not None:
            return None
        log: list[tuple[Any, ...]] = []
        self._was, self._log = (self._order, self.sight, None, None), log
        try:
            found = self._near.update(self._order, self.sight, key, gone, came, log)
            if found is not None:
                self.sight, out = found
                return out
        except Exception as error:  # as in a step
            reraise_asynchronous(error)
        if log:
            self._take_back()
        return None

    def step(self, changes: Sequence[Pair]) -> list[Pair]:
        """Apply changes; return the output's. A function that raises deletes all, or raises."""
        self._was, self._log = (self._order, self.sight, self._owed, self._broken), []
        try:
            if self._broken is None:
                if len(changes) < 3 and self._near is not None and self._owed is None:
                    out: list[Pair] = []
                    try:
                        sight = self._near.apply(self._order, self.sight, changes, self._log, out)
                    except Exception as error:  # raised again, or found not to be by all changes
                        reraise_asynchronous(error)
                        sight = -1
                    if sight >= 0:
                        self.sight = sight
                        return out
                    if self._log:
                        self._take_back()
                return self._apply_changes(changes)
            waiting, self._broken = add_changes(self._broken, changes), None
            return self._apply_changes(list(waiting.items()), are_many=True)
        except Exception as error:
            reraise_asynchronous(error)
            if not self._made.drops:
                raise
            self._take_back()
            return self._break(changes)

    def load(self, rows: Sequence[Packed]) -> None:
        """Insert rows into an empty partition, as a step whose output is not listed."""
        self._was, self._log = (self._order, 0, None, None), []
        try:
            self._enter_all(rows, None)
        except Exception as error:
            reraise_asynchronous(error)
            if not self._made.drops:
                raise
            self._take_back()
            self._break([(row, 1) for row in rows])

    def undo(self) -> None:
        """Restore the state before the last step."""
        self._take_back()
        self._was, self._log = None, []

    def commit(self) -> None:
        """Forget how to undo the last step."""
        self._was, self._log = None, []

    def contents(self) -> Iterator[Pair]:
        """Return all rows that are shown."""
        return zip(self.rows(), repeat(1))

    def rows(self) -> list[Any]:
        """Return all rows that are shown, in order."""
        entries, sight = self._order.entries, self.sight
        return self._made.output_rows(entries.heads(0, sight), entries.all_shown(0, sight))

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows held, and about how many bytes they take."""
        others = len(self._owed or ()) + len(self._broken or ())
        return self._order.entries.size + others, self._order.entries.bytes()

    # All or nothing.

    def _take_back(self) -> None:
        """Undo the changes that the last step logged; do nothing if no step is pending."""
        if self._was is None:
            return
        for entry in reversed(self._log):
            entries = self._order.entries
            match entry:
                case "came", place, size:
                    if entries.size > size:  # it was not interrupted before that
                        entries.delete(place)
                case "gone", size, *of:
                    if entries.size < size:
                        entries.insert(*of)
                case "edited", undo:
                    entries.edit(undo, undo, [])
                case "moved", number, *of:
                    entries.chunks[number].move_back(*of)
                    entries.note_last(number)
                case "answered", chunk, start, olds:
                    chunk.shown[start : start + len(olds)] = olds
                case "copied", order:
                    self._order = order
                case _, chunk, shown:
                    chunk.shown = shown
        self._log = []
        self._order, self.sight, self._owed, self._broken = self._was

    def _break(self, changes: Sequence[Pair]) -> list[Pair]:
        """Hide all rows until the changes can be applied; return the deletion of the output."""
        gone = [(row, -1) for row, _ in self.contents()]
        if self._broken is None:
            self._order = self._made.order_of(self._order.entries.hide())
            self.sight = 0
        self._broken = add_changes(self._broken or {}, changes)
        return gone

    # A change.

    def _apply_changes(self, changes: Sequence[Pair], *, are_many: bool = False) -> list[Pair]:
        """Delete and insert rows; return the change of the output rows."""
        size, out = self._order.entries.size, list[Pair]()
        coming = changes
        if len(changes) > 4 or are_many:
            coming = [(row, times) for row, times in changes if times > 0]
        if are_many or len(changes) > MANY or len(coming) > 4 + size // 4:
            for packed, times in changes:
                for _ in range(-times):
                    self._leave(packed, self._made.parts(packed), None, out)
            self._enter_all(self._without_owed(coming), out)
            return out
        seen = [Spans() for _ in self._made.functions]
        for packed, row, times in self._last_first(changes):
            for _ in range(-times):
                self._leave(packed, row, seen, out)
            for _ in range(times):
                self._enter(packed, row, seen)
        self._show(self._compute_answers(seen, size, out), out)
        return out

    def _last_first(self, changes: Sequence[Pair]) -> list[tuple[Packed, Row, int]]:
        """Return changes with the rows as they are held, the last ones first: so few spans move."""
        parts = self._made.parts
        found = [(packed, parts(packed), times) for packed, times in changes]
        if len(found) > 1:
            found.sort(key=itemgetter(2))  # an update deletes before it inserts
            if len(found) > FEW:
                try:
                    found.sort(key=_key_of_change, reverse=True)
                except TypeError:  # keys without an order; those that stay may have one
                    found.sort(key=itemgetter(2))
        return found

    def _leave(
        self, packed: Packed, row: Row, seen: Sequence[Spans] | None, out: list[Pair]
    ) -> None:
        """Delete a row; append its output row to `out`. If absent, its next insert is skipped."""
        entries = self._order.entries
        place, size = entries.find(row), entries.size
        if place < 0:
            self._owe(packed, -1)
            return
        if seen is not None:
            self._note(place, seen)
            for spans in seen:
                spans.delete(place, size)
        row, shown = entries.row(place)
        if shown is not HIDDEN:
            out.append((self._made.output_row(row[1], shown), -1))
            self.sight -= 1
        self._log.append((GONE, size, place, row, shown))
        entries.delete(place)

    def _enter(self, packed: Packed, row: Row, seen: Sequence[Spans]) -> None:
        """Insert a row unless it is owed; add to `seen` the spans that it may change."""
        if self._owed and packed in self._owed:
            self._owe(packed, 1)
            return
        entries = self._order.entries
        place, size = entries.place_of(row), entries.size
        self._log.append((CAME, place, size))
        entries.insert(place, row)
        self.sight += place < self.sight
        for spans in seen:
            spans.insert(place, size)
        self._note(place, seen)

    def _note(self, place: int, seen: Sequence[Spans]) -> None:
        """Add the rows that see the row at a place to `seen`, for each function."""
        order = self._order
        for function, spans in zip(self._made.functions, seen, strict=True):
            spans.add(function.seeing(order, place), order.entries.size)

    def _without_owed(self, coming: Sequence[Pair]) -> list[Packed]:
        """Return rows as often as they are inserted, except those that are owed."""
        more: list[Packed] = []
        for row, times in coming:
            left = times
            while left and self._owed and row in self._owed:
                self._owe(row, 1)
                left -= 1
            more += repeat(row, left)
        return more

    def _enter_all(self, more: Sequence[Packed], out: list[Pair] | None) -> None:
        """Insert many rows into a copy, and evaluate all rows again; append the changes to `out`.

        Nothing is appended if `out` is None: then no row may be shown yet. The log keeps the order
        as it was before, for an undo.
        """
        made, before = self._made, self._order
        self._log.append((COPIED, before))
        order = self._order = made.order_of(before.entries.with_more(*made.columns(more)))
        cut, sight = made.cut(order), self.sight + len(more) if self.sight else 0
        if out is not None:
            self._hide(cut, min(sight, order.entries.size), out)
        self.sight = cut
        columns = [canonical_answers(each.first_answers(order, cut)) for each in made.functions]
        said = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        if sight and out is not None:
            self._replace_shown(said, out)
            return
        if out is not None:
            out += zip(made.output_rows(order.entries.heads(0, cut), said), repeat(1))
        for chunk, start, place in order.entries.spread(cut):
            chunk.shown[:place] = said[start : start + place]

    def _owe(self, row: Packed, times: int) -> None:
        """Add to the number of times that a row is owed; the earlier dict stays, for an undo."""
        owed = dict(self._owed or {})
        owed[row] = owed.get(row, 0) + times
        if not owed[row]:
            del owed[row]
        self._owed = owed or None

    # What is said.

    def _compute_answers(self, seen: Sequence[Spans], before: int, out: list[Pair]) -> Answers:
        """Return the new answers; append to `out` the output rows beyond the limit, deleted."""
        made, order = self._made, self._order
        size, sight, cut = order.entries.size, self.sight, made.cut(order)
        if cut < sight:
            self._hide(cut, sight, out)
        self.sight = cut
        said: Answers = [{} for _ in made.functions]
        for number, function in enumerate(made.functions):
            earlier_answer = self._earlier_answers(number, said[number])
            spans = [
                *seen[number].all(size),
                *function.late(order, before, earlier_answer),
                (sight, cut),
            ]
            spans = [(start, min(stop, cut)) for start, stop in spans if start < min(stop, cut)]
            if function.settles == "never":
                for start, stop in merge_spans(spans):
                    self._ask(number, start, stop, earlier_answer, said, settles=False)
                continue
            alone = {start for start, stop in spans if stop - start == 1}
            ask = partial(self._ask, number, told=earlier_answer, said=said, alone=alone)
            (ask_backward if function.is_backward else ask_forward)(spans, ask)
        return said

    def _earlier_answers(self, number: int, known: dict[int, Any]) -> Told:
        """Return the function of the latest answer at a place; None for a hidden row."""
        entries, is_single = self._order.entries, len(self._made.functions) == 1

        def earlier_answer(place: int) -> Any:
            if place in known:
                return known[place]
            shown = entries.answers(place)
            return None if shown is HIDDEN else shown if is_single else shown[number]

        return earlier_answer

    def _hide(self, start: int, stop: int, out: list[Pair]) -> None:
        """Hide the rows of a span, and append the output rows to `out` as deleted."""
        for chunk, first, last in self._order.entries.pieces(start, stop):
            answers = self._renew(chunk)
            for offset in range(first, last):
                if answers[offset] is not HIDDEN:
                    row = self._made.output_row(chunk.heads[offset], answers[offset])
                    out.append((row, -1))
                    answers[offset] = HIDDEN

    def _renew(self, chunk: Chunk) -> list[Any]:
        """Return a copy of the answers of a chunk, which replaces them; they are in the log."""
        self._log.append((SHOWN, chunk, chunk.shown))
        answers = chunk.shown = chunk.shown.copy()
        return answers

    def _ask(
        self,
        number: int,
        start: int,
        stop: int,
        told: Told,
        said: Answers,
        *,
        settles: bool = True,
        alone: Container[int] = (),
    ) -> tuple[int, bool]:
        """Put new answers into `said`; return the last row evaluated, and if it settled."""
        function, order, new = self._made.functions[number], self._order, said[number]
        places: Sequence[int] = range(start, stop)
        shown: Iterable[Any] = order.entries.all_shown(start, stop)
        if function.is_backward:
            places, shown = places[::-1], order.entries.all_shown_back(start, stop)
        if len(self._made.functions) > 1:
            shown = (each if each is HIDDEN else each[number] for each in shown)
        answers = function.answers(order, start, stop, told)
        for place, old, answer in zip(places, shown, answers, strict=True):
            if answer != answer:
                answer = canonical(answer)
            if old is HIDDEN or (old is not answer and old != answer):
                new[place] = answer
            elif settles and function.is_settled(answer) and place not in alone:
                return place, True
        return start if function.is_backward else stop - 1, False

    def _show(self, said: Answers, out: list[Pair]) -> None:
        """Store new answers; append each old output row (-1) and new one (+1) to `out`."""
        only = said[0] if len(said) == 1 else None
        places = sorted(set[int]().union(*said) if only is None else only)
        left = iter(places)
        for chunk, offsets in self._order.entries.by_chunk(places):
            answers = self._renew(chunk)
            olds = [answers[offset] for offset in offsets]
            if only is None:
                its = zip(olds, left, strict=False)
                news = [_with_answers(old, said, place) for old, place in its]
            else:
                news = [only[place] for place in islice(left, len(olds))]
            for offset, new in zip(offsets, news, strict=True):
                answers[offset] = new
            self._emit([chunk.heads[offset] for offset in offsets], olds, news, out)

    def _replace_shown(self, said: Sequence[Any], out: list[Pair]) -> None:
        """Store the answers of all shown rows; append the changed output rows to `out`."""
        for chunk, start, count in self._order.entries.spread(len(said)):
            answers = self._renew(chunk)
            found = zip(chunk.heads, answers, said[start : start + count], strict=False)
            changed = [each for each in found if each[1] is not each[2] and each[1] != each[2]]
            if changed:
                answers[:count] = said[start : start + count]
                heads, olds, news = zip(*changed, strict=True)
                self._emit(heads, olds, news, out)

    def _emit(
        self, heads: Sequence[Any], olds: Sequence[Any], news: Sequence[Any], out: list[Pair]
    ) -> None:
        """Append the old output row of each row, unless it was hidden, and the new one to `out`."""
        made = self._made
        if len(olds) > FEW and not any(old is HIDDEN for old in olds):
            gone = zip(made.output_rows(heads, olds), repeat(-1))
            came = zip(made.output_rows(heads, news), repeat(1))
            out += chain.from_iterable(zip(gone, came, strict=False))
            return
        for head, old, new in zip(heads, olds, news, strict=True):
            if old is not HIDDEN:
                out.append((made.output_row(head, old), -1))
            out.append((made.output_row(head, new), 1))


def _key_of_change(change: tuple[Packed, Row, int]) -> Any:
    return change[1][0]


def _with_answers(old: Any, said: Answers, place: int) -> tuple[Any, ...]:
    """Return the answers of a row, some of them new; of a hidden row all are new."""
    known = (None,) * len(said) if old is HIDDEN else old
    return tuple([new.get(place, answer) for new, answer in zip(said, known, strict=True)])


def add_changes(rows: dict[Packed, int], changes: Iterable[Pair]) -> dict[Packed, int]:
    """Return a copy of `rows` with the changes added; rows of weight 0 are left out."""
    made = dict(rows)
    for row, weight in changes:
        made[row] = made.get(row, 0) + weight
    return {row: weight for row, weight in made.items() if weight}
