"""A window partition with state: its rows in order, their answers, and the effect of a change.

    a row is deleted     the rows that see it              ---+
    a row is inserted    the rows that see it, and itself  ---+--> spans of rows, per function
                                               each span is evaluated up to the first unchanged
                                               answer; rows with changed answers are emitted

Spans move with every row that is inserted or deleted before them.
Many changes at a time evaluate all rows again. An output row is made when it is emitted, of the row
and its answers: it is not stored. With a limit, rows beyond it are ordered, too, but
no function is evaluated for them.

State:  every row with its sort key and its answers, in order.
Cost:   O(log rows) for a change, plus the cost of its functions, and O(1) for each changed output.
Source: SQL:2003, window functions; spans by Leis et al., 2015 (`function.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

from optimizer.record import record
from reactive.engine.collections.zset import Pair, canonical
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.languages.sql.partitions.frames import HIDDEN, Chunk, Entries, Order, Row, Span
from reactive.languages.sql.partitions.function import Function, Told
from reactive.languages.sql.runtime.rows import SortKey

CAME, GONE, SHOWN, COPIED = "came", "gone", "shown", "copied"
Spans: TypeAlias = "list[list[Span]]"
MANY = 4_096
"""The number of changes, less in small partitions, from which all rows are evaluated again."""
Answers = Sequence[dict[int, Any]]
"""The new answers of each function, by place."""


@record
class WindowFacts:
    """The facts that all partitions of a window share."""

    key: Callable[[Sequence[Any], Any], SortKey]
    functions: tuple[Function, ...]
    cut: Callable[[Order], int]
    """Return the number of rows within the limit."""
    is_descending: bool
    drops: bool
    """True if a partition emits nothing while one of its functions raises."""

    def order_of(self, entries: Entries) -> Order:
        return Order(entries, is_descending=self.is_descending)

    def output_row(self, row: Row, shown: Any) -> Row:
        """Return a row's bindings with its answers, of which one alone is in no tuple."""
        return (*row[0], shown) if len(self.functions) == 1 else (*row[0], *shown)


class WindowPartition:
    """One partition."""

    __slots__ = ("_broken", "_log", "_made", "_order", "_owed", "_sight", "_was")

    def __init__(self, made: WindowFacts) -> None:
        self._made = made
        self._order = made.order_of(Entries())
        self._sight = 0
        """The number of output rows, which are the first ones."""
        self._owed: dict[Row, int] = {}  # rows that were deleted before they were inserted
        self._broken: dict[Row, int] | None = None  # all rows, where something raises
        self._log: list[tuple[Any, ...]] = []
        self._was: tuple[Any, ...] | None = None  # all of the above, as it was

    @property
    def is_empty(self) -> bool:
        """True if the partition holds nothing."""
        return not (self._order.entries.size or self._owed or self._broken)

    def step(self, changes: Sequence[Pair]) -> list[Pair]:
        """Apply changes; return the output's. A function that raises deletes all, or raises."""
        self._was, self._log = self._state(), []
        try:
            if self._broken is not None:
                return self._begin_again(self._broken, changes)
            return self._apply_changes(changes)
        except Exception as error:
            reraise_asynchronous(error)
            if not self._made.drops:
                raise
            self._take_back()
            return self._break(changes)

    def undo(self) -> None:
        """Restore the state before the last step."""
        self._take_back()
        self._was = None

    def commit(self) -> None:
        """Forget how to undo the last step."""
        self._was, self._log = None, []

    def contents(self) -> Iterator[Pair]:
        """Return all rows that are shown."""
        made, entries = self._made, self._order.entries
        shown = zip(entries.from_(0), entries.all_shown(0, self._sight), strict=False)
        return ((made.output_row(row, answers), 1) for row, answers in shown)

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows held, and about how many bytes they take."""
        others = len(self._owed) + len(self._broken or ())
        return self._order.entries.size + others, self._order.entries.bytes()

    # All or nothing.

    def _state(self) -> tuple[Any, ...]:
        """Return all that a step replaces, for an undo."""
        return self._order, self._sight, self._owed, self._broken

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
                case "copied", order:
                    self._order = order
                case _, chunk, shown:
                    chunk.shown = shown
        self._log = []
        self._order, self._sight, self._owed, self._broken = self._was

    def _break(self, changes: Sequence[Pair]) -> list[Pair]:
        """Hold all rows without an order, and return the deletion of all output rows."""
        gone = [(row, -1) for row, _ in self.contents()]
        rows = dict(self._owed) if self._broken is None else dict(self._broken)
        for row in self._order.entries.from_(0):
            rows[row] = rows.get(row, 0) + 1
        self._begin(_add_changes(rows, changes))
        return gone

    def _begin(self, broken: dict[Row, int] | None) -> None:
        """Empty the partition; `broken` are its rows while a function raises, else None."""
        self._order, self._sight = self._made.order_of(Entries()), 0
        self._owed, self._broken = {}, broken

    def _begin_again(self, rows: dict[Row, int], changes: Sequence[Pair]) -> list[Pair]:
        """Insert all rows again, with changes; return the change of the output."""
        self._begin(None)
        return self._apply_changes(list(_add_changes(rows, changes).items()))

    # A change.

    def _apply_changes(self, changes: Sequence[Pair]) -> list[Pair]:
        """Delete and insert rows; return the change of the output rows."""
        made, order = self._made, self._order
        before, out = order.entries.size, list[Pair]()
        coming = [(row, times) for row, times in changes if times > 0]
        seen: Spans | None = [[] for _ in made.functions]
        if len(changes) > MANY or sum(times for _, times in coming) > 4 + before // 4:
            seen = None
        for row, times in changes:
            for _ in range(-times):
                self._leave(row, seen, out)
        if seen is None:
            self._enter_all(coming)
        else:
            for row, times in coming:
                for _ in range(times):
                    self._enter(row, seen)
        self._show(self._compute_answers(seen, before, out), out)
        return out

    def _leave(self, row: Row, seen: Spans | None, out: list[Pair]) -> None:
        """Delete a row; append its output row to `out`. If absent, its next insert is skipped."""
        entries, key = self._order.entries, self._made.key(row[2], row)
        place = entries.find(key, row)
        if place < 0:
            self._owe(row, -1)
            return
        if seen is not None:
            self._note(place, seen)
            for spans in seen:
                spans[:] = [(s - (s > place), e - (e > place)) for s, e in spans]
        shown = entries.answers(place)
        if shown is not HIDDEN:
            out.append((self._made.output_row(entries.row(place), shown), -1))
            self._sight -= 1
        self._log.append((GONE, entries.size, place, key, row, shown))
        entries.delete(place)

    def _enter(self, row: Row, seen: Spans) -> None:
        """Insert a row unless it is owed; add to `seen` the spans that it may change."""
        if self._owed and row in self._owed:
            self._owe(row, 1)
            return
        key = self._made.key(row[2], row)
        entries = self._order.entries
        place = entries.behind(key)
        self._log.append((CAME, place, entries.size))
        entries.insert(place, key, row)
        self._sight += place < self._sight
        for spans in seen:
            spans[:] = [(s + (s >= place), e + (e > place)) for s, e in spans]
            spans.append((place, place + 1))
        self._note(place, seen)

    def _note(self, place: int, seen: Spans) -> None:
        """Add the rows that see the row at a place to `seen`, for each function."""
        for function, spans in zip(self._made.functions, seen, strict=True):
            spans += function.seeing(self._order, place)

    def _enter_all(self, coming: Sequence[Pair]) -> None:
        """Insert many rows into a copy, except those that are owed.

        The log keeps the order as it was before, for an undo.
        """
        more = []
        for row, times in coming:
            left = times
            while left and row in self._owed:
                self._owe(row, 1)
                left -= 1
            more += [(self._made.key(row[2], row), row)] * left
        self._log.append((COPIED, self._order))
        self._order = self._made.order_of(self._order.entries.with_more(more))

    def _owe(self, row: Row, times: int) -> None:
        """Add to the number of times that a row is owed; the earlier dict stays, for an undo."""
        owed = dict(self._owed)
        owed[row] = owed.get(row, 0) + times
        if not owed[row]:
            del owed[row]
        self._owed = owed

    # What is said.

    def _compute_answers(self, seen: Spans | None, before: int, out: list[Pair]) -> Answers:
        """Return the new answers; append to `out` the output rows beyond the limit, deleted."""
        made, order = self._made, self._order
        size, sight, cut = order.entries.size, self._sight, made.cut(order)
        if cut < sight or seen is None:
            self._hide(cut, size if seen is None else sight, out)
        self._sight = cut
        said: Answers = [{} for _ in made.functions]
        for number, function in enumerate(made.functions):
            earlier_answer = self._earlier_answers(number, said[number])
            if seen is None:
                self._ask(number, 0, cut, earlier_answer, said, settles=False)
                continue
            spans = [*seen[number], *function.late(order, before, earlier_answer), (sight, cut)]
            spans = [(start, min(stop, cut)) for start, stop in spans if start < min(stop, cut)]
            if function.settles == "never":
                for start, stop in _merge_spans(spans):
                    self._ask(number, start, stop, earlier_answer, said, settles=False)
                continue
            alone = [start for start, stop in spans if stop - start == 1]
            ask = partial(self._ask, number, told=earlier_answer, said=said, alone=alone)
            (_ask_back if function.is_backward else _ask_on)(spans, ask)
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
                    row = self._made.output_row(chunk.rows[offset], answers[offset])
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
            answers, rows = self._renew(chunk), chunk.rows
            for offset, place in zip(offsets, left, strict=False):
                old, head = answers[offset], rows[offset][0]
                if only is not None:  # as `output_row`, inlined for speed
                    new = only[place]
                    if old is not HIDDEN:
                        out.append(((*head, old), -1))
                    out.append(((*head, new), 1))
                else:
                    new = _with_answers(old, said, place)
                    if old is not HIDDEN:
                        out.append(((*head, *old), -1))
                    out.append(((*head, *new), 1))
                answers[offset] = new


def _with_answers(old: Any, said: Answers, place: int) -> tuple[Any, ...]:
    """Return the answers of a row, some of them new; of a hidden row all are new."""
    known = (None,) * len(said) if old is HIDDEN else old
    return tuple([new.get(place, answer) for new, answer in zip(said, known, strict=True)])


def _ask_on(spans: Iterable[Span], ask: Callable[[int, int], tuple[int, bool]]) -> None:
    """Evaluate spans in order; behind a row that settles, the rest of its spans is skipped."""
    last, is_settled = -1, False
    for start, stop in sorted(spans):
        if start > last:
            last, is_settled = ask(start, stop)
        elif not is_settled and stop > last + 1:
            last, is_settled = ask(last + 1, stop)


def _ask_back(spans: Iterable[Span], ask: Callable[[int, int], tuple[int, bool]]) -> None:
    """Evaluate spans from the last row back; before one that settles, the rest is skipped."""
    first, is_settled = -1, False
    for start, stop in sorted(spans, key=itemgetter(1), reverse=True):
        if stop <= first or first < 0:
            first, is_settled = ask(start, stop)
        elif not is_settled and start < first:
            first, is_settled = ask(start, first)


def _merge_spans(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield spans in order, with adjacent ones merged."""
    at, end = -1, -1
    for start, stop in sorted(spans):
        if start > end:
            if at >= 0:
                yield at, end
            at = start
        end = max(end, stop)
    if at >= 0:
        yield at, end


def _add_changes(rows: dict[Row, int], changes: Iterable[Pair]) -> dict[Row, int]:
    """Return a copy of `rows` with the changes added; rows of weight 0 are left out."""
    made = dict(rows)
    for row, weight in changes:
        made[row] = made.get(row, 0) + weight
    return {row: weight for row, weight in made.items() if weight}
