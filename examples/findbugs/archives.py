"""Read class files, by themselves or in archives; unreadable ones have a reason.

A jar for several versions of Java stands for its classes for the oldest version.
"""

from __future__ import annotations

import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path, PurePath
from zipfile import BadZipFile, ZipFile, ZipInfo

from examples.terminal import printable

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
"""Exceptions of archives that are broken, encrypted or of an unknown kind."""


class Unreadable(Exception):
    """A file, or a class file in an archive, that cannot be read: which, and why."""


@dataclass(frozen=True, slots=True)
class ClassFile:
    """A class file by itself or in an archive, and how to read it.

    Reading raises Unreadable.
    """

    place: str
    read: Callable[[], bytes]


def is_archive(path: Path) -> bool:
    """Return True if a file has the suffix of an archive."""
    return path.suffix.lower() in ARCHIVES


def is_class(path: PurePath) -> bool:
    """Return True if the path is that of a class file for all Java versions."""
    return path.suffix == CLASS and VERSIONS not in pairwise(path.parts)


def shown_path(file: Path) -> str:
    """Return the path of a file as messages have it."""
    return printable(str(file))


def alone(file: Path) -> ClassFile:
    """Return a class file that is in no archive."""
    return ClassFile(shown_path(file), partial(_read, file))


def archived(file: Path) -> Iterator[ClassFile]:
    """Yield the class files in an archive, in its order.

    Raises
    ------
    Unreadable: it is no archive, or there is no such file.
    """
    try:
        archive = ZipFile(file)
    except BROKEN as error:
        raise Unreadable(f"{shown_path(file)}: cannot be read: {_said(error)}") from error
    with archive:
        for entry in archive.infolist():
            if is_class(PurePath(entry.filename)):
                place = printable(f"{file}!{entry.filename}")
                yield ClassFile(place, partial(_read_entry, archive, entry, place))


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return _limited(opened.read(LARGEST + 1), shown_path(file))
    except OSError as error:
        raise Unreadable(f"{shown_path(file)}: cannot be read: {_said(error)}") from error


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
    """Return the message of an error without the file, or the name of its class."""
    said = error.strerror if isinstance(error, OSError) else None
    return printable(said or str(error) or type(error).__name__)
