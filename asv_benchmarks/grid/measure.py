"""Measure a cell: the engine and the twin, one change, or a row of a batch, and a load."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random

from asv_benchmarks.grid.cell import Cell
from asv_benchmarks.grid.rows import Data
from asv_benchmarks.grid.sides import Twin, engine, equal
from asv_benchmarks.turns import (
    Beside,
    Ear,
    Times,
    beside,
    time_batches,
    time_changes,
    time_loads,
    unwatched,
)
from asv_benchmarks.workload import Side

SEED = 21
SIZE = 10_000
BATCHES = 5
LOADS = 3


@dataclass(frozen=True, slots=True)
class Figures:
    """Microseconds per changed row, and per loaded row."""

    change: Beside
    load: Beside


def measured(cell: Cell, size: int = SIZE, runs: int = 1) -> Figures:
    """Return the figures of a cell: medians. The sides are equal at the end of each run."""
    loads: Times = ([], [])
    changes: Times = ([], [])
    with unwatched():
        for run in range(runs):
            data = Data(cell, size, Random(SEED + run))
            sides = time_loads(partial(made, cell, data), data.rows, loads, LOADS)
            if cell.batch > 1:
                time_batches(sides, data.batches(), changes, turns=BATCHES)
            else:
                time_changes(sides, data.changes(), changes)
            check(sides)
    return Figures(beside(changes), beside(loads))


def made(cell: Cell, data: Data) -> list[Side]:
    """Return the engine and the twin, empty."""
    return [engine(cell, data, Ear()), Twin(cell, Ear())]


def check(sides: list[Side]) -> None:
    """Raise unless the sides are equal."""
    results = [side.result() for side in sides]
    if not equal(*results):
        raise AssertionError(f"the sides differ: {results[0]!r:.500} {results[1]!r:.500}")
