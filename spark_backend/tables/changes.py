"""The changes of a table on Spark: numbered folders of Parquet files, each whole or not there.

folder/000000000001/part-...    columns row, weight
folder/000000000001/_once.json  of each query whose batches have come, the number of the last one
folder/aside-.../               being written; left behind by a crash, deleted with the next

The note is written into the folder before it counts: a batch is noted if and only if its rows are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from reactive.errors import OffloadError
from reactive.remote.external import Once
from spark_backend.cluster.files import file_system

ASIDE = "aside-"
NOTE = "_once.json"


class Changes:
    """Numbered from 1 on, without gaps; `last` is the number of the last one, or 0."""

    def __init__(self, folder: str) -> None:
        self._folder = folder.rstrip("/")
        self._files, self._root = file_system(self._folder)
        self._files.create_dir(self._root, recursive=True)
        found = [info.base_name for info in self._files.get_file_info(fs.FileSelector(self._root))]
        self.last = max(map(int, filter(str.isdecimal, found)), default=0)
        for name in found:
            if name.startswith(ASIDE):
                self._files.delete_dir(f"{self._root}/{name}")
        self.batches: Mapping[str, int] = self._noted() if self.last else {}
        """The last batch that has come of each query."""

    def has(self, once: Once | None) -> bool:
        """Whether a batch has come already."""
        return once is not None and self.batches.get(once[0], -1) >= once[1]

    def _noted(self) -> dict[str, int]:
        path = f"{self._root}/{self.last:012}/{NOTE}"
        if self._files.get_file_info(path).type == fs.FileType.NotFound:
            return {}
        try:
            with self._files.open_input_stream(path) as stream:
                found = json.loads(stream.read())
            return {str(query): int(batch) for query, batch in found.items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise OffloadError(
                f"{path} does not say which batches have come: {error}\n"
                "  give an empty folder as the checkpoint, or the one that it came from"
            ) from error

    def paths(self, first: int, last: int) -> list[str]:
        """The folders of changes from one number to another, both included, as for Spark."""
        return [f"{self._folder}/{number:012}" for number in range(first, last + 1)]

    def rows(self, first: int, last: int) -> int:
        """How many rows the changes from one number to another have."""
        return sum(self.rows_in(path) for path in self.paths(first, last))

    def rows_in(self, path: str) -> int:
        """How many rows a folder has; read from the ends of files."""
        selector = fs.FileSelector(f"{self._root}/{path.rpartition('/')[2]}", recursive=True)
        paths = [info.path for info in self._files.get_file_info(selector)]
        found = (pq.read_metadata(p, filesystem=self._files) for p in paths if _is_data(p))
        return sum(metadata.num_rows for metadata in found)

    @contextmanager
    def aside(self, number: int, what: str = "written") -> Iterator[str]:
        """A folder to write to, as for Spark; it is gone afterwards, unless it was kept."""
        name = f"{ASIDE}{number:012}-{what}"
        try:
            yield f"{self._folder}/{name}"
        finally:
            with suppress(FileNotFoundError):
                self._files.delete_dir(f"{self._root}/{name}")

    def put(self, path: str, rows: pa.Array, weights: list[int]) -> None:
        """Write rows with their weights to a folder aside."""
        inside = f"{self._root}/{path.rpartition('/')[2]}"
        self._files.create_dir(inside)
        table = pa.table({"row": rows, "weight": pa.array(weights, pa.int64())})
        pq.write_table(table, f"{inside}/part.parquet", filesystem=self._files)

    def keep(self, path: str, number: int, once: Once | None = None) -> int:
        """Make a folder aside the change of a number, which is returned.

        Parameters
        ----------
        once: the batch that it is of.
        """
        name = path.rpartition("/")[2]
        batches = dict(self.batches) if once is None else {**self.batches, once[0]: once[1]}
        if batches:
            with self._files.open_output_stream(f"{self._root}/{name}/{NOTE}") as stream:
                stream.write(json.dumps(batches).encode())
        self._files.move(f"{self._root}/{name}", f"{self._root}/{number:012}")
        self.last, self.batches = number, batches
        return number

    def delete(self) -> None:
        """Remove all."""
        with suppress(FileNotFoundError):
            self._files.delete_dir(self._root)


def _is_data(path: str) -> bool:
    return path.endswith(".parquet") and not path.rpartition("/")[2].startswith(("_", "."))
