"""One measurement in a process of its own; prints its figures as JSON.

python -m asv_benchmarks.run load group_sum 1000000 engine
python -m asv_benchmarks.run change group_sum 1000000 10000
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from asv_benchmarks.measure import SEED, batch_times, latencies, script, side_of, sides
from asv_benchmarks.memory import measured
from asv_benchmarks.workload import load
from asv_benchmarks.workloads import workload

CHANGES = 2_000
BATCHES = 3
BATCH = 10_000
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
    loaded = side_of(chosen, side)
    taken = measured(lambda: load(loaded, rows))
    total = sum(map(len, rows))
    return {"rate": total / taken.seconds, "held": taken.held / total, "peak": taken.peak / total}


def change_figures(name: str, size: int, small: int) -> dict[str, Any]:
    """Both sides at two sizes, all in turns: one change; at the larger size also a batch."""
    chosen = workload(name)
    todo = script(chosen, size, changes=CHANGES, batches=BATCHES, delta=BATCH)
    few = script(chosen, small, changes=CHANGES, batches=0, delta=1)
    both = sides(chosen, todo)
    *large, small_engine, small_twin = latencies([*both, *sides(chosen, few)])
    batches = batch_times(both, todo.batches)
    if both[0].side.result() != both[1].side.result():
        raise AssertionError(f"{name}: the engine and the twin differ")
    return {
        side: {**asdict(latency), "small": at_small.typical, "batch": seconds}
        for side, latency, at_small, seconds in zip(
            ("engine", "twin"), large, (small_engine, small_twin), batches, strict=True
        )
    }


def main(arguments: list[str]) -> None:
    """Measure what the command line says."""
    match arguments:
        case ["load", name, size, side]:
            print(json.dumps(load_figures(name, int(size), side)))
        case ["change", name, size, small]:
            print(json.dumps(change_figures(name, int(size), int(small))))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
