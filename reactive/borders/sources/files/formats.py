"""Formats of files: the conversion of their bytes to rows.

    by line      JSON lines, CSV (`texts.py`): can continue after a known beginning
    as a whole   a JSON list, Parquet, a reader of the user, anything compressed

Cost:   O(rows).
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from optimizer.errors import PlanError
from optimizer.kinds.texts import columns_of
from reactive.borders.sources.batch import Refused
from reactive.borders.sources.files.row_maker import RecordMaker, ValueMaker, make_row_maker
from reactive.borders.sources.files.texts import (
    EVERY,
    MAX_BYTES,
    MAX_LINE,
    MAX_RATIO,
    Cells,
    FileChunk,
    FilePlace,
    Format,
    Lines,
    ReadingStopped,
    TooLarge,
    UnfinishedFile,
    check_depth,
    check_row_length,
    decode_bytes,
    unfit_part_error,
)
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.engine.runtime.needs import installing

Reader: TypeAlias = Callable[[Path], Iterable[Any]]
"""A function that reads the rows of a file, given as a `pathlib.Path`."""
SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".facts": "facts",
    ".parquet": "parquet",
}
SPACE = re.compile(r"[ \t\n\r]*")
PIECE = 1 << 20
"""The bytes that are decompressed at a time."""
NAMES = ("jsonl", "csv", "tsv", "facts", "json", "parquet")
USUAL: Mapping[str, Any] = {
    "format": None,
    "encoding": "utf-8",
    "delimiter": None,
    "header": True,
    "max_line": MAX_LINE,
    "max_bytes": MAX_BYTES,
    "max_ratio": MAX_RATIO,
}
"""The options for reading files, with their defaults."""
_PACKED = ("max_bytes", "max_ratio")
READ: Mapping[str, tuple[str, ...]] = {
    "jsonl": ("encoding", "max_line", *_PACKED),
    "json": ("encoding", "max_line", *_PACKED),
    "csv": ("encoding", "delimiter", "header", "max_line", *_PACKED),
    "tsv": ("encoding", "delimiter", "header", "max_line", *_PACKED),
    "facts": ("encoding", "delimiter", "max_line", *_PACKED),
    "parquet": _PACKED,
    "reader": (),
}
"""The options that each format, or a reader of the user, accepts."""


def format_of(
    path: str,
    kind: Any,
    *,
    format: str | None,
    reader: Reader | None,
    encoding: str,
    delimiter: str | None,
    header: bool,
    limits: Mapping[str, int],
) -> Format:
    """Return the format of files with a name.

    Raises
    ------
    PlanError: no format is known, or the format does not accept an option.
    """
    given = {"encoding": encoding, "delimiter": delimiter, "header": header, **limits}
    if reader is not None:
        _check_read("reader", {"format": format, **given})
        if not callable(reader):
            raise PlanError(
                f"reader={reader!r:.100} is no function\n"
                "  give one that takes a pathlib.Path, and gives its rows"
            )
        return ReaderFormat(reader)
    _check_text(encoding, delimiter)
    suffix = Path(path.lower().removesuffix(".gz")).suffix
    named = format or SUFFIXES.get(suffix)
    if named not in NAMES:
        what = f"files as {path!r}" if format is None else f"format={format!r:.50}"
        raise PlanError(
            f"no format is known for {what}\n"
            f"  say it: format={', '.join(map(repr, NAMES))}; or give reader=, a function that "
            "gives the rows of a pathlib.Path"
        )
    _check_read(named, given)
    if kind is None:
        raise PlanError(f"files of {named} need the class of their rows\n  files(pattern, Order)")
    return GzipFormat(
        _make_format(
            named, make_row_maker(kind, by_name=named == "parquet"), encoding, delimiter, header
        )
    )


def _check_read(named: str, given: Mapping[str, Any]) -> None:
    """Refuse options that the format or reader does not accept."""
    for option, value in given.items():
        if option not in READ[named] and value != USUAL[option]:
            by = "a reader of yours" if named == "reader" else f"the format {named!r}"
            known = ", ".join(f"{each}=" for each in READ[named])
            remedy = f"it reads {known}" if known else "open the file as you want it, in the reader"
            raise PlanError(f"{option}={value!r:.50} is not read by {by}\n  {remedy}")


def _check_text(encoding: Any, delimiter: Any) -> None:
    """Raise `PlanError` for an unknown encoding or an invalid delimiter."""
    try:
        codecs.lookup(encoding)
    except (LookupError, TypeError):
        raise PlanError(
            f"encoding={encoding!r:.50} is not known\n  give one such as 'utf-8' or 'latin-1'"
        ) from None
    if delimiter is not None and not (isinstance(delimiter, str) and len(delimiter) == 1):
        raise PlanError(f"delimiter={delimiter!r:.50} is not one character\n  give one such as ';'")


def _make_format(
    named: str, maker: RecordMaker | ValueMaker, encoding: str, delimiter: str | None, header: bool
) -> Format:
    """Return the format of a name. Raises `PlanError` if it is Parquet, and pyarrow is missing."""
    grows = "\n".encode(encoding) == b"\n"
    match named:
        case "jsonl":
            return Lines(maker, encoding, grows)
        case "csv" | "tsv":
            usual = "\t" if named == "tsv" else ","
            return Cells(maker, encoding, grows, delimiter or usual, header)
        case "facts":
            return Cells(maker, encoding, grows, delimiter or "\t", False)
        case "json":
            return JsonFormat(maker, encoding)
    if find_spec("pyarrow") is None:
        raise PlanError(
            f"Parquet is read by pyarrow, which is not installed\n  {installing('arrow')}"
        )
    return Parquet(maker)


class JsonFormat:
    """A JSON list of rows."""

    def grows(self, path: str) -> bool:
        """Return False: the file is read as a whole."""
        return False

    def __init__(self, maker: RecordMaker | ValueMaker, encoding: str) -> None:
        self._make = maker.of_object
        self._encoding = encoding

    def take(self, data: bytes, place: FilePlace, *, is_calm: bool) -> FileChunk:
        """Convert a whole JSON list.

        Raises `UnfinishedFile` if it is not valid, or nested too deeply.
        """
        text = decode_bytes(data, self._encoding, place)
        try:
            check_depth(text)
            values = _split_list(text, place)
        except RecursionError as error:
            raise UnfinishedFile(f"{place.path} is no JSON: it is nested too deep") from error
        except ValueError as error:
            raise UnfinishedFile(f"{place.path} is no JSON: {error}") from error
        return _convert_all(values, self._make, place, len(data))


def _split_list(text: str, place: FilePlace) -> list[Any]:
    """Return the elements of a list in JSON, each decoded by itself.

    Raises `UnfinishedFile` for another value, `ValueError` for invalid JSON.
    """
    begin = SPACE.match(text).end()  # type: ignore[union-attr]
    if not text.startswith("[", begin):
        raise UnfinishedFile(f"{place.path} has no list of rows, but {json.loads(text)!r:.80}")
    decode, found = json.JSONDecoder().raw_decode, list[Any]()
    at = SPACE.match(text, begin + 1).end()  # type: ignore[union-attr]
    is_over = text.startswith("]", at)
    while not is_over:
        value, end = decode(text, at)
        if end - at > place.limits.max_line:
            check_row_length(end - at, place.limits)
        found.append(value)
        if not len(found) & EVERY:
            place.limits.go_on()
        at = SPACE.match(text, end).end()  # type: ignore[union-attr]
        is_over = text.startswith("]", at)
        if not is_over:
            if not text.startswith(",", at):
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            at = SPACE.match(text, at + 1).end()  # type: ignore[union-attr]
    at = SPACE.match(text, at + 1).end()  # type: ignore[union-attr]
    if at != len(text):
        raise json.JSONDecodeError("Extra data", text, at)
    return found


class Parquet:
    """A Parquet file."""

    def grows(self, path: str) -> bool:
        """Return False: the file is read as a whole."""
        return False

    def __init__(self, maker: RecordMaker | ValueMaker) -> None:
        self._maker = maker

    def take(self, data: bytes, place: FilePlace, *, is_calm: bool) -> FileChunk:
        """Convert a whole file of Parquet.

        Raises `UnfinishedFile` if it is not valid, or lacks columns.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(pa.BufferReader(data))
        except (pa.ArrowException, OSError) as error:
            raise UnfinishedFile(f"{place.path} is no Parquet: {error}") from error
        maker = self._maker
        if isinstance(maker, RecordMaker):
            names = [each.name for each in maker.fields]
            try:
                places = columns_of(names, table.column_names)
            except ValueError as error:
                raise UnfinishedFile(f"{place.path}: {error}") from None
            if len(places) == len(names):
                columns = [table.column(places[name]).to_pylist() for name in names]
                return _convert_all(
                    list(zip(*columns, strict=True)), maker.of_values, place, len(data)
                )
            return _convert_all(table.to_pylist(), maker.of_object, place, len(data))
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        if table.num_columns == 1:
            rows = [row[0] for row in rows]
        return _convert_all(rows, maker.of_object, place, len(data))


class GzipFormat:
    """Files of another format; those whose names end in .gz are decompressed."""

    def __init__(self, inner: Format) -> None:
        self._inner = inner

    def grows(self, path: str) -> bool:
        """Return True if the file is not compressed, and its format can be read in parts."""
        return not _is_packed(path) and self._inner.grows(path)

    def take(self, data: bytes, place: FilePlace, *, is_calm: bool) -> FileChunk:
        """Decompress the data if needed, and call the format's `take`.

        Raises `UnfinishedFile` for data that is not gzip.
        """
        if not _is_packed(place.path):
            return self._inner.take(data, place, is_calm=is_calm)
        try:
            text = _decompress(data, place)
        except (OSError, EOFError, zlib.error) as error:
            raise UnfinishedFile(f"{place.path} is no gzip: {error}") from error
        found = self._inner.take(text, place, is_calm=True)
        return FileChunk(found.rows, found.refused, len(data), found.lines, found.columns)


class ReaderFormat:
    """Files that a function of the user reads."""

    def grows(self, path: str) -> bool:
        """Return False: the file is read as a whole."""
        return False

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def take(self, data: bytes, place: FilePlace, *, is_calm: bool) -> FileChunk:
        """Return the rows that the user's function reads; of `data`, only the length is used.

        Raises `UnfinishedFile` if the function raises.
        """
        try:
            rows = list[Any]()
            for row in self._reader(Path(place.path)):
                place.limits.go_on()
                rows.append(row)
            return FileChunk(rows, length=len(data))
        except ReadingStopped:
            raise
        except Exception as error:
            reraise_asynchronous(error)
            raise UnfinishedFile(
                f"{place.path} is not read: {type(error).__name__}: {error}"
            ) from error


def _decompress(data: bytes, place: FilePlace) -> bytes:
    """Decompress data. Raises `TooLarge` if it exceeds the limits."""
    limits, pieces, size = place.limits, list[bytes](), 0
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        while piece := file.read(PIECE):
            pieces.append(piece)
            size += len(piece)
            limits.go_on()
            limits.check_size(place.path, size)
            if size > max(limits.max_line, limits.max_ratio * len(data)):
                raise TooLarge(
                    f"cannot unpack {place.path}: it has more than max_ratio={limits.max_ratio} "
                    f"times its {len(data):,} bytes\n"
                    "  if it is no bomb, give a larger max_ratio="
                )
    return b"".join(pieces)


def _is_packed(path: str) -> bool:
    return path.lower().endswith(".gz")


def _convert_all(
    values: Iterable[Any], make: Callable[[Any], Any], place: FilePlace, length: int
) -> FileChunk:
    """Convert values to rows; values that cannot be converted are in `refused`, with the reason."""
    rows, refused = [], []
    for number, value in enumerate(values, 1):
        if not number & EVERY:
            place.limits.go_on()
        try:
            rows.append(make(value))
        except Exception as error:
            reraise_asynchronous(error)
            refused.append(
                Refused(f"{value!r:.1000}", unfit_part_error(place.path, f"row {number}", error))
            )
    return FileChunk(rows, refused, length)
