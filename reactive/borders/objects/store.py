"""The rows of a table of objects: the snapshot of each object, by its key or by the object.

State:  every row; a `TablePlace` in the record of each object.
Cost:   O(1) per row.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reactive.borders.objects import reads
from reactive.borders.objects.changes import Objects
from reactive.borders.objects.records import ObjectRecord
from reactive.engine.collections.zset import Pair, Row, consolidate
from reactive.engine.storage.row_check import KeyedStore
from reactive.engine.storage.store import Duplicate

Update = tuple[ObjectRecord, Row, Row]


class ObjectStore(KeyedStore):
    """A store with at most one row per key and per object."""

    __slots__ = ("last", "objects", "read", "table", "unseen")

    def __init__(
        self,
        objects: Objects,
        table: Any,
        key: Callable[[Row], Any] | None,
        call: Callable[[Row], Any] | None,
    ) -> None:
        super().__init__(_object_id if key is None else key, _object_id if call is None else call)
        self.objects = objects
        self.table: Callable[[], Any] = weakref.ref(table)
        self.read: frozenset[str] | reads.UnknownRead | None = reads.UNKNOWN
        self.unseen: list[Any] = []
        """For a strict database, the keys of rows not checked by `silent.py` in this round."""
        self.last: tuple[list[Pair], list[Pair]] | None = None
        """The changes of the last assignment outside of transactions, with its undo."""

    def attributes_read(self) -> frozenset[str] | None:
        """Return the attributes that queries read, found at the first call; None for all."""
        found = self.read
        if isinstance(found, reads.UnknownRead):
            found = self.read = reads.attributes_read(self.objects.engine, self.table())
        return found

    def add(self, row: Row, count: int) -> Pair:
        """Add a row, and link its record to the store; neither if one of them fails."""
        pair = super().add(row, count)
        try:
            row._record_.enter(self, row)
        except BaseException:
            self.revert([pair])
            raise
        return pair

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Add rows, and link their records to the store; return the added rows. All or none."""
        kept = super().add_rows(rows)
        try:
            for row in kept:
                row._record_.enter(self, row)
        except BaseException:
            self.revert([(row, 1) for row in kept])
            raise
        return kept

    def remove(self, row: Row, count: int) -> Pair:
        """Remove a row, and unlink its record from the store; neither if one of them fails."""
        pair = super().remove(row, count)
        try:
            self._left(row._record_, row)
        except BaseException:
            self.revert([pair])
            raise
        return pair

    def remove_held(self, rows: Sequence[Row]) -> Sequence[Row] | None:
        """Return None: each row is removed by itself, which unlinks its record."""
        return None

    def replace(self, updates: Sequence[Update]) -> list[Pair]:
        """Replace the rows of objects.

        Raises
        ------
        Duplicate: a key is taken; nothing has changed.
        """
        key_of, by_key = self.key, self.by_key
        moves = [(key_of(old), key_of(new), old, new) for _, old, new in updates]
        changes = [pair for _, _, old, new in moves for pair in ((old, -1), (new, 1))]
        try:
            for before, after, _, _ in moves:
                if before is not after and before != after:
                    del by_key[before]
            for _, after, old, new in moves:
                held = by_key.get(after, old)
                if held is not old:
                    raise Duplicate(held)
                by_key[after] = new
            for record, _, new in updates:
                record.enter(self, new)
        except BaseException:
            for _, after, old, new in moves:
                if by_key.get(after) is new:
                    del by_key[after]
                old._record_.enter(self, old)
            by_key.update((before, old) for before, _, old, _ in moves)
            raise
        return changes

    def replace_one(self, record: ObjectRecord, old: Row, new: Row) -> list[Pair]:
        """Replace the row of one object; see `replace`."""
        key_of, by_key = self.key, self.by_key
        before, after = key_of(old), key_of(new)
        changes = [(old, -1), (new, 1)]
        if before != after:
            return self.replace([(record, old, new)])
        try:
            by_key[before] = new
            record.enter(self, new)
        except BaseException:
            by_key[before] = old
            record.enter(self, old)
            raise
        return changes

    def revert(self, changes: Iterable[Pair]) -> None:
        """Undo changes of the store, and of the links of records to their rows."""
        net = consolidate(list(changes))
        for row, weight in net:
            if weight > 0:
                row._record_.leave(self, row)
        for row, weight in net:
            if weight < 0:
                record = row._record_
                record.went_back(row)
                record.enter(self, row)
                if record.late:  # attributes that no query read before
                    self.objects.unread[id(record)] = record
        super().revert(net)
        if self.last is not None and changes is self.last[0]:
            self.objects.revert(self.last[1])

    def assigned_with(self, changes: Sequence[Pair]) -> list[Pair] | None:
        """Return the undo of the assignment that led to these changes, and forget it.

        Return None if they are not those of the last assignment.
        """
        if self.last is None or changes is not self.last[0]:
            return None
        found, self.last = self.last[1], None
        return found

    def give_up(self) -> None:
        """Remove this table from the records of all its objects."""
        for row in self.by_key.values():
            row._record_.leave(self, row)

    def _left(self, record: ObjectRecord, row: Row) -> None:
        """Unlink a record from its row, and note the database and version that it has left."""
        record.leave(self, row)
        record.left = self.objects, self.objects.engine.version
        self.last = None  # an earlier assignment, perhaps to this object, is final


def _object_id(row: Row) -> int:
    return id(row._record_)
