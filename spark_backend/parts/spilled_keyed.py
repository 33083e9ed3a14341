"""The rows of a keyed table that only parts on Spark read: on disk, and here where each one is.

    key  --encode, digest-->  mark of 16 bytes  -->  place in the files        in the process
    row                                              at its place              on disk

Whether a key is taken is known from its mark; the row that has it is fetched where a statement
needs it, for those of many rows all together. Rows come from a store of the process piece by
piece (`move`), and statements find each wherever it is. Rows that no file gives back as what they
are stay in the process.

State:  24 bytes per row, and what has not been written yet.
Cost:   some 20 us per new row; for one that is replaced or removed, a row group is read.
Source: log-structured files with an index of keys in memory, as in Bitcask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, ClassVar, TypeVar

import numpy as np

from reactive.engine.collections.zset import Pair, Row, consolidate
from reactive.engine.runtime.interrupts import surely
from reactive.engine.storage.keyed_store import KeyedStore
from reactive.engine.storage.store import Absent, Duplicate
from reactive.errors import OffloadError
from spark_backend.parts.fingerprints import SIZE, Fingerprint, Fingerprints
from spark_backend.parts.groups import encode
from spark_backend.parts.row_files import FILE, RowFiles

WRITTEN = 20_000
"""Rows that are kept here before they are written."""
SPARSE = 4
"""A file is given up when it has so many times as many rows as are still rows of the table."""

T = TypeVar("T")


class SpilledKeyedStore:
    """A `reactive.engine.storage.store.Store` of at most one row per key, on disk.

    Parameters
    ----------
    rows: the rows to begin with; `move` takes them from there.
    """

    interns: ClassVar[bool] = False

    def __init__(self, folder: str, row_type: Any, rows: KeyedStore) -> None:
        self.key = rows.key
        self.by_key: Mapping[Any, Row] = _ByKey(self)
        """The rows by their keys, each fetched when it is asked for."""
        self._waiting = rows
        self._odd = KeyedStore(rows.key)
        self._files = RowFiles(folder, row_type)
        self._places = Fingerprints(np.dtype(np.int64))
        self._unwritten: dict[Fingerprint, Any] = {}
        self._live: Counter[int] = Counter()
        self._expected: dict[Fingerprint, Row] = {}

    def move(self, count: int) -> int:
        """Take `count` of the rows to begin with over; how many are left."""
        self._make_room()
        gone = self._waiting.take(count)
        for row in gone:
            self._put(self.key(row), row)
        return len(self._waiting)

    def add(self, row: Row, count: int) -> Pair:
        return _done(partial(self._add, row, count))

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        _done(partial(self._each, self._add, rows))
        return rows

    def remove(self, row: Row, count: int) -> Pair:
        return _done(partial(self._remove, row, count))

    def remove_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        self.expect(map(self.key, rows))
        return [row for row, _ in _done(partial(self._each, self._remove, rows))]

    def revert(self, changes: Iterable[Pair]) -> None:
        surely(partial(self._revert, consolidate(changes)))

    def recount(self) -> None: ...

    def expect(self, keys: Iterable[Any]) -> None:
        """These are about to be asked for: fetch all of their rows at once."""
        marks = {mark for mark in map(_mark, keys) if mark is not None}
        wanted = {m: place for m in marks - self._expected.keys() if (place := self._place(m))}
        self._fetch(wanted)

    def get(self, key: Any) -> Row | None:
        """The row of a key, or None."""
        for near in (self._waiting, self._odd):
            held = near.get(key)
            if held is not None:
                return held
        mark = _mark(key)
        return None if mark is None else self._at(mark)

    def has(self, key: Any) -> bool:
        """Whether a key is taken, without a look at the files."""
        if self._waiting.get(key) is not None or self._odd.get(key) is not None:
            return True
        mark = _mark(key)
        return mark is not None and (mark in self._unwritten or self._place(mark) > 0)

    def count(self, row: Row) -> int:
        held = self.get(self.key(row))
        return int(held is not None and held == row)

    def pairs(self) -> Iterable[Pair]:
        for near in (self._waiting, self._odd):
            yield from near.pairs()
        for packed in list(self._unwritten.values()):
            yield self._files.unpacked(packed), 1
        for number in list(self._files.written):
            for _, row in self._current(number):
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
        key = self.key(row)
        held = self.get(key)
        if held is None or count != 1 or held != row:
            raise Absent
        self._forget(key)
        return (held, -1)

    def _each(self, do: Callable[[Row, int], Pair], rows: Sequence[Row]) -> list[Pair]:
        done: list[Pair] = []
        try:
            for row in rows:
                done.append(do(row, 1))
        except BaseException:
            self._revert(done)
            raise
        return done

    def _revert(self, changes: Iterable[Pair]) -> None:
        """Nothing is written meanwhile: an undo does not fail for want of space."""
        pairs = list(changes)
        for row, weight in pairs:
            if weight > 0:
                self._forget(self.key(row))
        for row, weight in pairs:
            if weight < 0:
                self._put(self.key(row), row)

    def _put(self, key: Any, row: Row) -> None:
        mark = _mark(key)
        try:
            packed = None if mark is None else self._files.packed(row)
        except OffloadError:
            packed = None
        if mark is None or packed is None:
            self._odd.add(row, 1)
        else:
            self._unwritten[mark] = packed

    def _forget(self, key: Any) -> None:
        """Let the row of a key go."""
        for near in (self._waiting, self._odd):
            held = near.get(key)
            if held is not None:
                near.remove(held, 1)
                return
        mark = _mark(key)
        if mark is None or (mark not in self._unwritten and not self._place(mark)):
            raise Absent
        if mark in self._unwritten:
            del self._unwritten[mark]
        else:
            self._leave(mark, self._place(mark))

    def _leave(self, mark: Fingerprint, place: int) -> None:
        self._places.add(mark, -place)
        self._live[place // FILE] -= 1

    def _at(self, mark: Fingerprint) -> Row | None:
        packed = self._unwritten.get(mark)
        if packed is not None:
            return self._files.unpacked(packed)
        place = self._place(mark)
        if not place:
            return None
        if mark not in self._expected:
            self._fetch({mark: place})
        return self._expected[mark]

    def _fetch(self, places: Mapping[Fingerprint, int]) -> None:
        found = self._files.fetch(places.values())
        if len(self._expected) > WRITTEN:
            self._expected = {}
        self._expected.update((mark, found[place]) for mark, place in places.items())

    def _place(self, mark: Fingerprint) -> int:
        return self._places.count(mark)

    def _current(self, number: int) -> Iterator[tuple[Fingerprint, Row]]:
        """The rows of a file that are still rows of the table."""
        for place, row in self._files.rows(number):
            mark = _mark(self.key(row))
            assert mark is not None
            if self._place(mark) == place:
                yield mark, row

    def _make_room(self) -> None:
        """Write what there is, if it is much. Done before anything changes, as it may fail."""
        if len(self._unwritten) >= WRITTEN:
            self._write()

    def _write(self) -> None:
        """Write what there is, with the rows of files that have few left, which are given up."""
        rows = dict(self._unwritten)
        written = self._files.written
        sparse = [n for n, count in written.items() if self._live[n] * SPARSE < count]
        kept = {mark: row for n in sparse for mark, row in self._current(n)}
        rows.update((mark, self._files.packed(row)) for mark, row in kept.items())
        first = self._files.write(list(rows.values()))
        for mark in kept:
            self._leave(mark, self._place(mark))
        self._places.add_all((mark, first + n) for n, mark in enumerate(rows))
        self._live[first // FILE] = len(rows)
        self._unwritten, self._expected = {}, {}
        for number in sparse:
            self._files.drop(number)
            del self._live[number]


class _ByKey(Mapping[Any, Row]):
    """The rows of a store by their keys."""

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


def _mark(key: Any) -> Fingerprint | None:
    """Equal where keys are; None if nothing is known of what a key equals."""
    try:
        return blake2b(encode(key), digest_size=SIZE).digest()
    except OffloadError:
        return None


def _done(act: Callable[[], T]) -> T:
    """Do it as a whole: what Ctrl-C does comes after it."""
    found: list[T] = []
    surely(lambda: found.append(act()))
    return found[0]
