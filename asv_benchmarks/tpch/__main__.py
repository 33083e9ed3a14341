"""Measure the queries beside their twins, and beside DuckDB from scratch where it is installed.

python -m asv_benchmarks.tpch [--scale 0.05] [--only q1 q3]
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from random import Random

from asv_benchmarks.shapes import SEED, Figures, measured
from asv_benchmarks.table import DOCS, machine, markdown, publish
from asv_benchmarks.tpch.duck import Duck
from asv_benchmarks.tpch.workloads import ORDERS_AT_1, READ, workload

SCALE, BATCH, REPEAT = 0.05, 1_000, 3
HEADER = (
    *("query", "one change, µs", "times the twin", "its p99, µs"),
    *("1,000 rows, ms", "times the twin", "load, times the twin"),
    *("DuckDB again, ms", "gain of one change", "of 1,000 rows"),
)


def main(arguments: list[str] | None = None) -> None:
    """Run the measurements that the command line selects."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.tpch")
    parser.add_argument("--scale", type=float, default=SCALE, help="1: 1,500,000 orders")
    parser.add_argument("--only", nargs="*", choices=READ, metavar="QUERY", help="not all of them")
    parser.add_argument("--write", action="store_true", help=f"put it into {DOCS.name}")
    options = parser.parse_args(arguments)
    rows = [line(name, options.scale) for name in options.only or READ]
    head = [f"Scale {options.scale:g}; medians. {machine()}", ""]
    if not find_spec("duckdb"):
        head += ["Not compared with DuckDB: it is not installed.", ""]
    publish("\n".join([*head, *markdown(HEADER, rows)]), "tpch", write=options.write)


def line(name: str, scale: float) -> list[str]:
    """Return a line of the table."""
    chosen = workload(name)
    rows = chosen.rows(int(ORDERS_AT_1 * scale), Random(SEED))
    again = None
    if find_spec("duckdb") and find_spec("pyarrow"):
        duck = Duck(name, rows)
        again = min(duck.seconds() for _ in range(REPEAT))
        del duck
    return cells(name, measured(chosen, rows, batch=BATCH), again)


def cells(name: str, figures: Figures, again: float | None) -> list[str]:
    """Return the figures as text; `again`: seconds of DuckDB."""
    change, batch = figures.change, figures.batch
    found = [name, f"{change.engine:.1f}", f"{change.ratio:.2f}", f"{figures.p99.engine:.1f}"]
    found += [
        f"{batch.engine * BATCH / 1e3:.2f}",
        f"{batch.ratio:.2f}",
        f"{figures.load.ratio:.2f}",
    ]
    if again is None:
        return [*found, "", "", ""]
    gains = again * 1e6 / change.engine, again * 1e6 / (batch.engine * BATCH)
    return [*found, f"{again * 1e3:.1f}", *(f"{gain:,.1f}" for gain in gains)]


if __name__ == "__main__":
    main()
