"""Verify Parquet files by their ends, and stage the rows of a load in files.

    row groups, each page with its own checksum | end | length of the end, "PAR1"

Readers check the pages (`VERIFIED`). `check_ends` compares the end with the manifest: the size of
the file, and a hash. A file that was cut off, exchanged or changed is an error.

Cost:   two small reads per file.

`StagedFiles` writes the rows of a flush to files while they arrive, so that a load is never in
memory as a whole:

    stage 1, 2, 3, ...      a file each, below the state tables
    flush                   its one job reads them beside its other rows
    forget                  deletes them

No manifest names staged files: the files of a flush that did not happen are deleted.

State:  on disk.
Cost:   O(rows) to write; no rows in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from reactive.errors import OffloadError
from spark_backend.cluster.files import locate, with_literal_paths
from spark_backend.cluster.paths import writing
from spark_backend.cluster.session import Session

VERIFIED = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)
"""The format with which the driver reads files: a page with a wrong checksum is an error."""
VERIFY = "parquet.page.verify-checksum.enabled"
"""The option that enables this check in Spark."""
LAST = 8
"""Bytes after the end: its length, and the magic bytes of Parquet."""
AT_A_TIME = 8
"""The number of files that are checked in parallel."""


@dataclass(frozen=True, slots=True)
class End:
    """The number of rows and the mark that the end of a file gives."""

    rows: int
    mark: str
    bounds: tuple[int, int] | None = None
    """The least and the greatest value of a column of integers, if the end gives them."""


def read_end(files: Any, path: str, column: str | None = None) -> End:
    """Return the end of a file.

    Parameters
    ----------
    column: the column whose bounds are read.

    Raises
    ------
    OSError, ValueError: there is no such file, or it is no Parquet file.
    """
    with files.open_input_file(path) as opened:
        size = opened.size()
        opened.seek(max(0, size - LAST))
        last = opened.read()
        length = int.from_bytes(last[:4], "little") + LAST
        if len(last) < LAST or length > size:
            raise ValueError("it is no Parquet file, or was cut off")
        opened.seek(size - length)
        return _parse_end(opened.read(), size, column)


def end_of_data(data: memoryview, column: str | None = None) -> End:
    """Return the end of a file that is about to be written."""
    length = int.from_bytes(data[-LAST:][:4], "little") + LAST
    return _parse_end(data[-length:], len(data), column)


def _parse_end(end: bytes | memoryview, size: int, column: str | None) -> End:
    """Parse the end of a file of `size` bytes.

    Raises `ValueError` if `end` is not the end of a Parquet file. `column`: the column whose bounds
    are read, or None.
    """
    try:
        found = pq.read_metadata(pa.BufferReader(end))
        bounds = None if column is None else _column_bounds(found, column)
    except pa.ArrowException as error:  # a changed end may give any columns
        raise ValueError(f"its end says nothing that Parquet knows: {error}") from error
    return End(found.num_rows, f"{size}-{blake2b(end, digest_size=8).hexdigest()}", bounds)


def file_size(mark: str) -> int:
    """Return the size of a file, which the mark of its end starts with."""
    return int(mark.partition("-")[0])


def merge_bounds(several: Iterable[tuple[int, int] | None]) -> tuple[int, int] | None:
    """Return bounds around all given bounds; None if there are none, or some are not known."""
    each = list(several)
    known = [bounds for bounds in each if bounds is not None]
    if not known or len(known) < len(each):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _column_bounds(found: Any, column: str) -> tuple[int, int] | None:
    """Return the bounds of a column; None unless all row groups give theirs."""
    paths = [found.schema.column(place).path for place in range(found.num_columns)]
    if column not in paths:
        return None
    place, groups = paths.index(column), range(found.num_row_groups)
    each = [found.row_group(group).column(place).statistics for group in groups]
    if not each or not all(one is not None and one.has_min_max for one in each):
        return None
    return int(min(one.min for one in each)), int(max(one.max for one in each))


def check_ends(files: Any, given: Sequence[tuple[str, str]], told: str) -> None:
    """Check that files exist, with the ends that they had.

    Parameters
    ----------
    told: the advice that ends the error text.

    Raises
    ------
    OffloadError: a file is missing, changed or not readable.
    """
    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="reactive-state") as pool:
        for (path, _), wrong in zip(
            given, pool.map(lambda one: _find_fault(files, *one), given), strict=True
        ):
            if wrong is not None:
                raise OffloadError(f"{path} {wrong}; {told}")


def _find_fault(files: Any, path: str, end: str) -> str | None:
    """Return the words for the error of a file; None if it is unchanged."""
    try:
        return None if read_end(files, path).mark == end else "has been changed"
    except FileNotFoundError:
        return "is missing"
    except Exception as error:  # any exception of pyarrow, if the end was changed
        return f"cannot be read: {error}"


FOLDER = "staged"


class StagedFiles:
    """The staged files below a folder, by input; all belong to one flush.

    Parameters
    ----------
    folder: a path, or a URI of a file system that Spark knows. Files of an earlier process are
        deleted.
    """

    def __init__(self, session: Session, folder: str) -> None:
        found = locate(folder, session)
        self._files = found.files
        self._root, self._uri = f"{found.root}/{FOLDER}", f"{found.uri}/{FOLDER}"
        self._written: dict[int, list[str]] = {}
        self._number: int | None = None
        self.counts: Counter[int] = Counter()
        """The number of rows of each input."""
        self.forget()

    @property
    def rows(self) -> int:
        """The number of staged rows."""
        return self.counts.total()

    def add(self, number: int, place: int, rows: pa.Table) -> None:
        """Write rows of an input to a file, for the flush of a number.

        Raises
        ------
        OffloadError: the file cannot be written.
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
        """Return the staged rows for the flush of a number, by input."""
        if number != self._number:
            return {}
        return {
            place: with_literal_paths(spark.read)
            .schema(schemas[place])
            .option(VERIFY, "true")
            .parquet(*written)
            for place, written in self._written.items()
        }

    def forget(self) -> None:
        """Delete the files, because a flush has read them."""
        self._written, self._number, self.counts = {}, None, Counter()
        with suppress(OSError):  # remaining files do not count
            self._files.delete_dir(self._root)
