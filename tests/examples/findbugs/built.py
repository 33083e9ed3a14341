"""Output of a build, analysed and followed, without watching for changes."""

from __future__ import annotations

from pathlib import Path

from examples.findbugs.classpath import ClassPath
from examples.findbugs.finding import Finding, findings
from examples.findbugs.inputs import Inputs
from examples.findbugs.load import Loaded
from examples.findbugs.program import Program
from examples.findbugs.watch import begin, update
from examples.watching import Change


class Build:
    """The classes below some paths, analysed and followed."""

    def __init__(self, *roots: Path, library: tuple[Path, ...] = ()) -> None:
        self.program = Program()
        self.classpath = ClassPath(Inputs(roots, library), self.program.kinds)
        self.loaded: Loaded = begin(self.program, self.classpath)

    def update(self, *files: Path) -> Change[Finding]:
        return update(self.program, self.classpath, files)

    @property
    def found(self) -> list[str]:
        return [str(finding) for finding in findings(self.program, self.classpath.is_library)]


def said(found: tuple[Finding, ...]) -> list[str]:
    """Return findings, without their messages."""
    return [f"{finding.letter} {finding.place}" for finding in found]
