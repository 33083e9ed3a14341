"""The report: the engine beside its twin, and beside itself with plans as written, several runs.

python -m asv_benchmarks.report [--size 1000000] [--runs 5] [--only group_sum ...] [--write]
python -m asv_benchmarks.report --only recursion [--runs 5] [--write]
python -m asv_benchmarks.report --only verifying [--runs 5] [--write]
python -m asv_benchmarks.report --only ways [--runs 40] [--write]
python -m asv_benchmarks.report --only findbugs [--runs 5] [--write]
python -m asv_benchmarks.report --only offload [--size 1000000] [--runs 1] [--write]

Each measurement is a process of its own. In a run the sides follow one another, and the side
that goes first changes from run to run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from asv_benchmarks import sections, verifying, ways
from asv_benchmarks.figures import Measured, Run
from asv_benchmarks.findbugs.report import findbugs
from asv_benchmarks.measure import AS_WRITTEN, ENGINE
from asv_benchmarks.offload.measure import in_process as with_spark
from asv_benchmarks.offload.report import BEGIN as SPARK
from asv_benchmarks.offload.report import END as SPARK_END
from asv_benchmarks.offload.report import FIGURE, offload
from asv_benchmarks.recursion.cases import CASES
from asv_benchmarks.recursion.report import chosen, recursion
from asv_benchmarks.run import SIDES, in_process
from asv_benchmarks.table import (
    FINDBUGS,
    FINDBUGS_END,
    RECURSION,
    RECURSION_END,
    VERIFYING,
    VERIFYING_END,
    WAYS,
    WAYS_END,
    machine,
    put,
)
from asv_benchmarks.workload import Workload
from asv_benchmarks.workloads import REWRITTEN, WORKLOADS

T = TypeVar("T")
SMALL = 10_000
COSTS = "making"
RECURSIVE = "recursion"
"""All cases of recursion; they have sizes of their own."""
OF_VERIFYING = "verifying"
"""All queries that are verified; they have sizes of their own."""
OF_WAYS = "ways"
"""All special ways, on and off."""
OF_CLASS_FILES = "findbugs"
"""All measurements of the FindBugs example; they have sizes of their own."""
OF_SPARK = "offload"
"""All measurements of views on Spark; one run of them takes as long as all others."""
CASE_NAMES = [case.name for case in CASES]
NAMES = [*(w.name for w in (*WORKLOADS, *REWRITTEN)), COSTS]
DOCS = Path(__file__).resolve().parent / "figures.md"
RUNS = 5


def main() -> None:
    """Measure, print, and with --write put the tables into the docs."""
    options = _options()
    asked = options.only or [*NAMES, RECURSIVE, OF_VERIFYING, OF_WAYS, OF_CLASS_FILES, OF_SPARK]
    runs = options.runs or RUNS
    if set(asked) & set(NAMES):
        text = report(asked, size=options.size, runs=runs)
        print(text)
        if options.write:
            put(text, DOCS)
    cases = chosen(CASE_NAMES if RECURSIVE in asked else asked)
    if cases:
        text = recursion(cases, in_process, runs=runs)
        print(text)
        if options.write:
            put(text, DOCS, RECURSION, RECURSION_END)
    if OF_VERIFYING in asked:
        text = verifying.report(runs)
        print(text)
        if options.write:
            put(text, DOCS, VERIFYING, VERIFYING_END)
    if OF_WAYS in asked:
        text = ways.report(options.runs or ways.RUNS)
        print(text)
        if options.write:
            put(text, DOCS, WAYS, WAYS_END)
    if OF_CLASS_FILES in asked:
        text = findbugs(in_process, runs=runs)
        print(text)
        if options.write:
            put(text, DOCS, FINDBUGS, FINDBUGS_END)
    if OF_SPARK in asked:
        figure = DOCS.parent / "figures" / FIGURE if options.write else None
        text = offload(with_spark, size=options.size, runs=options.runs or 1, figure=figure)
        print(text)
        if options.write:
            put(text, DOCS, SPARK, SPARK_END)


def report(names: list[str], *, size: int, runs: int) -> str:
    """Return the requested sections."""
    small = min(SMALL, size)

    def measured(workload: Workload, run: Callable[[int], Run]) -> Measured:
        return Measured(workload.name, workload.title, _repeat(workload.name, runs, run))

    of_rewritten = {
        "product_where": partial(_product, small),
        "selective_where": partial(_index, size),
    }
    usual = [measured(w, partial(_run, w.name, size, small)) for w in WORKLOADS if w.name in names]
    rewritten = [measured(w, of_rewritten[w.name]) for w in REWRITTEN if w.name in names]
    found = [[f"Tables of {size:,} rows; medians of {runs} runs. {machine()}"]]
    if usual:
        found += [
            sections.targets(usual, size=size, small=small),
            sections.sides(usual),
            sections.growth(usual, size=size, small=small),
            sections.effect(usual),
        ]
    if rewritten:
        found.append(sections.gains(rewritten, size=size, small=small))
    if COSTS in names:
        found.append(sections.costs(_repeat(COSTS, runs, _once)))
    return "\n\n".join("\n".join(lines) for lines in found)


def _repeat(name: str, runs: int, run: Callable[[int], T]) -> list[T]:
    done: list[T] = []
    for number in range(runs):
        print(f"{name}: run {number + 1} of {runs}", file=sys.stderr, flush=True)
        done.append(run(number))
    return done


def _run(name: str, size: int, small: int, number: int) -> Run:
    loads = {side: in_process("load", name, size, side) for side in _order(SIDES, number)}
    changes = in_process("change", name, size, small)
    return {side: {**loads[side], **changes[side]} for side in SIDES}


def _product(size: int, number: int) -> Run:
    figures: Run = in_process("product", size)
    return figures


def _index(size: int, number: int) -> Run:
    order = _order((ENGINE, AS_WRITTEN), number)
    return {side: in_process("index", size, side) for side in order}


def _once(number: int) -> dict[str, float]:
    return {**in_process("making"), **in_process("views"), **in_process("import")}


def _order(sides: tuple[str, ...], number: int) -> tuple[str, ...]:
    first = number % len(sides)
    return sides[first:] + sides[:first]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="asv_benchmarks.report", description="Measure it all.")
    parser.add_argument("--size", type=int, default=1_000_000, help="rows of the first table")
    parser.add_argument("--runs", type=int, help=f"medians are over these; {RUNS}, of Spark 1")
    names = [*NAMES, RECURSIVE, *CASE_NAMES, OF_VERIFYING, OF_WAYS, OF_CLASS_FILES, OF_SPARK]
    parser.add_argument("--only", nargs="*", choices=names, metavar="NAME", help="not all of them")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {DOCS.name}")
    return parser.parse_args()


if __name__ == "__main__":
    main()
