"""What is taken of a file, and what keeps it from being taken.

State:  none.
Cost:   of a text, O(its characters).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from reactive.borders.sources.batch import Refused
from reactive.borders.sources.files.row_maker import UnfitRow
from reactive.engine.runtime.json_depth import NESTED, is_too_deep
from reactive.errors import SourceError

SHOWN = 1_000
"""Letters of a refused row that are shown."""
ESCAPED = "surrogateescape"
FLAW = re.compile("[\udc80-\udcff]")
"""What stands for a byte that is none of the encoding."""


MAX_LINE, MAX_BYTES, MAX_RATIO = 1 << 24, 1 << 32, 200
"""The usual limits."""


class Unfinished(Exception):
    """What is there of a file is no file of its format, perhaps not yet."""


class TooLarge(Unfinished):
    """A file has more than its limits allow."""


class Stopped(Exception):
    """A source is to stop while it reads a file."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of what is read of a file.

    max_line: letters of a line, or of a row in several lines.
    max_bytes: bytes that are read at a time, and those of what was compressed.
    max_ratio: bytes of what was compressed, for each of the file; of more than `max_line`.
    is_stopped: returns True once the source is to stop.
    """

    max_line: int = MAX_LINE
    max_bytes: int = MAX_BYTES
    max_ratio: int = MAX_RATIO
    is_stopped: Callable[[], bool] = _never

    def go_on(self) -> None:
        """Raise `Stopped` if the source is to stop."""
        if self.is_stopped():
            raise Stopped

    def check_size(self, path: str, size: int) -> None:
        """Raise `TooLarge` for more bytes than are read."""
        if size > self.max_bytes:
            raise TooLarge(
                f"cannot read {path}: {size:,} bytes are more than max_bytes={self.max_bytes:,}\n"
                "  give a larger max_bytes=, or split the file"
            )


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
    limits: Limits = Limits()


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
    reason = f"{error!s:.1000}"
    if isinstance(error, RecursionError):
        reason = "a value is nested too deep"
    elif not isinstance(error, UnfitRow):
        reason = f"{type(error).__name__}: {reason}"
    found = SourceError(
        f"{path}, {where}: {reason}\n"
        '  correct it, and start() again; or have such rows left out by on_error="drop"'
    )
    found.__cause__ = error
    return found


def shown(text: str) -> str:
    """A text as it can be shown, or its beginning."""
    text = text[:SHOWN]
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


def check_length(letters: int, limits: Limits) -> None:
    """Raise `UnfitRow` for a row of more letters than it may have."""
    if letters > limits.max_line:
        raise UnfitRow(
            None, f"{letters:,} letters are more than max_line={limits.max_line:,} of a row"
        )


def check_depth(text: str) -> None:
    """Raise `UnfitRow` for JSON that is nested so deep that reading it could end the process."""
    if is_too_deep(text):
        raise UnfitRow(None, f"a value is nested more than {NESTED} deep")


def checked(text: str, encoding: str) -> str:
    """A text without bytes that are none of the encoding."""
    if not text.isascii() and FLAW.search(text):
        raise UnfitRow(None, f"bytes that are no {encoding}")
    return text
