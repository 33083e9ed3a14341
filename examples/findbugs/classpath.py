"""The classes of files that change: which file has which, and which of the same name counts.

    a.jar     shop/Cart  shop/Item           shop/Cart of a.jar counts, as it comes first; when
    b.jar     shop/Cart                      a.jar goes, that of b.jar does

A file that cannot be read, which may be one that is just being written, keeps what it had. So does
a class in an archive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import TypeAlias

from examples.findbugs.archives import shown_path
from examples.findbugs.facts import Fact, Facts
from examples.findbugs.inputs import Inputs
from examples.findbugs.load import JavaClass, java_classes, of_library
from examples.findbugs.program import NONE
from examples.terminal import Tick, unnoticed

Stamp: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Contents:
    """The classes of a file, as of the last read."""

    stamp: Stamp | None
    classes: dict[str, JavaClass] = field(default_factory=dict)
    """The classes, by their places."""
    by_name: dict[str, JavaClass] = field(default_factory=dict)
    """The first one of each name."""
    problems: list[str] = field(default_factory=list)


NOTHING = Contents(None)


class ClassPath:
    """All classes of some inputs, with their facts of some kinds."""

    def __init__(self, inputs: Inputs, kinds: Collection[type[Fact]]) -> None:
        self.inputs = inputs
        self._kinds = kinds
        self._contents: dict[Path, Contents] = {}
        self._having: dict[str, set[Path]] = {}
        """The files that have a class, by its name."""

    def read(self, files: Iterable[Path], tick: Tick = unnoticed) -> dict[str, Facts]:
        """Read some files again, or for the first time; a deleted file has no classes.

        Return the facts of all classes that were or are in them; none for deleted classes.
        """
        names: dict[str, None] = {}
        for file in files:
            before = self._contents.pop(file, NOTHING)
            now = self._read(file, before, tick)
            if now is not None:
                self._contents[file] = now
            self._note(file, before, now or NOTHING)
            names |= dict.fromkeys([*before.by_name, *(now or NOTHING).by_name])
        return {name: self._facts(name) for name in names}

    def stale(self) -> set[Path]:
        """Return the files that came, changed or went since they were read."""
        files = {*self._contents, *self.inputs.files()}
        return {f for f in files if self._contents.get(f, NOTHING).stamp != _stamp(f)}

    def meant(self, paths: Collection[Path]) -> set[Path]:
        """Return the files of changed paths; for a folder, the files that were or are in it."""
        files = {path for path in paths if self.inputs.has(path)}
        folders = set(paths) - files
        present = {file for folder in folders for file in self.inputs.below(folder)}
        known = self._contents if folders else ()
        gone = {file for file in known if not folders.isdisjoint(file.parents)}
        return files | present | gone

    def problems(self, files: Iterable[Path] | None = None) -> list[str]:
        """Return the problems of the last read of some files, or of all."""
        some = self._contents if files is None else files
        return [text for file in some for text in self._contents.get(file, NOTHING).problems]

    def is_library(self, name: str) -> bool:
        """Return True if the class that counts for this name is in no file of the program."""
        files = self._having.get(name)
        return bool(files) and all(map(self.inputs.is_library, files or ()))

    @property
    def duplicates(self) -> int:
        """Return the number of classes that do not count, because earlier ones have their names."""
        return sum(len(now.classes) for now in self._contents.values()) - len(self._having)

    def _read(self, file: Path, before: Contents, tick: Tick) -> Contents | None:
        stamp = _stamp(file)
        if stamp is None:
            return None
        now = Contents(stamp)

        def keep(place: str, problem: str) -> None:
            now.problems.append(problem)
            whole = place == shown_path(file)
            kept = {at: one for at, one in before.classes.items() if whole or at == place}
            now.classes.update(kept)

        kinds = of_library(self._kinds) if self.inputs.is_library(file) else self._kinds
        for one in java_classes(file, kinds, tick, keep):
            now.classes.setdefault(one.place, one)
        for one in now.classes.values():
            now.by_name.setdefault(one.name, one)
        return now

    def _note(self, file: Path, before: Contents, now: Contents) -> None:
        for name in before.by_name.keys() - now.by_name.keys():
            self._having[name].remove(file)
            if not self._having[name]:
                del self._having[name]
        for name in now.by_name.keys() - before.by_name.keys():
            self._having.setdefault(name, set()).add(file)

    def _facts(self, name: str) -> Facts:
        files = self._having.get(name)
        if not files:
            return NONE
        return self._contents[min(files, key=self.inputs.order)].by_name[name].facts


def _stamp(file: Path) -> Stamp | None:
    """Return a stamp that changes when a file is written; None without a file, and for a folder."""
    try:
        found = file.stat()
    except OSError:
        return None
    if not S_ISREG(found.st_mode):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
