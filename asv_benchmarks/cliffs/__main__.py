"""Measure each cliff beside its neighbour or twin.

python -m asv_benchmarks.cliffs                          all; about two minutes of a processor
python -m asv_benchmarks.cliffs --only orders "a chain"  families, or words of a row's name
"""

from __future__ import annotations

import argparse
import sys

from asv_benchmarks.cliffs.cliff import RUNS, Cliff, measured
from asv_benchmarks.cliffs.rows import FAMILIES
from asv_benchmarks.table import DOCS, machine, markdown, publish
from asv_benchmarks.turns import Beside

HEADER = ("cliff", "its neighbour, or twin", "asked", "measured", "bare")


def main(arguments: list[str] | None = None) -> None:
    """Run the measurements that the command line selects."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.cliffs")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="families, or words of names")
    parser.add_argument("--runs", type=int, default=RUNS, help="medians are over these")
    parser.add_argument("--size", type=int, help="at most so many rows in the first table")
    parser.add_argument("--write", action="store_true", help=f"put it into {DOCS.name}")
    options = parser.parse_args(arguments)
    rows = []
    for cliff in chosen(options.only):
        size = min(options.size or cliff.size, cliff.size)
        found = measured(cliff, size=size, runs=options.runs)
        rows.append(cells(cliff, found))
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    head = f"Medians of {options.runs} runs; bold: more than is asked. {machine()}"
    publish("\n".join([head, "", *markdown(HEADER, rows)]), "cliffs", write=options.write)


def chosen(only: list[str] | None) -> list[Cliff]:
    """Return the rows of these families, or with one of these words in their name; else all."""
    return [
        cliff
        for family, cliffs in FAMILIES.items()
        for cliff in cliffs
        if not only or family in only or any(word in cliff.name for word in only)
    ]


def cells(cliff: Cliff, found: Beside) -> list[str]:
    """Return the figures as text."""
    ratio, bare = f"{found.ratio:.2f}x", f"{shown(found.engine)} {cliff.unit}"
    if cliff.most is not None and found.ratio > cliff.most:
        ratio = f"**{ratio}**"
    if cliff.bare is not None and found.engine > cliff.bare:
        bare = f"**{bare}**"
    return [cliff.name, cliff.other, cliff.asked, ratio, bare]


def shown(number: float) -> str:
    """Three digits, or all before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


if __name__ == "__main__":
    main()
