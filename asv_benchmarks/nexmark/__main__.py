"""Measure the queries beside their twins.

python -m asv_benchmarks.nexmark [--size 100000] [--only q4 q7]
"""

from __future__ import annotations

import argparse
from random import Random

from asv_benchmarks.nexmark.workloads import READ, workload
from asv_benchmarks.shapes import BATCH, SEED, Figures, measured
from asv_benchmarks.table import DOCS, machine, markdown, publish

SIZE = 100_000
HEADER = (
    *("query", "one change, µs", "times the twin", "its p99, µs", "times the twin's"),
    *("1,000 rows, ms", "times the twin", "load, times the twin"),
)


def main(arguments: list[str] | None = None) -> None:
    """Run the measurements that the command line selects."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.nexmark")
    parser.add_argument("--size", type=int, default=SIZE, help="people, auctions and bids")
    parser.add_argument("--only", nargs="*", choices=READ, metavar="QUERY", help="not all of them")
    parser.add_argument("--write", action="store_true", help=f"put it into {DOCS.name}")
    options = parser.parse_args(arguments)
    rows = []
    for name in options.only or READ:
        chosen = workload(name)
        rows.append(cells(name, measured(chosen, chosen.rows(options.size, Random(SEED)))))
    head = f"{options.size:,} rows; medians. {machine()}"
    publish("\n".join([head, "", *markdown(HEADER, rows)]), "nexmark", write=options.write)


def cells(name: str, figures: Figures) -> list[str]:
    """Return the figures as text."""
    found = [name]
    for beside in (figures.change, figures.p99):
        found += [f"{beside.engine:.1f}", f"{beside.ratio:.2f}"]
    batch = figures.batch
    found += [f"{batch.engine * BATCH / 1e3:.2f}", f"{batch.ratio:.2f}"]
    return [*found, f"{figures.load.ratio:.2f}"]


if __name__ == "__main__":
    main()
