"""The time of `verify()`, beside `add_all` of the same rows with an existing view.

python -m asv_benchmarks.verifying [--rows 1000 10000 100000] [--only join "order_by" ...]
"""

from __future__ import annotations

import argparse
import gc
from random import Random
from statistics import median
from time import process_time
from typing import Any

from asv_benchmarks.measure import SEED
from asv_benchmarks.table import machine, markdown, verdict
from asv_benchmarks.verified import QUERIES, Query
from reactive import Database

SIZES = (1_000, 10_000, 100_000)
MOST = 10.0
"""Limit in multiples of the load, at any size."""
RUNS = 3
Seconds = tuple[float, float]
"""The CPU seconds of the load, and of verifying."""


def seconds(query: Query, size: int, runs: int = RUNS) -> Seconds:
    """Return the medians of some runs, each in a database of its own."""
    loads, verifies = zip(*[_run(query, size) for _ in range(runs)], strict=True)
    return median(loads), median(verifies)


def _run(query: Query, size: int) -> Seconds:
    db = Database()
    rows = query.rows(max(1, size // query.divisor), Random(SEED))
    tables: list[Any] = [db.table(kind, name=f"t{n}") for n, kind in enumerate(query.kinds)]
    view = query.of(*tables).materialize()
    gc.collect()
    start = process_time()
    for table, some in zip(tables, rows, strict=True):
        table.add_all(some)
    loaded = process_time()
    view.verify()
    return loaded - start, process_time() - loaded


def table(queries: list[Query], sizes: list[int], runs: int = RUNS) -> list[str]:
    """Milliseconds of both at the largest size, and their ratio at each."""
    header = ["query", "load, ms", "verify, ms", *(f"times at {size:,}" for size in sizes)]
    lines = []
    for query in queries:
        found = [seconds(query, size, runs) for size in sizes]
        ratios = [verify / load for load, verify in found]
        load, verify = found[-1]
        shown = [f"{ratio:.1f}" for ratio in ratios]
        is_met = verdict(max(ratios) <= MOST)
        lines.append([query.name, f"{load * 1e3:,.1f}", f"{verify * 1e3:,.1f}", *shown, is_met])
    return markdown([*header, f"at most {MOST:g}"], lines)


def report(runs: int = RUNS) -> str:
    """Return the section of the report."""
    lines = [
        "### Verifying",
        "",
        "`view.verify()` beside `add_all` of the same rows with the view there, in processor time;",
        f"medians of {runs} runs. {machine()}",
        "",
        *table(list(QUERIES), list(SIZES), runs),
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.verifying", description="Verifying.")
    parser.add_argument("--rows", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", nargs="*", choices=[query.name for query in QUERIES])
    options = parser.parse_args()
    chosen = [query for query in QUERIES if not options.only or query.name in options.only]
    print("\n".join([*table(chosen, options.rows, options.runs), "", machine()]))


if __name__ == "__main__":
    main()
