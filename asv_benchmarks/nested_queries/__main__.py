"""Measure the queries of the thesis, beside its published figures.

python -m asv_benchmarks.nested_queries [--scale 0.01] [--only q2 q3] [--write]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from asv_benchmarks.nested_queries import plots
from asv_benchmarks.nested_queries.by_hand import QUERIES
from asv_benchmarks.nested_queries.measure import Figures, measured
from asv_benchmarks.table import machine, markdown, put

SCALE, BATCHES, RUNS = 0.01, 50, 3
PAGE = Path(__file__).resolve().parents[2] / "docs" / "thesis.md"
MARKS = "<!-- nested queries: begin -->", "<!-- nested queries: end -->"
SHOWN = {"q2", "q4_flat"}
"""Queries with a picture of each batch."""
HEADER = (
    *("query", "rows", "live, s", "again, s", "by hand, s", "µs a row, live"),
    *("gain, live", "gain, by hand", "live of by hand", "gain, thesis"),
)


def main(arguments: list[str] | None = None) -> None:
    """Run the measurements that the command line selects."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.nested_queries")
    parser.add_argument("--scale", type=float, default=SCALE, help="1: 1,500,000 orders")
    parser.add_argument("--batches", type=int, default=BATCHES)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", nargs="*", choices=QUERIES, metavar="QUERY", help="not all")
    parser.add_argument("--write", action="store_true", help=f"put it into {PAGE.name}")
    options = parser.parse_args(arguments)
    names = options.only or QUERIES
    found = {name: measured(name, options.scale, options.batches, options.runs) for name in names}
    text = table(found, f"Scale {options.scale:g}, {options.batches} batches, {options.runs} runs.")
    print(text)
    if options.write:
        put(text, PAGE, *MARKS)
        draw(found)


def draw(found: dict[str, Figures]) -> None:
    """Write the pictures of the page."""
    figures = PAGE.parent / "figures"
    (figures / "thesis-gains.svg").write_text(plots.gains(found))
    for name in SHOWN & found.keys():
        (figures / f"thesis-{name}.svg").write_text(plots.batches(name, found[name]))


def table(found: dict[str, Figures], about: str) -> str:
    """Return the figures of queries, as markdown."""
    rows = [list(cells(name, figures)) for name, figures in found.items()]
    return "\n".join([f"{about} {machine()}", "", *markdown(HEADER, rows)])


def cells(name: str, figures: Figures) -> Iterable[str]:
    """Yield the cells of a line of the table."""
    yield from (name, f"{figures.rows:,}")
    yield from (f"{sum(each):.3f}" for each in (figures.live, figures.again, figures.by_hand))
    yield f"{sum(figures.live) / figures.rows * 1e6:.1f}"
    yield from (f"{figures.gain:.2f}", f"{figures.gain_by_hand:.1f}", f"{figures.share:.2f}")
    yield "" if name.startswith("depth") else "{:g} to {:g}".format(*plots.THESIS)


if __name__ == "__main__":
    main()
