"""A folder with the rows of a view, as of one commit, as Parquet files.

    _spark_metadata/0               the current files, and their batch
    _b=3-000000000012-....parquet   the rows of bucket 3 of their keys, written by batch 12

A batch rewrites the files of the buckets with changed keys; then the list is replaced, in one step.
`spark.read.parquet(folder)` and `read` return the files of the list, which are the rows of one
moment. The files of the previous list stay until the next batch, for their readers.

State:  on disk.
Cost:   a batch O(rows of the buckets with changes); reading the contents, O(rows), once per
        process.

`SparkBuckets` lets Spark write the files, by buckets of the hash of their keys:

    _aside-.../changes/__bucket__=3/part-....parquet    net changes: they tell the buckets to write
    _aside-.../rows/__bucket__=3/part-....parquet       the new rows of these buckets
    _b=3-000000000012-....parquet                       the same, under names for the list

Only names and numbers pass through the driver. The files aside are deleted after the batch.

State:  none.
Cost:   two jobs: O(changes), and O(rows of the buckets with changes); for a first batch, one.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from reactive.borders.sinks.durable_outbox import ChangeBatch, ChangedRows, Position
from reactive.engine.collections.zset import Pair, consolidate, negate, repeat_by_weight
from reactive.errors import OffloadError
from spark_backend.cluster.files import Place, count_rows, list_parquet, locate, read_table
from spark_backend.cluster.paths import absolute_path, is_remote
from spark_backend.cluster.session import Session
from spark_backend.codec.schema import Typed
from spark_backend.sinks.changes_folder import ListedFile, Listing, Listings, Note
from spark_backend.sinks.rows import RowColumns

PER_BUCKET = 10_000
"""The number of rows of a bucket, when buckets are made."""
MOST_BUCKETS = 512
GROWTH = 4
"""The growth of the number of rows after that new buckets are made."""
TRIES = 10
NO_ROWS = -1
"""The bucket of the file with columns and without rows."""
BY_VALUE, BY_HASH = "crc32", "xxhash64"


class RowsFolder:
    """A `Target` for the rows of a view: a folder of Parquet files, of one moment.

    It needs only pyarrow, not Spark. `spark.read.parquet(folder)` and `read` return the rows;
    readers that do not know Spark's list of files find no files.

    Parameters
    ----------
    folder: a path, or a URI of a file system that the session knows, or pyarrow without one. One
        sink at a time may write it.
    key: fields that identify a row; only files of changed keys are rewritten. By default a row is
        its own key, and may have several copies.
    row_type: the type of the rows, such as `tuple[int, float | None]`; by default it is inferred.
    session: a session of Spark, whose file systems are used too.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        key: Sequence[str] = (),
        row_type: Any = None,
        session: Session | None = None,
    ) -> None:
        found = absolute_path(os.fspath(folder))
        place = locate(found, session)
        self._files, self._root, self._uri = place.files, place.root, place.uri
        self._list = Listings(self._root, place.uri if is_remote(found) else None)
        self._key = (key,) if isinstance(key, str) else tuple(key)
        self._columns = RowColumns(row_type)
        self.expect = self._columns.expect
        self._found: Listing | None = None
        """The list as last read or written."""
        self._now: Listing | None = None
        """This list, but without rows if these are of another query."""
        self._name = uuid4().hex[:8]
        self._next: Listing | None = None

    def read(self) -> pa.Table:
        """Return the rows, as of the last batch.

        Raises
        ------
        OffloadError: nothing has been written, or it cannot be read.
        """
        for _ in range(TRIES):
            found = self._list.read(self._files)
            if found is None:
                raise OffloadError(f"{self._root} has no rows of a sink yet")
            with suppress(FileNotFoundError):  # replaced twice meanwhile
                return pa.concat_tables(self._read_file(file.name) for file in found.files)
        raise OffloadError(f"{self._root} is written faster than it can be read: try again")

    def open(self, plan: str) -> Position | None:
        """Return the position of the folder; None if it is empty.

        Rows of another query are replaced.
        """
        self._next = None
        self._found = self._now = self._list.read(self._files)
        if self._now is None:
            self._check_empty()
            return None
        self._columns.wrote(self._schema(self._now))
        return self._now.note.position

    def difference(self, rows: Iterable[Pair]) -> ChangedRows:
        """Return the difference from the contents to `rows`; all of `rows` if the columns
        differ."""
        wanted = list(rows)
        self._columns.learn([row for row, _ in wanted])
        try:
            written = [
                (row, 1) for row in self._read_rows(() if self._now is None else self._now.files)
            ]
        except OffloadError:
            if not self._columns.is_known:
                raise
            self._columns.schema, written = None, []
            self._now = None if self._now is None else _empty_listing(self._now)
        return consolidate([*wanted, *negate(written)])

    def stage(self, batch: ChangeBatch) -> None:
        """Rewrite the buckets with changes, to files that are not in the list."""
        now = self._now
        whole, buckets = self._layout(
            self._bucket_function, sum(weight for _, weight in batch.changes)
        )
        changes: list[Pair] = list(batch.changes)
        kept: tuple[ListedFile, ...] = ()
        if whole:
            changes += [(row, 1) for row in self._read_rows(() if now is None else now.files)]
            parts = self._parts(changes, buckets)
        else:
            assert now is not None
            parts = self._parts(changes, buckets)
            for file in now.of(set(parts)):
                parts[file.bucket] += [(row, 1) for row in self._read_rows([file])]
            kept = self._other_files(set(parts))
        files = [
            self._write_bucket(b, batch.number, self._net_rows(pairs)) for b, pairs in parts.items()
        ]
        self._stage(batch, self._bucket_function, buckets, [*kept, *files])

    def difference_frame(self, rows: Any) -> Any:
        """Return the difference as `difference` does, for rows on Spark."""
        try:
            self._columns.typed(rows.kept)
        except OffloadError:
            self._columns.schema = None
            self._now = None if self._now is None else _empty_listing(self._now)
        files = () if self._now is None else [file for file in self._now.files if file.rows]
        uris = [f"{self._uri}/{file.name}" for file in files]
        return rows.without_rows_in(uris, sum(file.rows for file in files))

    def stage_frame(self, batch: ChangeBatch) -> bool:
        """Stage a batch as `stage` does, for changes on Spark, which writes the files.

        Return False if the batch changes no rows: then nothing is staged.
        """
        of, changes, now = self._columns.typed(batch.changes.kept), batch.changes, self._now
        assert self._columns.schema is not None
        self._check_fields(self._columns.schema.names)
        by = self._bucket_function.replace(BY_VALUE, BY_HASH)
        whole, count = self._layout(by, changes.rows)
        buckets = HashedRows(self._key, count, is_unique=bool(self._key))
        place = Place(self._files, self._root, self._uri)
        away = SparkBuckets(place, of, buckets, self._name)
        before: Sequence[ListedFile] = () if now is None else now.files
        kept: tuple[ListedFile, ...] = ()
        if now is not None:
            changes, touched = away.touched(changes)
            if not touched:
                return False
            before, kept = (before, ()) if whole else (now.of(touched), self._other_files(touched))
        files = away.write(changes, before, batch.number)
        self._stage(batch, by, count, [*kept, *files])
        return True

    def _layout(self, by: str, more: int) -> tuple[bool, int]:
        """Return whether to rewrite all files, with about `more` further rows, and the number of
        buckets."""
        now = self._now
        rows = more + (0 if now is None else now.rows)
        if now is not None and now.by == by and rows <= GROWTH * PER_BUCKET * now.buckets:
            return False, now.buckets
        return True, max(1, min(MOST_BUCKETS, -(-rows // PER_BUCKET)))

    def _other_files(self, touched: set[int]) -> tuple[ListedFile, ...]:
        """Return the files of the other buckets."""
        assert self._now is not None
        files = self._now.files
        return tuple(f for f in files if f.bucket not in touched and f.bucket != NO_ROWS)

    def _stage(
        self, batch: ChangeBatch, by: str, buckets: int, files: Sequence[ListedFile]
    ) -> None:
        """Set the listing that the next publication writes: an empty file with the schema, and the
        files that have rows."""
        empty = self._write_bucket(NO_ROWS, batch.number, [])
        listed = (empty, *(file for file in files if file.rows))
        before = () if self._now is None else self._now.names
        self._next = Listing(Note(batch.position, batch.plan), buckets, by, listed, before)

    @property
    def is_owed(self) -> bool:
        """True if there is nothing to read yet, though the row type is declared."""
        return self._now is None and self._next is None and self._columns.is_declared

    def deliver(self) -> None:
        """Replace the list, and delete files that no reader needs.

        Raises
        ------
        OffloadError: the list is not the one that this sink has written or found.
        """
        if self._next is not None:
            self._check_alone()
            self._list.put(self._files, self._next)
            self._found = self._now = self._next
            self._next = None
            self._sweep(self._now)

    def _check_alone(self) -> None:
        """Raise if another sink has replaced the list."""
        if self._list.read(self._files) not in (self._found, self._next):
            raise OffloadError(
                f"{self._root} has other rows than this sink has written there: another sink "
                "writes to the same folder\n  stop one of them, and make this one again"
            )

    @property
    def _bucket_function(self) -> str:
        """The function that assigns buckets."""
        return f"{BY_VALUE} of {', '.join(self._key) or 'all'}"

    def _parts(self, pairs: Sequence[Pair], buckets: int) -> dict[int, list[Pair]]:
        """Group rows by the bucket of their key."""
        found: dict[int, list[Pair]] = {}
        table = self._columns.table([row for row, _ in pairs])
        for pair, values in zip(pairs, self._keys(table), strict=True):
            found.setdefault(zlib.crc32(repr(values).encode()) % buckets, []).append(pair)
        return found

    def _keys(self, table: pa.Table) -> Iterable[Any]:
        """Return the keys of rows, which are equal for equal keys."""
        names = self._key or table.column_names
        self._check_fields(table.column_names)
        columns = [table.column(name).to_pylist() for name in names]
        return (tuple(map(_canonical_value, values)) for values in zip(*columns, strict=True))

    def _check_fields(self, names: Sequence[str]) -> None:
        """Raise if a field of the key is missing."""
        missing = [name for name in self._key if name not in names]
        if missing:
            raise OffloadError(f"key {missing[0]!r} is none of the columns {', '.join(names)}")

    def _net_rows(self, pairs: list[Pair]) -> list[Any]:
        """Return the current rows of a bucket.

        Raises `OffloadError` if a deleted row is not there.
        """
        found = consolidate(pairs)
        for row, weight in found:
            if weight < 0:
                raise OffloadError(
                    f"{self._root} does not have {row!r:.100}, which is to go: somebody else has "
                    "changed it\n  the next batch compares it with the view"
                )
        rows = list(repeat_by_weight(found))
        if self._key and len(rows) > 1:
            self._check_keys(rows)
        return rows

    def _check_keys(self, rows: list[Any]) -> None:
        """Raise if two rows have one key."""
        seen: set[str] = set()
        keys = map(repr, self._keys(self._columns.table(rows)))
        for row, key in zip(rows, keys, strict=True):
            if key in seen:
                raise OffloadError(
                    f"two rows have the key {', '.join(self._key)} of {row!r:.100}\n"
                    "  give a key that no two rows of the view agree on, or none"
                )
            seen.add(key)

    def _write_bucket(self, bucket: int, number: int, rows: list[Any]) -> ListedFile:
        """Write a file with the rows of a bucket; no file for no rows."""
        shown = "none" if bucket == NO_ROWS else f"{bucket}"
        name = f"_b={shown}-{number:012}-{self._name}.parquet"
        if not rows and bucket != NO_ROWS:
            return ListedFile(name, bucket, 0, 0)
        path = f"{self._root}/{name}"
        self._files.create_dir(self._root, recursive=True)
        with self._files.open_output_stream(path) as stream:
            pq.write_table(self._columns.table(rows), stream)
        (info,) = self._files.get_file_info([path])
        return ListedFile(name, bucket, len(rows), info.size)

    def _read_rows(self, files: Iterable[ListedFile]) -> list[Any]:
        """Return the rows of some files."""
        tables = [self._read_file(file.name) for file in files if file.rows]
        return self._columns.rows(pa.concat_tables(tables)) if tables else []

    def _schema(self, listing: Listing) -> pa.Schema:
        with self._files.open_input_file(f"{self._root}/{listing.files[0].name}") as opened:
            return pq.read_schema(opened)

    def _read_file(self, name: str) -> pa.Table:
        found = read_table(self._files, f"{self._root}/{name}")
        return found if self._columns.schema is None else self._columns.as_written(found)

    def _sweep(self, listing: Listing) -> None:
        """Delete outdated bucket files, and the folders of interrupted batches.

        A bucket file (`_b=...`) is outdated if neither this listing nor the one before
        names it; all other files stay.
        """
        kept = {*listing.names, *listing.before}
        for info in self._files.get_file_info(fs.FileSelector(self._root)):
            with suppress(FileNotFoundError):
                if info.base_name.startswith("_b=") and info.base_name not in kept:
                    self._files.delete_file(info.path)
                elif info.base_name.startswith(ASIDE):  # of an interrupted batch
                    self._files.delete_dir(info.path)

    def _check_empty(self) -> None:
        """Raise if there are files of another program."""
        for info in self._files.get_file_info(fs.FileSelector(self._root, allow_not_found=True)):
            if not info.base_name.startswith(("_b=", "_spark_metadata", ASIDE, ".")):
                raise OffloadError(
                    f"{self._root} has {info.base_name!r}, which no sink has written there\n"
                    "  give the view an empty folder"
                )


def _empty_listing(listing: Listing) -> Listing:
    """Return the list without rows; its files stay for their readers."""
    return Listing(listing.note, 1, "nothing", (), listing.names)


def _canonical_value(value: Any) -> Any:
    """Return a value with the same text as all equal values: 0.0 for -0.0, tuples for lists.

    The values of a struct become a tuple.
    """
    if isinstance(value, float):
        return value or 0.0
    if isinstance(value, dict):
        return tuple(map(_canonical_value, value.values()))
    if isinstance(value, list):
        return tuple(map(_canonical_value, value))
    return value


ASIDE = "_aside"
BUCKET = "__bucket__"


@dataclass(frozen=True, slots=True)
class HashedRows:
    """Rows by the hash of some columns."""

    key: tuple[str, ...]
    """None: all columns."""
    count: int
    is_unique: bool
    """True if keys must be unique."""


@dataclass(frozen=True, slots=True)
class SparkBuckets:
    """Write files of a folder with Spark."""

    place: Place
    of: Typed
    """The type of the rows in files."""
    buckets: HashedRows
    name: str
    """The id of the writer, in the names of its files."""

    def touched(self, changes: Any) -> tuple[Any, set[int]]:
        """Write the net changes to files, and return them with their buckets."""
        folder = self._hidden_folder("changes")
        changes.write_changes(self.of, self._uri(folder), self.buckets)
        parts = list(self._list_parts(folder))
        uris = [self._uri(path) for _, path, _ in parts]
        written = changes.of_changes(uris, sum(rows for _, _, rows in parts))
        return written, {bucket for bucket, _, rows in parts if rows}

    def write(self, changes: Any, before: Sequence[ListedFile], number: int) -> list[ListedFile]:
        """Write the files of the rows of `before` with changes applied; the old files stay.

        Raises
        ------
        OffloadError: a deleted row is not there, or two rows have one key that must be unique.
        """
        names = [file.name for file in before if file.rows]
        given = changes.with_rows_in(list(map(self._uri, names)), sum(f.rows for f in before))
        folder = self._hidden_folder("rows")
        given.write_rows(self.of, self._uri(folder), self.buckets, self.place.root)
        return list(self._move_files(self._list_parts(folder), number))

    def _hidden_folder(self, what: str) -> str:
        """Delete a folder aside, if it exists, and return its path."""
        folder = f"{ASIDE}-{self.name}/{what}"
        with suppress(FileNotFoundError):
            self.place.files.delete_dir(f"{self.place.root}/{folder}")
        return folder

    def _move_files(
        self, parts: Iterable[tuple[int, str, int]], number: int
    ) -> Iterator[ListedFile]:
        """Move the files `(bucket, path, rows)` that Spark has written into the folder, and yield
        each with its new name and size."""
        files, root = self.place.files, self.place.root
        for at, (bucket, path, rows) in enumerate(parts):
            name = f"_b={bucket}-{number:012}-{self.name}-{at}.parquet"
            files.move(f"{root}/{path}", f"{root}/{name}")
            (info,) = files.get_file_info([f"{root}/{name}"])
            yield ListedFile(name, bucket, rows, info.size)

    def _list_parts(self, folder: str) -> Iterator[tuple[int, str, int]]:
        """Yield the bucket of each written file, its path below the root, and its rows."""
        root = self.place.root
        for path in list_parquet(self.place.files, f"{root}/{folder}"):
            _, _, rest = path.partition(f"/{BUCKET}=")
            rows = count_rows(self.place.files, path)
            yield int(rest.partition("/")[0]), path.removeprefix(f"{root}/"), rows

    def _uri(self, path: str) -> str:
        return f"{self.place.uri}/{path}"
