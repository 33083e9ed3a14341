"""One measurement in a process of its own; prints its figures as JSON.

python -m asv_benchmarks.run load group_sum 1000000 as_written
python -m asv_benchmarks.run change group_sum 1000000 10000
python -m asv_benchmarks.run product 10000
python -m asv_benchmarks.run index 1000000 engine
python -m asv_benchmarks.run making
python -m asv_benchmarks.run views
python -m asv_benchmarks.run import
python -m asv_benchmarks.run recursion chain engine
python -m asv_benchmarks.run edits chain
python -m asv_benchmarks.run findbugs replay vespucci passing
python -m asv_benchmarks.run findbugs bases
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from asv_benchmarks.findbugs.measure import findbugs_figures
from asv_benchmarks.gain import index_figures, product_figures
from asv_benchmarks.making import making_figures
from asv_benchmarks.measure import (
    AS_WRITTEN,
    ENGINE,
    SEED,
    TWIN,
    Ear,
    batch_times,
    latencies,
    script,
    side_of,
    sides,
)
from asv_benchmarks.memory import measured
from asv_benchmarks.recursion.cases import recursive
from asv_benchmarks.recursion.measure import edit_figures, initial_figures
from asv_benchmarks.start import import_figures
from asv_benchmarks.views import view_figures
from asv_benchmarks.workload import load
from asv_benchmarks.workloads import workload

CHANGES = 2_000
BATCHES = 3
BATCH = 10_000
SIDES = (ENGINE, AS_WRITTEN, TWIN)
SMALL_SIDES = (ENGINE, TWIN)
ROOT = Path(__file__).resolve().parent.parent


def in_process(*arguments: object) -> dict[str, Any]:
    """Run a measurement in a new process; its figures."""
    command = [sys.executable, "-m", "asv_benchmarks.run", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def load_figures(name: str, size: int, side: str) -> dict[str, Any]:
    """Load one side: seconds, and bytes per row of the first table."""
    chosen = workload(name)
    rows = chosen.rows(size, Random(SEED))
    loaded = side_of(chosen, side, Ear())
    taken = measured(lambda: load(loaded, rows))
    total = sum(map(len, rows))
    return {"rate": total / taken.seconds, "held": taken.held / total, "peak": taken.peak / total}


def change_figures(name: str, size: int, small: int) -> dict[str, Any]:
    """All sides, and some on small tables, in turns: one change; on large tables also a batch."""
    chosen = workload(name)
    todo = script(chosen, size, changes=CHANGES, batches=BATCHES, delta=BATCH)
    few = script(chosen, small, changes=CHANGES, batches=0, delta=1)
    large, little = sides(chosen, todo, SIDES), sides(chosen, few, SMALL_SIDES)
    times = latencies([*large, *little])
    batches = batch_times(large, todo.batches)
    if any(one.side.result() != large[0].side.result() for one in large):
        raise AssertionError(f"{name}: the results of the sides differ")
    figures = {
        side: {**asdict(latency), "batch": seconds}
        for side, latency, seconds in zip(SIDES, times[: len(SIDES)], batches, strict=True)
    }
    for side, latency in zip(SMALL_SIDES, times[len(SIDES) :], strict=True):
        figures[side]["small"] = latency.typical
    return figures


def main(arguments: list[str]) -> None:
    """Run the measurements that the command line selects."""
    figures: Mapping[str, object]
    match arguments:
        case ["load", name, size, side]:
            figures = load_figures(name, int(size), side)
        case ["change", name, size, small]:
            figures = change_figures(name, int(size), int(small))
        case ["product", size]:
            figures = product_figures(int(size))
        case ["index", size, side]:
            figures = index_figures(int(size), side)
        case ["making"]:
            figures = making_figures()
        case ["views"]:
            figures = view_figures()
        case ["import"]:
            figures = import_figures()
        case ["recursion", name, side]:
            figures = initial_figures(recursive(name), side)
        case ["edits", name]:
            figures = edit_figures(recursive(name))
        case ["findbugs", what, *rest]:
            figures = findbugs_figures(what, *rest)
        case _:
            sys.exit(__doc__)
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1:])
