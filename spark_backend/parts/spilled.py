"""The rows of a table that only parts on Spark read: on disk, and here a mark of each.

    row  --encode, digest-->  mark of 16 bytes      in the process: is it there, and how often
    row  --pickle---------->  files                 on disk: what it is

Marks are equal where rows are, as far as 128 bits tell. Rows of classes that have an equality of
their own stay in the process. Rows come from a store of the process piece by piece (`move`), and
statements find each wherever it is.

State:  20 bytes per row, and what has not been written yet.
Cost:   some 10 us per change; reading all rows reads the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, ClassVar

import pyarrow as pa

from reactive.engine.collections.zset import Pair, Row
from reactive.engine.storage.store import BagStore, take_back
from reactive.errors import OffloadError
from spark_backend.codec.codec import Codec, loads
from spark_backend.parts.entry_files import EntryFiles
from spark_backend.parts.fingerprints import SIZE, Fingerprint, Fingerprints
from spark_backend.parts.groups import encode

SCHEMA = pa.schema(
    [
        ("bucket", pa.int64()),
        ("mark", pa.binary(SIZE)),
        ("row", pa.binary()),
        ("weight", pa.int64()),
    ]
)
WRITTEN = 20_000
"""Changes that are kept here before they are written."""
GROWN = 4
"""How many times as many entries as rows there may be before they are added up."""
Pickled = bytes
Change = tuple[Fingerprint, Pickled | None, int]
"""Mark, pickled row if it comes, weight."""


class SpilledStore:
    """A `reactive.engine.storage.store.Store` of rows on disk.

    Parameters
    ----------
    rows: the rows to begin with; `move` takes them from there. Until then they are found there.
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
        """Take `count` of the rows to begin with over; how many are left."""
        self._make_room()
        for row, copies in self._waiting.take(count):
            self._add(row, copies)
        return len(self._waiting)

    def add(self, row: Row, count: int) -> Pair:
        hash(row)
        self._make_room()
        return self._add(row, count)

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        done: list[Row] = []
        try:
            for row in rows:
                done.append(self.add(row, 1)[0])
        except BaseException:
            self.revert((row, 1) for row in done)
            raise
        return done

    def remove(self, row: Row, count: int) -> Pair:
        self._make_room()
        return self._remove(row, count)

    def remove_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        done: list[Row] = []
        try:
            for row in rows:
                done.append(self.remove(row, 1)[0])
        except BaseException:
            self.revert((row, -1) for row in done)
            raise
        return done

    def revert(self, changes: Iterable[Pair]) -> None:
        """Nothing is written meanwhile: an undo does not fail for want of space."""
        take_back(changes, self._change)

    def recount(self) -> None:
        """Make the marks anew, from what is written and what is to be."""
        self._marks, self._size = Fingerprints(), 0
        for table in self._files.pieces():
            columns = (table[name].to_pylist() for name in ("mark", "weight"))
            self._count(list(zip(*columns, strict=True)))
        self._count([(mark, weight) for mark, _, weight in self._unwritten])
        self._odd.recount()
        self._waiting.recount()

    def _count(self, counts: list[tuple[Fingerprint, int]]) -> None:
        self._marks.add_all(counts)
        self._size += sum(weight for _, weight in counts)

    def count(self, row: Row) -> int:
        near = self._waiting.count(row) + self._odd.count(row)
        with suppress(OffloadError):
            return near + self._marks.count(_mark(row))
        return near

    def pairs(self) -> Iterable[Pair]:
        for table in self._files.pieces(_table(self._unwritten)):
            kept = _folded(table)
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
        if len(self._waiting) and self._waiting.count(row):
            return self._waiting.add(row, count)  # all copies of a row are in one place
        try:
            self._put(_mark(row), self._dumps(row), count)
        except OffloadError:
            return self._odd.add(row, count)
        return (row, count)

    def _remove(self, row: Row, count: int) -> Pair:
        if len(self._waiting) and self._waiting.count(row):
            return self._waiting.remove(row, count)
        try:
            mark = _mark(row)
        except OffloadError:
            return self._odd.remove(row, count)
        if self._marks.count(mark) < count:
            return self._odd.remove(row, count)
        self._put(mark, None, -count)
        return (row, -count)

    def _put(self, mark: Fingerprint, data: Pickled | None, weight: int) -> None:
        before = len(self._unwritten)
        try:
            self._unwritten.append((mark, data, weight))
            self._size += weight
            self._marks.add(mark, weight)
        except BaseException:  # an interrupt, after which there is a recount
            del self._unwritten[before:]
            raise

    def _make_room(self) -> None:
        """Write what there is, if it is much. Done before anything changes, as it may fail."""
        if len(self._unwritten) >= WRITTEN:
            self._write()

    def _write(self) -> None:
        changes = self._unwritten
        if not changes:
            return
        self._files.put(_table(changes))
        self._unwritten = []
        if self._files.entries > GROWN * max(self._size, WRITTEN):
            self._files.renew(_folded)


def _mark(row: Row) -> Fingerprint:
    return blake2b(encode(row), digest_size=SIZE).digest()


def _table(changes: Sequence[Change]) -> pa.Table:
    """Changes as they are written."""
    marks, rows, weights = zip(*changes, strict=True) if changes else ((), (), ())
    buckets = [int.from_bytes(mark[:8], signed=True) for mark in marks]
    columns = (buckets, marks, rows, weights)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.table(arrays, schema=SCHEMA)


def _folded(table: pa.Table) -> pa.Table:
    """One entry per mark, with the sum of the weights; the pickled row is that of any."""
    net: dict[bytes, list[Any]] = {}
    columns = [table[name].to_pylist() for name in SCHEMA.names]
    for bucket, mark, row, weight in zip(*columns, strict=True):
        found = net.setdefault(mark, [bucket, mark, row, 0])
        found[2] = found[2] or row
        found[3] += weight
    kept = [entry for entry in net.values() if entry[3]]
    arrays = [pa.array([e[i] for e in kept], f.type) for i, f in enumerate(SCHEMA)]
    return pa.table(arrays, schema=SCHEMA)
