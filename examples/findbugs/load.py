"""Read class files into a program, in batches, without keeping their facts.

    files -> class files -> facts -> 500 classes -> tables and views
                              |
                  only the kinds that the analyses read

Cost: the memory of the views with their state, and of one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

from examples.collector import without_collector
from examples.findbugs.archives import ClassFile, Unreadable, shown_path
from examples.findbugs.classfile import ClassFileError, read
from examples.findbugs.difference import difference
from examples.findbugs.facts import ClassDecl, Fact, Facts
from examples.findbugs.inputs import class_files
from examples.findbugs.program import Program
from examples.terminal import Tick, unnoticed

BATCH = 500
"""Classes in a transaction: few enough for memory, and enough that their number is no matter."""

Report: TypeAlias = Callable[[str, str], object]
"""Called with the place of an unreadable file, and the reason."""


class JavaClass(NamedTuple):
    """A class as its file states it."""

    place: str
    name: str
    facts: Facts


@dataclass(slots=True)
class Loaded:
    """The numbers of read classes and facts, and the seconds that reading took."""

    classes: int = 0
    facts: int = 0
    duplicates: int = 0
    """Class files left out, because an earlier file has the class."""
    problems: int = 0
    library: set[str] = field(default_factory=set)
    """The names of classes of libraries; they are not in the numbers above."""
    reading: float = 0.0
    analysing: float = 0.0

    @property
    def classes_per_second(self) -> float:
        """Return the rate of read and analysed classes, including those of libraries."""
        return (self.classes + len(self.library)) / max(self.reading + self.analysing, 1e-9)


@dataclass(slots=True)
class _Load:
    program: Program
    tick: Tick
    report: Report
    library: Collection[Path] = ()
    done: Loaded = field(default_factory=Loaded)
    known: set[str] = field(default_factory=set)
    batch: dict[str, Facts] = field(default_factory=dict)

    def all_of(self, files: Iterable[Path]) -> None:
        started = perf_counter()
        for file in files:
            is_library = file in self.library
            kinds = of_library(self.program.kinds) if is_library else self.program.kinds
            for found in java_classes(file, kinds, self.tick, self._problem):
                self._take(found, is_library=is_library)
                if len(self.batch) == BATCH:
                    self._apply()
        self._apply()
        self.done.reading = perf_counter() - started - self.done.analysing

    def _take(self, found: JavaClass, *, is_library: bool) -> None:
        if found.name in self.known:
            self.done.duplicates += not is_library
            return
        self.known.add(found.name)
        self.batch[found.name] = found.facts
        if is_library:
            self.done.library.add(found.name)
        else:
            self.done.classes += 1
            self.done.facts += sum(map(len, found.facts.values()))

    def _apply(self) -> None:
        started = perf_counter()
        self.program.apply(difference({}, self.batch))
        self.batch.clear()
        self.done.analysing += perf_counter() - started

    def _problem(self, place: str, problem: str) -> None:
        self.done.problems += 1
        self.report(place, problem)


def load(
    program: Program,
    files: Iterable[Path],
    tick: Tick = unnoticed,
    report: Report = unnoticed,
    library: Collection[Path] = (),
) -> Loaded:
    """Read all classes of some files into a program that has none yet.

    Of classes of the same name the first one counts. What cannot be read is left out.

    Parameters
    ----------
    files: class files and archives, in the order of the class path.
    tick: called before each class file with the name of the file that it is in.
    report: called with each problem.
    library: the last ones of the files, with superclasses of the program's classes.
    """
    work = _Load(program, tick, report, library)
    with without_collector():
        work.all_of(files)
    return work.done


def of_library(kinds: Collection[type[Fact]]) -> tuple[type[Fact], ...]:
    """Return the kinds of facts that matter for libraries above the program's classes."""
    return tuple(kind for kind in kinds if kind is ClassDecl)


def java_classes(
    file: Path, kinds: Collection[type[Fact]], tick: Tick, report: Report
) -> Iterator[JavaClass]:
    """Yield the classes in a file, with their facts of some kinds; skip unreadable ones."""
    wanted = frozenset([*kinds, ClassDecl])
    try:
        for one in class_files(file):
            tick(file.name)
            yield from _java_class(one, wanted, kinds, report)
    except Unreadable as error:
        report(shown_path(file), str(error))


def _java_class(
    file: ClassFile, wanted: Collection[type[Fact]], kinds: Collection[type[Fact]], report: Report
) -> Iterator[JavaClass]:
    """One class, or none. Its declaration is needed for its name at least."""
    try:
        facts = read(file.read(), file.place, wanted)
    except (ClassFileError, Unreadable) as error:
        report(file.place, str(error))
        return
    declaration: Any = facts[ClassDecl][0]
    if ClassDecl not in kinds:
        facts = {kind: rows for kind, rows in facts.items() if kind in kinds}
    yield JavaClass(file.place, declaration.name, facts)
