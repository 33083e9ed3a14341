"""Joins that share an index and have another side each: a row of the index finds them by its key.

    orders index by customer --+-- join with customers of nation 1 --+
                               +-- join with customers of nation 2   +--  the joins whose other
                               +-- join with customers of nation 3 --+    side has the key of a row

A join without a partner for a row makes nothing of it. So a condition on one table of a join finds
the views of a row of the other table, as conditions on the row itself do (`discrimination.py`).

    key -> joins     whose other side had the key after the last commit
    key -> joins     whose other side changes at the key in this commit

Sound:  if both sides of a join change in a commit, one of them finds it at least, and it gets the
        whole deltas of both (`walk.py`). Rows without a key are sent to all joins, and all rows to
        joins whose other side has rows without a key.
State:  a number per join and key of its other side; kept while other joins come and go.
Cost:   O(keys of the other side) for a new join, at the next delta of the index; O(joins found) per
        row; O(1) per key that changes on another side.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from reactive.engine.collections.index import ERROR_KEY, Mark
from reactive.engine.collections.zset import delta_keys
from reactive.engine.dataflow import discrimination
from reactive.engine.dataflow.discrimination import Enqueue, Reader, send, send_found
from reactive.engine.dataflow.node import is_deferred

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import Node

FEW_DROPPED = 64
"""Joins that may have been dropped, besides as many as there are, before all are found again."""


class Holder(Protocol):
    """An operator that holds the keys of another side."""

    @property
    def is_made(self) -> bool:
        """False while the keys can be told only by building an index, which a join does."""

    @property
    def is_empty(self) -> bool:
        """True if there are no keys; of an operator that is not built."""

    def held_keys(self) -> Collection[Any]:
        """Return the keys, as they are at any later time."""


class Side(NamedTuple):
    """Another side: its node, and the joins that it has."""

    other: Node
    readers: tuple[Reader, ...]


class KeyReaders:
    """Readers of a node that are found by key."""

    __slots__ = (
        *("_always", "_changing", "_dropped", "_empty", "_found", "_held", "_keys", "_made"),
        *("_new", "_numbers", "_numbers_of", "_readers", "_unbuilt", "_unsure", "readers"),
    )

    def __init__(self, node: Node) -> None:
        self._keys = key_reader_of(node)
        self._new: dict[Holder, Side] = {}
        """Sides whose keys are not in `_found` yet."""
        self._unbuilt: list[Reader] = []
        """Joins of sides that are not built, which get every row."""
        self._empty: dict[Node, dict[Holder, Side]] = {}
        """Sides that are not built, and empty until their node changes."""
        self._made = self._dropped = 0
        self._numbers: dict[Holder, int] = {}
        self._numbers_of: dict[Node, list[int]] = {}
        self._held: dict[int, Collection[Any]] = {}
        """The keys of a side by its number, as they are at any time."""
        self._readers: dict[int, tuple[Reader, ...]] = {}
        """The joins of a side by its number."""
        self._found: dict[Any, list[int]] = {}
        """The numbers of sides by key; numbers of dropped sides are left there."""
        self._always: set[int] = set()
        """Sides that have rows without a key."""
        self._changing: dict[Any, list[Node]] = {}
        """Nodes that change in this commit, by key; those that change without one at `ERROR_KEY`.
        """
        self._unsure: list[tuple[Node, Sequence[Any]]] = []
        """Keys of sides whose change was undone."""
        self.readers: tuple[Reader, ...] = ()
        """All joins."""

    def set_sides(self, sides: Mapping[Holder, Side]) -> None:
        """Set the other sides, each under the operator that holds its keys."""
        self.readers = tuple([reader for side in sides.values() for reader in side.readers])
        self._new, self._unbuilt, self._empty, self._numbers_of = {}, [], {}, {}
        gone = self._numbers.keys() - sides.keys()
        if self._dropped + len(gone) > len(sides) + FEW_DROPPED:
            self._dropped = 0
            self._numbers, self._readers, self._held, self._found = {}, {}, {}, {}
            self._always, gone = set(), set()
        self._dropped += len(gone)
        for holder in gone:
            number = self._numbers.pop(holder)
            del self._readers[number], self._held[number]
            self._always.discard(number)
        for holder, side in sides.items():
            if holder in self._numbers:
                number = self._numbers[holder]
                self._readers[number] = side.readers
                self._numbers_of.setdefault(side.other, []).append(number)
            else:
                self._new[holder] = side

    def send(self, keyed: Sequence[Any], enqueue: Enqueue) -> None:
        """Put the pairs of a delta into the inboxes of the joins that have partners for them."""
        if self._new or self._unsure:
            self._catch_up()
        keys = self._keys(keyed)
        if len(keys) == 1:
            send(self._find(keys[0]), keyed, enqueue)
            return
        found = list(map(self._find, keys))
        if 2 * sum(map(len, found)) > len(found) * len(self.readers):
            send(self.readers, keyed, enqueue)
            return
        send_found(keyed, keyed, found, enqueue)

    def _find(self, key: Any) -> Sequence[Reader]:
        """Return the joins whose other side has a key or changes at it, or has rows without."""
        if key.__class__ is Mark:
            return self.readers
        numbers: Iterable[int] = self._found.get(key, ())
        if self._unbuilt or self._always or self._changing:
            others = (*self._changing.get(key, ()), *self._changing.get(ERROR_KEY, ()))
            changing = [number for other in others for number in self._numbers_of.get(other, ())]
            numbers = dict.fromkeys([*numbers, *self._always, *changing])
        of = self._readers.get
        found = [reader for number in numbers for reader in of(number, ())]
        return [*found, *self._unbuilt] if self._unbuilt else found

    def _catch_up(self) -> None:
        """Find the keys of new sides, and of changes that were undone."""
        new, self._new, self._unbuilt = self._new, {}, []
        for holder, side in new.items():
            if holder.is_made:
                self._add(holder, side)
            elif holder.is_empty:
                self._empty.setdefault(side.other, {})[holder] = side
            else:
                self._new[holder] = side
                self._unbuilt += side.readers
        unsure, self._unsure = self._unsure, []
        for other, keys in unsure:
            self._note_keys(other, keys)

    def _add(self, holder: Holder, side: Side) -> None:
        """Add a side under a new number, and find its keys."""
        self._made += 1
        number = self._numbers[holder] = self._made
        self._numbers_of.setdefault(side.other, []).append(number)
        self._readers[number] = side.readers
        held = self._held[number] = holder.held_keys()
        for key in held:
            if key.__class__ is not Mark:
                self._found.setdefault(key, []).append(number)
        if ERROR_KEY in held:
            self._always.add(number)

    def begin_change(self, other: Node, keys: Sequence[Any]) -> None:
        """Note that another side changes at some keys in this commit."""
        for key in keys:
            wanted = ERROR_KEY if key.__class__ is Mark else key
            self._changing.setdefault(wanted, []).append(other)

    def finish_change(self, other: Node, keys: Sequence[Any]) -> None:
        """Note that the change of another side stands."""
        self._changing = {}
        self._new |= self._empty.pop(other, {})
        self._note_keys(other, keys)

    def undo_change(self, other: Node, keys: Sequence[Any]) -> None:
        """Note that the change of another side is being undone."""
        self._changing = {}
        self._unsure.append((other, keys))

    def _note_keys(self, other: Node, keys: Sequence[Any]) -> None:
        """Note which of some keys another side has now."""
        for number in self._numbers_of.get(other, ()):
            held = self._held[number]
            for key in keys:
                if key.__class__ is Mark:
                    (self._always.add if ERROR_KEY in held else self._always.discard)(number)
                    continue
                numbers = self._found.setdefault(key, [])
                if key not in held:
                    if number in numbers:
                        numbers.remove(number)
                    if not numbers:
                        del self._found[key]
                elif number not in numbers:
                    numbers.append(number)


class SideChange(NamedTuple):
    """A change of a node that readers by key ask; a step of a commit, which stands or is undone."""

    asked_by: Sequence[KeyReaders]
    other: Node
    keys: Sequence[Any]

    def begin(self) -> SideChange:
        """Tell the readers that the node changes."""
        for readers in self.asked_by:
            readers.begin_change(self.other, self.keys)
        return self

    def finalize(self) -> None:
        for readers in self.asked_by:
            readers.finish_change(self.other, self.keys)

    def undo(self) -> None:
        for readers in self.asked_by:
            readers.undo_change(self.other, self.keys)


def key_reader_of(node: Node) -> Callable[[Any], Sequence[Any]]:
    """Return the function from a delta of a node to its join keys."""
    return _outer_keys if getattr(node.operator, "by_group", False) else delta_keys


def _outer_keys(keyed: Iterable[Any]) -> list[Any]:
    """Return the join keys of a delta of sums by group."""
    return [key for (key, _), _ in keyed]


def renew_key_readers(node: Node) -> None:
    """Make or renew the readers of a node that are found by key; None if these are few."""
    sides = _find_sides(node)
    if not sides:
        node.by_key = None
        return
    if node.by_key is None:
        node.by_key = KeyReaders(node)
    node.by_key.set_sides(sides)


def _find_sides(node: Node) -> dict[Holder, Side]:
    """Return the other sides of the joins that are found by keys of a node; none if few."""
    if not _has_join_keys(node):
        return {}
    found: dict[Holder, Side] = {}
    for reader, port in node.consumers:
        holder = _holder_of(reader, port)
        if holder is not None:
            had = found[holder].readers if holder in found else ()
            other = reader.inputs[1 - port]
            found[holder] = Side(other, (*had, (reader, port)))
    return found if len(found) >= discrimination.WORTHWHILE else {}


def _holder_of(reader: Node, port: int) -> Holder | None:
    """Return the operator that holds the keys that a join needs on its other side, or None."""
    other = reader.partner_of(port)
    if other is None or is_deferred(other):
        return None
    matching: Any = reader.operator
    if hasattr(matching, "held_keys") and not getattr(matching, "has_plain_keys", False):
        found: Holder = matching  # of sums, these would be the keys that it emits
        return found
    return other.operator if _has_join_keys(other) else None


def _has_join_keys(node: Node) -> bool:
    """Return True for an operator that holds rows or sums by equal keys."""
    return getattr(node.operator, "has_plain_keys", False) and not is_deferred(node)
