"""Read class files into a program, in batches, without keeping their facts.

    files -> class files -> facts -> 500 classes -> tables and views
                              |
                  only the kinds that the analyses read

Cost: the memory is that of the views and of what they keep, and of one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

from examples.collector import without_collector
from examples.findbugs.classfile import ClassFileError, read
from examples.findbugs.difference import difference
from examples.findbugs.facts import ClassDecl, Fact, Facts
from examples.findbugs.inputs import ClassFile, Unreadable, class_files, name_of
from examples.findbugs.program import Program
from examples.terminal import Tick

BATCH = 500
"""Classes in a transaction: few enough for memory, and enough that their number is no matter."""

Report: TypeAlias = Callable[[str, str], object]
"""Called with the place of what cannot be read, and with the place and why."""


def unnoticed(place: str, problem: str) -> None:
    """For those whom problems do not concern."""


class JavaClass(NamedTuple):
    """A class as its file states it."""

    place: str
    name: str
    facts: Facts


@dataclass(slots=True)
class Loaded:
    """How much was read, and the seconds that it took."""

    classes: int = 0
    facts: int = 0
    duplicates: int = 0
    """Class files left out, as the same class came before."""
    problems: int = 0
    reading: float = 0.0
    analysing: float = 0.0

    @property
    def classes_per_second(self) -> float:
        """Read and analysed."""
        return self.classes / max(self.reading + self.analysing, 1e-9)


@dataclass(slots=True)
class _Load:
    program: Program
    tick: Tick
    report: Report
    done: Loaded = field(default_factory=Loaded)
    known: set[str] = field(default_factory=set)
    batch: dict[str, Facts] = field(default_factory=dict)

    def all_of(self, files: Iterable[Path]) -> None:
        started = perf_counter()
        for file in files:
            for found in java_classes(file, self.program.kinds, self.tick, self._problem):
                self._take(found)
                if len(self.batch) == BATCH:
                    self._apply()
        self._apply()
        self.done.reading = perf_counter() - started - self.done.analysing

    def _take(self, found: JavaClass) -> None:
        if found.name in self.known:
            self.done.duplicates += 1
        else:
            self.known.add(found.name)
            self.batch[found.name] = found.facts

    def _apply(self) -> None:
        started = perf_counter()
        change = difference({}, self.batch)
        self.program.apply(change)
        self.done.classes += len(self.batch)
        self.done.facts += len(change)
        self.batch.clear()
        self.done.analysing += perf_counter() - started

    def _problem(self, place: str, problem: str) -> None:
        self.done.problems += 1
        self.report(place, problem)


def load(
    program: Program, files: Iterable[Path], tick: Tick = str, report: Report = unnoticed
) -> Loaded:
    """Read all classes of some files into a program that has none yet.

    Of classes of the same name the first one counts. What cannot be read is left out.

    Parameters
    ----------
    files: class files and archives, in the order of the class path.
    tick: called before each class file with the name of the file that it is in.
    report: called with each problem.
    """
    work = _Load(program, tick, report)
    with without_collector():
        work.all_of(files)
    return work.done


def java_classes(
    file: Path, kinds: Collection[type[Fact]], tick: Tick = str, report: Report = unnoticed
) -> Iterator[JavaClass]:
    """The classes in a file, with their facts of some kinds; those that cannot be read left out."""
    wanted = frozenset([*kinds, ClassDecl])
    try:
        for one in class_files(file):
            tick(file.name)
            yield from _java_class(one, wanted, kinds, report)
    except Unreadable as error:
        report(name_of(file), str(error))


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
