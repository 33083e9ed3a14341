"""Rows of text files, JSON lines and CSV, and the part of a file that is read already.

Formats of text, a row per line: JSON lines, and CSV.

Of a file whose beginning is known its end is taken alone. A last line without an end waits until it
has one, or is whole as it is: a JSON object, or a line of CSV of a file that nobody has changed for
a second. A quote that is open then is an error, or else all that follows it would wait for ever.

Cost:   O(rows).

What is taken of a file, and what keeps it from being taken.

State:  none.
Cost:   of a text, O(its characters).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reactive.borders.sources.batch import Refused
from reactive.borders.sources.files.row_maker import RecordMaker, UnmadeRow, ValueMaker
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.engine.runtime.large_stack import NESTED, is_too_deep
from reactive.errors import SourceError

EVERY = 0xFF
"""Lines, less one, after which it is asked whether to go on."""
OPEN = "a quote that begins here is not closed by the end of the file"


class Lines:
    """JSON, a value per line."""

    def __init__(self, maker: RecordMaker | ValueMaker, encoding: str, grows: bool) -> None:
        self._grows = grows
        self._make = maker.of_object
        self._encoding = encoding
        self._is_record = isinstance(maker, RecordMaker)

    def grows(self, path: str) -> bool:
        """Whether the end of a line is one byte."""
        return self._grows

    def take(self, data: bytes, place: FilePlace, *, is_calm: bool) -> Taken:
        end = data.rfind(b"\n") + 1 if self._grows else len(data)
        texts = decoded(data[:end], self._encoding, place).split("\n")
        rows: list[Any] = []
        refused: list[Refused] = []
        make, loads, encoding, number = self._make, json.loads, self._encoding, place.lines
        limits = place.limits
        longest = limits.max_line
        for text in texts:
            number += 1
            if not number & EVERY:
                limits.go_on()
            if not text or text.isspace():
                continue
            try:
                if len(text) > NESTED:
                    if len(text) > longest:
                        check_length(len(text), limits)
                    check_depth(text)
                rows.append(make(loads(checked(text, encoding))))
            except Exception as error:
                reraise_asynchronous(error)
                refused.append(Refused(shown(text), unfit(place.path, f"line {number}", error)))
        lines = place.lines + len(texts) - 1
        rest = data[end:]
        if not rest.strip():
            return Taken(rows, refused, end, lines)
        try:
            check_length(len(rest), limits)
        except UnmadeRow as error:
            if is_calm:  # before, the next look would report it again
                told = shown(rest[: 4 * SHOWN].decode(self._encoding, "replace"))
                refused.append(Refused(told, unfit(place.path, f"line {lines + 1}", error)))
            return Taken(rows, refused, end, lines, waits=True)
        try:
            check_depth(rest.decode(self._encoding))
            value = json.loads(rest.decode(self._encoding))
            if isinstance(value, dict | list) or is_calm:
                rows.append(make(value))
                return Taken(rows, refused, len(data), lines, is_ragged=True)
        except Exception as error:
            reraise_asynchronous(error)
        return Taken(rows, refused, end, lines, waits=True)


class Cells:
    """CSV: a row per line, or per several if a cell in quotes has some."""

    def __init__(
        self,
        maker: RecordMaker | ValueMaker,
        encoding: str,
        grows: bool,
        delimiter: str,
        header: bool,
    ) -> None:
        self._grows = grows
        self._maker = maker
        self._encoding = encoding
        self._delimiter = delimiter
        self._header = header

    def grows(self, path: str) -> bool:
        """Whether the end of a line is one byte."""
        return self._grows

    def take(self, data: bytes, place: FilePlace, *, is_calm: bool) -> Taken:
        end = len(data) if is_calm or not self._grows else data.rfind(b"\n") + 1
        text = decoded(data[:end], self._encoding, place)
        found = _Records(text, self._delimiter, place.limits)
        columns = place.columns
        rows: list[Any] = []
        refused: list[Refused] = []
        make: Callable[[Sequence[str]], Any] | None = None
        try:
            if not columns and (columns := self._columns(found)) == ():
                if found.is_cut or (is_calm and not found.is_whole):
                    raise UnmadeRow(None, OPEN)
                return Taken(waits=bool(data.strip()))
            make = self._maker.of_cells(columns)
        except UnmadeRow as error:
            refused = [Refused(place.path, unfit(place.path, "line 1", error))]
            return Taken(rows, refused, len(data), is_ragged=True)
        limits = place.limits
        for cells in found:
            if not found.lines & EVERY:
                limits.go_on()
            if not cells:
                continue
            try:
                whole = checked("".join(cells), self._encoding)
                if len(whole) > limits.max_line:
                    check_length(len(whole), limits)
                rows.append(make(cells))
            except Exception as error:
                reraise_asynchronous(error)
                number = place.lines + found.lines
                told = shown(self._delimiter.join(cells))
                refused.append(Refused(told, unfit(place.path, f"line {number}", error)))
        is_open = found.is_cut or (is_calm and not found.is_whole)
        if is_open:
            found.errors.append((found.lines + 1, UnmadeRow(None, OPEN)))
        for lines, broken in found.errors:
            where = f"line {place.lines + lines}"
            refused.append(Refused(f"{place.path}, {where}", unfit(place.path, where, broken)))
        length = end - len(found.rest().encode(self._encoding, ESCAPED))
        is_ragged = is_open or (found.is_whole and text[-1:] not in ("\n", "\r", ""))
        waits = bool(data[length:].strip())
        return Taken(rows, refused, length, place.lines + found.lines, columns, is_ragged, waits)

    def _columns(self, found: _Records) -> tuple[str, ...]:
        if not self._header:
            if isinstance(self._maker, RecordMaker):
                return tuple(each.name for each in self._maker.fields)
            return ("",)
        for cells in found:
            if cells:
                return tuple(cell.strip() for cell in cells)
        return ()


class _Records:
    """The records of a text; the last one may have no end, and is none then."""

    def __init__(self, text: str, delimiter: str, limits: ReadLimits) -> None:
        self._text = text
        self._limits = limits
        self._source = io.StringIO(text, newline="")
        self._reader = csv.reader(self._source, delimiter=delimiter, strict=True)
        self._behind, self._behind_at = io.StringIO(text, newline=""), 0
        """The text again, up to a line, which the records with errors begin at."""
        self._skipped = 0
        self.lines = 0
        """Lines before the end of the last record."""
        self.is_whole = True
        """Whether the last record has an end."""
        self.is_cut = False
        """True if a quote is open that is not closed within a row's longest text."""
        self.errors: list[tuple[int, Exception]] = []

    def __iter__(self) -> _Records:
        return self

    def __next__(self) -> list[str]:
        while True:
            try:
                cells = next(self._reader)
            except csv.Error as error:
                if "unexpected end of data" in str(error):
                    self.is_whole = False
                    raise StopIteration from None
                if "field limit" in str(error) and not self._skip_record():
                    self.is_whole, self.is_cut = False, True
                    raise StopIteration from None
                self.lines = self._reader.line_num + self._skipped
                self.errors.append((self.lines, _told(error)))
                continue
            self.lines = self._reader.line_num + self._skipped
            return cells

    def _skip_record(self) -> bool:
        """Skip the rest of a record whose cell is too long; False if its quote is not closed."""
        for _ in range(self.lines - self._behind_at):
            next(self._behind)
        read = self._reader.line_num + self._skipped
        begun = [next(self._behind) for _ in range(read - self.lines)]
        self._behind_at = read
        quotes, letters = sum(line.count('"') for line in begun), sum(map(len, begun))
        while quotes & 1 and letters <= self._limits.max_line:
            line = next(self._source, None)
            if line is None:
                return False
            self._skipped += 1
            quotes += line.count('"')
            letters += len(line)
        return not quotes & 1

    def rest(self) -> str:
        """The text of a record without an end."""
        if self.is_whole:
            return ""
        lines = io.StringIO(self._text, newline="")
        for _ in range(self.lines):
            next(lines)
        return lines.read()


def _told(error: csv.Error) -> Exception:
    """What is wrong with a record, and what to do about it if that is not plain."""
    if "field limit" not in str(error):
        return error
    return UnmadeRow(
        None,
        f"a cell of more than {csv.field_size_limit():,} characters: a quote is closed too late, "
        "or csv.field_size_limit(...) is to be larger",
    )


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


class ReadingStopped(Exception):
    """A source is to stop while it reads a file."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ReadLimits:
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
        """Raise `ReadingStopped` if the source is to stop."""
        if self.is_stopped():
            raise ReadingStopped

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
class FilePlace:
    """From where on bytes are, in a file of a name."""

    path: str
    lines: int = 0
    columns: tuple[str, ...] = ()
    limits: ReadLimits = ReadLimits()


class Format(Protocol):
    """What makes rows of bytes."""

    def grows(self, path: str) -> bool:
        """Whether the end of a file of this name has rows of its own."""
        ...

    def take(self, data: bytes, place: FilePlace, *, is_calm: bool) -> Taken:
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
    elif not isinstance(error, UnmadeRow):
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


def decoded(data: bytes, encoding: str, place: FilePlace) -> str:
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


def check_length(letters: int, limits: ReadLimits) -> None:
    """Raise `UnmadeRow` for a row of more letters than it may have."""
    if letters > limits.max_line:
        raise UnmadeRow(
            None, f"{letters:,} letters are more than max_line={limits.max_line:,} of a row"
        )


def check_depth(text: str) -> None:
    """Raise `UnmadeRow` for JSON that is nested so deep that reading it could end the process."""
    if is_too_deep(text):
        raise UnmadeRow(None, f"a value is nested more than {NESTED} deep")


def checked(text: str, encoding: str) -> str:
    """A text without bytes that are none of the encoding."""
    if not text.isascii() and FLAW.search(text):
        raise UnmadeRow(None, f"bytes that are no {encoding}")
    return text
