"""Analyse files: all of a folder at the start, one after another later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

from examples.collector import without_collector
from examples.live_lint.extract import extract
from examples.live_lint.folder import Folder
from examples.live_lint.project import NONE, Facts, Project
from examples.terminal import Tick

LOADING = "into tables and views"


@dataclass(frozen=True, slots=True)
class Analysis:
    """A project, and the seconds that it took to read the files and to fill tables and views."""

    project: Project
    reading: float
    filling: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.reading + self.filling


def analyse(folder: Folder, sources: Mapping[str, bytes], tick: Tick = str) -> Analysis:
    """Analyse all these files from scratch, in a database of their own, in one transaction.

    Parameters
    ----------
    folder: names the modules.
    sources: the contents of the files.
    tick: called before each file with its name, and once more before the tables are filled.
    """
    facts: dict[str, Facts] = {}
    with without_collector():
        start = perf_counter()
        for file, source in sources.items():
            tick(file)
            facts[file] = facts_of(folder, file, source)
        read = perf_counter()
        tick(LOADING)
        project = Project(folder.known())
        project.put(facts)
        return Analysis(project, read - start, perf_counter() - read)


def facts_of(folder: Folder, file: str, source: bytes | None) -> Facts:
    """Return the facts of a file; none if it was deleted."""
    return NONE if source is None else extract(file, folder.module(file), source)
