"""A folder with the changes of a view, batch by batch, as Parquet files.

    batch=000000000012/part-....parquet     the rows' columns, and a weight: 1 inserted, -1 deleted
    batch=000000000012/_position.json       the number of the batch, and its query
    _batch=000000000013/                    a batch that is being written: readers do not see it

A batch is moved into place together with its position, in one step. On object stores, which cannot
move folders, the position is written first, and names the files: then the batch counts, and this
process or the next moves the files. Even there, a batch of one file appears in one step.

The sum of all batches is the view. A reader of the folder as a table has the batch number as a
column; `db.spark_stream(folder, Row, changes="weight")` follows it. Spark writes the changes of a
view on Spark, which do not pass through the driver.

State:  on disk.
Cost:   a batch O(its changes); reading the contents, O(all changes), once per process.

`Listings` is the list of the current files in a folder of rows, in the format of Spark:

    _spark_metadata/0     "v1", then a line of JSON per file: path, size, ..., and our note

Spark reads the files of a folder from this list if there is one, as for folders that its streams
write; so a reader of the folder as a table sees the files of one moment. The list is written aside
and renamed. The names `_b=...` of files are hidden from readers that do not know the list (pandas,
pyarrow): they see nothing rather than too much.

Source: Spark's `FileStreamSinkLog`.

`Note` identifies the batch of data, and its query:

    {"format": 1, "batch": 12, "version": 340, "plan": "4b1c738cb36b..."}

Nothing in it is executed. A note of another format is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from reactive.borders.sinks.durable_outbox import ChangeBatch, ChangedRows, Position
from reactive.engine.collections.zset import Pair, consolidate, negate
from reactive.errors import OffloadError
from spark_backend.cluster.files import (
    count_rows,
    create_file,
    list_parquet,
    locate,
    moves_folders,
    read_table,
    replace_file,
)
from spark_backend.cluster.paths import absolute_path
from spark_backend.cluster.session import Session
from spark_backend.sinks.rows import WEIGHT, RowColumns

BATCH = "batch"
PART, POSITION = "part-0.parquet", "_position.json"
FILES = "files"
"""The key of the names of files in a position."""


class ChangesFolder:
    """A `Target` for the changes of a view: a folder of Parquet files, with a subfolder per batch.

    It needs only pyarrow, not Spark.

    Parameters
    ----------
    folder: a path, or a URI of a file system that the session knows, or pyarrow without one. One
        sink at a time may write it.
    row_type: the type of the rows, such as `tuple[int, float | None]`; by default it is inferred.
    session: a session of Spark, whose file systems are used too.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        row_type: Any = None,
        session: Session | None = None,
    ) -> None:
        place = locate(absolute_path(os.fspath(folder)), session)
        self._files, self._root, self._uri = place.files, place.root, place.uri
        self._columns = RowColumns(row_type, (WEIGHT, BATCH))
        self.expect = self._columns.expect
        self._staged: tuple[int, dict[str, Any]] | None = None
        """The number of a batch, and its note."""

    def open(self, plan: str) -> Position | None:
        """Return the position of the folder; None if the folder has no batch.

        Raises
        ------
        OffloadError: it has the changes of another query, a batch is missing, or the folder has
            other files.
        """
        self._staged = None
        numbers = self._published_numbers(self._numbers())
        if numbers != list(range(len(numbers))):
            missing = min(set(range(len(numbers))) - set(numbers))
            raise OffloadError(
                f"batch {missing} is missing in {self._root}, so nobody knows what was written\n"
                "  restore it, or give the view a new target"
            )
        if not numbers:
            return None
        note = self._read_note(numbers[-1])
        note.check(plan, self._root)
        self._move_files(numbers[-1])
        with self._files.open_input_file(self._parts(numbers[-1])[0]) as opened:
            self._columns.wrote(pq.read_schema(opened))
        return note.position

    def difference(self, rows: Iterable[Pair]) -> ChangedRows:
        """Return the difference from the sum of all batches to `rows`."""
        wanted = list(rows)
        self._columns.learn([row for row, _ in wanted])
        found = [
            self._read_file(path) for number in self._numbers() for path in self._parts(number)
        ]
        written = self._columns.pairs(pa.concat_tables(found)) if found else []
        return consolidate([*wanted, *negate(written)])

    def stage(self, batch: ChangeBatch) -> None:
        """Write a batch to a folder that readers do not see."""
        table = self._columns.weighted_columns(batch.changes)
        folder = self._hidden_folder(batch.number)
        self._files.create_dir(folder, recursive=True)
        with self._files.open_output_stream(f"{folder}/{PART}") as stream:
            pq.write_table(table, stream)
        self._make_staged_note(batch)

    def difference_frame(self, rows: Any) -> Any:
        """Return the difference as `difference` does, for rows on Spark."""
        parts = [part for number in self._numbers() for part in self._parts(number)]
        paths = [f"{self._uri}{part.removeprefix(self._root)}" for part in parts]
        return rows.without_changes(paths, sum(count_rows(self._files, part) for part in parts))

    def stage_frame(self, batch: ChangeBatch) -> bool:
        """Stage a batch as `stage` does, for changes on Spark, which writes them."""
        found = self._columns.typed(batch.changes.kept)
        folder = self._hidden_folder(batch.number)
        batch.changes.write_changes(found, f"{self._uri}{folder.removeprefix(self._root)}")
        parts = list_parquet(self._files, folder)
        if not any(count_rows(self._files, part) for part in parts):
            self._hidden_folder(batch.number)
            return False
        self._make_staged_note(batch)
        return True

    def _hidden_folder(self, number: int) -> str:
        """Delete the hidden folder of a batch, if it exists, and return its path."""
        folder = f"{self._root}/_{_batch_name(number)}"
        with suppress(FileNotFoundError):
            self._files.delete_dir(folder)
        return folder

    def _make_staged_note(self, batch: ChangeBatch) -> None:
        """Make the note of a batch that is written aside."""
        note = make_note(batch)
        folder = f"{self._root}/_{_batch_name(batch.number)}"
        if moves_folders(self._files):
            write_json(self._files, f"{folder}/{POSITION}", note)
        else:
            paths = list_parquet(self._files, folder)
            names = [path.rpartition("/")[2] for path in paths]
            note |= {FILES: names, "id": uuid4().hex}
        self._staged = batch.number, note

    def deliver(self) -> None:
        """Publish the batch, and move it into place.

        Raises
        ------
        OffloadError: there is a batch with that number that this sink did not write.
        """
        if self._staged is None:
            return
        number, note = self._staged
        to = f"{self._root}/{_batch_name(number)}"
        try:
            if moves_folders(self._files):
                self._move(f"{self._root}/_{_batch_name(number)}", to)
            elif not self._is_published(number, note):
                self._files.create_dir(to, recursive=True)
                create_file(self._files, f"{to}/{POSITION}", json.dumps(note).encode())
        except FileExistsError:
            raise OffloadError(
                f"{to} is there already: another sink writes to the same folder"
            ) from None
        self._move_files(number)
        self._staged = None

    def _move(self, folder: str, to: str) -> None:
        """Move a folder. Raises `FileExistsError` if the target exists."""
        if self._files.get_file_info(to).type != fs.FileType.NotFound:
            raise FileExistsError(to)
        self._files.move(folder, to)

    def _is_published(self, number: int, note: dict[str, Any]) -> bool:
        """Return True if the batch counts already: moving its files was interrupted."""
        try:
            found: Any = read_json(self._files, f"{self._root}/{_batch_name(number)}/{POSITION}")
        except FileNotFoundError:
            return False
        return bool(found == note)

    def _move_files(self, number: int) -> None:
        """Move the files of a published batch to their place; files that are there were moved
        before.

        Raises
        ------
        OffloadError: a file is missing.
        """
        to, aside = f"{self._root}/{_batch_name(number)}", f"{self._root}/_{_batch_name(number)}"
        names = read_json(self._files, f"{to}/{POSITION}").get(FILES, ())
        there = list_parquet(self._files, to)
        try:
            for name in map(check_plain_name, names):
                if f"{to}/{name}" not in there:
                    self._files.move(f"{aside}/{name}", f"{to}/{name}")
        except (FileNotFoundError, TypeError, ValueError) as error:
            raise unreadable_error(f"{to}/{POSITION}", error) from error
        if names:
            with suppress(FileNotFoundError):
                self._files.delete_dir(aside)

    def _published_numbers(self, numbers: list[int]) -> list[int]:
        """Return the batches that count; delete a last one that was interrupted before it
        counted."""
        if numbers:
            last = f"{self._root}/{_batch_name(numbers[-1])}"
            note = self._files.get_file_info(f"{last}/{POSITION}")
            if note.type == fs.FileType.NotFound and not list_parquet(self._files, last):
                self._files.delete_dir(last)
                return numbers[:-1]
        return numbers

    def _numbers(self) -> list[int]:
        """Return the numbers of the batches in order, without a batch that is being written.

        Raises `OffloadError` if the folder has other files.
        """
        found = fs.FileSelector(self._root, allow_not_found=True)
        numbers = []
        for info in self._files.get_file_info(found):
            name = info.base_name
            if name.startswith(f"{BATCH}=") and name[len(BATCH) + 1 :].isdecimal():
                numbers.append(int(name[len(BATCH) + 1 :]))
            elif not name.startswith(("_", ".")):
                raise OffloadError(
                    f"{self._root} has {name!r}, which no sink has written there\n"
                    "  give the view an empty folder"
                )
        return sorted(numbers)

    def _parts(self, number: int) -> list[str]:
        """Return the files with the changes of a batch.

        Raises
        ------
        OffloadError: there are none.
        """
        folder = f"{self._root}/{_batch_name(number)}"
        found = list_parquet(self._files, folder)
        if not found:
            raise OffloadError(
                f"{folder} has no files, so nobody knows what was written\n"
                "  restore them, or give the view a new target"
            )
        return found

    def _read_note(self, number: int) -> Note:
        """Return the note of a batch.

        Raises `OffloadError` if it is missing, invalid or of another batch.
        """
        path = f"{self._root}/{_batch_name(number)}/{POSITION}"
        try:
            note = parse_note(read_json(self._files, path))
            if note.position.batch != number:
                raise ValueError(f"it is of batch {note.position.batch}")
            return note
        except (FileNotFoundError, KeyError, TypeError, ValueError) as error:
            raise unreadable_error(path, error) from error

    def _read_file(self, path: str) -> pa.Table:
        return self._columns.as_written(read_table(self._files, path))


def _batch_name(number: int) -> str:
    return f"{BATCH}={number:012}"


FOLDER, FILE = "_spark_metadata", "0"
VERSION = "v1"
OURS = "reactive"


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file with the rows of a bucket. Bucket -1 has no rows, only the columns."""

    name: str
    bucket: int
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class Listing:
    """The current files, and their note.

    `before` are the names of the files of the previous list, which its readers may still read.
    """

    note: Note
    buckets: int
    by: str
    """The function that assigns buckets: files of another function have to be rewritten."""
    files: tuple[ListedFile, ...]
    before: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files."""
        return tuple(file.name for file in self.files)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(file.rows for file in self.files)

    def of(self, buckets: set[int]) -> list[ListedFile]:
        """Return the files of some buckets."""
        return [file for file in self.files if file.bucket in buckets]


class Listings:
    """The list of a folder.

    Parameters
    ----------
    files, root: a file system of pyarrow, and the folder in it.
    uri: the URI of a folder that is not on this machine.
    """

    def __init__(self, root: str, uri: str | None) -> None:
        self._folder = f"{root}/{FOLDER}"
        self._uri = uri

    def read(self, files: Any) -> Listing | None:
        """Return the current list; None if no list was ever written.

        Raises
        ------
        OffloadError: another program wrote it, or it cannot be read.
        """
        path = f"{self._folder}/{FILE}"
        try:
            with files.open_input_stream(path) as stream:
                return _parse_listing(stream.read().decode())
        except FileNotFoundError:
            return None
        except (KeyError, TypeError, ValueError) as error:
            raise unreadable_error(path, error) from error

    def put(self, files: Any, listing: Listing) -> None:
        """Publish a list."""
        files.create_dir(self._folder, recursive=True)
        text = "\n".join([VERSION, *self._lines(listing)])
        replace_file(files, f"{self._folder}/{FILE}", text.encode())

    def _lines(self, listing: Listing) -> list[str]:
        """Return the lines of the list, one JSON object per file; the first one has the note,
        too."""
        at = listing.note.position
        whole = make_note(ChangeBatch(at.batch, (), listing.note.plan, at.version))
        whole |= {"buckets": listing.buckets, "by": listing.by, "before": list(listing.before)}
        lines = []
        for place, file in enumerate(listing.files):
            own = {"name": file.name, "bucket": file.bucket, "rows": file.rows}
            lines.append({**self._status(file), OURS: own | ({} if place else {"all": whole})})
        return [json.dumps(line) for line in lines]

    def _status(self, file: ListedFile) -> Mapping[str, Any]:
        """Return the fields of a file that Spark requires."""
        root = self._folder.removesuffix(f"/{FOLDER}")
        uri = Path(root).as_uri() if self._uri is None else self._uri
        return {
            "path": f"{uri}/{file.name}",
            "size": file.size,
            "isDir": False,
            "modificationTime": 0,
            "blockReplication": 1,
            "blockSize": 1 << 27,
            "action": "add",
        }


def _parse_listing(text: str) -> Listing:
    """Return the listing of a text.

    Raises `ValueError` if it is of another version or names a file outside of its folder.
    """
    version, *lines = text.split("\n")
    if version != VERSION:
        raise ValueError(f"its version is {version!r:.40}, not {VERSION!r}")
    found = [json.loads(line) for line in lines]
    files = tuple(_parse_file(line[OURS], line["size"]) for line in found)
    whole = found[0][OURS]["all"]
    before = tuple(map(_check_file_name, whole["before"]))
    return Listing(parse_note(whole), int(whole["buckets"]), str(whole["by"]), files, before)


def _parse_file(own: Mapping[str, Any], size: Any) -> ListedFile:
    """Return the entry of a file in a list.

    Raises `KeyError`, `TypeError` or `ValueError` if it is invalid.
    """
    return ListedFile(
        _check_file_name(own["name"]), int(own["bucket"]), int(own["rows"]), int(size)
    )


def _check_file_name(name: Any) -> str:
    """Return the name. Raises `ValueError` if it is no name of a file of rows in the folder."""
    if not isinstance(name, str) or "/" in name or not name.startswith("_b="):
        raise ValueError(f"it names {name!r}, which is no file of its folder")
    return name


FORMAT = 1


@dataclass(frozen=True, slots=True)
class Note:
    """The note of a batch."""

    position: Position
    plan: str

    def check(self, plan: str, where: str) -> None:
        """Raise `OffloadError` if the batches are of another query, because they cannot be
        replaced."""
        if plan != self.plan:
            raise OffloadError(
                f"{where} has the changes of another query, up to batch {self.position.batch}\n"
                "  give the view a new target: changes that were written cannot be taken back"
            )


def make_note(batch: ChangeBatch) -> dict[str, Any]:
    """Return the note of a batch as JSON."""
    position = batch.position
    return {
        "format": FORMAT,
        "batch": position.batch,
        "version": position.version,
        "plan": batch.plan,
    }


def parse_note(found: Mapping[str, Any]) -> Note:
    """Parse a note.

    Raises
    ------
    KeyError, TypeError, ValueError: it is no note.
    """
    if found["format"] != FORMAT:
        raise ValueError(f"its format is {found['format']!r}, not {FORMAT}")
    return Note(Position(int(found["batch"]), int(found["version"])), str(found["plan"]))


def read_json(files: Any, path: str) -> Any:
    """Read a small JSON file.

    Raises
    ------
    FileNotFoundError: there is no such file.
    ValueError: it is no JSON.
    """
    with files.open_input_stream(path) as stream:
        return json.loads(stream.read())


def write_json(files: Any, path: str, found: Any) -> None:
    """Write a small file, which exists when this returns."""
    with files.open_output_stream(path) as stream:
        stream.write(json.dumps(found).encode())


def check_plain_name(name: Any) -> str:
    """Return the name of a file in the folder of its note.

    Raises
    ------
    ValueError: it names a file in another folder.
    """
    if not isinstance(name, str) or "/" in name or name.startswith("."):
        raise ValueError(f"it names {name!r}, which is not in its folder")
    return name


def unreadable_error(path: str, error: Exception) -> OffloadError:
    """Return the error of an invalid note."""
    return OffloadError(
        f"{path} is none that a sink has written: {error}\n"
        "  give the view a new target, or restore the file"
    )
