"""Projects with sources in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from examples.live_lint.analyse import facts_of
from examples.live_lint.folder import Folder
from examples.live_lint.project import Project

FOLDER = Folder(Path("/nowhere"))
KNOWN = ("os", "os.path", "sys", "typing", "winreg")
Sources = Mapping[str, str | bytes]


def edit(project: Project, sources: Mapping[str, str | bytes | None]) -> None:
    """Replace files; None deletes one."""
    project.put(
        {
            file: facts_of(FOLDER, file, text.encode() if isinstance(text, str) else text)
            for file, text in sources.items()
        }
    )


def made(sources: Sources) -> Project:
    """A project of these files."""
    project = Project(KNOWN)
    edit(project, sources)
    return project


@contextmanager
def holding(project: Project, sources: Sources) -> Iterator[Project]:
    """Edit sources into an empty project during the block: new views would take longer."""
    try:
        edit(project, sources)
        yield project
    finally:
        edit(project, dict.fromkeys(sources))
    assert not any(map(len, project.views.values()))


def found(project: Project, check: str) -> list[str]:
    """Return the findings of one check, as `file:line`."""
    return [f"{f.file}:{f.line}" for f in sorted(project.views[check])]
