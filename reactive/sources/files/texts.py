"""Formats of text, a row per line: JSON lines, and CSV.

Of a file whose beginning is known its end is taken alone. A last line without an end waits until it
has one, or is whole as it is: a JSON object, or a line of CSV of a file that nobody has changed for
a second. A quote that is open then is an error, or else all that follows it would wait for ever.

Cost:   O(rows).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

from reactive.runtime.interrupts import reraise_asynchronous
from reactive.sources.batch import Refused
from reactive.sources.files.row_maker import RecordMaker, UnfitRow, ValueMaker
from reactive.sources.files.taken import ESCAPED, Place, Taken, checked, decoded, shown, unfit

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

    def take(self, data: bytes, place: Place, *, is_calm: bool) -> Taken:
        end = data.rfind(b"\n") + 1 if self._grows else len(data)
        texts = decoded(data[:end], self._encoding, place).split("\n")
        rows: list[Any] = []
        refused: list[Refused] = []
        make, loads, encoding, number = self._make, json.loads, self._encoding, place.lines
        for text in texts:
            number += 1
            if not text or text.isspace():
                continue
            try:
                rows.append(make(loads(checked(text, encoding))))
            except Exception as error:
                reraise_asynchronous(error)
                refused.append(Refused(shown(text), unfit(place.path, f"line {number}", error)))
        lines = place.lines + len(texts) - 1
        rest = data[end:]
        if not rest.strip():
            return Taken(rows, refused, end, lines)
        try:
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

    def take(self, data: bytes, place: Place, *, is_calm: bool) -> Taken:
        end = len(data) if is_calm or not self._grows else data.rfind(b"\n") + 1
        text = decoded(data[:end], self._encoding, place)
        found = _Records(text, self._delimiter)
        columns = place.columns
        rows: list[Any] = []
        refused: list[Refused] = []
        make: Callable[[Sequence[str]], Any] | None = None
        try:
            if not columns and (columns := self._columns(found)) == ():
                if is_calm and not found.is_whole:
                    raise UnfitRow(None, OPEN)
                return Taken(waits=bool(data.strip()))
            make = self._maker.of_cells(columns)
        except UnfitRow as error:
            refused = [Refused(place.path, unfit(place.path, "line 1", error))]
            return Taken(rows, refused, len(data), is_ragged=True)
        for cells in found:
            if not cells:
                continue
            try:
                checked("".join(cells), self._encoding)
                rows.append(make(cells))
            except Exception as error:
                reraise_asynchronous(error)
                number = place.lines + found.lines
                told = shown(self._delimiter.join(cells))
                refused.append(Refused(told, unfit(place.path, f"line {number}", error)))
        is_open = is_calm and not found.is_whole
        if is_open:
            found.errors.append((found.lines + 1, UnfitRow(None, OPEN)))
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

    def __init__(self, text: str, delimiter: str) -> None:
        self._text = text
        self._reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        self.lines = 0
        """Lines before the end of the last record."""
        self.is_whole = True
        """Whether the last record has an end."""
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
                self.errors.append((self._reader.line_num, _told(error)))
                self.lines = self._reader.line_num
                continue
            self.lines = self._reader.line_num
            return cells

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
    return UnfitRow(
        None,
        f"a cell of more than {csv.field_size_limit():,} characters: a quote is not closed, or "
        "csv.field_size_limit(...) is to be larger",
    )
