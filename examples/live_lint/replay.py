"""Make many edits and measure each update; at the end, hold the views against a fresh analysis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from statistics import median
from time import perf_counter

from examples.live_lint.analyse import Analysis, analyse, facts_of
from examples.live_lint.edits import Edit, edits
from examples.live_lint.folder import Folder
from examples.live_lint.project import Project
from examples.terminal import Tick


@dataclass(frozen=True, slots=True)
class Step:
    """One edit: the seconds to read the file again, and those to update tables and views."""

    edit: Edit
    reading: float
    updating: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.reading + self.updating


@dataclass(frozen=True, slots=True)
class Summary:
    """The cost of many steps: seconds in all, and the part of tables and views."""

    median: float
    median_updating: float
    worst: Step
    worst_updating: Step


def replay(
    project: Project,
    folder: Folder,
    sources: dict[str, bytes],
    count: int,
    seed: int,
    tick: Tick = str,
) -> Iterator[Step]:
    """Make `count` edits in memory, each on top of those before; `sources` takes them in."""
    for edit in islice(edits(sources, seed), count):
        tick(f"{edit.what} in {edit.file}")
        start = perf_counter()
        facts = facts_of(folder, edit.file, edit.source)
        read = perf_counter()
        project.put({edit.file: facts})
        done = perf_counter()
        sources[edit.file] = edit.source
        yield Step(edit, read - start, done - read)


def summary(steps: list[Step]) -> Summary:
    """Return the usual and the worst step; there must be one."""
    return Summary(
        median(step.seconds for step in steps),
        median(step.updating for step in steps),
        max(steps, key=lambda step: step.seconds),
        max(steps, key=lambda step: step.updating),
    )


def compare(project: Project, folder: Folder, sources: dict[str, bytes], tick: Tick) -> Analysis:
    """Analyse the same files from scratch.

    Raises
    ------
    AssertionError: the findings are not those of the project.
    """
    fresh = analyse(folder, sources, tick)
    kept, expected = set(project.findings()), set(fresh.project.findings())
    if kept != expected:
        different = ", ".join(map(str, sorted(kept ^ expected)[:5]))
        raise AssertionError(f"the findings differ from an analysis from scratch: {different}")
    return fresh
