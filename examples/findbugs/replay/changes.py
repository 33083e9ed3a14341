"""The changes that a replay makes: of a recorded history, or from one jar to the next."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from examples.findbugs.classfile import read
from examples.findbugs.difference import Difference, difference
from examples.findbugs.facts import Fact, Facts
from examples.findbugs.inputs import class_files
from examples.findbugs.recorded import HistoryError, revisions
from examples.terminal import Tick

HISTORIES = Path(__file__).resolve().parent.parent / "histories"
SUFFIX = ".jsonl.xz"


@dataclass(frozen=True, slots=True)
class Change:
    """What makes a revision of the one before."""

    name: str
    files: int
    """How many class files are not as they were."""
    facts: int
    """How many facts differ, of all kinds."""
    difference: Difference
    """The facts that differ, of the kinds that somebody reads."""
    reading: float = 0.0
    """Seconds to read the class files; 0 where facts are recorded."""
    comparing: float = 0.0
    """Seconds to compare their facts with those of before; 0 where facts are recorded."""

    @property
    def back(self) -> Difference:
        """What takes it back."""
        return Difference(self.difference.added, self.difference.removed)


def recorded() -> list[str]:
    """The histories that the example brings."""
    return sorted(file.name.removesuffix(SUFFIX) for file in HISTORIES.glob(f"*{SUFFIX}"))


def history_at(name: str) -> Path:
    """The file of a history: one that the example brings, by its name, or any other by its path."""
    return HISTORIES / f"{name}{SUFFIX}" if name in recorded() else Path(name)


def name_of(sources: Sequence[Path]) -> str:
    """What to call a history or jars: as the file, or as the first jar."""
    return sources[0].name.removesuffix(SUFFIX).removesuffix(".jar")


def of_history(path: Path, kinds: Collection[type[Fact]], tick: Tick = str) -> Iterator[Change]:
    """The changes of a recorded history; the first one makes its first revision of nothing.

    Raises
    ------
    HistoryError, OSError: the file is no history, or cannot be read.
    """
    is_empty = True
    for revision in revisions(path):
        is_empty = False
        tick(revision.name)
        kept = _only(revision.change, kinds)
        yield Change(revision.name, revision.files, len(revision.change), kept)
    if is_empty:
        raise HistoryError(f"{path}: no history: there is no revision in it")


def of_jars(
    jars: Sequence[Path], kinds: Collection[type[Fact]], tick: Tick = str
) -> Iterator[Change]:
    """The changes that make each jar of the one before it, and the first one of nothing.

    Only the class files that are not byte by byte as they were are read again.

    Raises
    ------
    ClassFileError, Unreadable: a file cannot be read.
    """
    files: Mapping[str, bytes] = {}
    facts: dict[str, Facts] = {}
    for jar in jars:
        tick(jar.name)
        before, files = files, _class_files(jar)
        changed = [name for name in {**before, **files} if before.get(name) != files.get(name)]
        start = perf_counter()
        new = {name: read(files[name], name) if name in files else {} for name in changed}
        done = perf_counter()
        change = difference({name: facts.get(name, {}) for name in changed}, new)
        compared = perf_counter()
        facts.update(new)
        kept = _only(change, kinds)
        yield Change(jar.stem, len(changed), len(change), kept, done - start, compared - done)


def _class_files(jar: Path) -> dict[str, bytes]:
    """The class files in a jar, by their names in it."""
    return {file.place.removeprefix(f"{jar}!"): file.read() for file in class_files(jar)}


def _only(change: Difference, kinds: Collection[type[Fact]]) -> Difference:
    """The facts of some kinds."""
    return Difference(
        {kind: rows for kind, rows in change.removed.items() if kind in kinds},
        {kind: rows for kind, rows in change.added.items() if kind in kinds},
    )
