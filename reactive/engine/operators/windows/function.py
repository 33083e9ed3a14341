"""Window functions: their answers, and the rows whose answers a changed row affects.

Spans are places in the order of that moment: with an inserted row, and with a row being deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Literal, TypeAlias

from optimizer.record import record
from reactive.engine.operators.windows.frames import Frame, Order, Span

Told = Callable[[int], Any]
"""The earlier answer of a function for the row at a place."""
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
    return Function(partial(in_frame, asked.frame), partial(_answer_calls, asked), settles=settles)


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
