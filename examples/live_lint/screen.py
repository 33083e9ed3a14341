"""The screen of `--watch`, with the findings of the last effective change first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from rich.console import Console
from rich.text import Text

from examples import screen as screens
from examples.live_lint.folder import Folder
from examples.live_lint.project import Project
from examples.screen import Changes, State
from examples.terminal import number
from examples.watching import Change


def screen(
    project: Project, folder: Folder, out: Console
) -> AbstractContextManager[Callable[[Change[Any]], object]]:
    """Return a function to show a change with, for as long as the block runs."""
    beginning = f"watching {folder.path}: {number(len(project.findings()), 'finding')}"
    return screens.screen(out, beginning, lambda changes: _state(project, folder, changes))


def drawing(project: Project, folder: Folder, changes: Changes, height: int) -> list[Text]:
    """Return the lines of a screen of this height."""
    return screens.drawing(_state(project, folder, changes), changes, height)


def summary(project: Project, folder: Folder) -> str:
    """Return the line that remains on the terminal at the end."""
    return (
        f"watched {folder.path}: {number(len(project.files), 'file')}, "
        f"{number(len(project.findings()), 'finding')} at the end"
    )


def _state(project: Project, folder: Folder, changes: Changes) -> State:
    findings = project.findings()
    changed = {file for change in changes for file in change.files}
    findings.sort(key=lambda finding: finding.file not in changed)
    title = f"{number(len(findings), 'finding')} (Ctrl-C ends); watching {folder.path}"
    return State(title, [(name, len(view)) for name, view in project.views.items()], findings)
