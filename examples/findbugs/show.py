"""Findings and figures on a terminal, or as plain lines where there is none."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from itertools import islice

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from examples.findbugs.analyses import ANALYSES, description, name_of
from examples.findbugs.finding import Finding, findings_of
from examples.findbugs.load import Loaded
from examples.findbugs.program import Program
from examples.terminal import duration, printable


def as_json(findings: Iterable[Finding]) -> str:
    """Findings as a JSON list of objects, which have what they are about and a `message`."""
    return json.dumps([finding.as_dict() for finding in findings], indent=2)


def overview(program: Program) -> Table:
    """How much each analysis has found."""
    table = Table("", "analysis", "findings", "what it finds", title="Findings")
    table.columns[2].justify = "right"
    for letter, view in program.views.items():
        analysis = ANALYSES[letter]
        finds = Text(description(analysis))
        table.add_row(letter, name_of(analysis), f"{len(view):,}", finds)
    return table


def findings_by_analysis(program: Program, limit: int) -> Group:
    """A table per analysis that has findings, with the first `limit` of them; 0: all."""
    parts: list[RenderableType] = []
    for letter in program.views:
        found = findings_of(program, letter)
        if found:
            title = f"{letter} {name_of(ANALYSES[letter])}: {len(found):,}"
            finds = Text(description(ANALYSES[letter]))
            parts += [Text(title, style="bold"), finds, _table(found, limit)]
    return Group(*parts)


def sizes(loaded: Loaded, findings: int) -> str:
    """How much was analysed, what was found, and how long it took."""
    return (
        f"{_number(loaded.classes, 'class', 'classes')}, {_number(loaded.facts, 'fact')}, "
        f"{_number(findings, 'finding')}: {duration(loaded.reading)} to read, "
        f"{duration(loaded.analysing)} for tables and views, "
        f"{loaded.classes_per_second:,.0f} classes/s"
    )


def left_out(loaded: Loaded) -> list[str]:
    """What was not analysed, a line each."""
    notes = []
    if loaded.duplicates:
        files = _number(loaded.duplicates, "class file")
        notes.append(f"{files} left out: the same class came before")
    if loaded.problems:
        notes.append(f"{_number(loaded.problems, 'file')} could not be read, and left out")
    return notes


def peak_memory() -> str:
    """The most memory that the process has had, where the system tells."""
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


def _number(number: int, one: str, many: str = "") -> str:
    """A number of things.

    >>> _number(1, "finding"), _number(1200, "finding")
    ('1 finding', '1,200 findings')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
