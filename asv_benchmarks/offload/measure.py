"""The measurements by name, each in a process of its own, which has a JVM of its own.

python -m asv_benchmarks.offload.measure flush group 1000000 20
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from asv_benchmarks.offload.cases import CASES, FLUSHED, HANDED_OVER, PUBLISHED, SIZES, Case
from asv_benchmarks.offload.flush import flush_figures, growth_figures, long_figures
from asv_benchmarks.offload.handover import handover_figures
from asv_benchmarks.offload.predicate import predicate_figures
from asv_benchmarks.offload.published import published_figures
from asv_benchmarks.offload.scratch import scratch_figures

TIMES = 5
"""The rows of a large table over those of a small one."""
FLUSH, GROWTH, LONG, HANDOVER = "flush", "growth", "long", "handover"
SCRATCH, INCREMENTS, PREDICATE = "scratch", "increments", "predicate"
OF: Mapping[str, tuple[Case, ...]] = {
    FLUSH: FLUSHED,
    GROWTH: FLUSHED,
    LONG: FLUSHED,
    HANDOVER: HANDED_OVER,
    SCRATCH: FLUSHED,
    INCREMENTS: PUBLISHED,
}
"""The cases of each measurement that has cases."""
NAMES = (*OF, PREDICATE)
InProcess = Callable[..., dict[str, Any]]
"""Function that runs a measurement in a new process, and returns its figures."""
ROOT = Path(__file__).resolve().parent.parent.parent


def in_process(*arguments: object) -> dict[str, Any]:
    """Run a measurement in a new process; its figures."""
    command = [sys.executable, "-m", "asv_benchmarks.offload.measure", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def offload_figures(what: str, *arguments: str) -> Mapping[str, Any]:
    """Run a measurement.

    Raises
    ------
    ValueError: there is none of that name.
    """
    match what, *arguments:
        case "flush", name, size, rounds, *changed:
            sizes = [*map(int, changed)] or SIZES
            return flush_figures(CASES[name], int(size), int(rounds), changed=sizes)
        case "growth", name, size, rounds:
            return growth_figures(CASES[name], int(size), TIMES, int(rounds))
        case "long", name, size, flushes:
            return long_figures(CASES[name], int(size), int(flushes))
        case "handover", name, size:
            return handover_figures(CASES[name], int(size))
        case "scratch", name, size, rounds:
            return scratch_figures(CASES[name], int(size), int(rounds))
        case "increments", name, size, count:
            return published_figures(CASES[name], int(size), int(count))
        case "predicate", size, rounds:
            return predicate_figures(int(size), int(rounds))
    raise ValueError(f"no measurement: {what} {' '.join(arguments)}")


if __name__ == "__main__":
    print(json.dumps(offload_figures(*sys.argv[1:])))
