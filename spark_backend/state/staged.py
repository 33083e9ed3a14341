"""Rows that are to come with a flush, in files already: a load that never is in memory as a whole.

    stage 1, 2, 3, ...      a file each, below the state tables
    flush                   reads them beside what it is given, in its one job
    forget                  deletes them

No manifest names them: those of a flush that never came count for nothing, and are deleted.

State:  on disk.
Cost:   O(rows) to write; nothing is kept of them here.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from spark_backend.cluster.files import by_name, located
from spark_backend.cluster.refusals import writing
from spark_backend.cluster.session import Session
from spark_backend.state.ends import VERIFY

FOLDER = "staged"


class Staged:
    """The files below a folder, by input; they are of one flush.

    Parameters
    ----------
    folder: a path, or a URI of a file system that Spark knows. What an earlier process left there
        is deleted.
    """

    def __init__(self, session: Session, folder: str) -> None:
        found = located(folder, session)
        self._files = found.files
        self._root, self._uri = f"{found.root}/{FOLDER}", f"{found.uri}/{FOLDER}"
        self._written: dict[int, list[str]] = {}
        self._number: int | None = None
        self.counts: Counter[int] = Counter()
        """How many rows there are of each input."""
        self.forget()

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.counts.total()

    def add(self, number: int, place: int, rows: pa.Table) -> None:
        """Keep rows of an input in a file, for the flush of a number.

        Raises
        ------
        OffloadError: it cannot be written.
        """
        if number != self._number:
            self.forget()
            self._number = number
        written = self._written.setdefault(place, [])
        folder, name = f"{number:012}/{place}", f"{len(written):06}.parquet"
        with writing(self._root):
            self._files.create_dir(f"{self._root}/{folder}", recursive=True)
            with self._files.open_output_stream(f"{self._root}/{folder}/{name}") as stream:
                pq.write_table(rows, stream, write_page_checksum=True)
        written.append(f"{self._uri}/{folder}/{name}")
        self.counts[place] += rows.num_rows

    def frames(self, spark: Any, number: int, schemas: list[T.StructType]) -> dict[int, DataFrame]:
        """What is there for the flush of a number, by input."""
        if number != self._number:
            return {}
        return {
            place: by_name(spark.read)
            .schema(schemas[place])
            .option(VERIFY, "true")
            .parquet(*written)
            for place, written in self._written.items()
        }

    def forget(self) -> None:
        """Delete the files, which have been taken in."""
        self._written, self._number, self.counts = {}, None, Counter()
        with suppress(OSError):  # they count for nothing
            self._files.delete_dir(self._root)
