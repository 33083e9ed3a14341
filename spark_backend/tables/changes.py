"""The changes of a table on Spark: numbered folders of Parquet files, each counted by its note.

folder/000000000001-4b1c738c/part-...    columns row, weight
folder/000000000001.json                 names this folder, and the number of the last batch of each
query
folder/000000000002-.../                 being written; after a crash, the next process deletes it

A note is written whole, after all files that it names: a batch is noted if and only if its rows
are. No folder is renamed, because object stores rename file by file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from reactive.engine.remote.remote import Once
from reactive.errors import OffloadError
from spark_backend.cluster.files import (
    count_rows,
    create_file,
    locate,
    read_table,
    taken_over_error,
)
from spark_backend.cluster.session import Session

NOTE = ".json"
_NOTE = re.compile(r"[0-9]{12}\.json")
_FOLDER = re.compile(r"[0-9]{12}-[0-9a-f]{12}")


class Changes:
    """The changes of a table, numbered from 1 without gaps; `last` is the last number, or 0."""

    def __init__(self, session: Session, folder: str) -> None:
        found = locate(folder, session)
        self._files, self._root, self._uri = found.files, found.root, found.uri
        self._files.create_dir(self._root, recursive=True)
        names = [info.base_name for info in self._files.get_file_info(fs.FileSelector(self._root))]
        notes = {int(name.removesuffix(NOTE)) for name in names if _NOTE.fullmatch(name)}
        self.last = max(notes, default=0)
        self._names = self._published_folders(sorted(filter(_FOLDER.fullmatch, names)), notes)
        self.batches: Mapping[str, int] = self._read_note(self.last)[1] if self.last else {}
        """The number of the last batch of each query."""

    def _published_folders(self, folders: list[str], notes: set[int]) -> dict[int, str]:
        """Return the folder of each number, and delete the other folders, of a process that was
        killed.

        Raises `OffloadError` if a change is missing.
        """
        found: dict[int, list[str]] = {}
        for name in folders:
            found.setdefault(int(name.partition("-")[0]), []).append(name)
        names = {
            n: found[n][0] if len(found[n]) == 1 else self._read_note(n)[0]
            for n in notes & found.keys()
        }
        if set(names) != set(range(1, self.last + 1)):
            raise OffloadError(
                f"{self._uri} has not all changes up to {self.last}\n"
                "  restore it, or give an empty folder as the checkpoint"
            )
        for name in folders:
            if name not in names.values():
                self._files.delete_dir(f"{self._root}/{name}")
        return names

    def has(self, once: Once | None) -> bool:
        """Return True if a batch is already included."""
        return once is not None and self.batches.get(once[0], -1) >= once[1]

    def _read_note(self, number: int) -> tuple[str, dict[str, int]]:
        """Return the folder of a change, and the last batches as of that change.

        Raises `OffloadError` if the note is invalid.
        """
        path = f"{self._root}/{number:012}{NOTE}"
        try:
            with self._files.open_input_stream(path) as stream:
                found = json.loads(stream.read())
            folder = str(found["folder"])
            if not _FOLDER.fullmatch(folder):
                raise ValueError(f"it names {folder!r}")
            return folder, {str(query): int(batch) for query, batch in found["batches"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise OffloadError(
                f"{path} does not say which batches have come: {error}\n"
                "  give an empty folder as the checkpoint, or the one that it came from"
            ) from error

    def paths(self, first: int, last: int) -> list[str]:
        """Return the folders of the changes from `first` to `last`, as paths for Spark."""
        return [f"{self._uri}/{self._names[number]}" for number in range(first, last + 1)]

    def rows(self, first: int, last: int) -> int:
        """Return the number of rows of the changes from `first` to `last`."""
        return sum(self.rows_in(path) for path in self.paths(first, last))

    def rows_in(self, path: str) -> int:
        """Return the number of rows of a folder, from the ends of its files."""
        return sum(count_rows(self._files, file) for file in self._files_in(path))

    def fetched(self, first: int, last: int) -> pa.Table:
        """Return the changes from `first` to `last` in the driver; copies of a row are not added
        up."""
        paths = [file for path in self.paths(first, last) for file in self._files_in(path)]
        found = [read_table(self._files, path) for path in paths]
        # Files written by Spark declare nullability per column; files written by `put` do not.
        together = pa.concat_tables(
            [table.select(["row", "weight"]) for table in found], promote_options="permissive"
        )
        return together.combine_chunks()  # Spark reads no chunk after one without rows

    def _files_in(self, path: str) -> list[str]:
        selector = fs.FileSelector(f"{self._root}/{path.rpartition('/')[2]}", recursive=True)
        return [i.path for i in self._files.get_file_info(selector) if _is_data(i.path)]

    @contextmanager
    def aside(self, number: int) -> Iterator[str]:
        """Yield a new folder to write to, as a path for Spark; it is deleted afterwards unless
        `keep` made it a change."""
        name = f"{number:012}-{uuid4().hex[:12]}"
        try:
            yield f"{self._uri}/{name}"
        finally:
            if self._names.get(number) != name:
                with suppress(FileNotFoundError):
                    self._files.delete_dir(f"{self._root}/{name}")

    def put(self, path: str, rows: pa.Array, weights: list[int]) -> None:
        """Write rows with their weights to a folder of `aside`."""
        inside = f"{self._root}/{path.rpartition('/')[2]}"
        self._files.create_dir(inside)
        table = pa.table({"row": rows, "weight": pa.array(weights, pa.int64())})
        pq.write_table(table, f"{inside}/part.parquet", filesystem=self._files)

    def keep(self, path: str, number: int, once: Once | None = None) -> int:
        """Make a folder of `aside` the change `number`, and return the number.

        Raises `OffloadError` if another process has written this change.

        Parameters
        ----------
        once: the batch that the change contains.
        """
        name = path.rpartition("/")[2]
        batches = dict(self.batches) if once is None else {**self.batches, once[0]: once[1]}
        note = json.dumps({"folder": name, "batches": batches}).encode()
        try:
            create_file(self._files, f"{self._root}/{number:012}{NOTE}", note)
        except FileExistsError:
            raise taken_over_error(self._uri) from None
        self._names[number] = name
        self.last, self.batches = number, batches
        return number

    def delete(self) -> None:
        """Delete all changes."""
        with suppress(FileNotFoundError):
            self._files.delete_dir(self._root)


def _is_data(path: str) -> bool:
    return path.endswith(".parquet") and not path.rpartition("/")[2].startswith(("_", "."))
