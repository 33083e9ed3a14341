"""Markdown: a table, the machine of its measurement, and its place in the docs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

DOCS = Path(__file__).resolve().parent / "figures.md"
BEGIN = "<!-- report: begin -->"
END = "<!-- report: end -->"
RECURSION = "<!-- recursion: begin -->"
RECURSION_END = "<!-- recursion: end -->"
VERIFYING = "<!-- verifying: begin -->"
VERIFYING_END = "<!-- verifying: end -->"
WAYS = "<!-- ways: begin -->"
WAYS_END = "<!-- ways: end -->"
FINDBUGS = "<!-- findbugs: begin -->"
FINDBUGS_END = "<!-- findbugs: end -->"


def machine() -> str:
    """Return the machine and the date."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} shared cores, {memory:.0f} GiB, Python {platform.python_version()}, "
        f"{platform.system()}, {date.today().isoformat()}."
    )


def put(text: str, file: Path, begin: str = BEGIN, end: str = END) -> None:
    """Replace the text between the markers of a file; without them, add it after the report."""
    page = file.read_text()
    if begin not in page:
        page = page.replace(END, f"{END}\n\n{begin}{end}", 1)
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    file.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def publish(text: str, name: str, *, write: bool) -> None:
    """Print the text; if `write`, also put it into the docs, between the markers of its name."""
    print(text)
    if write:
        put(text, DOCS, f"<!-- {name}: begin -->", f"<!-- {name}: end -->")


def verdict(reached: bool) -> str:
    """Return the word for a target that was reached or missed."""
    return "met" if reached else "**missed**"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table whose first column is text and whose others are figures."""
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
