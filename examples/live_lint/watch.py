"""Keep the findings of a folder up to date while its files change on disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from examples.live_lint.analyse import facts_of
from examples.live_lint.finding import Finding
from examples.live_lint.folder import Folder
from examples.live_lint.project import Project
from examples.watching import Change, file_watching, unmoved
from reactive import Delta


def update(project: Project, folder: Folder, files: Iterable[str]) -> Change[Finding]:
    """Read some files again, and bring all findings up to date, in one transaction.

    A finding that only moved to another line, with its code, has neither come nor gone.
    """
    added: list[Finding] = []
    removed: list[Finding] = []

    def note(delta: Delta[Finding]) -> None:
        added.extend(delta.added)
        removed.extend(delta.removed)

    changed = tuple(sorted(files))
    subscriptions = [view.subscribe(note) for view in project.views.values()]
    start = perf_counter()
    project.put({file: facts_of(folder, file, folder.read(file)) for file in changed})
    seconds = perf_counter() - start
    for subscription in subscriptions:
        subscription.close()
    came = unmoved(sorted(added), removed, _anywhere)
    went = unmoved(sorted(removed), added, _anywhere)
    return Change(changed, came, went, seconds)


def watch(
    project: Project,
    folder: Folder,
    show: Callable[[Change[Finding]], object],
    stop: threading.Event | None = None,
) -> None:
    """Show every change of the files in a folder, until `stop` is set or Ctrl-C.

    Raises
    ------
    MissingExtra: the package `watchfiles` is not installed.
    """
    file_changes = file_watching()
    settings: dict[str, Any] = {"debounce": 200, "step": 20, "stop_event": stop}
    for batch in file_changes(folder.path, watch_filter=_may_matter, rust_timeout=500, **settings):
        files = _files(project, folder, {Path(path) for _, path in batch})
        if files:
            show(update(project, folder, files))


def _may_matter(change: object, path: str) -> bool:
    """Let Python files pass, and what may be a folder that was moved or deleted as a whole."""
    return Path(path).suffix in ("", ".py")


def _files(project: Project, folder: Folder, paths: set[Path]) -> set[str]:
    """Return the files of changed paths; for a folder, the files that were or are in it."""
    files = {folder.name(path) for path in paths if folder.has(path)}
    folders = [path for path in paths if not path.suffix and folder.covers(path)]
    inner = tuple(f"{folder.name(path)}/" for path in folders)
    if inner:
        present = [*project.files, *folder.files()]
        files.update(file for file in present if file.startswith(inner))
    return files


def _anywhere(finding: Finding) -> Finding:
    return replace(finding, line=0)
