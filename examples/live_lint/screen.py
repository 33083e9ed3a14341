"""What `--watch` shows: a screen that is drawn again, or lines where there is no terminal.

    title
    how many findings each check has
    what the last change did
    findings, those of the changed files first

Each part is cut to the lines that are left for it, and then says how many more there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from examples.live_lint.folder import Folder
from examples.live_lint.project import Project
from examples.live_lint.show import duration, line
from examples.live_lint.watch import Change

Show = Callable[[Change], object]
NEWS, FINDINGS = 3, 3
"""Lines that a part has at least, where the screen is high enough."""


@contextmanager
def screen(project: Project, folder: Folder, out: Console) -> Iterator[Show]:
    """A function to show a change with, for as long as the block runs."""
    if not out.is_terminal:
        _say(f"watching {folder.path}: {len(project.findings())} findings")
        yield _lines
        return
    with Live(console=out, screen=True, auto_refresh=False) as live:

        def draw(change: Change | None) -> None:
            shown = Group(*drawing(project, folder, change, out.height))
            live.update(shown, refresh=True)

        draw(None)
        yield draw


def drawing(project: Project, folder: Folder, change: Change | None, height: int) -> list[Text]:
    """The lines of a screen of this height."""
    findings = project.findings()
    changed = () if change is None else change.files
    findings.sort(key=lambda finding: finding.file not in changed)
    title = line(f"{len(findings):,} findings (Ctrl-C ends); watching {folder.path}", "reverse")
    news = [] if change is None else _news(change)
    counts = _fitting(_counts(project), height - 1 - min(len(news), NEWS) - FINDINGS)
    left = height - 1 - len(counts)
    news = _fitting(news, max(min(NEWS, left), left // 2))
    listed = [line(str(finding)) for finding in findings]
    return [title, *counts, *news, *_fitting(listed, left - len(news))]


def summary(project: Project, folder: Folder) -> str:
    """What remains on the terminal at the end."""
    return (
        f"watched {folder.path}: {len(project.files):,} files, "
        f"{len(project.findings()):,} findings at the end"
    )


def _fitting(lines: list[Text], room: int) -> list[Text]:
    """As many lines as there is room for; the last one may be that there are more."""
    if len(lines) <= room:
        return lines
    kept = lines[: max(room - 1, 0)]
    return [*kept, line(f"... {len(lines) - len(kept):,} more")][: max(room, 0)]


def _counts(project: Project) -> list[Text]:
    """One line per check that finds something."""
    found = {name: len(view) for name, view in project.views.items()}
    return [line(f"{count:>7,}  {name}", "cyan") for name, count in found.items() if count]


def _news(change: Change) -> list[Text]:
    signs = [("-", "green", change.removed), ("+", "red", change.added)]
    return [
        line(_headline(change), "bold"),
        *(line(f"{sign} {f}", style) for sign, style, findings in signs for f in findings),
    ]


def _lines(change: Change) -> None:
    for sign, findings in (("-", change.removed), ("+", change.added)):
        for finding in findings:
            _say(f"{sign} {finding}")
    _say(_headline(change))


def _headline(change: Change) -> str:
    counts = f"+{len(change.added)} -{len(change.removed)}"
    return f"{', '.join(change.files)}: {counts} findings in {duration(change.seconds)}"


def _say(line: str) -> None:
    print(line, flush=True)
