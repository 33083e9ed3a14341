"""The rows of a keyed table: one per key.

    key -> row

State:  every row; what a dictionary takes for its key and a reference.
Cost:   O(1) per row.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

from optimizer.rewriting import fields
from reactive.engine.collections.zset import Pair, Row, consolidate
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.engine.storage import plain_rows
from reactive.engine.storage.rows import SURE
from reactive.engine.storage.store import Absent, Duplicate, fitted


class KeyedStore:
    """At most one row per key."""

    interns: ClassVar[bool] = True
    wants_plain: ClassVar[bool] = True
    __slots__ = ("_call", "by_key", "field", "key")

    def __init__(self, key: Callable[[Row], Any], call: Callable[[Row], Any] | None = None) -> None:
        self.key = key
        """Of a row, or of what is to be one; it raises what is wrong with it."""
        self._call = key if call is None else call  # the same, of which it is not asked
        self.by_key: dict[Any, Row] = {}
        """The rows; only this class changes it, and what is generated for it (`one_row.py`); others
        may look."""
        self.field: plain_rows.Field | None = None
        """The field that the key is, if a first load has shown what rows are like."""

    @property
    def key_field(self) -> str | None:
        """The name of the field that the key is; None if it is something else."""
        return fields.field_read(self._call)

    def add(self, row: Row, count: int) -> Pair:
        hash(row)  # a row must have one, though only its key is asked for here
        key_of = self.key
        key = key_of(row)
        held = self.by_key.get(key)
        if held is not None or count != 1:
            raise Duplicate(row if held is None else held)
        self.by_key[key] = row
        return (row, 1)

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Add each; say as which objects they are held."""
        try:
            deque(map(hash, rows), 0)  # each must have one, though only its key is asked for here
        except Exception as error:  # it will raise again, where one sees of which row
            reraise_asynchronous(error)
            return self._add_each(rows)
        return self._add_all(rows)

    def add_plain(self, rows: Sequence[Row]) -> Sequence[Row]:
        """As `add_rows`, of rows that are sure to have a hash."""
        if not self.by_key:
            self.field = plain_rows.named_field(rows, self.key_field)
        return self._add_all(rows)

    def _add_all(self, rows: Sequence[Row]) -> Sequence[Row]:
        return rows if self._add_new(rows) else self._add_each(rows)

    def _add_each(self, rows: Sequence[Row]) -> Sequence[Row]:
        done: list[Pair] = []
        try:
            for row in rows:
                done.append(self.add(row, 1))
        except BaseException:
            self.revert(done)
            raise
        return rows

    def _add_new(self, rows: Sequence[Row]) -> bool:
        """Add all rows together, if none of their keys is taken; otherwise, or if one raises,
        none."""
        try:
            new = dict(zip(self._keys(rows), rows, strict=True))
            is_new = len(new) == len(rows) and new.keys().isdisjoint(self.by_key.keys())
        except Exception as error:  # as above
            reraise_asynchronous(error)
            return False
        if not is_new:
            return False
        try:
            self.by_key.update(new)
        except BaseException:  # a comparison that raises late, or an interrupt
            for key, row in new.items():
                if self.by_key.get(key) is row:
                    del self.by_key[key]
            raise
        return True

    def _keys(self, rows: Sequence[Row]) -> Iterable[Any]:
        keys = list(map(self._call, rows))
        return keys if SURE.issuperset(map(type, keys)) else map(self.key, rows)

    def remove(self, row: Row, count: int) -> Pair:
        key_of = self.key
        key = key_of(row)
        held = self.by_key.get(key)
        if held is None or count != 1 or not (held is row or held == row):
            raise Absent
        del self.by_key[key]
        return (held, -1)

    def remove_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Remove each; say as which objects they were held."""
        done: list[Pair] = []
        try:
            for row in rows:
                done.append(self.remove(row, 1))
            return [row for row, _ in done]
        except BaseException:
            self.revert(done)
            raise

    def revert(self, changes: Iterable[Pair]) -> None:
        net = consolidate(changes)
        came = {self.key(row): row for row, weight in net if weight > 0}
        gone = {self.key(row): row for row, weight in net if weight < 0}
        try:
            for key in came:
                del self.by_key[key]
            self.by_key.update(gone)
        except BaseException:  # an interrupt: who takes it back later begins anew
            for key in gone.keys() - came.keys():
                self.by_key.pop(key, None)
            self.by_key.update(came)
            raise

    def take(self, count: int) -> list[Row]:
        """Let `count` rows go to another store; the last ones that came go first."""
        count = min(count, len(self.by_key))
        taken = [self.by_key.popitem()[1] for _ in range(count)]
        self.by_key = fitted(self.by_key)
        return taken

    def recount(self) -> None: ...

    def get(self, key: Any) -> Row | None:
        """The row of a key, or None. (A row is never None: it would have no key.)"""
        return self.by_key.get(key)

    def held_row(self, row: Row) -> Row:
        """The object that is kept of an equal row; the row itself if there is none."""
        held = self.by_key.get(self.key(row))
        return held if held is not None and held == row else row

    def count(self, row: Row) -> int:
        held = self.by_key.get(self.key(row))
        return int(held is not None and (held is row or held == row))

    def pairs(self) -> Iterable[Pair]:
        return ((row, 1) for row in self.by_key.values())

    def distinct(self) -> list[Row]:
        """All rows."""
        return list(self.by_key.values())

    def keys(self) -> Iterator[Any]:
        return iter(self.by_key)

    def __len__(self) -> int:
        return len(self.by_key)

    def bytes(self) -> int:
        return sys.getsizeof(self.by_key)
