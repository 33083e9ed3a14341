"""The screen of `--watch`: the newest findings first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from rich.console import Console

from examples import screen as screens
from examples.findbugs.archives import shown_path
from examples.findbugs.classpath import ClassPath
from examples.findbugs.finding import findings
from examples.findbugs.program import Program
from examples.screen import Changes, State
from examples.terminal import number
from examples.watching import Change


def screen(
    program: Program, classpath: ClassPath, out: Console
) -> AbstractContextManager[Callable[[Change[Any]], object]]:
    """Return a function to show a change with, for as long as the block runs."""
    found = number(len(findings(program, classpath.is_library)), "finding")
    beginning = f"watching {_roots(classpath)}: {found}"
    return screens.screen(out, beginning, lambda changes: state(program, classpath, changes))


def state(program: Program, classpath: ClassPath, changes: Changes) -> State:
    """Return the current state to show."""
    found = findings(program, classpath.is_library)
    counts = Counter(finding.analysis for finding in found)
    new = {finding for change in changes for finding in change.added}
    problems = classpath.problems()
    unread = f", {number(len(problems), 'problem')}" if problems else ""
    return State(
        f"{number(len(found), 'finding')}{unread} (Ctrl-C ends); watching {_roots(classpath)}",
        list(counts.items()),
        sorted(found, key=lambda finding: finding not in new),
    )


def summary(program: Program, classpath: ClassPath) -> str:
    """Return the line that remains on the terminal at the end."""
    own = sum(not classpath.is_library(name) for name in program.classes)
    found = findings(program, classpath.is_library)
    return (
        f"watched {_roots(classpath)}: {number(own, 'class', 'classes')}, "
        f"{number(len(found), 'finding')} at the end"
    )


def _roots(classpath: ClassPath) -> str:
    return ", ".join(map(shown_path, classpath.inputs.roots))
