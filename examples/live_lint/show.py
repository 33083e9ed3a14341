"""Findings and figures on a terminal, or as plain lines where there is none."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from itertools import islice

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from examples.live_lint.analyse import Analysis
from examples.live_lint.checks import CHECKS, description, name_of
from examples.live_lint.finding import Finding
from examples.live_lint.project import Project
from examples.live_lint.replay import Step, summary
from examples.terminal import duration, line


def as_json(findings: Iterable[Finding]) -> str:
    """Return findings as a JSON list of objects with `file`, `line`, `check` and `message`."""
    return json.dumps([asdict(finding) for finding in findings], indent=2)


def findings_by_check(project: Project, limit: int) -> Group:
    """Return a table per check that has findings, with the first `limit` of them."""
    parts: list[RenderableType] = []
    for check in CHECKS:
        found = sorted(project.views[name_of(check)])
        if found:
            title = Text(f"{name_of(check)}: {len(found):,}", style="bold")
            parts += [title, Text(description(check)), _findings(found, limit)]
    return Group(*parts)


def examples(project: Project, limit: int) -> Group:
    """Return the first `limit` findings of each check, a line each."""
    found = (sorted(view)[: limit or None] for view in project.views.values())
    return Group(*(line(str(finding)) for findings in found for finding in findings))


def overview(project: Project) -> Table:
    """Return the number of findings of each check, as a table."""
    table = Table("check", "findings", "what it finds", title="Findings")
    table.columns[1].justify = "right"
    for check in CHECKS:
        found = len(project.views[name_of(check)])
        table.add_row(name_of(check), f"{found:,}", description(check))
    return table


def sizes(analysis: Analysis) -> str:
    """Return the numbers of files, facts and findings, and the seconds."""
    project = analysis.project
    return (
        f"{len(project.files):,} files, {project.count():,} facts, "
        f"{len(project.findings()):,} findings: {duration(analysis.reading)} to read the files, "
        f"{duration(analysis.filling)} for tables and views"
    )


def figures(steps: list[Step], fresh: Analysis) -> Table:
    """Return the times of the updates beside the time from scratch."""
    of = summary(steps)
    title = f"{len(steps)} edits of single files, against an analysis from scratch"
    table = Table(
        "", "from scratch", "median", "times faster", "worst", "times faster", title=title
    )
    for column in table.columns[1:]:
        column.justify = "right"
    whole = (fresh.seconds, of.median, of.worst.seconds)
    views = (fresh.filling, of.median_updating, of.worst_updating.updating)
    table.add_row("all: parse, extract, update", *_compared(*whole))
    table.add_row("tables and views only", *_compared(*views))
    table.caption = (
        "from scratch: a second, separate analysis, of the edited files\n"
        f"worst: {of.worst.edit.what} in {of.worst.edit.file}"
    )
    return table


def _compared(scratch: float, usual: float, worst: float) -> list[str]:
    updates = [[duration(s), f"{scratch / s:,.0f} x"] for s in (usual, worst)]
    return [duration(scratch), *updates[0], *updates[1]]


def _findings(found: list[Finding], limit: int) -> Table:
    table = Table(show_header=False)
    for finding in islice(found, limit or None):
        table.add_row(Text(f"{finding.file}:{finding.line}"), Text(finding.message))
    if limit and len(found) > limit:
        table.add_row("...", f"{len(found) - limit:,} more")
    return table
