"""What a function of windows is: of which rows it says something else when one comes or goes.

Spans are of places in the order as it is then: with a row that has come, and with one that goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias

from optimizer.record import record
from reactive.languages.sql.partitions.frames import Frame, Order, Span

Told = Callable[[int], Any]
"""What a function has said before of the row at a place."""
Settles: TypeAlias = "Literal['never', 'always', 'if whole numbers']"


@record
class Asked:
    """One function: its name or what it calls with the values of a frame, the place of its argument
    among those of a row, and more that is constant."""

    function: str | Callable[..., Any]
    argument: int | None
    frame: Frame
    more: tuple[Any, ...] = ()
    ignores_nulls: bool = False
    keeps_nulls: bool = False


def never_late(order: Order, before: int, told: Told) -> Iterable[Span]:
    return ()


@record
class Function:
    """A function that has been made for a window."""

    seeing: Callable[[Order, int], Iterable[Span]]
    """Of which other rows it may say something else, as the row at a place comes or goes."""
    answers: Callable[[Order, int, int, Told], Iterator[Any]]
    """What it says of the rows from a place up to another."""
    late: Callable[[Order, int, Told], Iterable[Span]] = never_late
    """The same after all changes, of a partition that had a size before."""
    settles: Settles = "never"
    """Whether, where it says of a row what it said before, it does so of all behind in a span."""
    is_backward: bool = False
    """Whether answers come from the last row of a span to the first."""

    def is_settled(self, answer: Any) -> bool:
        if self.settles == "if whole numbers":
            return answer.__class__ is int
        return self.settles == "always"


def values_of(order: Order, argument: int | None, start: int, stop: int) -> list[Any]:
    """The argument of some rows."""
    if argument is None:
        return [1] * (stop - start)
    return [row[3][argument] for row in order.entries.rows(start, stop)]


def in_frame(frame: Frame, order: Order, place: int) -> Iterable[Span]:
    """The rows that see a row, for a function that may settle.

    Where a frame ends some rows from its own, a row that comes between these two moves it: another
    row enters it or leaves it. So what is said there is no reason for what is said behind: each of
    these rows is a span.
    """
    start, stop = order.seeing(frame, place)
    if frame.is_whole or frame.kind == "range":
        return ((start, stop),)
    if frame.grows:
        near = order.moved(frame, place, is_end=True)
        return (*_each(near), (near[1], stop))
    if frame.shrinks:
        near = order.moved(frame, place, is_end=False)
        return ((start, near[0]), *_each(near))
    return ((start, stop),)


def _each(span: Span) -> Iterable[Span]:
    return ((place, place + 1) for place in range(*span))
