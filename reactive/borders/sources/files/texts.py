"""Text formats with a row per line: JSON lines and CSV; and the limits and results of reading.

Of a file whose beginning is known, only the rest is read. An incomplete last line waits for its
end, unless it is complete as it is: a JSON object, or a line of CSV in a file that was not changed
for a second. A quote still open then is an error, because otherwise everything after it would wait
for ever.

State:  none.
Cost:   O(rows), and O(characters) of a text; of JSON lines that were read before, a hash.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from reactive.borders.sources.batch import Refused
from reactive.borders.sources.files.blocks import LineBlock, convert_changed, digest_of
from reactive.borders.sources.files.row_maker import RecordMaker, UnmadeRow, ValueMaker
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.engine.runtime.large_stack import NESTED, is_too_deep
from reactive.errors import SourceError

EVERY = 0xFF
"""The lines between two checks whether to stop, minus one. JSON lines between them are converted
together."""
OPEN = "a quote that begins here is not closed by the end of the file"


class Lines:
    """JSON lines: a value per line."""

    def __init__(self, maker: RecordMaker | ValueMaker, encoding: str, grows: bool) -> None:
        self._grows = grows
        self._make = maker.of_object
        self._make_all = maker.of_objects
        self._encoding = encoding

    def grows(self, path: str) -> bool:
        """Return True if a line break is one byte, so that the last lines can be read alone."""
        return self._grows

    def take(self, data: bytes, place: FilePlace, *, is_calm: bool) -> FileChunk:
        """Convert lines of JSON; lines that cannot be converted are in `refused`.

        An incomplete last line is converted if it is a whole list or object; with
        `is_calm`, if it is any value. Otherwise it waits.
        """
        end = data.rfind(b"\n") + 1 if self._grows else len(data)
        blocks = self._blocks(data[:end], place)
        rows = [row for block in blocks for row in block.rows]
        refused = [each for block in blocks for each in block.refused]
        lines = place.lines + sum(block.lines for block in blocks)
        chunk = FileChunk(rows, refused, end, lines, blocks=blocks)
        rest = data[end:]
        if not rest.strip():
            return chunk
        try:
            check_row_length(len(rest), place.limits)
        except UnmadeRow as error:
            if is_calm:  # otherwise, the next look would report it again
                told = printable(rest[: 4 * SHOWN].decode(self._encoding, "replace"))
                refused.append(
                    Refused(told, unfit_part_error(place.path, f"line {lines + 1}", error))
                )
            return replace(chunk, waits=True)
        try:
            check_depth(rest.decode(self._encoding))
            value = json.loads(rest.decode(self._encoding))
            if isinstance(value, dict | list) or is_calm:
                rows.append(self._make(value))
                return replace(chunk, length=len(data), is_ragged=True)
        except Exception as error:
            reraise_asynchronous(error)
        return replace(chunk, waits=True)

    def _blocks(self, data: bytes, place: FilePlace) -> list[LineBlock]:
        """Convert whole lines, but not those of known blocks at the beginning and at the end."""
        if not self._grows:
            return [self._block(data, place)]
        return convert_changed(
            data,
            place.blocks,
            lambda piece, lines: self._block(piece, replace(place, lines=place.lines + lines)),
        )

    def _block(self, data: bytes, place: FilePlace) -> LineBlock:
        """Convert whole lines, the first of which is the one after `place`.

        Some lines are converted together; if one of them cannot be, each is by itself.
        """
        texts = decode_bytes(data, self._encoding, place).split("\n")
        lines = len(texts) - 1
        if not texts[-1]:
            texts.pop()
        rows: list[Any] = []
        refused: list[Refused] = []
        for first in range(0, len(texts), EVERY + 1):
            place.limits.go_on()
            some = texts[first : first + EVERY + 1]
            try:
                rows += self._make_all(_json_values(some, self._encoding))
            except Exception as error:
                reraise_asynchronous(error)
                self._convert_each(some, replace(place, lines=place.lines + first), rows, refused)
        return LineBlock(digest_of(memoryview(data)), len(data), lines, rows, tuple(refused))

    def _convert_each(
        self, texts: Sequence[str], place: FilePlace, rows: list[Any], refused: list[Refused]
    ) -> None:
        """Convert lines, each by itself, to `rows`; those that cannot be are in `refused`."""
        limits = place.limits
        for number, text in enumerate(texts, place.lines + 1):
            if not text or text.isspace():
                continue
            try:
                if len(text) > NESTED:
                    check_row_length(len(text), limits)
                    check_depth(text)
                rows.append(self._make(_json_value(check_encoding(text, self._encoding))))
            except Exception as error:
                reraise_asynchronous(error)
                refused.append(
                    Refused(printable(text), unfit_part_error(place.path, f"line {number}", error))
                )


def _json_values(texts: Sequence[str], encoding: str) -> list[Any]:
    """Return the value of each line; raise if one of them needs a look of its own."""
    if max(map(len, texts)) > NESTED:
        raise ValueError("a long line")
    scan, values = _scan_value, list[Any]()
    for text in texts:
        value, end = scan(text, 0)
        values.append(value if end == len(text) else json.loads(text))
    check_encoding("".join(texts), encoding)
    return values


_scan_value: Any = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def _json_value(text: str) -> Any:
    """Return the value of a text as `json.loads` does, without its search for space around it."""
    try:
        value, end = _scan_value(text, 0)
    except StopIteration:
        return json.loads(text)
    return value if end == len(text) else json.loads(text)


class Cells:
    """CSV: a row per line, or per several lines if a quoted cell contains line breaks."""

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
        """Return True if a line break is one byte, so that the last lines can be read alone."""
        return self._grows

    def take(self, data: bytes, place: FilePlace, *, is_calm: bool) -> FileChunk:
        """Convert records of cells, after the header; records that do not fit are in `refused`.

        An incomplete last record waits unless `is_calm`. The whole file is refused if its
        header does not fit.
        """
        end = len(data) if is_calm or not self._grows else data.rfind(b"\n") + 1
        text = decode_bytes(data[:end], self._encoding, place)
        found = _Records(text, self._delimiter, place.limits)
        columns = place.columns
        rows: list[Any] = []
        refused: list[Refused] = []
        make: Callable[[Sequence[str]], Any] | None = None
        try:
            if not columns and (columns := self._columns(found)) == ():
                if found.is_cut or (is_calm and not found.is_whole):
                    raise UnmadeRow(None, OPEN)
                return FileChunk(waits=bool(data.strip()))
            make = self._maker.of_cells(columns)
        except UnmadeRow as error:
            refused = [Refused(place.path, unfit_part_error(place.path, "line 1", error))]
            return FileChunk(rows, refused, len(data), is_ragged=True)
        limits = place.limits
        for cells in found:
            if not found.lines & EVERY:
                limits.go_on()
            if not cells:
                continue
            try:
                whole = check_encoding("".join(cells), self._encoding)
                if len(whole) > limits.max_line:
                    check_row_length(len(whole), limits)
                rows.append(make(cells))
            except Exception as error:
                reraise_asynchronous(error)
                number = place.lines + found.lines
                told = printable(self._delimiter.join(cells))
                refused.append(Refused(told, unfit_part_error(place.path, f"line {number}", error)))
        is_open = found.is_cut or (is_calm and not found.is_whole)
        if is_open:
            found.errors.append((found.lines + 1, UnmadeRow(None, OPEN)))
        for lines, broken in found.errors:
            where = f"line {place.lines + lines}"
            refused.append(
                Refused(f"{place.path}, {where}", unfit_part_error(place.path, where, broken))
            )
        length = end - len(found.rest().encode(self._encoding, ESCAPED))
        is_ragged = is_open or (found.is_whole and text[-1:] not in ("\n", "\r", ""))
        waits = bool(data[length:].strip())
        return FileChunk(
            rows, refused, length, place.lines + found.lines, columns, is_ragged, waits
        )

    def _columns(self, found: _Records) -> tuple[str, ...]:
        """Return the columns: declared, or read from `found`, whose first record is consumed.

        Without header and record class, there is one nameless column; without any record,
        none.
        """
        if not self._header:
            if isinstance(self._maker, RecordMaker):
                return tuple(each.name for each in self._maker.fields)
            return ("",)
        for cells in found:
            if cells:
                return tuple(cell.strip() for cell in cells)
        return ()


class _Records:
    """The complete records of a text."""

    def __init__(self, text: str, delimiter: str, limits: ReadLimits) -> None:
        self._text = text
        self._limits = limits
        self._source = io.StringIO(text, newline="")
        self._reader = csv.reader(self._source, delimiter=delimiter, strict=True)
        self._behind, self._behind_at = io.StringIO(text, newline=""), 0
        """A second position in the text, at the start of the record that is skipped."""
        self._skipped = 0
        self.lines = 0
        """The number of lines before the end of the last record."""
        self.is_whole = True
        """True if the last record is complete."""
        self.is_cut = False
        """True if an open quote is not closed within the longest text of a row."""
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
                self.errors.append((self.lines, _record_error(error)))
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
        """Return the text of an incomplete record."""
        if self.is_whole:
            return ""
        lines = io.StringIO(self._text, newline="")
        for _ in range(self.lines):
            next(lines)
        return lines.read()


def _record_error(error: csv.Error) -> Exception:
    """Return the error of a record, with a remedy if the cell is too long."""
    if "field limit" not in str(error):
        return error
    return UnmadeRow(
        None,
        f"a cell of more than {csv.field_size_limit():,} characters: a quote is closed too late, "
        "or csv.field_size_limit(...) is to be larger",
    )


SHOWN = 1_000
"""The letters of a refused row that are shown."""
ESCAPED = "surrogateescape"
FLAW = re.compile("[\udc80-\udcff]")
"""A stand-in for a byte that is invalid in the encoding."""


MAX_LINE, MAX_BYTES, MAX_RATIO = 1 << 24, 1 << 32, 200
"""The default limits."""


class UnfinishedFile(Exception):
    """A file does not have its format, perhaps not yet."""


class TooLarge(UnfinishedFile):
    """A file exceeds its limits."""


class ReadingStopped(Exception):
    """The source must stop while it reads a file."""


def _is_never_stopped() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits of reading a file.

    max_line: the letters of a line, or of a row in several lines.
    max_bytes: the bytes read at a time, and those after decompression.
    max_ratio: the bytes after decompression per byte of the file, beyond `max_line`.
    is_stopped: returns True once the source must stop.
    """

    max_line: int = MAX_LINE
    max_bytes: int = MAX_BYTES
    max_ratio: int = MAX_RATIO
    is_stopped: Callable[[], bool] = _is_never_stopped

    def go_on(self) -> None:
        """Raise `ReadingStopped` if the source must stop."""
        if self.is_stopped():
            raise ReadingStopped

    def check_size(self, path: str, size: int) -> None:
        """Raise `TooLarge` for more bytes than the limit."""
        if size > self.max_bytes:
            raise TooLarge(
                f"cannot read {path}: {size:,} bytes are more than max_bytes={self.max_bytes:,}\n"
                "  give a larger max_bytes=, or split the file"
            )


@dataclass(frozen=True, slots=True)
class FileChunk:
    """The part of a file that was read, from a position on.

    length: the number of bytes that need not be read again.
    lines: the number of lines of the file up to there.
    columns: the names of its columns.
    is_ragged: True if the part ends within a line.
    waits: True if an incomplete line follows.
    blocks: the whole lines in blocks, if the format can convert some of them alone.
    """

    rows: list[Any] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    length: int = 0
    lines: int = 0
    columns: tuple[str, ...] = ()
    is_ragged: bool = False
    waits: bool = False
    blocks: Sequence[LineBlock] = ()


@dataclass(frozen=True, slots=True)
class FilePlace:
    """The position of bytes in a file, and blocks that were read there before."""

    path: str
    lines: int = 0
    columns: tuple[str, ...] = ()
    limits: ReadLimits = ReadLimits()
    blocks: Sequence[LineBlock] = ()


class Format(Protocol):
    """A conversion of bytes to rows."""

    def grows(self, path: str) -> bool:
        """Return True if the end of a file with this name can be converted alone."""
        ...

    def take(self, data: bytes, place: FilePlace, *, is_calm: bool) -> FileChunk:
        """Convert a file from a position on; `is_calm` if it was not changed for a while.

        Raises
        ------
        UnfinishedFile: it does not have this format, perhaps not yet.
        """
        ...


def unfit_part_error(path: str, where: str, error: Exception) -> SourceError:
    """Return the error for a part of a file that cannot be converted to a row."""
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


def printable(text: str) -> str:
    """Return the beginning of a text in printable form."""
    text = text[:SHOWN]
    return text if text.isascii() else FLAW.sub("\ufffd", text)


def decode_bytes(data: bytes, encoding: str, place: FilePlace) -> str:
    """Decode bytes; invalid ones become surrogates, as with `surrogateescape`.

    Raises `UnfinishedFile` if the encoding has no such form.
    """
    if place.lines == 0 and data[:3] == b"\xef\xbb\xbf" and encoding.lower() in ("utf-8", "utf8"):
        data = data[3:]
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        try:
            return data.decode(encoding, ESCAPED)
        except UnicodeDecodeError as error:
            raise UnfinishedFile(f"{place.path}: {error}") from error


def check_row_length(letters: int, limits: ReadLimits) -> None:
    """Raise `UnmadeRow` for a row of more letters than the limit."""
    if letters > limits.max_line:
        raise UnmadeRow(
            None, f"{letters:,} letters are more than max_line={limits.max_line:,} of a row"
        )


def check_depth(text: str) -> None:
    """Raise `UnmadeRow` for JSON nested so deeply that reading it could crash the process."""
    if is_too_deep(text):
        raise UnmadeRow(None, f"a value is nested more than {NESTED} deep")


def check_encoding(text: str, encoding: str) -> str:
    """Return a text, or raise if it has bytes that are invalid in the encoding."""
    if not text.isascii() and FLAW.search(text):
        raise UnmadeRow(None, f"bytes that are no {encoding}")
    return text
