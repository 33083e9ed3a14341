"""Which class files there are: by themselves, in folders, and in jars that stand in folders.

The order is that of Java's class path: the paths that were given one after another, of a folder
first its class files and then its jars, each by name. In a jar for several versions of Java, the
classes for the oldest one are meant.
"""

from __future__ import annotations

import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from itertools import pairwise
from pathlib import Path, PurePath
from zipfile import BadZipFile, ZipFile, ZipInfo

from examples.terminal import printable
from examples.watching import MissingExtra

ARCHIVES = (".jar", ".war", ".zip", ".jmod")
CLASS = ".class"
VERSIONS = ("META-INF", "versions")
LARGEST = 64 * 2**20
"""Bytes; no class file comes near it."""

BROKEN = (
    BadZipFile,
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
)
"""What is raised by archives that are broken, encrypted or of an unknown sort."""


class Unreadable(Exception):
    """A file, or a class file in an archive, that cannot be read: which, and why."""


@dataclass(frozen=True, slots=True)
class ClassFile:
    """A class file by itself or in an archive, and how to read it.

    Reading raises Unreadable.
    """

    place: str
    read: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The paths that were given, of files and folders."""

    roots: tuple[Path, ...]

    def files(self) -> list[Path]:
        """All class files and archives, each once."""
        return list(dict.fromkeys(file for root in self.roots for file in self._below(root)))

    def below(self, path: Path) -> list[Path]:
        """Those of them that are at a path or below it now."""
        return sorted((file for file in _walked(path) if self.has(file)), key=self.order)

    def has(self, path: Path) -> bool:
        """Whether a path is one of a class file or archive among them, be it there or not."""
        return any(_has(root, path) for root in self.roots)

    def order(self, path: Path) -> tuple[int, bool, PurePath]:
        """What they are sorted by."""
        first = next(n for n, root in enumerate(self.roots) if _has(root, path))
        return first, is_archive(path), path

    def _below(self, root: Path) -> list[Path]:
        return sorted(
            (file for file in _walked(root) if _has(root, file)),
            key=lambda file: (is_archive(file), file),
        )


def is_archive(path: Path) -> bool:
    """Whether a file is one of many class files, by its name."""
    return path.suffix.lower() in ARCHIVES


def problem_of(path: Path) -> str | None:
    """Why a path is nothing to read class files from; None if it is."""
    if not path.exists():
        return f"there is no {path}"
    if path.is_dir() or is_archive(path) or path.suffix == CLASS:
        return None
    return f"{path} is no folder, no {CLASS} file, and no archive ({', '.join(ARCHIVES)})"


def installed_jars(package: str) -> tuple[Path, ...]:
    """The jars that come with an installed Python package.

    Raises
    ------
    MissingExtra: there are none, or no such package.
    """
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        files = []
    jars = [Path(str(file.locate())).resolve() for file in files if file.suffix == ".jar"]
    found = tuple(sorted(jar for jar in jars if jar.exists()))
    if not found:
        raise MissingExtra(package)
    return found


def count(file: Path) -> int:
    """How many class files there are in a file; none, if it cannot be read."""
    try:
        return sum(1 for _ in class_files(file))
    except Unreadable:
        return 0


def name_of(file: Path) -> str:
    """What a file is called in messages."""
    return printable(str(file))


def class_files(file: Path) -> Iterator[ClassFile]:
    """The class files in a file, which is one or an archive, in the order of the archive.

    Raises
    ------
    Unreadable: it is no archive, or there is no such file.
    """
    if not is_archive(file):
        yield ClassFile(name_of(file), partial(_read, file))
        return
    try:
        archive = ZipFile(file)
    except BROKEN as error:
        raise Unreadable(f"{name_of(file)}: cannot be read: {_said(error)}") from error
    with archive:
        for entry in archive.infolist():
            if _is_class(PurePath(entry.filename)):
                place = printable(f"{file}!{entry.filename}")
                yield ClassFile(place, partial(_read_entry, archive, entry, place))


def _walked(path: Path) -> Iterator[Path]:
    """The files at a path, and at any depth below it."""
    if path.is_dir():
        yield from (file for file in path.rglob("*") if _may_be(file) and file.is_file())
    elif path.exists():
        yield path


def _has(root: Path, path: Path) -> bool:
    """Whether a class file or archive is meant by a path that was given."""
    if not path.is_relative_to(root):
        return False
    return is_archive(path) or _is_class(path.relative_to(root.parent))


def _may_be(path: Path) -> bool:
    return path.suffix == CLASS or is_archive(path)


def _is_class(path: PurePath) -> bool:
    """Whether the path in a folder or archive is that of a class file for all Java versions."""
    return path.suffix == CLASS and VERSIONS not in pairwise(path.parts)


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return _limited(opened.read(LARGEST + 1), name_of(file))
    except OSError as error:
        raise Unreadable(f"{name_of(file)}: cannot be read: {_said(error)}") from error


def _read_entry(archive: ZipFile, entry: ZipInfo, place: str) -> bytes:
    if entry.file_size > LARGEST:
        raise Unreadable(
            f"{place}: said to have {entry.file_size:,} bytes, which no class file has"
        )
    try:
        with archive.open(entry) as opened:
            return _limited(opened.read(LARGEST + 1), place)
    except BROKEN as error:
        raise Unreadable(f"{place}: cannot be read: {_said(error)}") from error


def _limited(data: bytes, place: str) -> bytes:
    if len(data) > LARGEST:
        raise Unreadable(f"{place}: has more than {LARGEST:,} bytes, which no class file has")
    return data


def _said(error: Exception) -> str:
    """What an error says, without the file; some say nothing."""
    said = error.strerror if isinstance(error, OSError) else None
    return printable(said or str(error) or type(error).__name__)
