"""Entries with a bucket in Parquet files, read back in ranges of buckets; for the process itself.

    put(entries)     a file more, sorted by bucket, in small row groups
    pieces()         all entries, those of a bucket in one piece
    renew(fold)      one file in the place of all

State:  on disk; here the number of entries of each file.
Cost:   O(entries) to write; a piece reads the row groups that its buckets are in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from spark_backend.cluster.files import local
from spark_backend.cluster.refusals import writing

ROW_GROUP = 16_384
PIECE = 100_000
_LEAST, _ENTRIES = -(1 << 63), 1 << 64


class EntryFiles:
    """The files in a folder; each has the columns of the schema, `bucket` (int64) among them.

    `folder` is one of this machine.
    """

    def __init__(self, folder: str, schema: pa.Schema) -> None:
        place = local(folder)
        self._files, self._root = place.files, place.root
        self._files.create_dir(self._root, recursive=True)
        self._schema = schema
        self._written: dict[str, int] = {}
        self._number = 0

    @property
    def entries(self) -> int:
        """How many there are in all files."""
        return sum(self._written.values())

    def put(self, table: pa.Table) -> None:
        """Keep entries.

        Raises
        ------
        OffloadError: they cannot be written; nothing has changed.
        """
        path, count = self._write([table])
        self._written[path] = count

    def pieces(self, more: pa.Table | None = None) -> Iterator[pa.Table]:
        """All entries, in ranges of buckets.

        Parameters
        ----------
        more: entries that are in no file yet.
        """
        files = list(self._written)
        sources = [ds.dataset(files, self._schema, "parquet", self._files)] if files else []
        if more is not None and more.num_rows:
            sources.append(ds.dataset(more))
        if not sources:
            return
        rows = self.entries + (0 if more is None else more.num_rows)
        count = max(1, -(-rows // PIECE))
        limits = [_LEAST + _ENTRIES * i // count for i in range(count)]
        for low, high in zip(limits, [*limits[1:], None], strict=True):
            found = pc.field("bucket") >= low
            found = found if high is None else found & (pc.field("bucket") < high)
            where = found if count > 1 else None
            yield pa.concat_tables([data.to_table(filter=where) for data in sources])

    def renew(self, fold: Callable[[pa.Table], pa.Table]) -> None:
        """One file of what each piece folds to, in the place of all files."""
        old = list(self._written)
        path, count = self._write(map(fold, self.pieces()))
        self._written = {path: count}
        for file in old:
            self._drop(file)

    def delete(self) -> None:
        """Delete all."""
        with suppress(OSError):
            self._files.delete_dir(self._root)

    def _write(self, tables: Iterable[pa.Table]) -> tuple[str, int]:
        self._number += 1
        path = f"{self._root}/{self._number:08}.parquet"
        try:
            with writing(self._root):
                return path, self._put(path, tables)
        except BaseException:
            self._drop(path)  # it may take the room that there is
            raise

    def _put(self, path: str, tables: Iterable[pa.Table]) -> int:
        count = 0
        to: dict[str, Any] = {"filesystem": self._files, "compression": "lz4"}
        with pq.ParquetWriter(path, self._schema, **to) as writer:
            for table in tables:
                writer.write_table(table.sort_by("bucket"), row_group_size=ROW_GROUP)
                count += table.num_rows
        return count

    def _drop(self, file: str) -> None:
        with suppress(OSError):  # nobody reads it
            self._files.delete_file(file)
