"""The rows of a table that only parts on Spark read: on disk, with a mark of each in the process.

    row  --encode, digest-->  mark of 16 bytes      in the process: its number of copies
    row  --pickle---------->  files                 on disk: its content

Marks are equal if rows are, up to collisions of 128 bits. Rows of classes with their own equality
stay in the process. Rows move from a store of the process in pieces (`move`), and statements find
each row in either store.

State:  20 bytes per row, and the rows that are not written yet.
Cost:   some 10 us per change; reading all rows reads the files.

`Fingerprints` is a multiset of marks of 16 bytes, in 20 bytes each: sorted arrays, and a dictionary
of changes. With wider counts, of 24 bytes each, a count may be any sum, such as a position.

State:  the arrays; a change for every 32nd mark at most.
Cost:   O(log n) for a look-up; amortised O(1) array steps for a change.

`EntryFiles` stores entries with a bucket in Parquet files, and reads ranges of buckets; for this
process only.

    put(entries)     writes a new file, sorted by bucket, in small row groups
    pieces()         yields all entries, each bucket in one piece
    renew(fold)      replaces all files by one

State:  on disk; here the number of entries of each file.
Cost:   O(entries) to write; a piece reads the row groups of its buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from reactive.engine.collections.zset import Pair, Row
from reactive.engine.storage.store import BagStore, undo_changes
from reactive.errors import OffloadError
from spark_backend.cluster.files import local_place
from spark_backend.cluster.paths import writing
from spark_backend.codec.codec import Codec, loads
from spark_backend.parts.groups import encode

SIZE = 16
Fingerprint = bytes
FEW = 10_000
"""The minimum number of changes that are kept in the dictionary."""
PART = 32
"""One in this many of all marks may be in the dictionary, where each takes some 150 bytes."""
_HALF = np.dtype(">u8")
_COUNT = np.dtype(np.int32)


class Fingerprints:
    """The count of each mark.

    >>> marks = Fingerprints()
    >>> marks.add(bytes(16), 2)
    >>> marks.count(bytes(16)), len(marks)
    (2, 1)
    """

    def __init__(self, counts: np.dtype[Any] = _COUNT) -> None:
        self._high = np.empty(0, np.uint64)
        self._low = np.empty(0, np.uint64)
        self._counts = np.empty(0, counts)
        self._changes: dict[Fingerprint, int] = {}

    def count(self, mark: Fingerprint) -> int:
        """Return the count of a mark."""
        return self._sorted_count(mark) + self._changes.get(mark, 0)

    def add(self, mark: Fingerprint, times: int) -> None:
        """Add `times` to the count of a mark."""
        changes = self._changes
        changes[mark] = changes.get(mark, 0) + times
        if not changes[mark]:
            del changes[mark]
        elif len(changes) > max(FEW, len(self._counts) // PART):
            self._merge()

    def add_all(self, counts: Iterable[tuple[Fingerprint, int]]) -> None:
        """Add to the counts of many marks."""
        marks, times = tuple(zip(*counts, strict=True)) or ((), ())
        self._merge()
        self._add_counts(marks, times)

    def __len__(self) -> int:
        """Return the number of distinct marks."""
        self._merge()
        return len(self._counts)

    def bytes(self) -> int:
        """Return the size in bytes."""
        changes = len(self._changes) * 150
        return int(self._high.nbytes + self._low.nbytes + self._counts.nbytes) + changes

    def _sorted_count(self, mark: Fingerprint) -> int:
        """Return the count of a mark in the sorted arrays, without the later changes; 0 if it is
        not there."""
        high, low = np.frombuffer(mark, _HALF).astype(np.uint64)
        place = int(np.searchsorted(self._high, high))
        while place < len(self._high) and self._high[place] == high:
            if self._low[place] == low:
                return int(self._counts[place])
            place += 1
        return 0

    def _merge(self) -> None:
        """Move the collected changes into the sorted arrays."""
        changes, self._changes = self._changes, {}
        self._add_counts(changes.keys(), changes.values())

    def _add_counts(self, marks: Collection[Fingerprint], times: Iterable[int]) -> None:
        """Add to the counts of existing marks, and insert new marks.

        One array is copied at a time, which limits the extra memory to one array.
        """
        if not marks:
            return
        high, low, counts = _net_marks(marks, np.fromiter(times, np.int64))
        place, is_there = self._find_positions(high, low)
        self._counts[place[is_there]] += counts[is_there].astype(self._counts.dtype)
        new = ~is_there & (counts != 0)
        at = place[new]
        self._high = np.insert(self._high, at, high[new])
        self._low = np.insert(self._low, at, low[new])
        self._counts = np.insert(self._counts, at, counts[new].astype(self._counts.dtype))
        if not self._counts.all():
            kept = self._counts != 0
            self._high, self._low = self._high[kept], self._low[kept]
            self._counts = self._counts[kept]

    def _find_positions(self, high: Any, low: Any) -> tuple[Any, Any]:
        """Return the position of each mark, or where to insert it, and whether it exists."""
        place = np.searchsorted(self._high, high, "left")
        last = np.searchsorted(self._high, high, "right")
        while True:
            inside = np.flatnonzero(place < last)
            before = inside[self._low[place[inside]] < low[inside]]
            if not len(before):
                break
            place[before] += 1
        is_there = np.zeros(len(place), bool)
        is_there[inside] = self._low[place[inside]] == low[inside]
        return place, is_there


def _net_marks(marks: Collection[Fingerprint], times: Any) -> tuple[Any, Any, Any]:
    """Return both halves of the sorted distinct marks, with the sums."""
    given = np.frombuffer(b"".join(marks), _HALF).astype(np.uint64).reshape(-1, 2)
    order = np.lexsort((given[:, 1], given[:, 0]))
    high, low = given[order, 0], given[order, 1]
    first = _first_positions(high, low)
    sums: Any = np.add.reduceat(times[order], first)
    return high[first], low[first], sums


def _first_positions(high: Any, low: Any) -> Any:
    """Return the positions in sorted arrays where another mark begins."""
    differs = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    return np.concatenate([[0], np.flatnonzero(differs) + 1])


SCHEMA = pa.schema(
    [
        ("bucket", pa.int64()),
        ("mark", pa.binary(SIZE)),
        ("row", pa.binary()),
        ("weight", pa.int64()),
    ]
)
WRITTEN = 20_000
"""The number of changes that are collected before they are written."""
GROWN = 4
"""Entries are netted when there are more than this many per row."""
Pickled = bytes
Change = tuple[Fingerprint, Pickled | None, int]
"""Mark, pickled row if it is inserted, weight."""


class SpilledStore:
    """A `reactive.engine.storage.store.RowStore` of rows on disk.

    Parameters
    ----------
    rows: the initial rows, which `move` moves to disk; until then they are found there.
    """

    interns: ClassVar[bool] = False

    def __init__(self, folder: str, rows: BagStore) -> None:
        self._files = EntryFiles(folder, SCHEMA)
        self._marks = Fingerprints()
        self._dumps: Callable[[Row], bytes] = Codec(stable=False).dumps
        self._waiting = rows
        self._odd = BagStore()
        self._unwritten: list[Change] = []
        self._size = 0

    def move(self, count: int) -> int:
        """Move `count` of the initial rows; return the number of remaining ones."""
        self._make_room()
        for row, copies in self._waiting.take(count):
            self._add(row, copies)
        return len(self._waiting)

    def add(self, row: Row, count: int) -> Pair:
        """Add `count` copies of a row, and return the change.

        Raises `TypeError` if it has no hash.
        """
        hash(row)
        self._make_room()
        return self._add(row, count)

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Add each row once, and return the rows as stored.

        If one fails, the rows added before it are removed again.
        """
        done: list[Row] = []
        try:
            for row in rows:
                done.append(self.add(row, 1)[0])
        except BaseException:
            self.revert((row, 1) for row in done)
            raise
        return done

    def remove(self, row: Row, count: int) -> Pair:
        """Remove `count` copies of a row, and return the change.

        Raises `Absent` if there are fewer.
        """
        self._make_room()
        return self._remove(row, count)

    def remove_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Remove each row once, and return the removed rows.

        If one fails, the rows removed before it are added again.
        """
        done: list[Row] = []
        try:
            for row in rows:
                done.append(self.remove(row, 1)[0])
        except BaseException:
            self.revert((row, -1) for row in done)
            raise
        return done

    def revert(self, changes: Iterable[Pair]) -> None:
        """Revert changes without writing: an undo does not fail for lack of space."""
        undo_changes(changes, self._change)

    def recount(self) -> None:
        """Compute the marks again from the written and the unwritten changes."""
        self._marks, self._size = Fingerprints(), 0
        for table in self._files.pieces():
            columns = (table[name].to_pylist() for name in ("mark", "weight"))
            self._count(list(zip(*columns, strict=True)))
        self._count([(mark, weight) for mark, _, weight in self._unwritten])
        self._odd.recount()
        self._waiting.recount()

    def _count(self, counts: list[tuple[Fingerprint, int]]) -> None:
        """Add to the counts of marks, and to the number of rows."""
        self._marks.add_all(counts)
        self._size += sum(weight for _, weight in counts)

    def count(self, row: Row) -> int:
        """Return the number of copies of a row; 0 if it is not there."""
        near = self._waiting.count(row) + self._odd.count(row)
        with suppress(OffloadError):
            return near + self._marks.count(_row_mark(row))
        return near

    def pairs(self) -> Iterable[Pair]:
        """Yield all rows with their counts.

        Unwritten changes are included; reading runs through all files.
        """
        for table in self._files.pieces(_changes_to_table(self._unwritten)):
            kept = _fold_entries(table)
            for data, weight in zip(
                kept["row"].to_pylist(), kept["weight"].to_pylist(), strict=True
            ):
                yield loads(data), weight
        yield from self._odd.pairs()
        yield from list(self._waiting.pairs())

    def __len__(self) -> int:
        return self._size + len(self._odd) + len(self._waiting)

    def bytes(self) -> int:
        return self._marks.bytes()

    def close(self) -> None:
        """Delete the files."""
        self._files.delete()

    def _change(self, row: Row, weight: int) -> Pair:
        return self._add(row, weight) if weight > 0 else self._remove(row, -weight)

    def _add(self, row: Row, count: int) -> Pair:
        """Add `count` copies of a row, and return the change.

        A row that cannot be encoded stays in the process.
        """
        if len(self._waiting) and self._waiting.count(row):
            return self._waiting.add(row, count)  # all copies of a row are in one store
        try:
            self._put(_row_mark(row), self._dumps(row), count)
        except OffloadError:
            return self._odd.add(row, count)
        return (row, count)

    def _remove(self, row: Row, count: int) -> Pair:
        """Remove `count` copies of a row, and return the change; of copies on disk, the removal is
        recorded."""
        if len(self._waiting) and self._waiting.count(row):
            return self._waiting.remove(row, count)
        try:
            mark = _row_mark(row)
        except OffloadError:
            return self._odd.remove(row, count)
        if self._marks.count(mark) < count:
            return self._odd.remove(row, count)
        self._put(mark, None, -count)
        return (row, -count)

    def _put(self, mark: Fingerprint, data: Pickled | None, weight: int) -> None:
        """Record a change of a row, to be written later; `data` is None for a deletion.

        On any exception the change is dropped again.
        """
        before = len(self._unwritten)
        try:
            self._unwritten.append((mark, data, weight))
            self._size += weight
            self._marks.add(mark, weight)
        except BaseException:  # an interrupt, which a recount follows
            del self._unwritten[before:]
            raise

    def _make_room(self) -> None:
        """Write collected changes if there are many; called before any change, because it may
        fail."""
        if len(self._unwritten) >= WRITTEN:
            self._write()

    def _write(self) -> None:
        """Write the recorded changes to a file, if there are any; rewrite all files if they have
        grown too large."""
        changes = self._unwritten
        if not changes:
            return
        self._files.put(_changes_to_table(changes))
        self._unwritten = []
        if self._files.entries > GROWN * max(self._size, WRITTEN):
            self._files.renew(_fold_entries)


def _row_mark(row: Row) -> Fingerprint:
    return blake2b(encode(row), digest_size=SIZE).digest()


def _changes_to_table(changes: Sequence[Change]) -> pa.Table:
    """Return changes as a table to write."""
    marks, rows, weights = zip(*changes, strict=True) if changes else ((), (), ())
    buckets = [int.from_bytes(mark[:8], signed=True) for mark in marks]
    columns = (buckets, marks, rows, weights)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.table(arrays, schema=SCHEMA)


def _fold_entries(table: pa.Table) -> pa.Table:
    """Return one entry per mark, with the sum of the weights and any of the pickled rows."""
    net: dict[bytes, list[Any]] = {}
    columns = [table[name].to_pylist() for name in SCHEMA.names]
    for bucket, mark, row, weight in zip(*columns, strict=True):
        found = net.setdefault(mark, [bucket, mark, row, 0])
        found[2] = found[2] or row
        found[3] += weight
    kept = [entry for entry in net.values() if entry[3]]
    arrays = [pa.array([e[i] for e in kept], f.type) for i, f in enumerate(SCHEMA)]
    return pa.table(arrays, schema=SCHEMA)


ROW_GROUP = 16_384
PIECE = 100_000
_LEAST, _ENTRIES = -(1 << 63), 1 << 64


class EntryFiles:
    """The files in a folder; each has the columns of the schema, `bucket` (int64) among them.

    `folder` is on this machine.
    """

    def __init__(self, folder: str, schema: pa.Schema) -> None:
        place = local_place(folder)
        self._files, self._root = place.files, place.root
        self._files.create_dir(self._root, recursive=True)
        self._schema = schema
        self._written: dict[str, int] = {}
        self._number = 0

    @property
    def entries(self) -> int:
        """The number of entries of all files."""
        return sum(self._written.values())

    def put(self, table: pa.Table) -> None:
        """Write entries.

        Raises
        ------
        OffloadError: they cannot be written; nothing has changed.
        """
        path, count = self._write([table])
        self._written[path] = count

    def pieces(self, more: pa.Table | None = None) -> Iterator[pa.Table]:
        """Yield all entries, in ranges of buckets.

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
        """Fold each piece, and replace all files by one."""
        old = list(self._written)
        path, count = self._write(map(fold, self.pieces()))
        self._written = {path: count}
        for file in old:
            self._drop(file)

    def delete(self) -> None:
        """Delete all files."""
        with suppress(OSError):
            self._files.delete_dir(self._root)

    def _write(self, tables: Iterable[pa.Table]) -> tuple[str, int]:
        """Write a new file, and return its path and its number of entries.

        On any error it is deleted.
        """
        self._number += 1
        path = f"{self._root}/{self._number:08}.parquet"
        try:
            with writing(self._root):
                return path, self._put(path, tables)
        except BaseException:
            self._drop(path)  # a partial file may fill the disk
            raise

    def _put(self, path: str, tables: Iterable[pa.Table]) -> int:
        """Write tables to a file, each sorted by bucket, and return the number of entries."""
        count = 0
        to: dict[str, Any] = {"filesystem": self._files, "compression": "lz4"}
        with pq.ParquetWriter(path, self._schema, **to) as writer:
            for table in tables:
                writer.write_table(table.sort_by("bucket"), row_group_size=ROW_GROUP)
                count += table.num_rows
        return count

    def _drop(self, file: str) -> None:
        """Delete a file that is no longer used, if that is possible."""
        with suppress(OSError):  # unused
            self._files.delete_file(file)
