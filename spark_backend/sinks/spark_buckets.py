"""Files of a folder of rows that Spark writes, by buckets of the hash of their keys.

    _aside-.../changes/__bucket__=3/part-....parquet    changes, net: which buckets are written
    _aside-.../rows/__bucket__=3/part-....parquet       what is in these buckets then
    _b=3-000000000012-....parquet                       the same, where the list may name it

Only names and numbers come by here. What is aside is deleted when the batch is there.

State:  none.
Cost:   two jobs: O(changes), and O(rows of the buckets with changes); of a first batch, one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from spark_backend.cluster.files import Place, parquet_in, rows_in
from spark_backend.codec.schema import Typed
from spark_backend.sinks.listing import Listed

ASIDE = "_aside"
BUCKET = "__bucket__"


@dataclass(frozen=True, slots=True)
class Buckets:
    """Rows by the hash of some columns."""

    key: tuple[str, ...]
    """None: all columns."""
    count: int
    is_unique: bool
    """Whether no two rows may have one key."""


@dataclass(frozen=True, slots=True)
class SparkBuckets:
    """Writes files of a folder."""

    place: Place
    of: Typed
    """What the rows are in files."""
    buckets: Buckets
    name: str
    """Of whoever writes: nobody else writes files of that name."""

    def touched(self, changes: Any) -> tuple[Any, set[int]]:
        """Changes, added up and in files, and the buckets that they are of."""
        folder = self._aside("changes")
        changes.write_changes(self.of, self._uri(folder), self.buckets)
        parts = list(self._parts(folder))
        uris = [self._uri(path) for _, path, _ in parts]
        written = changes.of_changes(uris, sum(rows for _, _, rows in parts))
        return written, {bucket for bucket, _, rows in parts if rows}

    def write(self, changes: Any, before: Sequence[Listed], number: int) -> list[Listed]:
        """The files of what changes make of those before, which are not deleted.

        Raises
        ------
        OffloadError: something goes that is not there, or two rows have a key that may not.
        """
        names = [file.name for file in before if file.rows]
        given = changes.with_rows_in(list(map(self._uri, names)), sum(f.rows for f in before))
        folder = self._aside("rows")
        given.write_rows(self.of, self._uri(folder), self.buckets, self.place.root)
        return list(self._moved(self._parts(folder), number))

    def _aside(self, what: str) -> str:
        """A folder that is not there."""
        folder = f"{ASIDE}-{self.name}/{what}"
        with suppress(FileNotFoundError):
            self.place.files.delete_dir(f"{self.place.root}/{folder}")
        return folder

    def _moved(self, parts: Iterable[tuple[int, str, int]], number: int) -> Iterator[Listed]:
        files, root = self.place.files, self.place.root
        for at, (bucket, path, rows) in enumerate(parts):
            name = f"_b={bucket}-{number:012}-{self.name}-{at}.parquet"
            files.move(f"{root}/{path}", f"{root}/{name}")
            (info,) = files.get_file_info([f"{root}/{name}"])
            yield Listed(name, bucket, rows, info.size)

    def _parts(self, folder: str) -> Iterator[tuple[int, str, int]]:
        """The bucket of each file that was written, its path below the root, and its rows."""
        root = self.place.root
        for path in parquet_in(self.place.files, f"{root}/{folder}"):
            _, _, rest = path.partition(f"/{BUCKET}=")
            rows = rows_in(self.place.files, path)
            yield int(rest.partition("/")[0]), path.removeprefix(f"{root}/"), rows

    def _uri(self, path: str) -> str:
        return f"{self.place.uri}/{path}"
