"""Figures of workloads of known shapes beside their twins: a change, its p99, a batch, a load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random
from time import process_time_ns

from asv_benchmarks.engine import Engine
from asv_benchmarks.turns import (
    CHUNK,
    Batch,
    Beside,
    Ear,
    Times,
    beside,
    time_batches,
    time_changes,
    time_loads,
    unwatched,
)
from asv_benchmarks.workload import Change, Result, Rows, Side, Stream, Workload, batch_of

SEED = 22
BATCH, BATCHES = 1_000, 7
SINGLE = 1_000
LOADS = 1


@dataclass(frozen=True, slots=True)
class Figures:
    """Microseconds of one change, of a row of a batch and of a loaded row; the p99 of a change."""

    change: Beside
    p99: Beside
    batch: Beside
    load: Beside


def measured(
    workload: Workload, rows: Rows, *, batch: int = BATCH, single: int = SINGLE
) -> Figures:
    """Return the figures over these rows. The sides are equal at the end."""
    loads: Times = ([], [])
    changed: Times = ([], [])
    batches: Times = ([], [])
    stream = workload.stream(rows, Random(SEED))
    with unwatched():
        sides = time_loads(lambda: made(workload), rows, loads, LOADS)
        time_changes(sides, _visible(stream), changed)
        p99 = slowest(sides, list(islice(_visible(stream), single)))
        time_batches(sides, _batches(stream, batch, len(rows)), batches, turns=BATCHES)
        check(sides)
    return Figures(beside(changed), p99, beside(batches), beside(loads))


def made(workload: Workload) -> list[Side]:
    """Return the engine and the twin, empty."""
    return [Engine(workload, Ear()), workload.twin(Ear())]


def check(sides: list[Side]) -> None:
    """Raise unless the sides are equal."""
    ours, its = (side.result() for side in sides)
    if ours != its:
        raise AssertionError(f"the sides differ: {_some(ours)} {_some(its)}")


def slowest(sides: list[Side], changes: list[Change]) -> Beside:
    """Return the p99 of one change of each side, which take turns."""
    times: list[list[int]] = [[], []]
    for start in range(0, len(changes), CHUNK):
        for side, taken in zip(sides, times, strict=True):
            verbs = side.verbs()
            for table, row, weight in changes[start : start + CHUNK]:
                begun = process_time_ns()
                verbs[table][weight < 0](row)
                taken.append(process_time_ns() - begun)
    return Beside.of(*(sorted(taken)[len(taken) * 99 // 100] / 1e3 for taken in times))


def _visible(stream: Stream) -> Iterator[Change]:
    while True:
        yield stream.visible()


def _batches(stream: Stream, size: int, tables: int) -> Iterator[Batch]:
    while True:
        yield batch_of(stream, size, tables)


def _some(result: Result) -> str:
    return f"{result!r:.300}"
