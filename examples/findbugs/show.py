"""Findings and figures on a terminal, or as plain lines where there is none."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import groupby, islice

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from examples.findbugs.analyses import ANALYSES, description, name_of
from examples.findbugs.finding import Finding
from examples.findbugs.load import Loaded
from examples.terminal import duration, line, number, printable


def as_json(findings: Iterable[Finding]) -> str:
    """Return findings as a JSON list of objects, which have what they are about and a `message`."""
    return json.dumps([finding.as_dict() for finding in findings], indent=2)


def overview(letters: Iterable[str], found: Iterable[Finding]) -> Table:
    """Return the number of findings of each analysis, as a table."""
    table = Table("", "analysis", "findings", title="Findings")
    table.columns[2].justify = "right"
    counts = Counter(finding.letter for finding in found)
    for letter in letters:
        table.add_row(letter, name_of(ANALYSES[letter]), f"{counts[letter]:,}")
    return table


def findings_by_analysis(found: Iterable[Finding], limit: int, *, tables: bool) -> Group:
    """Return a part per analysis that has findings, with the first `limit` of them; 0: all.

    Parameters
    ----------
    tables: as tables, for eyes, and not as lines.
    """
    parts: list[RenderableType] = []
    for letter, group in groupby(found, lambda finding: finding.letter):
        some = list(group)
        title = f"{letter} {name_of(ANALYSES[letter])}: {len(some):,}"
        parts += [Text(title, style="bold"), Text(description(ANALYSES[letter]))]
        parts += [_table(some, limit)] if tables else _lines(some, limit)
    return Group(*parts)


def sizes(loaded: Loaded, findings: int) -> str:
    """Return the numbers of classes, facts and findings, and the seconds."""
    return (
        f"{number(loaded.classes, 'class', 'classes')}, {number(loaded.facts, 'fact')}, "
        f"{number(findings, 'finding')}: {duration(loaded.reading)} to read, "
        f"{duration(loaded.analysing)} for tables and views, "
        f"{loaded.classes_per_second:,.0f} classes/s"
    )


def left_out(loaded: Loaded) -> list[str]:
    """Return the files that were not analysed, one line each."""
    notes = []
    if loaded.library:
        classes = number(len(loaded.library), "class", "classes")
        notes.append(f"{classes} of libraries, for what is above these; not analysed")
    if loaded.duplicates:
        files = number(loaded.duplicates, "class file")
        notes.append(f"{files} left out: the same class came before")
    if loaded.problems:
        notes.append(f"{number(loaded.problems, 'file')} could not be read, and left out")
    return notes


def peak_memory() -> str:
    """Return the most memory that the process has had, where the system tells."""
    try:
        import resource
    except ImportError:
        return "the system does not tell the peak of memory"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kilobytes = peak / 1024 if sys.platform == "darwin" else peak
    return f"{kilobytes / 1024:,.0f} MB of memory at the peak"


def _table(found: list[Finding], limit: int) -> Table:
    table = Table(show_header=False)
    for finding in islice(found, limit or None):
        table.add_row(Text(printable(finding.place)), Text(printable(finding.message)))
    if limit and len(found) > limit:
        table.add_row("...", f"{len(found) - limit:,} more")
    return table


def _lines(found: list[Finding], limit: int) -> list[Text]:
    lines = [line(str(finding)) for finding in islice(found, limit or None)]
    if limit and len(found) > limit:
        lines.append(line(f"... {len(found) - limit:,} more"))
    return lines
