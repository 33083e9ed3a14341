"""What `--watch` shows: tables that are drawn again, or lines where there is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from examples.live_lint import show
from examples.live_lint.folder import Folder
from examples.live_lint.project import Project
from examples.live_lint.watch import Change

Show = Callable[[Change], object]


@contextmanager
def screen(project: Project, folder: Folder, out: Console, limit: int) -> Iterator[Show]:
    """A function to show a change with, for as long as the block runs."""
    if not out.is_terminal:
        _say(f"watching {folder.path}: {len(project.findings())} findings")
        yield _lines
        return
    with Live(console=out, screen=True, auto_refresh=False, vertical_overflow="ellipsis") as live:

        def draw(change: Change | None) -> None:
            tables = show.findings_by_check(project, limit)
            news = Text() if change is None else _news(change, limit)
            live.update(Group(_title(project, folder), news, tables), refresh=True)

        draw(None)
        yield draw


def _title(project: Project, folder: Folder) -> Text:
    count = len(project.findings())
    return Text(f"watching {folder.path}: {count:,} findings; Ctrl-C ends", style="reverse")


def _lines(change: Change) -> None:
    for sign, findings in (("-", change.removed), ("+", change.added)):
        for finding in findings:
            _say(f"{sign} {finding}")
    _say(_headline(change))


def _news(change: Change, limit: int) -> Text:
    text = Text(_headline(change), style="bold")
    signs = [("-", "green", change.removed), ("+", "red", change.added)]
    for sign, style, findings in signs:
        for finding in findings[: limit or None]:
            text.append(f"\n{sign} {finding}", style=style)
    return text


def _headline(change: Change) -> str:
    counts = f"+{len(change.added)} -{len(change.removed)}"
    return f"{', '.join(change.files)}: {counts} findings in {change.seconds * 1000:.1f} ms"


def _say(line: str) -> None:
    print(line, flush=True)
