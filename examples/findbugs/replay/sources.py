"""The sources of a replay: a recorded history, or builds of a program, each a jar or a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from examples.findbugs.archives import CLASS, Unreadable, is_archive, shown_path
from examples.findbugs.classfile import read
from examples.findbugs.difference import difference
from examples.findbugs.facts import ClassDecl, Facts
from examples.findbugs.inputs import Inputs, class_files, problem_of
from examples.findbugs.recorded import HistoryError, Revision, revisions
from examples.terminal import Tick, unnoticed

HISTORIES = Path(__file__).resolve().parent.parent / "histories"
SUFFIX = ".jsonl.xz"
TWO = "two or more jars or folders, from the oldest build to the newest"


def recorded() -> list[str]:
    """Return the histories that the example brings."""
    return sorted(file.name.removesuffix(SUFFIX) for file in HISTORIES.glob(f"*{SUFFIX}"))


def history_at(name: str) -> Path:
    """Return the file of a history: of the example's own by its name, of any other by its path."""
    return HISTORIES / f"{name}{SUFFIX}" if name in recorded() else Path(name)


def is_of_builds(sources: Sequence[Path]) -> bool:
    """Return True if `sources` are builds of a program; a single source is a recorded history."""
    return len(sources) > 1


def problem_of_sources(sources: Sequence[Path]) -> str | None:
    """Why these are neither a history nor builds; None if they are."""
    if is_of_builds(sources):
        return next((said for source in sources if (said := _problem_of_build(source))), None)
    [source] = sources
    if str(source) in recorded():
        return None
    if not source.exists() and not is_archive(source):
        return f"there is no history {source}; of the example: {', '.join(recorded())}"
    if source.is_file() and not is_archive(source) and source.suffix != CLASS:
        return None
    return problem_of(source) or f"{source} alone has no changes: give {TWO}"


def title_of(sources: Sequence[Path]) -> str:
    """Return the title of the replay: the history, or the first and the last build.

    >>> title_of([Path("shop-1.0.jar"), Path("shop-1.1.jar"), Path("shop-2.0.jar")])
    'shop-1.0-to-shop-2.0'
    """
    if not is_of_builds(sources):
        return sources[0].name.removesuffix(SUFFIX)
    first, *_, last = names_of(sources)
    return f"{first}-to-{last}".replace("/", "-")


def names_of(builds: Sequence[Path]) -> list[str]:
    """Return names of builds: the shortest ends of their paths that differ.

    >>> names_of([Path("old/classes"), Path("new/classes")])
    ['old/classes', 'new/classes']
    """
    paths = [_whole_path(build) for build in builds]
    parts = [path.parts[1:] for path in paths]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len({*names}) == len({*paths}):
            break
    return names


def of_history(path: Path, tick: Tick = unnoticed) -> Iterator[Revision]:
    """Yield the revisions of a recorded history; the first one makes the program of nothing.

    Raises
    ------
    HistoryError, OSError: the file is no history, or cannot be read.
    """
    is_empty = True
    for revision in revisions(path):
        is_empty = False
        tick(revision.name)
        yield revision
    if is_empty:
        raise HistoryError(f"{path}: no history: there is no revision in it")


def of_builds(builds: Sequence[Path], tick: Tick = unnoticed) -> Iterator[Revision]:
    """Yield the revisions that make each build of the one before it, and the first one of nothing.

    Only the class files that are not byte by byte as they were are read again. Of classes of the
    same name the first one counts.

    Raises
    ------
    ClassFileError, Unreadable: a file cannot be read.
    """
    files: Mapping[str, bytes] = {}
    facts: dict[str, Facts] = {}
    classes: dict[str, Facts] = {}
    for build, name in zip(builds, names_of(builds), strict=True):
        tick(name)
        before, files = files, _class_files(build)
        start = perf_counter()
        same = {place for place in files if before.get(place) == files[place]}
        facts = {
            place: facts[place] if place in same else read(data, f"{build}{place}")
            for place, data in files.items()
        }
        done = perf_counter()
        old, classes = classes, _by_name(facts)
        changed = [one for one in {**old, **classes} if old.get(one) is not classes.get(one)]
        differing = difference(_some(old, changed), _some(classes, changed))
        compared = perf_counter()
        count = len({*before, *files} - same)
        yield Revision(name, count, differing, done - start, compared - done)


def _problem_of_build(source: Path) -> str | None:
    if str(source) in recorded() and not source.exists():
        return f"{source} is a recorded history: give it alone, or {TWO}"
    return problem_of(source)


def _whole_path(build: Path) -> Path:
    """Return the path without the suffix of an archive; a link keeps its own name."""
    path = build.resolve() if build.name in ("", "..") else build.absolute()
    return path.with_suffix("") if is_archive(path) else path


def _class_files(build: Path) -> dict[str, bytes]:
    """Return the class files in a jar or folder, by their places in it."""
    beginning = shown_path(build)
    found = {
        file.place.removeprefix(beginning): file.read()
        for part in Inputs((build,)).files()
        for file in class_files(part)
    }
    if not found:
        raise Unreadable(f"{beginning}: there is no class file in it")
    return found


def _by_name(facts: Mapping[str, Facts]) -> dict[str, Facts]:
    """Return the facts of each class, from its first file."""
    classes: dict[str, Facts] = {}
    for every in facts.values():
        declared: Any = every[ClassDecl][0]
        classes.setdefault(declared.name, every)
    return classes


def _some(classes: Mapping[str, Facts], names: Sequence[str]) -> dict[str, Facts]:
    return {name: classes[name] for name in names if name in classes}
