"""Time two sides in turns, in one process: processor time, the garbage collected between.

Each side gets the same work, and the order alternates, so that a noisy moment hits both.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from statistics import median
from time import process_time
from typing import Any, Protocol, TypeVar

from asv_benchmarks.workload import Change, OldNew, Row, Rows, Side, TableDelta, load
from reactive import Delta

S = TypeVar("S")
Times = tuple[list[float], list[float]]
"""Seconds of the engine and of the twin."""
Batch = tuple[TableDelta, ...]
WARM_UP, CHUNK, CHUNKS = 200, 40, 9
TURN = 1_000
"""Changed rows of batches that are timed together."""


class Ear:
    """A listener that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def delta(self, delta: Delta[Any]) -> None:
        self.calls += 1

    def change(self, old: Row | None, new: Row | None) -> None:
        self.calls += 1

    def changes(self, changes: list[OldNew]) -> None:
        self.calls += 1


@dataclass(frozen=True, slots=True)
class Beside:
    """The microseconds of something, of the engine and of the twin, and their ratio."""

    engine: float
    twin: float
    ratio: float

    @classmethod
    def of(cls, engine: float, twin: float) -> Beside:
        """Return the figures with their ratio."""
        return cls(engine, twin, engine / twin)


def beside(times: Times) -> Beside:
    """Return the medians, and the median ratio of the turns, which have equal loads."""
    engine, twin = (median(seconds) * 1e6 for seconds in times)
    return Beside(engine, twin, median(a / b for a, b in zip(*times, strict=True)))


@contextmanager
def unwatched() -> Iterator[None]:
    """Let collections of garbage in this block ignore earlier objects.

    If other code has frozen objects before, all of them stay frozen afterwards.
    """
    had_frozen = gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not had_frozen:
            gc.unfreeze()


def time_loads(make: Callable[[], list[Side]], rows: Rows, times: Times, loads: int) -> list[Side]:
    """Fill new sides several times; the last ones."""
    count = sum(map(len, rows))
    for _ in range(loads):
        sides = make()
        in_turns(sides, times, partial(_load, rows), count)
    return sides


def time_changes(
    sides: Sequence[Side],
    changes: Iterator[Change],
    times: Times,
    *,
    chunks: int = CHUNKS,
    chunk: int = CHUNK,
    warm_up: int = WARM_UP,
) -> None:
    """Seconds of one change, by chunks of them; the first ones are to warm up."""
    in_turns(sides, ([], []), partial(_apply, list(islice(changes, warm_up))))
    for _ in range(chunks):
        some = list(islice(changes, chunk))
        in_turns(sides, times, partial(_apply, some), len(some))


def time_batches(
    sides: Sequence[Side], batches: Iterator[Batch], times: Times, *, turns: int
) -> None:
    """Time batches, in seconds per changed row; the first ones warm up.

    A turn has at least `TURN` rows: a small batch alone would be timed cold, right after the
    collection of garbage.
    """
    for number in range(1 + turns):
        some = list(_of_rows(batches, TURN))
        rows = sum(map(_changed, some))
        in_turns(sides, times if number else ([], []), partial(_each, some), rows)


def _of_rows(batches: Iterator[Batch], least: int) -> Iterator[Batch]:
    """Yield batches that change at least `least` rows."""
    changed = 0
    while changed < least:
        batch = next(batches)
        changed += _changed(batch)
        yield batch


def _changed(batch: Batch) -> int:
    return sum(len(delta.added) + len(delta.removed) for delta in batch)


def in_turns(sides: Sequence[S], times: Times, do: Callable[[S], None], rows: int = 1) -> None:
    """Time it on each side, in turn the one and the other first."""
    order = list(zip(sides, times, strict=True))
    for side, seconds in order if len(times[0]) % 2 else reversed(order):
        gc.collect()
        start = process_time()
        do(side)
        seconds.append((process_time() - start) / rows)


def _load(rows: Rows, side: Side) -> None:
    load(side, rows)


def _each(batches: list[Batch], side: Side) -> None:
    for batch in batches:
        side.batch(*batch)


def _apply(changes: list[Change], side: Side) -> None:
    verbs = side.verbs()
    for table, row, weight in changes:
        verbs[table][weight < 0](row)


class TwoSides(Protocol):
    """The engine and a twin over equal rows, and the changes that both get."""

    batch: int
    """Rows that one of the changes has."""

    def changes(self, count: int) -> list[Any]: ...
    def engine(self, changes: Sequence[Any]) -> None: ...
    def by_hand(self, changes: Sequence[Any]) -> None: ...
    def check(self) -> None: ...


def times(sides: TwoSides, turns: int, chunk: int) -> Times:
    """Return the seconds of a change of both sides, in turns of about `chunk` changes."""
    both = [sides.engine, sides.by_hand]
    found: Times = ([], [])
    with unwatched():
        for turn in range(1 + turns):
            changes = sides.changes(chunk)
            do = partial(_change, changes)
            in_turns(both, found if turn else ([], []), do, len(changes) * sides.batch)
    sides.check()
    return found


def _change(changes: Sequence[Any], side: Callable[[Sequence[Any]], None]) -> None:
    side(changes)
