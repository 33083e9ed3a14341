"""Places that are computed when they are read: a window whose functions only number rows.

    kept      the rows of each partition, in order
    read      each row with its number, rank or part, through the chain above the window
    delta     nothing until it is read: then the rows whose places changed, old and new

    rows before the first change     keep their places
    rows behind the last change      keep them, if as many rows were inserted as deleted
    others                           are compared

A row that is inserted at the front changes the numbers of all rows; here it is one insertion. A
reader of the delta, such as an operator above, pays for the rows that differ, as if places were
stored.

State:  every row, in order; the rows of partitions that were read, as they are shown, until these
        change; the rows as a bag, if it was asked for a row, until the next change.
Cost:   O(log rows) for a change, plus O(rows / 500) to count places anew; reading all rows O(rows);
        reading a delta, the rows that differ; `edits` of a delta O(changes).
Source: order-statistic trees; the lists of lists of `entries.py` in their place.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import repeat
from typing import Any

from reactive.engine.collections.order import Edit, EditedSequence
from reactive.engine.collections.zset import Pair, Pairs, Row, UniformDelta, consolidate, integrate
from reactive.engine.operators.aggregate import GroupStates
from reactive.engine.operators.tree.tree import UnreadDelta
from reactive.engine.operators.windows.entries import HIDDEN, Entries
from reactive.engine.operators.windows.facts import Packed, WindowFacts
from reactive.engine.operators.windows.frames import Order
from reactive.engine.operators.windows.groups import least_weight, rows_by_partition
from reactive.engine.operators.windows.partition import add_changes
from reactive.engine.runtime.collector import pause_collector
from reactive.engine.runtime.interrupts import reraise_asynchronous

CAME, GONE, COPIED, REPLACED = "came", "gone", "copied", "replaced"
Log = list[tuple[Any, ...]]
"""The changes of a partition: a row inserted at a place, or deleted, and the size before; the order
before many rows were inserted, and their places; or the order before another, and the new size."""
RESIZED = frozenset({"percent_rank", "cume_dist", "ntile"})
"""Functions whose answers follow from the number of rows, too."""
OF_PEERS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
"""Functions whose answers are those of all rows with equal keys."""


class PlacedPartition:
    """The rows of one partition, in order, without answers."""

    __slots__ = (
        *("_broken", "_has_peers", "_made", "_sound", "_undone"),
        *("log", "order", "shown", "stamp"),
    )

    def __init__(self, made: WindowFacts, *, has_peers: bool) -> None:
        self._made = made
        self._has_peers = has_peers
        """True if functions compare the keys of rows with each other."""
        self.order = made.order_of(Entries(made.tie))
        self.log: Log = []
        self.stamp: object = object()
        """The state of the rows; None while they change."""
        self.shown: tuple[object, list[Row]] | None = None
        """The rows as they were read, and the state that they are of."""
        self._broken: dict[Packed, int] | None = None
        """The changes since one raised; meanwhile no rows are shown."""
        self._sound = self.order
        """The order before these changes."""
        self._undone: tuple[Log, Order, dict[Packed, int] | None] = ([], self.order, None)
        """The changes in place of the last step, and the order and the broken changes before it."""

    @property
    def is_empty(self) -> bool:
        """True if the partition holds nothing."""
        return not self.order.entries.size and self._broken is None

    def step(self, changes: Sequence[Pair]) -> Sequence[Pair]:
        """Delete and insert rows, and log it; return no changes, which are computed when read.

        If a key cannot be compared, raise, or show no rows until the changes can be applied.
        """
        self.stamp, self.shown, self.log = None, None, []
        self._undone = self.log, self.order, self._broken
        if self._made.drops:
            self._change_or_hide(changes)
        else:
            self._change(changes)
        self.stamp = object()
        return ()

    def _change_or_hide(self, changes: Sequence[Pair]) -> None:
        """Apply changes, and those that could not be applied before; else hide all rows."""
        shown, broken = self.order, self._broken
        if broken is not None:
            changes = list(add_changes(broken, changes).items())
            self.order, self._broken = self._sound, None
        try:
            self._change(changes)
        except Exception as error:
            reraise_asynchronous(error)
            self._revert(self.log)
            self._sound, self._broken = self.order, add_changes({}, changes)
            self.order = self._made.order_of(Entries(self._made.tie))
        if broken is not None or self._broken is not None:
            self.log = [(REPLACED, shown, self.order.entries.size)]

    def _change(self, changes: Sequence[Pair]) -> None:
        """Delete and insert rows; raise for keys without an order."""
        parts = self._made.parts
        coming = [row for row, times in changes for _ in range(times)]
        for packed, times in changes:
            for _ in range(-times):
                row, entries = parts(packed), self.order.entries
                place = entries.find(row)
                assert place >= 0, "a row is deleted that was never inserted"
                row, _ = entries.row(place)
                self.log.append((GONE, place, entries.size, row))
                entries.delete(place)
        if len(coming) > 4 + self.order.entries.size // 4:
            self._load(coming)
            coming = []
        for packed in coming:
            row, entries = parts(packed), self.order.entries
            place = entries.place_of(row)
            self.log.append((CAME, place, entries.size, row))
            entries.insert(place, row, None)
        if self._has_peers and self.order.entries.size == 1:
            self.order.first(0)  # raises for a key without an order; others have been compared

    def _load(self, rows: Sequence[Packed]) -> None:
        """Insert many rows into a copy."""
        before = self.order
        order = self._made.order_of(before.entries.with_more(*self._made.columns(rows)))
        entries = order.entries
        places: Sequence[int] = range(entries.size)
        if before.entries.size:
            shown = entries.all_shown(0, entries.size)
            places = [place for place, each in enumerate(shown) if each is HIDDEN]
        for chunk in entries.chunks:
            chunk.shown = [None] * len(chunk.keys)
        self.log.append((COPIED, before, places))
        self.order = order

    def undo(self) -> None:
        """Undo the last step."""
        log, order, broken = self._undone
        if self._broken is None and broken is not None:  # the sound order has been changed in place
            self._revert(log)
            self._sound = self.order
        else:
            self._revert(log)
        self.order, self._broken = order, broken
        self.shown, self.log, self.stamp = None, [], object()
        self._undone = [], order, broken

    def _revert(self, log: Log) -> None:
        """Undo the changes of a log, and empty it."""
        for entry in reversed(log):
            entries = self.order.entries
            match entry:
                case "came", place, size, _:
                    if entries.size > size:  # it was not interrupted before that
                        entries.delete(place)
                case "gone", place, size, row:
                    if entries.size < size:
                        entries.insert(place, row, None)
                case _, order, _:
                    self.order = order
        log.clear()

    def commit(self) -> None:
        """Forget how to undo the last step."""
        self.log = []
        self._undone = [], self.order, self._broken

    def contents(self) -> Iterable[Pair]:
        """Return all rows with their answers."""
        return [(row, 1) for row in self.rows(self.order, 0, self.order.entries.size)]

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows held, and about how many bytes they take."""
        entries, others = self.order.entries, 0
        if self._broken is not None:
            entries, others = self._sound.entries, len(self._broken)
        return entries.size + others, entries.bytes()

    def rows(self, order: Order, start: int, stop: int) -> list[Any]:
        """Return the rows of an order from a place up to another, with their answers."""
        made, entries = self._made, order.entries
        if stop - start == entries.size:
            columns = [each.first_answers(order, stop) for each in made.functions]
        else:  # of the earlier answers, only those of DENSE_RANK are asked for
            told = entries.groups_up_to
            columns = [list(each.answers(order, start, stop, told)) for each in made.functions]
        said = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
        return made.output_rows(entries.heads(start, stop), said)

    def order_before(self, log: Log) -> Order:
        """Return the order before the changes of a log, which are the last ones."""
        entries = self.order.entries.shared()
        for entry in reversed(log):
            match entry:
                case "came", place, _, _:
                    entries.separate(place)
                    entries.delete(place)
                case "gone", place, _, row:
                    entries.separate(place)
                    entries.insert(place, row, None)
                case _, order, _:
                    entries = order.entries.shared()
        return self._made.order_of(entries)


class PlacedRows(GroupStates[PlacedPartition]):
    """The rows of all partitions; `show` runs the chain above the window.

    names: the functions of the window.
    inside: the context in which state that only commits change may be read.
    """

    is_tree = True
    __slots__ = (
        *("_bag", "_bag_before", "_changes", "_last", "_show", "_size_before", "_stamp"),
        *("inside", "names", "size", "__weakref__"),
    )

    def __init__(
        self,
        key: Callable[[Row], Any],
        made: WindowFacts,
        names: frozenset[str],
        show: Any,
        inside: Callable[[], AbstractContextManager[None]],
    ) -> None:
        super().__init__(key, partial(PlacedPartition, made, has_peers=bool(names & OF_PEERS)))
        self._show = show
        self.names = names
        self.inside = inside
        self.size = self._size_before = 0
        self._bag: tuple[object, dict[Row, int]] | None = None
        self._bag_before: dict[Row, int] | None = None
        """The bag before the last change, if it was read then."""
        self._changes: PlacedChanges | None = None
        self._stamp: object = object()
        """The state that the bag must be of; None while that changes."""
        self._last: weakref.ref[PlacedDelta] | None = None

    # Commits.

    def step(self, delta: Pairs) -> Any:
        """Return a delta that is computed when read, before the next commit."""
        bag, stamp = self._bag, self._stamp
        self._bag_before = bag[1] if bag is not None and bag[0] is stamp else None
        self._stamp = self._bag = self._changes = None
        self._size_before = self.size
        if self._groups or not delta or least_weight(delta) < 1:
            super().step(delta)
        else:
            self._load(delta)
        changed = [(key, group, group.log) for key, group in self._stepped.items()]
        self.size += sum(map(_growth, changed))
        self.touched += len(delta)
        self._changes = PlacedChanges(self, changed)
        self._stamp = object()
        found = PlacedDelta(self, self._changes)
        self._last = weakref.ref(found)
        return found

    def _load(self, delta: Pairs) -> None:
        """Insert rows into empty partitions, without hashing them; undo all if one raises."""
        self._stepped, self._made = {}, []
        try:
            for key, rows in rows_by_partition(self._key, delta).items():
                self._group(key).step(UniformDelta(rows, 1))
        except BaseException:
            self.undo()
            raise

    def undo(self) -> None:
        """Undo the last step, also one that raised midway."""
        self._stamp = self._bag = self._bag_before = self._changes = self._last = None
        super().undo()
        self.size = self._size_before
        self._stamp = object()

    def settle(self) -> None:
        """Read the delta of the last commit if it is unread and still referenced, before the next
        one.
        """
        if self._last is not None:
            last, self._last = self._last(), None
            if last is not None:
                last.end()

    def apply(self, changes: PlacedChanges) -> None:
        """Do nothing: no cache follows the changes."""

    # Current contents.

    def __len__(self) -> int:
        return self.size

    def pairs(self) -> UniformDelta:
        """Return the rows, partition by partition in the order of the window.

        Those of a partition are kept until it changes.
        """
        found: list[Row] = []
        with pause_collector():
            for key, group in self._groups.items():
                stamp, shown = group.stamp, group.shown
                if shown is None or shown[0] is not stamp:
                    order = group.order
                    rows = group.rows(order, 0, order.entries.size)
                    shown = stamp, self.shown(list(zip(repeat(key), rows)))
                    if stamp is not None:
                        group.shown = shown
                found += shown[1]
        return UniformDelta(found, 1)

    def contents(self) -> list[Pair]:
        return list(self._weights().items())

    def count(self, row: Row) -> int:
        """Return the weight of a row; 0 if it is absent.

        Cost: O(rows) for the first row after a change, then O(1); the bag follows the changes as
        long as it is asked for between them.
        """
        hash(row)  # as all views do
        return self._weights().get(row, 0)

    def shown(self, rows: Sequence[tuple[Any, Any]]) -> list[Row]:
        """Return rows of the window, each behind the key of its partition, as the chain makes
        them.
        """
        found = self._show.step(UniformDelta(rows, 1))
        return list(found.rows) if type(found) is UniformDelta else [row for row, _ in found]

    def _weights(self) -> dict[Row, int]:
        """Return the rows with their weights, computed once until the next change."""
        stamp, bag = self._stamp, self._bag
        if bag is not None and bag[0] is stamp:
            return bag[1]
        before, changes = self._bag_before, self._changes
        if before is not None and changes is not None:
            found = before.copy()
            integrate(found, changes.pairs())
        else:
            found = dict(consolidate(self.pairs()))
        if stamp is not None:
            self._bag = stamp, found
        return found


class PlacedChanges:
    """The changes of a commit, as logs of partitions."""

    __slots__ = ("_changed", "_rows")

    def __init__(
        self, rows: PlacedRows, changed: Sequence[tuple[Any, PlacedPartition, Log]]
    ) -> None:
        self._rows = rows
        self._changed = changed

    def reach(self) -> bool:
        """Return True if a row came or went, even if others look like it."""
        return any(log for _, _, log in self._changed)

    def pairs(self) -> list[Pair]:
        """Return the net change of the rows."""
        old: list[Any] = []
        new: list[Any] = []
        for key, group, log in self._changed:
            before = group.order_before(log)
            start, behind = self._find_changed_span(before, group.order, log)
            for order, out in ((before, old), (group.order, new)):
                out += zip(repeat(key), group.rows(order, start, order.entries.size - behind))
        gone, came = self._rows.shown(old), self._rows.shown(new)
        return list(consolidate([*zip(gone, repeat(-1)), *zip(came, repeat(1))]))

    def edits(self) -> Iterator[Edit]:
        """Yield the deletions of each partition, from its end, then its insertions in order.

        A deleted row is as it was before the commit, an inserted one as it is after it.
        """
        for key, group, log in self._changed:
            sequence = EditedSequence()
            sequence.edit(_edits_of(log, group.order))
            before = group.order_before(log)
            for place, _, weight in sequence.edits():
                order = before if weight < 0 else group.order
                (row,) = self._rows.shown([(key, *group.rows(order, place, place + 1))])
                yield Edit(place, row, weight, path=key)

    def _find_changed_span(self, old: Order, new: Order, log: Log) -> tuple[int, int]:
        """Return the number of rows at the start and at the end that are surely unchanged."""
        start, behind = _find_same_rows(log, new.entries.size)
        names, both = self._rows.names, (old, new)
        if old.entries.size != new.entries.size:
            return (0 if names & RESIZED else start), 0
        size = new.entries.size
        if start < size and "cume_dist" in names:  # it counts the peers of the row, too
            start = min(start, *(order.first(start) for order in both))
        if behind and names & {"rank", "percent_rank"}:  # of peers, the first one counts
            behind = min(_count_without_peers(order, behind) for order in both)
        if behind and "dense_rank" in names:
            groups = [order.entries.groups_up_to(size - behind) for order in both]
            behind = behind if groups[0] == groups[1] else 0
        return start, behind


class PlacedDelta(UnreadDelta):
    """The changed rows, computed at the first read, which must precede the next commit."""

    __slots__ = ()

    def __init__(self, rows: Any, changes: Any) -> None:
        super().__init__(rows, changes)

    def places(self) -> tuple[Edit, ...] | None:
        """Return the edits of the partitions."""
        return super().edits()

    def edits(self) -> None:
        """Return None: a bag has no edits."""

    def end(self) -> None:
        """Compute the pairs and the edits, because another commit follows."""
        self.places()
        super().end()


def _growth(changed: tuple[Any, PlacedPartition, Log]) -> int:
    """Return the number of rows that a partition has gained."""
    growth = 0
    for kind, before, *_, last in changed[2]:
        match kind:
            case "copied":
                growth += len(last)
            case "replaced":
                growth += last - before.entries.size
            case _:
                growth += 1 if kind == CAME else -1
    return growth


def _find_same_rows(log: Log, size: int) -> tuple[int, int]:
    """Return the numbers of rows before the first change, and behind the last one."""
    before, behind = [size], [size]
    for kind, place, before_it, *_ in log:
        if kind == REPLACED:
            return 0, 0
        if kind != COPIED:
            before.append(place)
            behind.append(before_it - place - (kind == GONE))
        elif before_it:
            before.append(before_it[0])
            behind.append(size - 1 - before_it[-1])
    return min(before), min(behind)


def _edits_of(log: Log, order: Order) -> Iterator[Edit]:
    """Yield the changes of a log as edits of the bindings of rows."""
    for kind, place, *more in log:
        if kind == REPLACED:
            yield from _all_edits(place, -1)
            yield from _all_edits(order, 1)
        elif kind == COPIED:
            for at in more[0]:
                yield Edit(at, order.entries.row(at)[0][1], 1)
        else:
            yield Edit(place, more[1][1], 1 if kind == CAME else -1)


def _all_edits(order: Order, weight: int) -> Iterator[Edit]:
    """Yield the edits that insert or delete all rows of an order."""
    places = range(order.entries.size)
    for at in places if weight > 0 else reversed(places):
        yield Edit(at, order.entries.row(at)[0][1], weight)


def _count_without_peers(order: Order, behind: int) -> int:
    """Return the number of rows at the end that have no peer before them."""
    border = order.entries.size - behind
    return behind if order.first(border) == border else order.entries.size - order.behind(border)
