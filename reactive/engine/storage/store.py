"""Stores of the rows of a table: equal rows become one object.

Statements change a store, and can be reverted. Each statement returns its delta, whose rows are
always the objects that the store holds ("interned"), so that operators may compare rows by
identity.

    row -> row                 a row with one copy
    row -> Copies              a row with several copies

If the first load shows that one field tells all rows apart, its value is the key in place of the
row: equal rows have equal values, and hashing takes a fraction of the time. The first later row
that the field does not tell apart, or that has another class, makes all rows their own keys from
then on.

State:  every row, once; 8 bytes for a reference, beside the dictionary.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from operator import is_not
from typing import Any, ClassVar, Protocol

from reactive.engine.collections.zset import Pair, Row, consolidate, repeat_by_weight
from reactive.engine.storage import plain_rows


class Absent(Exception):
    """The store does not hold the row to be removed."""


class Duplicate(Exception):
    """The key is taken; the argument is the row that has it."""


class RowStore(Protocol):
    """The interface of a store. Each method is atomic."""

    @property
    def interns(self) -> bool:
        """True if the deltas use one object for equal rows."""

    def add(self, row: Row, count: int) -> Pair: ...
    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]: ...
    def remove(self, row: Row, count: int) -> Pair: ...
    def remove_rows(self, rows: Sequence[Row]) -> Sequence[Row]: ...
    def revert(self, changes: Iterable[Pair]) -> None: ...
    def recount(self) -> None:
        """Recompute counts from the rows, after an interrupted change."""
        ...

    def count(self, row: Row) -> int: ...
    def pairs(self) -> Iterable[Pair]: ...
    def __len__(self) -> int: ...
    def bytes(self) -> int: ...


def stored_rows(store: RowStore) -> list[Row]:
    """Return all rows, each repeated by its weight."""
    distinct = getattr(store, "distinct", None)
    found: list[Row] | None = None if distinct is None else distinct()
    return list(repeat_by_weight(store.pairs())) if found is None else found


def undo_changes(changes: Iterable[Pair], change: Callable[[Row, int], object]) -> None:
    """Undo changes; all of them, or none if anything raises."""
    pairs, done = consolidate(changes), 0
    try:
        for row, weight in pairs:
            change(row, -weight)
            done += 1
    except BaseException:  # an interrupt: a later undo starts again
        for row, weight in pairs[:done]:
            change(row, weight)
        raise


def shrink_dict(held: dict[Any, Any]) -> dict[Any, Any]:
    """Return the dictionary, or a copy if it has far more room than it needs."""
    return held if sys.getsizeof(held) < ROOMY * (len(held) + 8) else dict(held)


ROOMY = 120
"""Bytes per entry above which a shrunk dictionary is copied."""
MANY = 64
"""Minimum number of rows of a first load for choosing a field as key."""


class BagStore:
    """Rows with their number of copies.

    >>> store = BagStore()
    >>> _ = store.add_plain([("a", n) for n in range(MANY)])
    >>> store.add(("a", 1), 1), store.count(("a", 1)), store.count(("b", 1))
    ((('a', 1), 1), 2, 0)
    """

    interns: ClassVar[bool] = True
    __slots__ = ("field", "held", "size")

    def __init__(self) -> None:
        self.held: dict[Any, Row | Copies] = {}
        """The rows; changed only by this class and its generated functions (`one_row.py`)."""
        self.field: plain_rows.RowField | None = None
        """The field whose values are the keys; None if the rows are the keys."""
        self.size = 0

    def add(self, row: Row, count: int) -> Pair:
        """Add copies of a row; return the held object, and how many were added."""
        if self.field is not None:
            return self._add_at(self._key(row), row, count)
        held = self.held
        if count == 1:
            before = len(held)
            try:
                held.setdefault(row, row)
                if len(held) > before:
                    self.size += 1
                    return (row, 1)
            except BaseException:
                if len(held) > before:  # an interrupt
                    held.popitem()
                raise
        return self._add_at(row, row, count)

    def _add_at(self, key: Any, row: Row, count: int) -> Pair:
        """Add copies of a row under the key that it is held by, and return its pair."""
        held = self.held
        kept = held.get(key, NONE)
        if kept is NONE:
            held[key] = row if count == 1 else Copies(row, count)
        elif kept.__class__ is Copies:
            kept.count += count
            row = kept.row
        else:
            held[key] = Copies(kept, 1 + count)
            row = kept
        self.size += count
        return (row, count)

    def _key(self, row: Row) -> Any:
        """Return the key of a new row; rows become the keys if the field does not tell it apart."""
        field = self.field
        if field is None:
            return row
        try:
            key = field.place(row)
        except plain_rows.OtherClass:
            return self._by_row(row)
        kept = row_of(self.held.get(key, row))
        return key if kept is row or kept == row else self._by_row(row)

    def _by_row(self, row: Row) -> Row:
        """Make the rows themselves the keys."""
        held = {row_of(kept): kept for kept in self.held.values()}
        self.held, self.field = held, None  # no call in between
        return row

    @property
    def wants_plain(self) -> bool:
        """True if it is useful to know that rows are plain."""
        return self.field is not None or not self.held

    def add_plain(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Add rows as `add_rows` does; they are known to be plain (`plain_rows.py`)."""
        if not self.held:
            self.field = plain_rows.telling_field(rows) if len(rows) >= MANY else None
        field = self.field
        if field is None or field.kind is not type(rows[0]):
            return self.add_rows(rows)
        held, new = self.held, dict(zip(map(field.of, rows), rows, strict=True))
        if len(new) < len(rows) or not new.keys().isdisjoint(held.keys()):
            self.field = field if held else None  # it must tell all first rows apart
            return self.add_rows(rows)
        if not held:
            self.held, self.size = new, len(rows)
            return rows
        size = self.size + len(new)
        try:
            held.update(new)
        except BaseException:  # an interrupt
            for key, row in new.items():
                if held.get(key) is row:
                    del held[key]
            raise
        self.size = size  # no call in between
        return rows

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Add one copy of each row; return the objects stored for them."""
        if self.field is not None:
            return self._add_each(rows)
        held, kept, doubled = self.held, list[Any](), list[Row]()
        size, count = len(held), len(rows)
        try:
            kept.extend(map(held.setdefault, rows, rows))
            if len(held) - size < count:
                count_again(held, rows, kept, len(held) - size, doubled)
        except BaseException:
            for row in doubled:
                uncount(held, row)
            while len(held) > size:  # the last entries are the new ones
                held.popitem()
            raise
        self.size += count  # no call in between
        return kept

    def _add_each(self, rows: Sequence[Row]) -> list[Row]:
        """Add rows one by one, and return the held objects; if one raises, none is added."""
        kept: list[Row] = []
        try:
            for row in rows:
                kept += (self._add_at(self._key(row), row, 1)[0],)
        except BaseException:
            self.revert((row, 1) for row in kept)
            raise
        return kept

    def remove(self, row: Row, count: int) -> Pair:
        """Remove copies of a row, and return its pair; raises `Absent` if fewer are held."""
        if self.field is not None:
            return self._remove_at(self._key_there(row), count)
        if count == 1 and self.size == len(self.held):  # every row has one copy
            try:
                kept = self.held.pop(row, NONE)
            except BaseException:
                if len(self.held) < self.size:  # an interrupt
                    self.held[row] = row
                raise
            if kept is NONE:
                raise Absent
            self.size -= 1
            return (kept, -1)
        return self._remove_at(row, count)

    def _key_there(self, row: Row) -> Any:
        """Return the key of a row to remove; raises `Absent` if it is not held by its field."""
        assert self.field is not None
        try:
            key = self.field.place(row)
        except plain_rows.OtherClass:
            return self._by_row(row)
        kept = row_of(self.held.get(key, NONE))
        if kept is row or kept == row:
            return key
        raise Absent

    def _remove_at(self, key: Any, count: int) -> Pair:
        """Remove copies of the row held by a key; raises `Absent` if fewer are held."""
        kept = self.held.get(key, NONE)
        if kept.__class__ is not Copies:
            if count != 1:
                raise Absent
            del self.held[key]
            self.size -= 1
            return (kept, -1)
        left = kept.count - count
        if left < 0:
            raise Absent
        if left == 1:
            self.held[key] = kept.row
        elif not left:
            del self.held[key]
        kept.count = left
        self.size -= count
        return (kept.row, -count)

    def remove_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Remove one copy of each row; return the objects that were stored for them.

        Raises `Absent` if a row is not held; then none is removed.
        """
        gone: list[Row] = []
        try:
            keys = None if self.size > len(self.held) else self._keys_there(rows)
            if keys is None:
                for row in rows:
                    gone.append(self.remove(row, 1)[0])
            else:
                self._pop(keys, gone)
        except BaseException:
            self.revert((row, -1) for row in gone)
            raise
        return gone

    def remove_held(self, rows: Sequence[Row]) -> Sequence[Row] | None:
        """Remove rows that are the held objects, of one copy each, and return them.

        Return None, with nothing changed, if a row must be looked at by itself.
        """
        field = self.field
        if field is None or self.size > len(self.held) or {*map(type, rows)} != {field.kind}:
            return None
        keys = list(map(field.of, rows))
        if any(map(is_not, map(self.held.get, keys), rows)) or len({*keys}) < len(keys):
            return None
        gone: list[Row] = []
        try:
            self._pop(keys, gone)
        except BaseException:  # an interrupt
            self.revert((row, -1) for row in gone)
            raise
        return gone

    def _keys_there(self, rows: Sequence[Row]) -> Sequence[Any] | None:
        """Return the keys of rows to remove; None if they must be found one by one."""
        field = self.field
        if field is None:
            return rows
        if {*map(type, rows)} != {field.kind}:
            return None
        keys = list(map(field.of, rows))
        are_there = list(map(self.held.get, keys)) == list(rows)
        return keys if are_there and len({*keys}) == len(keys) else None

    def _pop(self, keys: Sequence[Any], gone: list[Row]) -> None:
        """Remove rows that have one copy each, and append them to `gone`.

        Raises `Absent` at the first key that is not held; rows removed until then stay in
        `gone`.
        """
        held = self.held
        try:
            gone.extend(map(held.pop, keys))
            size = len(held)
        except BaseException as error:
            self.size = len(held)
            if isinstance(error, KeyError):
                raise Absent from None
            raise
        self.size = size  # no call in between

    def revert(self, changes: Iterable[Pair]) -> None:
        undo_changes(changes, self._change)

    def _change(self, row: Row, weight: int) -> None:
        """Add copies if the weight is positive, else remove copies."""
        if weight > 0:
            self.add(row, weight)
        else:
            self.remove(row, -weight)

    def take(self, count: int) -> list[Pair]:
        """Remove up to `count` different rows, the last first; return them with their counts."""
        taken: list[Pair] = []
        for _ in range(min(count, len(self.held))):
            _, kept = self.held.popitem()
            taken.append((kept.row, kept.count) if kept.__class__ is Copies else (kept, 1))
        self.held = shrink_dict(self.held)
        self.size -= sum(count for _, count in taken)
        return taken

    def recount(self) -> None:
        self.size = sum(count for _, count in self.pairs())

    def count(self, row: Row) -> int:
        """Return the number of copies of a row; 0 if it is not held."""
        kept = self.held.get(row, NONE) if self.field is None else self._find_entry(row)
        return kept.count if kept.__class__ is Copies else 1

    def held_row(self, row: Row) -> Row:
        """Return the stored object that equals a row; the row itself if there is none."""
        kept = self.held.get(row, NONE) if self.field is None else self._find_entry(row)
        return row if kept is NONE else row_of(kept)

    def _find_entry(self, row: Row) -> Row | Copies:
        """Return the entry of a row.

        Nothing is changed, since readers may call this without the lock.
        """
        field, values = self.field, self.held.values()
        try:
            kept = NONE if field is None else self.held.get(field.place(row), NONE)
        except plain_rows.OtherClass:
            return next((kept for kept in list(values) if row_of(kept) == row), NONE)
        held = row_of(kept)
        return kept if held is row or held == row else NONE

    def pairs(self) -> Iterable[Pair]:
        for kept in self.held.values():
            yield (kept.row, kept.count) if kept.__class__ is Copies else (kept, 1)

    def distinct(self) -> list[Row] | None:
        """Return all rows, if every row has one copy; else None."""
        return list(self.held.values()) if self.size == len(self.held) else None

    def __len__(self) -> int:
        return self.size

    def bytes(self) -> int:
        copies = sum(kept.__class__ is Copies for kept in self.held.values())
        return sys.getsizeof(self.held) + copies * sys.getsizeof(NONE)


# Rows with several copies: their number, beside the object that stands for all.


class Copies:
    """A row with several copies."""

    __slots__ = ("count", "row")

    def __init__(self, row: Row, count: int) -> None:
        self.row = row
        self.count = count


NONE: Any = Copies(None, 0)


def row_of(kept: Row | Copies) -> Row:
    return kept.row if kept.__class__ is Copies else kept


def count_again(
    held: dict[Any, Any], rows: Sequence[Row], kept: list[Any], new: int, counted: list[Row]
) -> None:
    """Increase the counts in `held` of the `rows` that it had before.

    The last `new` entries of `held` are made of these rows, in their order. `kept` has the
    entry found for each row: a `Copies` in it is replaced by its row. Each row that is counted
    again is appended to `counted`.
    """
    fresh = list(islice(reversed(held), new))
    for place, row in enumerate(rows):
        if fresh and row is fresh[-1]:
            fresh.pop()
            continue
        found = held[row]
        if found.__class__ is Copies:
            found.count += 1
            kept[place] = found.row
        else:
            held[row] = Copies(found, 2)
        counted.append(row)


def uncount(held: dict[Any, Any], row: Row) -> None:
    """Undo in `held` the count of one copy of a row that has several."""
    found = held[row]
    found.count -= 1
    if found.count == 1:
        held[row] = found.row
