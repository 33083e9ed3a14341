"""What `--watch` shows; first of all the findings in the classes that have just changed theirs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from rich.console import Console

from examples import screen as screens
from examples.findbugs.analyses import ANALYSES, name_of
from examples.findbugs.classpath import ClassPath
from examples.findbugs.finding import findings
from examples.findbugs.inputs import name_of as file_name
from examples.findbugs.program import Program
from examples.screen import State
from examples.watching import Change


def screen(
    program: Program, classpath: ClassPath, out: Console
) -> AbstractContextManager[Callable[[Change[Any]], object]]:
    """A function to show a change with, for as long as the block runs."""
    beginning = f"watching {_roots(classpath)}: {len(findings(program)):,} findings"
    return screens.screen(out, beginning, lambda change: state(program, classpath, change))


def state(program: Program, classpath: ClassPath, change: Change[Any] | None) -> State:
    """What there is to show now."""
    found = findings(program)
    new = set() if change is None else set(change.added)
    problems = classpath.problems()
    unread = f", {len(problems):,} problems" if problems else ""
    return State(
        f"{len(found):,} findings{unread} (Ctrl-C ends); watching {_roots(classpath)}",
        [(name_of(ANALYSES[letter]), len(view)) for letter, view in program.views.items()],
        sorted(found, key=lambda finding: finding not in new),
    )


def summary(program: Program, classpath: ClassPath) -> str:
    """What remains on the terminal at the end."""
    return (
        f"watched {_roots(classpath)}: {len(program.classes):,} classes, "
        f"{len(findings(program)):,} findings at the end"
    )


def _roots(classpath: ClassPath) -> str:
    return ", ".join(map(file_name, classpath.inputs.roots))
