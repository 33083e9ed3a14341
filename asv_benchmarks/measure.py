"""Time the sides of a workload: one change until a listener has it, and batches.

All sides get the same changes, in turn a chunk each, so that a noisy moment hits all.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from time import perf_counter, perf_counter_ns
from typing import Any

from asv_benchmarks.engine import Engine
from asv_benchmarks.workload import (
    Change,
    Listener,
    OldNew,
    Row,
    Rows,
    Side,
    TableDelta,
    Workload,
    batch_of,
    load,
)
from reactive import Delta

ENGINE, AS_WRITTEN, TWIN = "engine", "as_written", "twin"
"""The sides: the engine, the engine with `optimize=False`, and the program written by hand."""

SEED = 20
CHUNK = 100
WARM_UP = 200


class Ear:
    """A listener that notes when it was called."""

    __slots__ = ("heard_at",)

    def __init__(self) -> None:
        self.heard_at = 0

    def delta(self, delta: Delta[Any]) -> None:
        self.heard_at = perf_counter_ns()

    def change(self, old: Row | None, new: Row | None) -> None:
        self.heard_at = perf_counter_ns()

    def changes(self, changes: list[OldNew]) -> None:
        self.heard_at = perf_counter_ns()


@dataclass(frozen=True, slots=True)
class Latency:
    """Nanoseconds of one change. `typical`: mean of the medians of inserts and of deletes.

    Inserts and deletes differ; the median of both together would fall between the two.
    """

    typical: float
    p99: float


@dataclass(frozen=True, slots=True)
class Script:
    """The steps of a measurement: rows to load, then changes, then batches."""

    rows: Rows
    changes: list[Change]
    batches: list[tuple[TableDelta, ...]]


def script(workload: Workload, size: int, *, changes: int, batches: int, delta: int) -> Script:
    """Make everything beforehand. The first changes and the first batch are to warm up."""
    random = Random(SEED)
    rows = workload.rows(size, random)
    stream = workload.stream(rows, random)
    return Script(
        rows,
        [stream.visible() for _ in range(WARM_UP + changes)],
        [batch_of(stream, delta, len(rows)) for _ in range(1 + batches)],
    )


@dataclass(frozen=True, slots=True)
class Timed:
    """A side, its listener, and the changes that it is to be timed with."""

    side: Side
    ear: Ear
    changes: list[Change]


def sides(workload: Workload, todo: Script, names: Sequence[str] = (ENGINE, TWIN)) -> list[Timed]:
    """Sides of these names, loaded."""
    made = [timed(workload, todo, name) for name in names]
    for one in made:
        load(one.side, todo.rows)
    return made


def timed(workload: Workload, todo: Script, name: str) -> Timed:
    """Return the empty side of a name, its ear and its changes."""
    ear = Ear()
    return Timed(side_of(workload, name, ear), ear, todo.changes)


def side_of(workload: Workload, name: str, listener: Listener) -> Side:
    """Return the empty side of a name."""
    if name == TWIN:
        return workload.twin(listener)
    return Engine(workload, listener, optimize=name == ENGINE)


def latencies(timed: Sequence[Timed]) -> list[Latency]:
    """Return the latency of each side. All have equally many changes."""
    times: list[list[int]] = [[] for _ in timed]
    for start in range(0, len(timed[0].changes), CHUNK):
        for one, samples in zip(timed, times, strict=True):
            samples += _times(one.side, one.ear, one.changes[start : start + CHUNK])
    return [
        _latency(t[WARM_UP:], one.changes[WARM_UP:]) for t, one in zip(times, timed, strict=True)
    ]


def batch_times(timed: Sequence[Timed], batches: Sequence[tuple[TableDelta, ...]]) -> list[float]:
    """Return the median seconds of a batch, of each side, without the first one."""
    times: list[list[float]] = [[] for _ in timed]
    for batch in batches:
        for one, seconds in zip(timed, times, strict=True):
            gc.collect()  # the garbage of another side must not count here
            start = perf_counter()
            one.side.batch(*batch)
            seconds.append(perf_counter() - start)
    return [median(seconds[1:]) for seconds in times]


def _times(side: Side, ear: Ear, changes: Sequence[Change]) -> list[int]:
    verbs = side.verbs()
    times: list[int] = []
    for table, row, weight in changes:
        verb = verbs[table][weight < 0]
        start = perf_counter_ns()
        verb(row)
        times.append(ear.heard_at - start)
    if min(times) < 0:
        raise AssertionError(f"{type(side).__name__} did not tell its listener of every change")
    return times


def _latency(times: Sequence[int], changes: Sequence[Change]) -> Latency:
    of_kind: dict[int, list[int]] = {1: [], -1: []}
    for time, change in zip(times, changes, strict=True):
        of_kind[change.weight].append(time)
    typical = (median(of_kind[1]) + median(of_kind[-1])) / 2
    return Latency(typical, sorted(times)[len(times) * 99 // 100])
