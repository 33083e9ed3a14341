"""The rows of a keyed table that only parts on Spark read: on disk, with their positions here.

    key  --encode, digest-->  mark of 16 bytes  -->  position in the files     in the process
    row                                              at its position           on disk

The mark of a key tells whether it is taken; its row is fetched when a statement needs it, for many
rows in one batch. Rows move from a store of the process in pieces (`move`), and statements find
each row in either store. Rows that would be decoded to other values stay in the process.

State:  24 bytes per row, and the rows that are not written yet.
Cost:   some 20 us per new row; to replace or delete one, a row group is read.
Source: log-structured files with an index of keys in memory, as in Bitcask.

`RowFiles` stores rows in numbered Parquet files, and finds each by its position.

    write([row, row, ...]) -> position of the first      file 3, row 0 on
    fetch({position, ...}) -> the rows                   reads their row groups

Rows of a known type are typed columns, so that reading executes nothing; others are pickled. The
files are for the process that wrote them.

State:  on disk; here the number of rows of each file.
Cost:   O(rows) to write; a look-up reads a row group, a batch reads each row group once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reactive.engine.collections.zset import Pair, Row, consolidate
from reactive.engine.runtime.interrupts import surely
from reactive.engine.storage.row_check import KeyedStore
from reactive.engine.storage.store import Absent, Duplicate
from reactive.errors import OffloadError
from spark_backend.cluster.files import local_place
from spark_backend.cluster.paths import writing
from spark_backend.codec.arrow import fitting, from_arrow, to_arrow
from spark_backend.codec.codec import Codec, loads
from spark_backend.codec.schema import Pickled, kept_as
from spark_backend.parts.groups import encode
from spark_backend.parts.spilled import SIZE, Fingerprint, Fingerprints

WRITTEN = 20_000
"""The number of rows that are collected before they are written."""
SPARSE = 4
"""The number of written rows per current row from that a file is rewritten."""

T = TypeVar("T")


class SpilledKeyedStore:
    """A `reactive.engine.storage.store.RowStore` of at most one row per key, on disk.

    Parameters
    ----------
    rows: the initial rows, which `move` moves to disk.
    """

    interns: ClassVar[bool] = False

    def __init__(self, folder: str, row_type: Any, rows: KeyedStore) -> None:
        self.key = rows.key
        self.by_key: Mapping[Any, Row] = _SpilledByKey(self)
        """The rows by their keys, each fetched when it is read."""
        self._waiting = rows
        self._odd = KeyedStore(rows.key)
        self._files = RowFiles(folder, row_type)
        self._places = Fingerprints(np.dtype(np.int64))
        self._unwritten: dict[Fingerprint, Any] = {}
        self._live: Counter[int] = Counter()
        self._expected: dict[Fingerprint, Row] = {}

    def move(self, count: int) -> int:
        """Move `count` of the initial rows; return the number of remaining ones."""
        self._make_room()
        gone = self._waiting.take(count)
        for row in gone:
            self._put(self.key(row), row)
        return len(self._waiting)

    def add(self, row: Row, count: int) -> Pair:
        return _run_shielded(partial(self._add, row, count))

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Add each row, and return the rows. If one fails, none is added."""
        _run_shielded(partial(self._each, self._add, rows))
        return rows

    def remove(self, row: Row, count: int) -> Pair:
        return _run_shielded(partial(self._remove, row, count))

    def remove_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Remove each row, and return the stored rows. If one fails, none is removed."""
        self.expect(map(self.key, rows))
        return [row for row, _ in _run_shielded(partial(self._each, self._remove, rows))]

    def revert(self, changes: Iterable[Pair]) -> None:
        surely(partial(self._revert, consolidate(changes)))

    def recount(self) -> None: ...

    def keys_of(self, rows: Sequence[Row]) -> Iterable[Any]:
        """Return the keys of rows."""
        return map(self.key, rows)

    def expect(self, keys: Iterable[Any]) -> None:
        """Fetch the rows of keys that are about to be read, in one batch."""
        marks = {mark for mark in map(_key_mark, keys) if mark is not None}
        wanted = {m: place for m in marks - self._expected.keys() if (place := self._position(m))}
        self._fetch(wanted)

    def get(self, key: Any) -> Row | None:
        """Return the row of a key, or None."""
        for near in (self._waiting, self._odd):
            held = near.get(key)
            if held is not None:
                return held
        mark = _key_mark(key)
        return None if mark is None else self._row_of(mark)

    def has(self, key: Any) -> bool:
        """Return True if a key is taken, without reading files."""
        if self._waiting.get(key) is not None or self._odd.get(key) is not None:
            return True
        mark = _key_mark(key)
        return mark is not None and (mark in self._unwritten or self._position(mark) > 0)

    def count(self, row: Row) -> int:
        """Return 1 if the row is in the store, else 0."""
        held = self.get(self.key(row))
        return int(held is not None and held == row)

    def pairs(self) -> Iterable[Pair]:
        """Yield all rows, each with count 1, from this process first, then file by file."""
        for near in (self._waiting, self._odd):
            yield from near.pairs()
        for packed in list(self._unwritten.values()):
            yield self._files.unpack_row(packed), 1
        for number in list(self._files.written):
            for _, row in self._current_rows(number):
                yield row, 1

    def keys(self) -> Iterator[Any]:
        return (self.key(row) for row, _ in self.pairs())

    def __len__(self) -> int:
        near = len(self._waiting) + len(self._odd) + len(self._unwritten)
        return near + self._live.total()

    def bytes(self) -> int:
        return self._places.bytes()

    def close(self) -> None:
        """Delete the files."""
        self._files.delete()

    def _add(self, row: Row, count: int) -> Pair:
        """Add a row, and return the change.

        Raises `Duplicate` if its key is taken, or `count` is not 1.
        """
        hash(row)
        key = self.key(row)
        if count != 1:
            raise Duplicate(row)
        if self.has(key):
            raise Duplicate(self.get(key))
        self._make_room()
        self._put(key, row)
        return (row, 1)

    def _remove(self, row: Row, count: int) -> Pair:
        """Remove a row, and return the change with the stored row.

        Raises `Absent` if another row or none has its key.
        """
        key = self.key(row)
        held = self.get(key)
        if held is None or count != 1 or held != row:
            raise Absent
        self._forget(key)
        return (held, -1)

    def _each(self, do: Callable[[Row, int], Pair], rows: Sequence[Row]) -> list[Pair]:
        """Call `do` for each row, and return the changes.

        If one call fails, the earlier changes are undone.
        """
        done: list[Pair] = []
        try:
            for row in rows:
                done.append(do(row, 1))
        except BaseException:
            self._revert(done)
            raise
        return done

    def _revert(self, changes: Iterable[Pair]) -> None:
        """Revert changes without writing: an undo does not fail for lack of space."""
        pairs = list(changes)
        for row, weight in pairs:
            if weight > 0:
                self._forget(self.key(row))
        for row, weight in pairs:
            if weight < 0:
                self._put(self.key(row), row)

    def _put(self, key: Any, row: Row) -> None:
        """Store a row, to be written later; a row that cannot be encoded, or whose key cannot,
        stays in the process."""
        mark = _key_mark(key)
        try:
            packed = None if mark is None else self._files.packed(row)
        except OffloadError:
            packed = None
        if mark is None or packed is None:
            self._odd.add(row, 1)
        else:
            self._unwritten[mark] = packed

    def _forget(self, key: Any) -> None:
        """Remove the row of a key. Raises `Absent` if no row has the key."""
        for near in (self._waiting, self._odd):
            held = near.get(key)
            if held is not None:
                near.remove(held, 1)
                return
        mark = _key_mark(key)
        if mark is None or (mark not in self._unwritten and not self._position(mark)):
            raise Absent
        if mark in self._unwritten:
            del self._unwritten[mark]
        else:
            self._release(mark, self._position(mark))

    def _release(self, mark: Fingerprint, place: int) -> None:
        """Remove the position of a row from the index; its file stays."""
        self._places.add(mark, -place)
        self._live[place // FILE] -= 1

    def _row_of(self, mark: Fingerprint) -> Row | None:
        """Return the row with a mark, unwritten or read from its file; None if there is none."""
        packed = self._unwritten.get(mark)
        if packed is not None:
            return self._files.unpack_row(packed)
        place = self._position(mark)
        if not place:
            return None
        if mark not in self._expected:
            self._fetch({mark: place})
        return self._expected[mark]

    def _fetch(self, places: Mapping[Fingerprint, int]) -> None:
        """Read rows at positions in the files into `_expected`, which is emptied first if it has
        grown large."""
        found = self._files.fetch(places.values())
        if len(self._expected) > WRITTEN:
            self._expected = {}
        self._expected.update((mark, found[place]) for mark, place in places.items())

    def _position(self, mark: Fingerprint) -> int:
        return self._places.count(mark)

    def _current_rows(self, number: int) -> Iterator[tuple[Fingerprint, Row]]:
        """Yield the rows of a file that are still rows of the table."""
        for place, row in self._files.rows(number):
            mark = _key_mark(self.key(row))
            assert mark is not None
            if self._position(mark) == place:
                yield mark, row

    def _make_room(self) -> None:
        """Write collected rows if there are many; called before any change, because it may fail."""
        if len(self._unwritten) >= WRITTEN:
            self._write()

    def _write(self) -> None:
        """Write the collected rows, and the current rows of sparse files, which are deleted."""
        rows = dict(self._unwritten)
        written = self._files.written
        sparse = [n for n, count in written.items() if self._live[n] * SPARSE < count]
        kept = {mark: row for n in sparse for mark, row in self._current_rows(n)}
        rows.update((mark, self._files.packed(row)) for mark, row in kept.items())
        first = self._files.write(list(rows.values()))
        for mark in kept:
            self._release(mark, self._position(mark))
        self._places.add_all((mark, first + n) for n, mark in enumerate(rows))
        self._live[first // FILE] = len(rows)
        self._unwritten, self._expected = {}, {}
        for number in sparse:
            self._files.drop(number)
            del self._live[number]


class _SpilledByKey(Mapping[Any, Row]):
    """A mapping of the rows of a store by their keys."""

    def __init__(self, of: SpilledKeyedStore) -> None:
        self._of = of

    def __getitem__(self, key: Any) -> Row:
        found = self._of.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def get(self, key: Any, default: Any = None) -> Any:
        found = self._of.get(key)
        return default if found is None else found

    def __contains__(self, key: object) -> bool:
        return self._of.has(key)

    def __iter__(self) -> Iterator[Any]:
        return self._of.keys()

    def __len__(self) -> int:
        return len(self._of)


def _key_mark(key: Any) -> Fingerprint | None:
    """Return equal marks for equal keys; None if the equality of a key is unknown."""
    try:
        return blake2b(encode(key), digest_size=SIZE).digest()
    except OffloadError:
        return None


def _run_shielded(act: Callable[[], T]) -> T:
    """Run a function as a whole: Ctrl-C takes effect after it."""
    found: list[T] = []
    surely(lambda: found.append(act()))
    return found[0]


ROW_GROUP = 1_000
FILE = 1 << 32
"""The distance between the positions of two consecutive files."""


class RowFiles:
    """The rows in a folder.

    Parameters
    ----------
    folder: a folder of this machine.
    row_type: the type of the rows, as for a table.
    """

    def __init__(self, folder: str, row_type: Any) -> None:
        place = local_place(folder)
        self._files, self._root = place.files, place.root
        self._files.create_dir(self._root, recursive=True)
        self._kept = kept_as(row_type)
        self._fits = None if isinstance(self._kept, Pickled) else fitting(self._kept)
        self._dumps = Codec(stable=False).dumps
        self.written: dict[int, int] = {}
        """The number of rows of each file."""

    def packed(self, row: Row) -> Any:
        """Return a row in the form for `write`: the row itself for columns, else its bytes.

        Raises
        ------
        OffloadError: it would be decoded to another value.
        """
        if self._fits is None:
            return self._dumps(row)
        if not self._fits(row):
            raise OffloadError(f"{row!r:.100} is not just of its type")
        return row

    def unpack_row(self, packed: Any) -> Row:
        """Decode a packed row."""
        return packed if self._fits is not None else loads(packed)

    def write(self, packed: Sequence[Any]) -> int:
        """Write rows to a new file; return the position of the first, which the others follow.

        Raises
        ------
        OffloadError: the file cannot be written; nothing has changed.
        """
        number = max(self.written, default=0) + 1
        if isinstance(self._kept, Pickled):
            array = pa.array(packed, pa.binary())
        else:
            array = to_arrow(self._kept, packed)
        path = self._path(number)
        with writing(self._root), self._files.open_output_stream(path) as stream:
            pq.write_table(pa.table({"row": array}), stream, row_group_size=ROW_GROUP)
        self.written[number] = len(packed)
        return number * FILE

    def fetch(self, places: Iterable[int]) -> dict[int, Row]:
        """Return the rows at some positions."""
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for place in places:
            groups[place // FILE, place % FILE // ROW_GROUP].append(place)
        found: dict[int, Row] = {}
        for number in sorted({number for number, _ in groups}):
            with self._files.open_input_file(self._path(number)) as opened:
                file = pq.ParquetFile(opened)
                for group in sorted(group for of, group in groups if of == number):
                    wanted = groups[number, group]
                    inside = [place % FILE - group * ROW_GROUP for place in wanted]
                    array = file.read_row_group(group)["row"].combine_chunks().take(inside)
                    found.update(zip(wanted, self._rows(array), strict=True))
        return found

    def rows(self, number: int) -> Iterator[tuple[int, Row]]:
        """Yield all rows of a file with their positions."""
        with self._files.open_input_file(self._path(number)) as opened:
            file = pq.ParquetFile(opened)
            for group in range(file.num_row_groups):
                array = file.read_row_group(group)["row"].combine_chunks()
                yield from enumerate(self._rows(array), number * FILE + group * ROW_GROUP)

    def drop(self, number: int) -> None:
        """Delete a file."""
        del self.written[number]
        with suppress(OSError):
            self._files.delete_file(self._path(number))

    def delete(self) -> None:
        """Delete all files."""
        with suppress(OSError):
            self._files.delete_dir(self._root)

    def _rows(self, array: pa.Array) -> list[Row]:
        if isinstance(self._kept, Pickled):
            return [loads(data) for data in array.to_pylist()]
        return from_arrow(self._kept, array)

    def _path(self, number: int) -> str:
        return f"{self._root}/{number:08}.parquet"
