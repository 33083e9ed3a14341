"""Spans of places that move with rows that are inserted or deleted before them.

    places  0 1 2 [3 4] 5 6        (4, 2) from the end of 7 rows

A span is stored by the number of rows from its start, and from its end, to the end of the
partition. An insertion or deletion before the span leaves these numbers as they are, so that a
batch whose rows are applied from the last place to the first moves no span.

Cost: O(log spans) to add one, and O(1) for each span that starts before an inserted or deleted row.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter

from reactive.engine.operators.windows.frames import Span


class Spans:
    """Spans of a partition whose size is given with every change.

    >>> spans = Spans()
    >>> spans.add([(3, 5)], 7)
    >>> spans.insert(4, 7)
    >>> spans.insert(0, 8)
    >>> spans.delete(6, 9)
    >>> spans.all(8)
    [(5, 6), (4, 6), (0, 1)]
    """

    __slots__ = ("_from_end",)

    def __init__(self) -> None:
        self._from_end: list[Span] = []
        """Sorted: the last span starts first in the partition."""

    def add(self, spans: Iterable[Span], size: int) -> None:
        """Add spans that are not empty, of a partition of this size."""
        for start, stop in spans:
            if start < stop:
                insort(self._from_end, (size - start, size - stop))

    def insert(self, place: int, size: int) -> None:
        """Move the spans for a row that is inserted at a place of a partition of this size.

        The row itself is added.
        """
        spans, border = self._from_end, size - place
        for number in range(len(spans) - 1, -1, -1):
            start, stop = spans[number]
            if start <= border:
                break
            spans[number] = (start + 1, stop + (stop >= border))
        insort(spans, (border + 1, border))

    def delete(self, place: int, size: int) -> None:
        """Move the spans for the row at a place that is deleted of a partition of this size."""
        spans, border = self._from_end, size - place
        for number in range(len(spans) - 1, -1, -1):
            start, stop = spans[number]
            if start < border:
                break
            spans[number] = (start - 1, stop - (stop >= border))

    def all(self, size: int) -> list[Span]:
        """Return the spans, of a partition of this size now."""
        return [(size - start, size - stop) for start, stop in self._from_end]


def merge_spans(spans: Iterable[Span]) -> Iterator[Span]:
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


def ask_forward(spans: Iterable[Span], ask: Callable[[int, int], tuple[int, bool]]) -> None:
    """Evaluate spans in order; behind a row that settles, the rest of its spans is skipped."""
    last, is_settled = -1, False
    for start, stop in sorted(spans):
        if start > last:
            last, is_settled = ask(start, stop)
        elif not is_settled and stop > last + 1:
            last, is_settled = ask(last + 1, stop)


def ask_backward(spans: Iterable[Span], ask: Callable[[int, int], tuple[int, bool]]) -> None:
    """Evaluate spans from the last row back; before one that settles, the rest is skipped."""
    first, is_settled = -1, False
    for start, stop in sorted(spans, key=itemgetter(1), reverse=True):
        if stop <= first or first < 0:
            first, is_settled = ask(start, stop)
        elif not is_settled and start < first:
            first, is_settled = ask(start, first)
