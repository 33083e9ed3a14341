"""Keep the findings of class files up to date while they change on disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from examples.collector import without_collector
from examples.findbugs.classpath import ClassPath
from examples.findbugs.finding import Finding, finding
from examples.findbugs.inputs import Inputs, name_of
from examples.findbugs.load import Loaded
from examples.findbugs.program import Program
from examples.terminal import Tick
from examples.watching import Change, file_watching, unmoved
from reactive import Delta

PAUSE = 0.5
"""Seconds after which it is looked whether a folder is there again."""


def begin(program: Program, classpath: ClassPath, tick: Tick = str) -> Loaded:
    """Read all classes into a program that has none yet, and keep their facts."""
    with without_collector():
        start = perf_counter()
        classes = classpath.read(classpath.inputs.files(), tick)
        read = perf_counter()
        change = program.put(classes)
        counts = (len(classes), len(change), classpath.duplicates, len(classpath.problems()))
        return Loaded(*counts, read - start, perf_counter() - read)


def update(program: Program, classpath: ClassPath, files: Iterable[Path]) -> Change[Finding]:
    """Read some files again, and bring all findings up to date, in one transaction.

    A finding that only moved in its method has neither come nor gone.
    """
    added: list[Finding] = []
    removed: list[Finding] = []

    def noting(letter: str) -> Callable[[Delta[Any]], None]:
        def note(delta: Delta[Any]) -> None:
            added.extend(finding(letter, row) for row in delta.added)
            removed.extend(finding(letter, row) for row in delta.removed)

        return note

    changed = sorted(files)
    subscriptions = [view.subscribe(noting(letter)) for letter, view in program.views.items()]
    start = perf_counter()
    program.put(classpath.read(changed))
    seconds = perf_counter() - start
    for subscription in subscriptions:
        subscription.close()
    return Change(
        files=tuple(_short_name(classpath.inputs, file) for file in changed),
        added=unmoved(_sorted(added), removed, _anywhere),
        removed=unmoved(_sorted(removed), added, _anywhere),
        seconds=seconds,
        problems=tuple(classpath.problems(changed)),
    )


def watch(
    program: Program,
    classpath: ClassPath,
    show: Callable[[Change[Finding]], object],
    stop: threading.Event | None = None,
) -> None:
    """Show every change of the files, until `stop` is set or Ctrl-C.

    Folders may be deleted and made again, as builds do.

    Raises
    ------
    MissingExtra: the package `watchfiles` is not installed.
    """
    watched = _Watched(classpath.inputs)
    stop = stop or threading.Event()
    while not stop.is_set():
        unread = classpath.stale
        for paths in watched.batches(stop):
            files = classpath.meant(paths) | unread()
            unread = set
            if files:
                show(update(program, classpath, files))


class _Watched:
    """The folders to watch: those that were given, and those with the files that were."""

    def __init__(self, inputs: Inputs) -> None:
        self._file_changes = file_watching()
        is_folder = {root: root.is_dir() for root in inputs.roots}
        self._folders = {root if is_folder[root] else root.parent for root in inputs.roots}
        self._recursive = any(is_folder.values())

    def batches(self, stop: threading.Event) -> Iterator[set[Path]]:
        """The paths that change together; at first, and now and then, none.

        Ends when a folder has come or gone, as what is in it is not watched then.
        """
        present = self._present()
        for batch in self._changes(present, stop):
            paths = {Path(path) for _, path in batch}
            yield paths
            if not paths.isdisjoint(present) or self._present() != present:
                return

    def _present(self) -> set[Path]:
        return {folder for folder in self._folders if folder.is_dir()}

    def _changes(self, present: set[Path], stop: threading.Event) -> Iterable[set[Any]]:
        if not present:
            return _pauses(stop)
        found: Iterable[set[Any]] = self._file_changes(
            *present,
            watch_filter=None,
            recursive=self._recursive,
            debounce=200,
            step=20,
            rust_timeout=int(PAUSE * 1000),
            yield_on_timeout=True,
            stop_event=stop,
        )
        return found


def _pauses(stop: threading.Event) -> Iterator[set[Any]]:
    while not stop.is_set():
        yield set()
        stop.wait(PAUSE)


def _short_name(inputs: Inputs, file: Path) -> str:
    """The path of a file in the folder that was given."""
    root = next(root for root in inputs.roots if file.is_relative_to(root))
    return name_of(file.relative_to(root) if file != root else Path(file.name))


def _sorted(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda one: one.order)


def _anywhere(one: Finding) -> Finding:
    return one.anywhere
