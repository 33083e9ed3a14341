"""The end of a Parquet file: it says where everything in the file is, and how many rows there are.

    row groups, each page with its own checksum | end | length of the end, "PAR1"

Pages are checked where they are read (`VERIFIED`). The end is checked against what the manifest
says of it: the size of the file, and a hash. A file that was cut off, exchanged or changed is told.

Cost:   two small reads a file.

Rows that are to come with a flush, in files already: a load that never is in memory as a whole.

    stage 1, 2, 3, ...      a file each, below the state tables
    flush                   reads them beside what it is given, in its one job
    forget                  deletes them

No manifest names them: those of a flush that never came count for nothing, and are deleted.

State:  on disk.
Cost:   O(rows) to write; nothing is kept of them here.
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
from spark_backend.cluster.files import by_name, located
from spark_backend.cluster.paths import writing
from spark_backend.cluster.session import Session

VERIFIED = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)
"""How the driver reads files: a page with another checksum is an error."""
VERIFY = "parquet.page.verify-checksum.enabled"
"""The option by which Spark does so."""
LAST = 8
"""Bytes after the end: its length, and what Parquet files close with."""
AT_A_TIME = 8
"""Files that are looked at together."""


@dataclass(frozen=True, slots=True)
class End:
    """What the end of a file says: how many rows there are, and its mark."""

    rows: int
    mark: str
    bounds: tuple[int, int] | None = None
    """The least and the greatest value of a column of integers, where it says so."""


def end_of(files: Any, path: str, column: str | None = None) -> End:
    """The end of a file.

    Parameters
    ----------
    column: of which its bounds are.

    Raises
    ------
    OSError, ValueError: it is not there, or no Parquet file.
    """
    with files.open_input_file(path) as opened:
        size = opened.size()
        opened.seek(max(0, size - LAST))
        last = opened.read()
        length = int.from_bytes(last[:4], "little") + LAST
        if len(last) < LAST or length > size:
            raise ValueError("it is no Parquet file, or was cut off")
        opened.seek(size - length)
        return _said(opened.read(), size, column)


def end_in(data: memoryview, column: str | None = None) -> End:
    """The end of a file that is about to be written."""
    length = int.from_bytes(data[-LAST:][:4], "little") + LAST
    return _said(data[-length:], len(data), column)


def _said(end: bytes | memoryview, size: int, column: str | None) -> End:
    """What the end of a file of a size says."""
    try:
        found = pq.read_metadata(pa.BufferReader(end))
        bounds = None if column is None else _bounds(found, column)
    except pa.ArrowException as error:  # what it says of its columns may be anything
        raise ValueError(f"its end says nothing that Parquet knows: {error}") from error
    return End(found.num_rows, f"{size}-{blake2b(end, digest_size=8).hexdigest()}", bounds)


def size_of(mark: str) -> int:
    """The bytes of a file, by the mark of its end."""
    return int(mark.partition("-")[0])


def around(several: Iterable[tuple[int, int] | None]) -> tuple[int, int] | None:
    """The bounds of all values whose bounds are given; None if some are not known."""
    each = list(several)
    known = [bounds for bounds in each if bounds is not None]
    if not known or len(known) < len(each):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _bounds(found: Any, column: str) -> tuple[int, int] | None:
    """Of a column, if all groups of rows say what theirs are."""
    paths = [found.schema.column(place).path for place in range(found.num_columns)]
    if column not in paths:
        return None
    place, groups = paths.index(column), range(found.num_row_groups)
    each = [found.row_group(group).column(place).statistics for group in groups]
    if not each or not all(one is not None and one.has_min_max for one in each):
        return None
    return int(min(one.min for one in each)), int(max(one.max for one in each))


def check_ends(files: Any, given: Sequence[tuple[str, str]], told: str) -> None:
    """Look whether files are there, with the ends that they had.

    Parameters
    ----------
    told: what is said besides of one that is not.

    Raises
    ------
    OffloadError: one is not.
    """
    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="reactive-state") as pool:
        for (path, _), wrong in zip(
            given, pool.map(lambda one: _wrong(files, *one), given), strict=True
        ):
            if wrong is not None:
                raise OffloadError(f"{path} {wrong}; {told}")


def _wrong(files: Any, path: str, end: str) -> str | None:
    """What is wrong with a file, if anything is."""
    try:
        return None if end_of(files, path).mark == end else "has been changed"
    except FileNotFoundError:
        return "is missing"
    except Exception as error:  # pyarrow's, of any kind, for an end that was changed
        return f"cannot be read: {error}"


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
