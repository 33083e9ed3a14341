"""The report as markdown, and where it stands in the docs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

from asv_benchmarks.figures import COLUMNS, SMALL, TYPICAL, Measured

BEGIN = "<!-- report: begin -->"
END = "<!-- report: end -->"
MOST_TIMES = 10.0
MOST_GROWTH = 1.3


def report(measured: Sequence[Measured], *, size: int, small: int, runs: int) -> str:
    """Two tables and how they were made."""
    return "\n".join(
        [
            f"Tables of {size:,} rows; medians of {runs} runs. {machine()}",
            "",
            "### Engine and twin",
            "",
            *_markdown(["workload", "", *(c.title for c in COLUMNS)], _sides(measured)),
            "",
            f"### One change at {small:,} and at {size:,} rows",
            "",
            *_markdown(_growth_header(size, small), map(_growth, measured)),
        ]
    )


def machine() -> str:
    """What it ran on, and when."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} shared cores, {memory:.0f} GiB, Python {platform.python_version()}, "
        f"{platform.system()}, {date.today().isoformat()}."
    )


def put(text: str, file: Path) -> None:
    """Replace what is between the markers of a file."""
    before, _, rest = file.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    file.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def _sides(measured: Iterable[Measured]) -> Iterable[list[str]]:
    for workload in measured:
        for side in ("engine", "twin"):
            values = (column.show(workload.value(side, column)) for column in COLUMNS)
            yield [workload.title if side == "engine" else "", side, *values]
        yield ["", "times the twin", *(f"{workload.ratio(c):.1f}" for c in COLUMNS)]


def _growth_header(size: int, small: int) -> list[str]:
    return [
        "workload",
        f"engine {small:,}, µs",
        f"engine {size:,}, µs",
        "growth",
        "growth of the twin",
        f"growth at most {MOST_GROWTH:g}",
        f"times the twin {small:,}",
        f"times the twin {size:,}",
        f"both at most {MOST_TIMES:g}",
    ]


def _growth(workload: Measured) -> list[str]:
    growth = workload.growth("engine")
    times = workload.ratio(SMALL), workload.ratio(TYPICAL)
    return [
        workload.title,
        SMALL.show(workload.value("engine", SMALL)),
        TYPICAL.show(workload.value("engine", TYPICAL)),
        f"{growth:.2f}",
        f"{workload.growth('twin'):.2f}",
        _verdict(growth <= MOST_GROWTH),
        *(f"{value:.1f}" for value in times),
        _verdict(max(times) <= MOST_TIMES),
    ]


def _verdict(reached: bool) -> str:
    return "met" if reached else "**missed**"


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    text = [
        "| " + " | ".join(_pad(cell, width, column) for column, (cell, width) in cells) + " |"
        for cells in (enumerate(zip(line, widths, strict=True)) for line in lines)
    ]
    rule = "|".join(
        ("-" * (width + 2) if column < 1 else "-" * (width + 1) + ":")
        for column, width in enumerate(widths)
    )
    return [text[0], f"|{rule}|", *text[1:]]


def _pad(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column < 1 else cell.rjust(width)
