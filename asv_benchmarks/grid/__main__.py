"""Measure the grid, and print the worst cells and the worst pairs of neighbours.

python -m asv_benchmarks.grid                               all cells, tables of 10,000 rows
python -m asv_benchmarks.grid --only "value=float" top_ten  cells with one of these in their name
python -m asv_benchmarks.grid --show "join_sum joins=2"     the texts of a cell's query and twin
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from asv_benchmarks.grid.cell import Cell
from asv_benchmarks.grid.cells import all_cells
from asv_benchmarks.grid.cliffs import report
from asv_benchmarks.grid.measure import SIZE, Figures, measured
from asv_benchmarks.grid.query import query_text
from asv_benchmarks.grid.twin import twin_text
from asv_benchmarks.table import DOCS, machine, publish

WORST = 25


def main(arguments: list[str] | None = None) -> None:
    """Run the measurements that the command line selects."""
    options = _options(arguments)
    cells = all_cells()
    if options.show:
        print(query_text(cells[options.show]), twin_text(cells[options.show]), sep="\n")
        return
    chosen = {
        name: cell
        for name, cell in cells.items()
        if not options.only or any(word in name for word in options.only)
    }
    figures = run(chosen, size=options.size, runs=options.runs)
    if options.json:
        found = {name: asdict(each) for name, each in figures.items()}
        options.json.write_text(json.dumps(found, indent=1))
    head = f"Tables of {options.size:,} rows; medians. {machine()}"
    publish(f"{head}\n\n{report(cells, figures, options.worst)}", "grid", write=options.write)


def run(cells: dict[str, Cell], *, size: int = SIZE, runs: int = 1) -> dict[str, Figures]:
    """Return the figures of the cells, one after the other."""
    figures = {}
    for number, (name, cell) in enumerate(cells.items(), 1):
        figures[name] = measured(cell, size, runs)
        ratio = f"{figures[name].change.ratio:.2f} {figures[name].load.ratio:.2f}"
        print(f"{number} of {len(cells)}: {name}: {ratio}", file=sys.stderr, flush=True)
    return figures


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="asv_benchmarks.grid", description="Look for cliffs.")
    parser.add_argument("--only", nargs="*", metavar="WORD", help="cells with such a name")
    parser.add_argument("--size", type=int, default=SIZE, help="rows of the first table")
    parser.add_argument("--runs", type=int, default=1, help="medians are over these")
    parser.add_argument("--worst", type=int, default=WORST, help="how many rows of each table")
    parser.add_argument("--json", type=Path, help="where the figures are written to")
    parser.add_argument("--write", action="store_true", help=f"put it into {DOCS.name}")
    parser.add_argument("--show", metavar="NAME", help="print the texts of this cell")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
