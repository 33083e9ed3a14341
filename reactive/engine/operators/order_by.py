"""Order by: the rows in order of a key, all of them or a window of them.

    order_by(k).limit(n, offset)  =  rows offset .. offset + n of the sorted rows

An inserted or deleted row shifts the window by one place at most, so it changes at most one row at
either edge:

    inserted before the window   the row before the window enters it, its last row leaves
    inserted inside              the row enters, the last row leaves
    inserted behind              nothing

    deleting is the mirror image

The window's edits (position and row) are stored for readers that follow the order: as few as
possible, so that a row which only passes through the window within a commit is in none.

A row deleted more often than inserted has a negative weight: it is not in the order until as many
copies are inserted.

The sort key may read parts of a row that are not shown. A change of such a part can move the row:
the edits contain the move, and the delta deletes and inserts the same shown row.

State:  every row, sorted; once per copy; rows with a negative weight.
Cost:   O(|dL| * log |L|), whatever the size of the window.
Source: [i3ql] order by; the law is SQL's LIMIT and OFFSET.
"""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import eq
from typing import Any, ClassVar

from reactive.engine.collections.order import (
    Edit,
    Insertions,
    add_none_note,
    drop_copied_edits,
    fewest_edits,
    sort_key,
)
from reactive.engine.collections.ranked import ABSENT, RankedIndex
from reactive.engine.collections.zset import (
    Pair,
    Pairs,
    Row,
    UniformDelta,
    consolidate,
    have_one_hash,
)
from reactive.engine.operators.operator import DetachedState
from reactive.engine.runtime.interrupts import reraise_asynchronous

_edit: Callable[[type[Edit], tuple[int, Row, int]], Edit] = tuple.__new__
PLAIN = frozenset([int, str])
"""Classes of keys that are their own sort keys."""
PARTS = PLAIN | {float, bytes, bool, type(None)}
"""Classes of parts of such keys, if none is NaN."""
MANY = 16
"""Least number of rows that are loaded together into an empty order."""
NEGATIVE = -1
LOADED = -2
EXCHANGED = -3
EXCHANGE_COST = 7
"""Rows that are sorted in the time in which a changed row is found, inserted or deleted."""
Step = tuple[Row, Any, int, int]
"""An inserted or deleted row as shown, its key, how many rows of its key stood before it when it
was deleted, and 1 or -1. `NEGATIVE`: the weight is negative, and the row is not the shown part.
`LOADED`: all rows were loaded together. `EXCHANGED`: all rows were sorted again; the index from
before stands in place of the row."""


class TiedKeysError(Exception):
    """Stops an evaluation anew that cannot tell the order of some rows."""


class OrderBy:
    """Maintain sorted rows and the edits of a window.

    >>> top = OrderBy(lambda row: row, limit=2)
    >>> top.step([(5, 1), (3, 1), (8, 1)])
    [(3, 1), (5, 1)]
    >>> top.step([(3, -1)]), top.sequence()
    ([(3, -1), (8, 1)], [5, 8])
    """

    takes_joined: ClassVar[bool] = True
    change_cost: ClassVar[float] = EXCHANGE_COST
    emits_changes: ClassVar[bool] = True
    __slots__ = (
        *("_are_interned", "_descending", "_hash", "_key", "_log"),
        *("_owed", "_ranked", "_show"),
        *("edits", "first", "last", "touched"),
    )

    def __init__(
        self,
        key: Callable[[Row], Any],
        *,
        descending: bool = False,
        limit: int | None = None,
        offset: int = 0,
        show: Callable[[Row], Row] | None = None,
        are_hashable: bool = False,
        are_interned: bool = False,
    ) -> None:
        self._key = key
        self._are_interned = are_interned and show is None
        self._hash = _no_hash if are_hashable else hash
        self._show = show
        self._descending = descending
        self._ranked = self._no_rows()
        self._log: list[Step] = []
        self._owed: dict[Row, int] = {}
        self.first = offset
        self.last = sys.maxsize if limit is None else offset + limit
        if limit == 0:
            self.first = self.last = sys.maxsize  # no place is inside, none is before
        self.edits: Sequence[Edit] = []
        self.touched = 0

    @property
    def shows_parts(self) -> bool:
        """True if rows are shown without parts of their sort key."""
        return self._show is not None

    def __len__(self) -> int:
        """Return the number of rows in the window."""
        rows, first, last = self._ranked.size, self.first, self.last
        end = rows if rows < last else last
        return end - first if end > first else 0

    def step(self, delta: Pairs) -> Sequence[Pair]:
        """Return the changes of the window, and set `edits`; an unhashable row raises."""
        self.touched += len(delta)
        if len(delta) != 1:
            return self._step_many(delta)
        ((row, weight),) = delta
        self._hash(row)  # an unhashable row is refused
        key_of = self._key
        order = key_of(row)
        if order.__class__ not in PLAIN:
            order = sort_key(order)
        edits: list[Edit] = []
        self.edits, self._log = edits, []
        try:
            if weight == 1:
                self._insert(row, order, edits)
            elif weight == -1:
                self._remove(row, order, edits)
            else:
                self._change(row, order, weight, edits)
            if len(edits) == 2:
                (_, one, its), (_, other, more) = edits
                try:
                    is_one = one is other or one == other
                except Exception as error:
                    is_one = have_one_hash(one, other, error)
                if not is_one:
                    return [(one, its), (other, more)]
            self._shorten()
        except BaseException as error:
            self.undo()
            add_none_note(error)
            raise
        return self._net()

    def _refuse_unhashable(self, rows: Iterable[Row]) -> None:
        """Raise for a row without a hash, unless all rows are known to have one."""
        if self._hash is hash:
            deque(map(hash, rows), 0)

    def _step_many(self, delta: Pairs) -> Sequence[Pair]:
        """Apply a delta of several rows, deletions first; load it whole into an empty order."""
        if len(delta) >= MANY and not (self._ranked.size or self._owed):
            rows = _inserted_rows(delta)
            if rows is not None:
                self._refuse_unhashable(rows)
                return self._load(self._keys(rows), rows)
        if len(delta) >= MANY and EXCHANGE_COST * len(delta) > self._ranked.size:
            found = self._exchange(delta)
            if found is not None:
                return found
        pairs = consolidate(delta)
        if len(pairs) == 2:  # `consolidate` has hashed more than two
            self._refuse_unhashable([row for row, _ in pairs])
        keyed = self._add_sort_keys(pairs)
        edits: list[Edit] = []
        self.edits, self._log = edits, []
        try:
            for row, order, weight in keyed:
                if weight == -1:
                    self._remove(row, order, edits)
                elif weight < 0:
                    self._change(row, order, weight, edits)
            for row, order, weight in keyed:
                if weight == 1:
                    self._insert(row, order, edits)
                elif weight > 0:
                    self._change(row, order, weight, edits)
            self._shorten()
        except BaseException as error:
            self.undo()
            add_none_note(error)
            raise
        return self._net()

    def _exchange(self, delta: Pairs) -> Sequence[Pair] | None:
        """Sort all rows again after a delta that changes a large part of them.

        Return None, with nothing changed, if a row has copies, or anything raises.
        """
        if not self._are_interned or self._owed:
            return None
        from reactive.engine.collections.exchanged_rows import (
            ExchangeEdits,
            exchange_in_order,
            join_rows,
            split_rows,
        )
        from reactive.engine.collections.whole_rows import JoinedDelta, listed

        old, new, rows = self._ranked, self._no_rows(), split_rows(delta)
        if rows is None:
            return None
        try:
            items = exchange_in_order(old, *rows, self._keys, descending=self._descending)
            if items is None:
                return None
            new.load(*items)
        except Exception as error:  # the rows are changed one by one, which raises for the row
            reraise_asynchronous(error)
            return None
        before = self.sequence()
        self._log, self._ranked = [(old, None, EXCHANGED, 1)], new
        is_whole = len(self) == new.size and len(before) == old.size
        edits = ExchangeEdits(before, self.sequence(), rows if is_whole else None)
        changes = join_rows(*rows) if is_whole else edits.pairs()
        self.edits = edits if changes else []
        return changes if isinstance(delta, JoinedDelta) else listed(changes)

    def _shorten(self) -> None:
        """Drop edits that cancel: rows that pass through the window, or are shown as before.

        The former need bounds, the latter rows that are shown in part.
        """
        if len(self.edits) > 1 and (self.first or self.last < sys.maxsize or self._show):
            self.edits = drop_copied_edits(fewest_edits(self.edits), self.at, len(self))

    def _net(self) -> Sequence[Pair]:
        """Return the net delta of the edits; of rows shown in part, all moves."""
        pairs = [edit[1:] for edit in self.edits]
        return pairs if self._show is not None else consolidate(pairs) if pairs else []

    def _keys(self, rows: list[Row]) -> list[Any]:
        """Return the sort keys of rows."""
        try:
            keys = list(map(self._key, rows))
        except Exception as error:
            reraise_asynchronous(error)
            return [
                order for _, order, _ in self._add_sort_keys(UniformDelta(rows, 1))
            ]  # evaluates row by row, for the note
        return keys if _are_own_sort_keys(keys) else list(map(sort_key, keys))

    def _add_sort_keys(self, delta: Pairs) -> list[tuple[Row, Any, int]]:
        """Return each row with its sort key."""
        key, keyed = self._key, []
        for row, weight in delta:
            order = key(row)
            if order.__class__ not in PLAIN:
                order = sort_key(order)
            keyed.append((row, order, weight))
        return keyed

    def _change(self, row: Row, order: Any, weight: int, edits: list[Edit]) -> None:
        """Insert a row `weight` times, or remove it if that is negative."""
        for _ in range(weight):
            self._insert(row, order, edits)
        for _ in range(-weight):
            self._remove(row, order, edits)

    def undo(self) -> None:
        """Undo the last step; it has no edits then."""
        for row, order, place, weight in reversed(self._log):
            if place == NEGATIVE:
                self._owe(row, weight)
            elif place == LOADED:
                self._ranked = self._no_rows()
            elif place == EXCHANGED:
                self._ranked = row
            elif weight > 0:
                found = self._ranked.place_of(order, row)
                assert found is not None
                self._ranked.delete(found)
                self._ranked.tidy(found[0])
            else:
                self._ranked.restore(order, row, place)
        self.edits = []
        self._log = []

    def commit(self) -> None:
        self._log = []

    def contents(self) -> Iterable[Pair]:
        return UniformDelta(self.sequence(), 1)

    @property
    def is_detachable(self) -> bool:
        """True if the keys alone decide the order: no rows of one key, which keep their order.

        An empty order is loaded by a step.
        """
        if not self._are_interned or self._owed or not self._ranked.size:
            return False
        return _differ_plainly(self._ranked.columns()[0])

    def detach_state(self) -> DetachedState:
        """Empty the order."""
        kept, before = self._ranked, self.sequence()

        def restore() -> None:
            self._ranked, self._log, self.edits = kept, [], []

        def check() -> None:
            self.edits = []
            if not _differ_plainly(self._ranked.columns()[0]):
                raise TiedKeysError("rows of one key keep their order")

        def changes() -> Sequence[Pair]:
            from reactive.engine.collections.exchanged_rows import ExchangeEdits

            edits = ExchangeEdits(before, self.sequence())
            pairs = edits.pairs()
            self.edits = edits if pairs else []
            return pairs

        self._ranked = self._no_rows()
        return DetachedState(restore, changes, check)

    def follow(self, other: OrderBy) -> None:
        """Arrange rows of equal keys as in `other`, which has the same rows."""
        keys: defaultdict[Row, list[Any]] = defaultdict(list)
        known = list(self._ranked.items())
        for key, row in known if self._descending else reversed(known):
            keys[row].append(key)
        found = [(keys[row].pop(), row) for row in other.all_rows() if keys.get(row)]
        found += [(key, row) for row, several in keys.items() for key in several]
        ranked = self._no_rows()
        ranked.load([key for key, _ in found], [row for _, row in found])
        self._ranked = ranked

    def all_rows(self) -> Iterator[Row]:
        """Return all rows in order, inside and outside of the window."""
        return reversed(list(self._ranked)) if self._descending else iter(self._ranked)

    def sequence(self) -> list[Row]:
        """Return the rows of the window, in order."""
        ranked, last = self._ranked, self.last
        return ranked.between(self.first, last if last < ranked.size else ranked.size)

    def between(self, start: int, stop: int) -> list[Row]:
        """Return the rows of the window from a position up to another, both within it."""
        return self._ranked.between(self.first + start, self.first + stop)

    def at(self, position: int) -> Row:
        """Return the row at a position of the window; from the end for a negative one."""
        size = len(self)
        if not -size <= position < size:
            raise IndexError(f"position {position} of an ordered view of {size} rows")
        return self._ranked.at(self.first + position % size)

    def position(self, row: Row) -> int | None:
        """Return the first position of a row in the window; None if its key does not find it.

        Cost: O(log rows), and the rows with its key.
        """
        if self._show is not None:
            return None
        key = self._key(row)
        start, stop = self._ranked.places(key if key.__class__ in PLAIN else sort_key(key))
        start, stop = max(start, self.first), min(stop, self.last)
        for place, other in enumerate(self._ranked.between(start, stop), start):
            if other is row or other == row:
                return place - self.first
        return None

    @property
    def is_empty(self) -> bool:
        """True if there is no row, inside or outside of the window."""
        return not (self._ranked.size or self._owed)

    def footprint(self) -> tuple[int, int]:
        size = self._ranked.bytes() + (sys.getsizeof(self._owed) if self._owed else 0)
        return len(self._ranked) + len(self._owed), size

    def _no_rows(self) -> RankedIndex:
        return RankedIndex(descending=self._descending, one_key=self._show is None)

    def _owe(self, row: Row, times: int) -> None:
        """Add `times` to the negative weight of a row."""
        left = self._owed.get(row, 0) + times
        if left:
            self._owed[row] = left
        else:
            del self._owed[row]

    def _insert(self, row: Row, order: Any, edits: list[Edit]) -> None:
        """Insert a row and append the edits of the window, or reduce its negative weight."""
        if self._owed and row in self._owed:
            self._owe(row, -1)
            self._log.append((row, order, NEGATIVE, 1))
            return
        ranked, show = self._ranked, self._show
        if show is not None:
            row = show(row)
        at = ranked.insert(order, row)
        self._log.append((row, order, 0, 1))
        last, size = self.last, ranked.size
        place = ranked.rank(at, last)
        if place >= last:
            return
        first = self.first
        if place >= first:
            edits.append(_edit(Edit, (place - first, row, 1)))
        elif first < size:
            edits.append(_edit(Edit, (0, ranked.at(first), 1)))
        if last < size:
            edits.append(_edit(Edit, (last - first, ranked.at(last), -1)))

    def _load(self, keys: list[Any], rows: list[Row]) -> Sequence[Pair]:
        """Insert rows into an empty order, as `_insert` of each; return the rows of the window."""
        self.edits, self._log = [], [(None, None, LOADED, 1)]
        if self._show is not None:
            rows = list(map(self._show, rows))
        try:
            shown = self._ranked.load(keys, rows)
            if self._descending or self.first or self.last < len(shown):
                shown = self.sequence()
        except BaseException as error:
            self.undo()
            add_none_note(error)
            raise
        self.edits = Insertions(shown)
        return UniformDelta(shown, 1)

    def _remove(self, row: Row, order: Any, edits: list[Edit]) -> None:
        """Remove a row and append the edits of the window; if absent, owe it (`_owe`)."""
        ranked, whole, show = self._ranked, row, self._show
        if show is not None:
            row = show(row)
        at = ranked.place_of(order, row)
        if at is None and show is None:
            order = ranked.search(row)
            at = None if order is ABSENT else ranked.place_of(order, row)
        if at is None:  # a table that is not stored may delete absent rows
            self._owe(whole, 1)
            self._log.append((whole, order, NEGATIVE, -1))
            return
        last, size = self.last, ranked.size
        place = ranked.rank(at, last)
        if place < last:
            first = self.first
            if place >= first:
                edits.append(_edit(Edit, (place - first, row, -1)))
            elif first < size:
                edits.append(_edit(Edit, (0, ranked.at(first), -1)))
            if last < size:
                edits.append(_edit(Edit, (last - first - 1, ranked.at(last), 1)))
        step = (row, order, ranked.nth(at, order), -1)
        ranked.delete(at)
        self._log.append(step)
        ranked.tidy(at[0])


def _are_own_sort_keys(keys: list[Any]) -> bool:
    """Return True if keys are their own sort keys: also numbers, and tuples without NaN."""
    kinds = set(map(type, keys))
    if kinds == {tuple}:
        kinds = set(map(type, chain.from_iterable(keys)))
        parts, same = chain.from_iterable(keys), chain.from_iterable(keys)
        return kinds <= PLAIN or (kinds <= PARTS and all(map(eq, parts, same)))
    return kinds <= PLAIN or (kinds == {float} and all(map(eq, keys, keys)))


def _no_hash(row: Row) -> int:
    return 0


def _inserted_rows(delta: Pairs) -> list[Row] | None:
    """Return the inserted rows, repeated by weight; None if rows are deleted."""
    if type(delta) is UniformDelta and delta.weight == 1:
        return list(delta.rows)
    if any(weight < 0 for _, weight in delta):
        return None
    return [row for row, weight in delta for _ in range(weight)]


def _differ_plainly(keys: list[Any]) -> bool:
    """Return True if all keys are different, and of one class whose order is total."""
    kinds = {*map(type, keys)}
    return len(kinds) <= 1 and kinds <= PLAIN and len({*keys}) == len(keys)
