"""Window functions: their answers, and the rows whose answers a changed row affects.

Spans are places in the order of that moment: with an inserted row, and with a row being deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

from optimizer.record import record
from reactive.engine.collections.zset import EXACT, canonical
from reactive.engine.operators.windows.frames import UNBOUNDED, Frame, Order, Span, edge_distance

Told = Callable[[int], Any]
"""The earlier answer of a function for the row at a place."""
NEAR = 64
"""Most rows of a frame whose changes are applied within a chunk."""
Settles: TypeAlias = "Literal['never', 'always', 'if whole numbers']"


@record
class Asked:
    """A window function.

    It has a name, or a callable of the values of a frame; the place of its argument among the
    arguments of a row; and further constants.
    """

    function: str | Callable[..., Any]
    argument: int | None
    frame: Frame
    more: tuple[Any, ...] = ()
    ignores_nulls: bool = False
    keeps_nulls: bool = False


@record
class Near:
    """A function whose answer for a row is that of some rows around it, whatever the others are.

    `before` and `behind` are the most rows that it reads before and behind a row; before is None
    if it reads all.
    """

    before: int | None
    behind: int
    answers: Callable[[Order, list[Any], list[Any], int, int], list[Any]]
    """Return the answers from a place up to another of rows with these sort keys and cells.

    The order is that of the partition, of which these rows are a part.
    """
    reads_keys: bool = True
    """False if the sort keys may be any list of that length."""
    text: Callable[[bool], str] | None = None
    """Return the answer of the row `at` as text of generated code, that reads `cells` and `size`.

    The argument is true if a cell is the only argument, not a tuple.
    """
    plain: tuple[frozenset[type], ...] | None = None
    """The classes of values, each alone the only ones around the row, for which the text is right;
    None for all. Then a cell must be the only argument.
    """


def never_late(order: Order, before: int, told: Told) -> Iterable[Span]:
    """Return no rows: no answer changes beyond the rows that see a change."""
    return ()


@record
class Function:
    """A function that has been made for a window."""

    seeing: Callable[[Order, int], Iterable[Span]]
    """Return the rows whose answer may change when the row at a place is inserted or deleted."""
    answers: Callable[[Order, int, int, Told], Iterator[Any]]
    """Return the answers for the rows from a place up to another."""
    late: Callable[[Order, int, Told], Iterable[Span]] = never_late
    """Return rows whose answer may change after all changes of a partition of an earlier size."""
    settles: Settles = "never"
    """The answers that, unchanged in one row, are unchanged in all later rows of a span."""
    is_backward: bool = False
    """True if answers are computed from the last row of a span to the first."""
    of_all: Callable[[Order], list[Any]] | None = None
    """Return the answers of all rows from the columns of the partition, if that is less work."""
    near: Near | None = None
    """The function of the rows around a row, if it reads no others."""

    def first_answers(self, order: Order, stop: int) -> list[Any]:
        """Return the answers for all rows up to a place, whatever they were before."""
        if self.of_all is not None and stop == order.entries.size:
            return self.of_all(order)
        found: list[Any] = []
        found += self.answers(order, 0, stop, found.__getitem__)
        if self.is_backward:
            found.reverse()
        return found

    def is_settled(self, answer: Any) -> bool:
        """Return True if `answer`, unchanged in a row, is unchanged in the later rows."""
        if self.settles == "if whole numbers":
            return answer.__class__ is int
        return self.settles == "always"


def canonical_answers(answers: list[Any]) -> list[Any]:
    """Return answers in which every NaN is one object."""
    if EXACT.issuperset(map(type, answers)):
        return answers
    return [canonical(answer) if answer != answer else answer for answer in answers]


def near_frame(frame: Frame) -> tuple[int, int] | None:
    """Return the most rows that a frame has before its row, and behind it; None if not counted."""
    if frame.kind != "rows" or UNBOUNDED in (frame.start, frame.end):
        return None
    start, end = edge_distance(frame.start), edge_distance(frame.end)
    return max(0, -start), max(0, end)


def with_near(
    function: Function,
    reach: tuple[int, int] | None,
    answers: Any = None,
    text: Callable[[bool], str] | None = None,
    plain: tuple[frozenset[type], ...] | None = None,
) -> Function:
    """Return a function with its answers for the rows around a row, if it reads `reach` of them.

    Without `answers` they are those of a partition of the rows around; with it, no keys are read.
    """
    if reach is None or sum(reach) > NEAR:
        return function
    if answers is None:
        return replace(function, near=Near(*reach, partial(_answer_near, function.answers)))
    near = Near(*reach, answers, reads_keys=False, text=text, plain=plain)
    return replace(function, near=near)


def slice_text(frame: Frame) -> str | None:
    """Return the cells of a frame by row numbers as text; None if its own row is not in it."""
    first, last = edge_distance(frame.start), edge_distance(frame.end)
    if first > 0 or last < 0:
        return None
    start = f"at - {-first} if at > {-first} else 0" if first else "at"
    return f"cells[{start}:at + {last + 1}]"


def aggregate_text(asked: Asked, form: str) -> Callable[[bool], str] | None:
    """Return the text of a function of a frame, from `form` with `{cells}`; None without one."""
    if near_frame(asked.frame) is None or asked.argument is None:
        return None
    cells = slice_text(asked.frame)
    return None if cells is None else lambda is_single: form.format(cells=cells)


def _answer_near(
    answers: Callable[[Order, int, int, Told], Iterator[Any]],
    order: Order,
    keys: list[Any],
    cells: list[Any],
    start: int,
    stop: int,
) -> list[Any]:
    """Return answers as those of a partition of the given rows only."""
    return list(answers(order.of_part(keys, cells), start, stop, _no_answer))


def _no_answer(place: int) -> None:
    return None


def in_frame(frame: Frame, order: Order, place: int) -> Iterable[Span]:
    """Return the rows that see a row, for a function that may settle.

    If a frame ends some rows away from its own row, a row inserted between these two moves the
    frame: another row enters or leaves it. An unchanged answer there does not imply unchanged
    answers behind, so each of these rows is a span.
    """
    start, stop = order.seeing(frame, place)
    if frame.is_whole or frame.kind == "range":
        return ((start, stop),)
    if frame.grows:
        near = order.rows_within_edge(frame, place, is_end=True)
        return (*_single_rows(near), (near[1], stop))
    if frame.shrinks:
        near = order.rows_within_edge(frame, place, is_end=False)
        return ((start, near[0]), *_single_rows(near))
    return ((start, stop),)


def _single_rows(span: Span) -> Iterable[Span]:
    """Return a span for each row of a span."""
    return ((place, place + 1) for place in range(*span))


def make_fold_of_frames(asked: Asked) -> Function:
    """Return a callable's function of frames, called again for each row that sees a change."""
    settles: Settles = "always" if asked.frame.is_whole else "never"
    made = Function(partial(in_frame, asked.frame), partial(_answer_calls, asked), settles=settles)
    return with_near(made, near_frame(asked.frame))


def _answer_calls(asked: Asked, order: Order, start: int, stop: int, told: Told) -> Iterator[Any]:
    """Yield the callable's answer for each row; it is called again only if the frame differs."""
    before, answer = None, None
    assert callable(asked.function)
    for place in range(start, stop):
        spans = order.parts(asked.frame, place)
        if spans != before:
            values = [v for span in spans for v in order.values(asked.argument, *span)]
            if not asked.keeps_nulls:
                values = [value for value in values if value is not None]
            answer, before = asked.function(values, *asked.more), spans
        yield answer
