"""The end of `make bench`: the ratios to the twins, beside those of the last run.

    ratio > 1.3 x base             slower: reported, and checked again in the next run
    again in the next run          a regression: reported, and the command fails

The base of a figure is its ratio in the last run, or in the one before if that is greater, where
it was not slower. So a noisy moment passes, and a regression fails every run until it is mended, or
`--accept` takes the ratios of the last run as the bases. Ratios are compared, not seconds, which
change with the machine.

State: `.asv/ratios.json`, the ratios and the bases of the last runs, newest last.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from math import inf
from pathlib import Path

from asv_benchmarks.cliffs.cliff import measured as beside_neighbour
from asv_benchmarks.cliffs.rows import WATCHED as CLIFFS
from asv_benchmarks.cliffs.rows import cliff_of
from asv_benchmarks.grid.cells import WATCHED, all_cells
from asv_benchmarks.grid.measure import measured
from asv_benchmarks.measure import ENGINE, TWIN, batch_times, latencies, script, sides
from asv_benchmarks.table import markdown
from asv_benchmarks.workload import Workload
from asv_benchmarks.workloads import WORKLOADS

MOST = 1.3
KEPT = 50
FILE = Path(__file__).parent / ".asv" / "ratios.json"
SIZE, CHANGES, BATCH, BATCHES, RUNS = 10_000, 1_000, 1_000, 11, 3


@dataclass(frozen=True, slots=True)
class Run:
    """The ratios of a run, and the bases of the slower ones."""

    date: str
    ratios: dict[str, float]
    slower: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Slower:
    """A figure beyond `MOST` times its base; `again`: as in the run before."""

    name: str
    base: float
    ratio: float
    again: bool


def compared(runs: Sequence[Run], ratios: Mapping[str, float]) -> list[Slower]:
    """Return the figures that are slower than in the last run; without one, none."""
    found = []
    for name, ratio in ratios.items():
        again = bool(runs) and name in runs[-1].slower
        base = runs[-1].slower[name] if again else _base(runs, name)
        if ratio > MOST * base:
            found.append(Slower(name, base, ratio, again))
    return sorted(found, key=lambda each: -each.ratio / each.base)


def _base(runs: Sequence[Run], name: str) -> float:
    """Return the greater of the last two, lest a lucky run is the measure; infinity without any."""
    usual = [run.ratios[name] for run in runs[-2:] if name in run.ratios and name not in run.slower]
    return max(usual, default=inf)


def kept(file: Path) -> list[Run]:
    """Return the last runs, the oldest first."""
    return [Run(**run) for run in json.loads(file.read_text())] if file.exists() else []


def keep(file: Path, runs: Iterable[Run]) -> None:
    """Write them down."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps([asdict(run) for run in [*runs][-KEPT:]], indent=1))


def judged(file: Path, ratios: dict[str, float], now: str) -> list[Slower]:
    """Compare with the last run, and write this one down."""
    runs = kept(file)
    found = compared(runs, ratios)
    slower = {each.name: each.base for each in found}
    keep(file, [*runs, Run(now, ratios, slower)])
    return found


def accept(file: Path) -> None:
    """Make the figures of the last run the bases."""
    *before, last = kept(file)
    keep(file, [*before, Run(last.date, last.ratios)])


def text(found: list[Slower]) -> str:
    """Return the slower figures as a table."""
    if not found:
        return f"No ratio to a twin is more than {MOST:g} times that of the last run."
    rows = [
        [
            *(each.name, f"{each.base:.2f}", f"{each.ratio:.2f}"),
            *(f"{each.ratio / each.base:.2f}", "**regression**" if each.again else "once"),
        ]
        for each in found
    ]
    return "\n".join(markdown(["times the twin", "before", "now", "slower", "seen"], rows))


def current() -> dict[str, float]:
    """The ratios to twins or neighbours: of workloads, of cells of the grid, and of cliffs."""
    ratios: dict[str, float] = {}
    for workload in WORKLOADS:
        ratios |= workload_ratios(workload, SIZE)
    for name in WATCHED:
        figures = measured(all_cells()[name], SIZE, RUNS)
        ratios[f"{name}: a change"] = figures.change.ratio
        ratios[f"{name}: a loaded row"] = figures.load.ratio
    for name in CLIFFS:
        ratios[name] = beside_neighbour(cliff_of(name)).ratio
    return ratios


def workload_ratios(workload: Workload, size: int) -> dict[str, float]:
    """Return the ratios of one change and of a batch."""
    todo = script(workload, size, changes=CHANGES, batches=BATCHES, delta=BATCH)
    made = sides(workload, todo, (ENGINE, TWIN))
    ours, its = latencies(made)
    batch, of_twin = batch_times(made, todo.batches)
    return {
        f"{workload.name}: one change": ours.typical / its.typical,
        f"{workload.name}: a batch": batch / of_twin,
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure, compare, and fail if something was slower in two runs running."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.regressions")
    parser.add_argument("--file", type=Path, default=FILE, help="where the ratios are kept")
    parser.add_argument("--accept", action="store_true", help="take the last ratios as the bases")
    options = parser.parse_args(arguments)
    if options.accept:
        accept(options.file)
        return
    found = judged(options.file, current(), datetime.now().isoformat(timespec="seconds"))
    print(text(found))
    again = [each.name for each in found if each.again]
    if again:
        sys.exit(f"slower in two runs running: {', '.join(again)}")


if __name__ == "__main__":
    main()
