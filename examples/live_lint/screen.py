"""What `--watch` shows; first of all the findings in the files that have just changed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from rich.console import Console
from rich.text import Text

from examples import screen as screens
from examples.live_lint.folder import Folder
from examples.live_lint.project import Project
from examples.screen import State
from examples.watching import Change


def screen(
    project: Project, folder: Folder, out: Console
) -> AbstractContextManager[Callable[[Change[Any]], object]]:
    """A function to show a change with, for as long as the block runs."""
    beginning = f"watching {folder.path}: {len(project.findings())} findings"
    return screens.screen(out, beginning, lambda change: _state(project, folder, change))


def drawing(
    project: Project, folder: Folder, change: Change[Any] | None, height: int
) -> list[Text]:
    """The lines of a screen of this height."""
    return screens.drawing(_state(project, folder, change), change, height)


def summary(project: Project, folder: Folder) -> str:
    """What remains on the terminal at the end."""
    return (
        f"watched {folder.path}: {len(project.files):,} files, "
        f"{len(project.findings()):,} findings at the end"
    )


def _state(project: Project, folder: Folder, change: Change[Any] | None) -> State:
    findings = project.findings()
    changed = () if change is None else change.files
    findings.sort(key=lambda finding: finding.file not in changed)
    title = f"{len(findings):,} findings (Ctrl-C ends); watching {folder.path}"
    return State(title, [(name, len(view)) for name, view in project.views.items()], findings)
