"""The input files: class files by themselves, in folders, and in jars in folders.

The order is that of Java's class path: the given paths one after another; in a folder first its
class files and then its jars, each by name. Libraries are last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePath

from examples.findbugs.archives import (
    ARCHIVES,
    CLASS,
    ClassFile,
    Unreadable,
    alone,
    archived,
    is_archive,
    is_class,
)
from examples.watching import MissingExtra

SOURCE = ".java"


@dataclass(frozen=True, slots=True)
class Inputs:
    """The paths that were given, of files and folders."""

    roots: tuple[Path, ...]
    """The paths of the program."""
    library: tuple[Path, ...] = ()
    """The paths of libraries with superclasses of its classes."""

    def files(self) -> list[Path]:
        """All class files and archives, each once."""
        return list(dict.fromkeys(file for root in self.paths for file in _below(root)))

    def below(self, path: Path) -> list[Path]:
        """Return the input files that are at a path or below it now."""
        return sorted((file for file in _walked(path) if self.has(file)), key=self.order)

    def has(self, path: Path) -> bool:
        """Return True if a path is one of an input file, whether it exists or not."""
        return any(_has(root, path) for root in self.paths)

    def is_library(self, path: Path) -> bool:
        """Return True if an input file has no class of the program."""
        return not any(_has(root, path) for root in self.roots)

    def order(self, path: Path) -> tuple[int, bool, PurePath]:
        """Return the sort key of an input file."""
        first = next(n for n, root in enumerate(self.paths) if _has(root, path))
        return first, is_archive(path), path

    def has_sources(self) -> bool:
        """Return True if the folders of the program contain Java sources."""
        return any(True for root in self.roots for _ in root.rglob(f"*{SOURCE}"))

    @property
    def paths(self) -> tuple[Path, ...]:
        """All that were given."""
        return self.roots + self.library


def class_files(file: Path) -> Iterator[ClassFile]:
    """Yield the class files in a file, which is one or an archive, in the order of the archive.

    Raises
    ------
    Unreadable: it is no archive, or there is no such file.
    """
    if is_archive(file):
        yield from archived(file)
    else:
        yield alone(file)


def count(file: Path) -> int:
    """Return the number of class files in a file; 0 if it cannot be read."""
    try:
        return sum(1 for _ in class_files(file))
    except Unreadable:
        return 0


def problem_of(path: Path) -> str | None:
    """Why a path is nothing to read class files from; None if it is."""
    if not path.exists():
        return f"there is no {path}"
    if path.is_dir() or is_archive(path) or path.suffix == CLASS:
        return None
    if path.suffix == SOURCE:
        return f"{path} is a source: compile it first"
    return f"{path} is no folder, no {CLASS} file, and no archive ({', '.join(ARCHIVES)})"


def installed_jars(package: str) -> tuple[Path, ...]:
    """Return the jars of an installed Python package.

    Raises
    ------
    MissingExtra: the package is not installed, or has no jars.
    """
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        files = []
    jars = [Path(str(file.locate())).resolve() for file in files if file.suffix == ".jar"]
    found = tuple(sorted(jar for jar in jars if jar.exists()))
    if not found:
        raise MissingExtra(package, "reading its jars")
    return found


def _below(root: Path) -> list[Path]:
    """Return the input files of a given path."""
    return sorted(
        (file for file in _walked(root) if _has(root, file)),
        key=lambda file: (is_archive(file), file),
    )


def _walked(path: Path) -> Iterator[Path]:
    """Yield the files at a path, and at any depth below it."""
    if path.is_dir():
        yield from (file for file in path.rglob("*") if _may_be(file) and file.is_file())
    elif path.exists():
        yield path


def _has(root: Path, path: Path) -> bool:
    """Return True if a given path stands for a class file or archive."""
    if not path.is_relative_to(root):
        return False
    return is_archive(path) or is_class(path.relative_to(root.parent))


def _may_be(path: Path) -> bool:
    return path.suffix == CLASS or is_archive(path)
