"""What is taken of a file, and what keeps it from being taken.

State:  none.
Cost:   of a text, O(its characters).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Protocol

from reactive.errors import SourceError
from reactive.sources.batch import Refused
from reactive.sources.files.row_maker import UnfitRow

ESCAPED = "surrogateescape"
FLAW = re.compile("[\udc80-\udcff]")
"""What stands for a byte that is none of the encoding."""


class Unfinished(Exception):
    """What is there of a file is no file of its format, perhaps not yet."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken of a file, from a place on.

    length: bytes that were taken, up to which it need not be looked at again.
    lines: how many lines of the file come before that.
    columns: the names of its columns.
    is_ragged: whether what was taken ends within a line.
    waits: whether there is a line without an end.
    """

    rows: list[Any] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    length: int = 0
    lines: int = 0
    columns: tuple[str, ...] = ()
    is_ragged: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """From where on bytes are, in a file of a name."""

    path: str
    lines: int = 0
    columns: tuple[str, ...] = ()


class Format(Protocol):
    """What makes rows of bytes."""

    def grows(self, path: str) -> bool:
        """Whether the end of a file of this name has rows of its own."""
        ...

    def take(self, data: bytes, place: Place, *, is_calm: bool) -> Taken:
        """The rows of a file from a place on; `is_calm` if nobody has changed it for a while.

        Raises
        ------
        Unfinished: it is no such file, or not yet.
        """
        ...


def unfit(path: str, where: str, error: Exception) -> SourceError:
    """What to say of a part of a file that is no row."""
    reason = str(error) if isinstance(error, UnfitRow) else f"{type(error).__name__}: {error}"
    found = SourceError(
        f"{path}, {where}: {reason}\n"
        '  correct it, and start() again; or have such rows left out by on_error="drop"'
    )
    found.__cause__ = error
    return found


def shown(text: str) -> str:
    """A text as it can be shown."""
    return text if text.isascii() else FLAW.sub("\ufffd", text)


def decoded(data: bytes, encoding: str, place: Place) -> str:
    """Text; what is none of the encoding is in it as `surrogateescape` has it."""
    if place.lines == 0 and data[:3] == b"\xef\xbb\xbf" and encoding.lower() in ("utf-8", "utf8"):
        data = data[3:]
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        try:
            return data.decode(encoding, ESCAPED)
        except UnicodeDecodeError as error:
            raise Unfinished(f"{place.path}: {error}") from error


def checked(text: str, encoding: str) -> str:
    """A text without bytes that are none of the encoding."""
    if not text.isascii() and FLAW.search(text):
        raise UnfitRow(None, f"bytes that are no {encoding}")
    return text
