"""Two small sources, which are also what one's own may look like."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from optimizer.errors import PlanError
from reactive.borders.sources.batch import Batch, Rows, Token
from reactive.borders.sources.source import Source

T = TypeVar("T")


def from_rows(rows: Iterable[T], *, size: int = 1000, name: str = "rows") -> Source[T]:
    """A source of rows that are there already, in batches; it ends with them.

    Parameters
    ----------
    rows: if they are ingested again, they must come in the same order: the token is how many of
        them were taken.
    size: rows of a batch.

    Raises
    ------
    PlanError: `size` is less than 1.

    >>> from reactive import Database
    >>> db = Database()
    >>> numbers = db.table(int, name="numbers")
    >>> db.ingest(from_rows(range(2500)), numbers).wait()
    >>> len(numbers), db.version, db.tokens
    (2500, 3, {'rows': 2500})
    """
    if type(size) is not int or size < 1:
        raise PlanError(f"size={size!r} is no number of rows\n  give an integer from 1 on")
    return _FromRows(name, rows, size)


def poll(
    function: Callable[[], Iterable[T] | Mapping[type, Any]], *, every: float, name: str
) -> Source[T]:
    """A source that asks for all rows now and then; only what differs is a change.

    Parameters
    ----------
    function: gives all rows that there are now; also grouped by their classes.
    every: seconds from one answer to the next question.

    The rows are those of one origin, which has the name of the source.

    Raises
    ------
    PlanError: `every` is no number of seconds.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> answers = iter([["to", "be"], ["be", "or"]])
    >>> source = poll(lambda: next(answers), every=60, name="answers")
    >>> reading = db.ingest(source, words, start=False)
    >>> for batch in islice(source.batches(None, threading.Event()), 1):
    ...     reading.take(batch)
    >>> list(words)
    ['to', 'be']
    """
    if isinstance(every, bool) or not isinstance(every, int | float) or not every > 0:
        raise PlanError(f"every={every!r} is no interval\n  give the seconds between questions")
    return _Poll(name, function, every)


@dataclass(frozen=True, slots=True)
class _FromRows(Generic[T]):
    name: str
    rows: Iterable[T]
    size: int

    def batches(self, since: Token, stop: threading.Event) -> Iterator[Batch[T]]:
        taken = since or 0
        rows = islice(self.rows, taken, None)
        while some := list(islice(rows, self.size)):
            taken += len(some)
            yield Batch(some, token=taken)


@dataclass(frozen=True, slots=True)
class _Poll(Generic[T]):
    name: str
    function: Callable[[], Iterable[T] | Mapping[type, Any]]
    every: float

    def batches(self, since: Token, stop: threading.Event) -> Iterator[Batch[T]]:
        while not stop.is_set():
            made, found = time.time(), self.function()
            rows: Rows[T] = found if isinstance(found, Mapping) else list(found)
            yield Batch(origins={self.name: rows}, made=made)
            stop.wait(self.every)
