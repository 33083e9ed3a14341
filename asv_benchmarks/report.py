"""The report: every workload, the engine beside its twin, several runs.

python -m asv_benchmarks.report [--size 1000000] [--runs 5] [--only group_sum ...] [--write]

Each measurement is a process of its own. In a run the two sides follow one another, and the side
that goes first changes from run to run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from asv_benchmarks.figures import Measured, Run
from asv_benchmarks.run import in_process
from asv_benchmarks.table import put, report
from asv_benchmarks.workload import Workload
from asv_benchmarks.workloads import WORKLOADS

SMALL = 10_000
DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
SIDES = ("engine", "twin")


def measure(workload: Workload, *, size: int, runs: int) -> Measured:
    """All figures of a workload."""
    done: list[Run] = []
    for number in range(runs):
        _say(f"{workload.name}: run {number + 1} of {runs}")
        done.append(_run(workload.name, size, number))
    return Measured(workload.title, done)


def main() -> None:
    """Measure, print, and with --write put the tables into the docs."""
    options = _options()
    chosen = [w for w in WORKLOADS if not options.only or w.name in options.only]
    measured = [measure(w, size=options.size, runs=options.runs) for w in chosen]
    text = report(measured, size=options.size, small=SMALL, runs=options.runs)
    print(text)
    if options.write:
        put(text, DOCS)


def _run(name: str, size: int, number: int) -> Run:
    loads = {side: in_process("load", name, size, side) for side in _order(number)}
    changes = in_process("change", name, size, SMALL)
    return {side: {**loads[side], **changes[side]} for side in SIDES}


def _order(number: int) -> tuple[str, ...]:
    return SIDES if number % 2 == 0 else SIDES[::-1]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="asv_benchmarks.report", description="Measure it all.")
    parser.add_argument("--size", type=int, default=1_000_000, help="rows of the first table")
    parser.add_argument("--runs", type=int, default=5, help="medians are taken over these")
    parser.add_argument("--only", nargs="*", default=(), metavar="WORKLOAD", help="not all of them")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {DOCS.name}")
    return parser.parse_args()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
