"""Keep the findings of class files up to date while they change on disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from examples.collector import without_collector
from examples.findbugs.archives import shown_path
from examples.findbugs.classpath import ClassPath
from examples.findbugs.finding import Finding, findings
from examples.findbugs.inputs import Inputs
from examples.findbugs.load import Loaded
from examples.findbugs.program import Program
from examples.terminal import Tick, unnoticed
from examples.watching import Change, file_watching, unmoved

PAUSE = 0.5
"""Seconds after which it is looked whether a folder is there again."""
QUIET, LONGEST = 0.2, 2.0
"""Seconds without a change that end a build, and seconds after which it is cut anyway."""


def begin(program: Program, classpath: ClassPath, tick: Tick = unnoticed) -> Loaded:
    """Read all classes into a program that has none yet, and keep their facts."""
    with without_collector():
        start = perf_counter()
        classes = classpath.read(classpath.inputs.files(), tick)
        read = perf_counter()
        program.put(classes)
        own = {name: classes[name] for name in classes if not classpath.is_library(name)}
        return Loaded(
            classes=len(own),
            facts=sum(len(rows) for facts in own.values() for rows in facts.values()),
            duplicates=classpath.duplicates,
            problems=len(classpath.problems()),
            library={*classes} - {*own},
            reading=read - start,
            analysing=perf_counter() - read,
        )


def update(program: Program, classpath: ClassPath, files: Iterable[Path]) -> Change[Finding]:
    """Read some files again, and bring all findings up to date, in one transaction.

    A finding that only moved in its method has neither come nor gone. Findings of a class also
    come and go when the class passes from a library to the program, and back.
    """
    changed = sorted(files)
    broken = [file for file in changed if classpath.problems([file])]
    before = findings(program, classpath.is_library)
    start = perf_counter()
    program.put(classpath.read(changed))
    seconds = perf_counter() - start
    after = findings(program, classpath.is_library)
    return Change(
        files=tuple(_short_name(classpath.inputs, file) for file in changed),
        added=unmoved(after, before, _anywhere),
        removed=unmoved(before, after, _anywhere),
        seconds=seconds,
        problems=tuple(classpath.problems(changed)),
        solved=tuple(_solved(file) for file in broken if not classpath.problems([file])),
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
        is_first = True
        for paths in watched.batches(stop):
            files = classpath.meant(paths)
            if is_first:
                files |= classpath.stale()
                is_first = False
            if files:
                show(update(program, classpath, files))


class _Watched:
    """The folders to watch: the given ones, and those of the given files."""

    def __init__(self, inputs: Inputs) -> None:
        self._file_changes = file_watching()
        is_folder = {root: root.is_dir() for root in inputs.roots}
        self._folders = {root if is_folder[root] else root.parent for root in inputs.roots}
        self._recursive = any(is_folder.values())

    def batches(self, stop: threading.Event) -> Iterator[set[Path]]:
        """Yield the paths that change together; at first, and now and then, none.

        It ends when a folder appears or disappears, because its files are then not watched.
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
            debounce=int(LONGEST * 1000),
            step=int(QUIET * 1000),
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
    """Return the path of a file in the folder that was given."""
    root = next(root for root in inputs.paths if file.is_relative_to(root))
    return shown_path(file.relative_to(root) if file != root else Path(file.name))


def _solved(file: Path) -> str:
    return f"{shown_path(file)}: {'can be read again' if file.exists() else 'is gone'}"


def _anywhere(one: Finding) -> Finding:
    return one.anywhere
