"""A store that notices rows that were changed in place, for `Database(strict=True)`.

It copies the fields of each added row, and compares them when the row is removed.

State:  the fields of each row, beside the watched store.
Cost:   O(fields) per added or removed row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

from optimizer.kinds.fields import compared_names, members
from reactive.engine.collections.zset import Pair, Row, negate
from reactive.engine.storage.store import RowStore
from reactive.errors import TableError

Fields = dict[str, Any]
MUTABLE = (list, dict, set, bytearray)
"""Built-in containers; fields that hold one are copied."""


class WatchedStore:
    """The rows of a store, with the fields that they had when added.

    >>> from types import SimpleNamespace
    >>> class Player(SimpleNamespace):
    ...     __hash__ = object.__hash__
    >>> from reactive.engine.storage.store import BagStore
    >>> store, ann = WatchedStore(BagStore(), "players"), Player(hp=10)
    >>> _ = store.add(ann, 1)
    >>> ann.hp = 0
    >>> store.remove(ann, 1)
    Traceback (most recent call last):
    reactive.errors.TableError: Player(hp=0) of table 'players' was changed in place since it ...
    """

    __slots__ = ("_fields", "_held", "_table")

    def __init__(self, held: RowStore, table: str) -> None:
        self._held = held
        self._table = table
        self._fields: dict[int, Fields] = {}

    @property
    def interns(self) -> bool:
        """True if the watched store interns rows."""
        return self._held.interns

    def add(self, row: Row, count: int) -> Pair:
        """Add a row, and copy its fields; raises if its held copy was changed in place."""
        self._check(row)
        fields = _fields_of_row(row)
        pair = self._held.add(row, count)
        try:
            self._fields.setdefault(id(pair[0]), fields)
        except BaseException:  # an interrupt
            self.revert([pair])
            raise
        return pair

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Add rows, and copy their fields; raises if a held one was changed in place."""
        for row in rows:
            self._check(row)
        fields = [_fields_of_row(row) for row in rows]
        kept = self._held.add_rows(rows)
        try:
            for row, found in zip(kept, fields, strict=True):
                self._fields.setdefault(id(row), found)
        except BaseException:
            self.revert([(row, 1) for row in kept])
            raise
        return kept

    def remove(self, row: Row, count: int) -> Pair:
        """Remove a row, and forget its fields; raises if it was changed in place."""
        self._check(row)
        pair = self._held.remove(row, count)
        try:
            self._left(pair[0])
        except BaseException:
            self.revert([pair])
            raise
        return pair

    def remove_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Remove rows, and forget their fields; raises if one was changed in place."""
        for row in rows:
            self._check(row)
        gone = self._held.remove_rows(rows)
        try:
            for row in gone:
                self._left(row)
        except BaseException:
            self.revert([(row, -1) for row in gone])
            raise
        return gone

    def revert(self, changes: Iterable[Pair]) -> None:
        """Undo changes of the store, and of the copied fields."""
        pairs = list(changes)
        self._held.revert(pairs)
        try:
            for row, _ in pairs:
                self._note(row)
        except BaseException:  # an interrupt: a later undo starts again
            self._held.revert(negate(pairs))
            raise

    def recount(self) -> None:
        self._held.recount()
        rows = [row for row, _ in self._held.pairs()]
        self._fields = {id(row): self._fields.get(id(row)) or _fields_of_row(row) for row in rows}

    def count(self, row: Row) -> int:
        return self._held.count(row)

    def get(self, key: Any) -> Row | None:
        """Return the row of a key, in a keyed table; None if there is none."""
        found: Row | None = getattr(self._held, "get")(key)  # noqa: B009
        return found

    def pairs(self) -> Iterable[Pair]:
        return self._held.pairs()

    def __len__(self) -> int:
        return len(self._held)

    def bytes(self) -> int:
        return self._held.bytes()

    def _note(self, row: Row) -> None:
        """Store the fields of a row if it is present, and drop them if not."""
        if self._held.count(row):
            self._fields.setdefault(id(row), _fields_of_row(row))
        else:
            self._fields.pop(id(row), None)

    def _left(self, row: Row) -> None:
        """Check the stored object of a removed row, and drop its fields."""
        self._check(row)
        if not self._held.count(row):
            self._fields.pop(id(row), None)

    def _check(self, row: Row) -> None:
        """Raise if a stored row has changed since it was added."""
        before = self._fields.get(id(row))
        if before is None:
            return
        now = _fields_of_row(row)
        for name in before.keys() | now.keys():
            old, new = before.get(name, _MISSING), now.get(name, _MISSING)
            if old is not new and old != new:
                raise TableError(
                    f"{row!r:.100} of table {self._table!r} was changed in place since it was "
                    f"added: {name} was {old!r:.60}, is {new!r:.60}\n"
                    "  views are not told of that; update(old, new) takes another object"
                )


class _Missing:
    def __repr__(self) -> str:
        return "missing"


_MISSING: Any = _Missing()


def _fields_of_row(row: Row) -> Fields:
    """Return the fields of a row by name: its declared fields, or all its attributes.

    Of the fields outside the comparison, such as cached values, only public ones are included.
    """
    equal_by = compared_names(type(row))
    declared = members(type(row))
    names = [name for name in declared if name in equal_by or not name.startswith("_")]
    found = {name: getattr(row, name, _MISSING) for name in names}
    if not names:
        found |= getattr(row, "__dict__", {})
        for base in type(row).__mro__:
            slots = vars(base).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if not name.startswith("__"):
                    found[name] = getattr(row, name, _MISSING)
    return {name: copy(v) if isinstance(v, MUTABLE) else v for name, v in found.items()}
