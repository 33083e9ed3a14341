"""Tree of levels: the rows of a nest, whose inner bags are not stored.

    index of c by c.id      the rows that show a label of orders
    index of o by o.c       the orders of a label         index of o by o.id      the rows around
    index of l by l.o       the lines of a label
    sequences               of a level in an order: the rows of a label, in that order

Levels are flat relations, indexed by their own label and by the labels of their inner levels: the
same indexes that joins would need without nesting. A step reads only its changes and emits an
`UnreadDelta`. The rows before and after and the edits with their paths are computed from indexes
and changes when the delta is read: before the next commit, or never.

A bag with at least `large` rows is cached once it is read, and updated by later changes, so that
reading it again costs only its changes. Smaller bags are computed at each read, except bags whose
change a delta has shown: they stay cached while all their changes are read. The cache is updated
when it is read, or before the next commit. Bags of labels that no row shows are dropped.

State:  large bags that were read, and small ones whose changes are read; rows by key, after the
        first look-up by key; the rows of levels in an order (`levels.py`).
Cost:   O(|dL|) per commit, in an order O(|dL| log label); reading a delta, its changes and the
        rows around them.
Source: [slender] shredding, domain maintenance; query shredding [cheney2014].
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, overload

from reactive.engine.collections.bag import bag_from_weights
from reactive.engine.collections.group_values import EMPTY
from reactive.engine.collections.index import KeyedPair
from reactive.engine.collections.order import Edit
from reactive.engine.collections.zset import Pair, Row, canonical
from reactive.engine.operators.tree.changes import LevelChanges, change_bags
from reactive.engine.operators.tree.levels import Label, Level, sequence_of


class Tree:
    """The rows of a nest, by levels: the first is the top; each level follows its parent."""

    __slots__ = (
        *(
            "_by_key",
            "_changes",
            "_large",
            "_last",
            "_ordered",
            "inside",
            "levels",
            "touched",
            "__weakref__",
        ),
    )
    is_tree = True

    def __init__(
        self,
        levels: Sequence[Level],
        inside: Callable[[], AbstractContextManager[None]],
        large: int,
    ) -> None:
        self.levels = levels
        self._large = large
        self.inside = inside
        """Context in which state that only commits change may be read."""
        self.touched = 0
        self._changes: LevelChanges | None = None
        self._last: weakref.ref[UnreadDelta] | None = None
        self._by_key: dict[Any, Row] | None = None
        self._ordered = [level.sequences for level in levels if level.sequences is not None]

    # Commits.

    def step(self, *deltas: Sequence[KeyedPair]) -> UnreadDelta:
        """Return a delta that is computed when read, before the next commit."""
        for delta in deltas:
            self.touched += len(delta)
        changes = LevelChanges(self, deltas)
        if self._ordered:
            changes.step()
        self._changes = changes
        found = UnreadDelta(self, changes)
        self._last = weakref.ref(found)
        return found

    def settle(self) -> None:
        """Read the delta of the last commit if it is unread and still referenced, before the next
        one.
        """
        if self._last is not None:
            last, self._last = self._last(), None
            if last is not None:
                last.end()
        if self._changes is not None:
            self.apply(self._changes, self._large)

    def apply(self, changes: LevelChanges, least: int = 0) -> None:
        """Update the caches to the last commit; drop cached bags with fewer than `least` rows."""
        if self._changes is changes:
            self._changes = None
            if self._by_key is not None:
                self._find_again(changes)
            if self._has_bags():
                change_bags(self, changes, least)

    def undo(self) -> None:
        """Undo the last step; caches that were updated since are dropped."""
        for sequences in self._ordered:
            sequences.undo()
        if self._changes is None:
            self._by_key = None
            for level in self.levels:
                level.bags.clear()
        self._changes, self._last = None, None

    def commit(self) -> None:
        """Commit the ordered levels; forget the changes if nothing is cached."""
        for sequences in self._ordered:
            sequences.commit()
        if self._by_key is None and not self._has_bags():
            self._changes = None

    def _has_bags(self) -> bool:
        return any(level.bags for level in self.levels)

    def _refresh(self) -> None:
        """Update the caches before a read."""
        if self._changes is not None:
            self.apply(self._changes, self._large)

    # Current contents.

    def __len__(self) -> int:
        return sum(weight for _, weight in self._top())

    def pairs(self) -> Iterator[Pair]:
        """Yield the rows with their weights."""
        self._refresh()
        top = self.levels[0]
        for row, weight in self._top():
            yield top.show_row(row, self.make_contents), weight

    def contents(self) -> list[Pair]:
        return list(self.pairs())

    def count(self, row: Any) -> int:
        """Return the weight of a row; 0 if it is absent."""
        hash(row)  # as all views do
        self._refresh()
        top = self.levels[0]
        if not isinstance(row, tuple) or len(row) != len(top.kind._fields):
            return 0
        found = self._row(top.naming.key(row))
        return (
            0 if found is None or top.show_row(found, self.bag) != row else top.weight(None, found)
        )

    def find(self, key: Any) -> Row | None:
        """Return the row with a key, or None."""
        self._refresh()
        found = self._row(key)
        return None if found is None else self.levels[0].show_row(found, self.bag)

    def keys(self) -> list[Any]:
        """Return the keys of all rows."""
        self._refresh()
        return list(self._find_rows_by_key())

    def footprint(self) -> tuple[int, int]:
        """Return the rows and bytes of ordered levels and caches; the indexes are not counted."""
        rows, size = 0, 0 if self._by_key is None else sys.getsizeof(self._by_key)
        for count, taken in (sequences.footprint() for sequences in self._ordered):
            rows, size = rows + count, size + taken
        return rows, size + sum(sys.getsizeof(level.bags) for level in self.levels)

    def bag(self, level: Level, label: Label) -> Any:
        """Return the contents of a label; cache a large one."""
        kept = level.bags.get(label)
        if kept is not None:
            return kept
        last = None if self._last is None else self._last()
        if last is not None and last.touches(level, label):
            return last.now(level, label)
        bag = self.made_of(level, label, self.bag)
        is_large = len(bag) >= self._large and not level.is_at_hand
        if is_large and level.shown_in.pairs(label):
            level.bags[label] = bag
        return bag

    def make_contents(self, level: Level, label: Label) -> Any:
        """Return the contents of a label while all rows are read; cache nothing."""
        kept = level.bags.get(label)
        return self.made_of(level, label, self.make_contents) if kept is None else kept

    def made_of(self, level: Level, label: Label, inner: Callable[[Level, Label], Any]) -> Any:
        """Compute the contents of a label from the rows of its level."""
        if level.sequences is not None:
            return sequence_of(level, level.sequences.now(label), inner)
        pairs = level.rows.pairs(label)
        if not pairs:
            return EMPTY
        if level.inside or level.is_made:
            return bag_from_weights({level.show_row(row, inner): weight for row, weight in pairs})
        return bag_from_weights({canonical(row): weight for row, weight in pairs})

    def _top(self) -> Iterator[Pair]:
        """Yield the stored rows of the top level, with their weights."""
        return (pair for _, pair in self.levels[0].rows.items())

    def _row(self, key: Any) -> Row | None:
        return self._find_rows_by_key().get(key)

    def _find_rows_by_key(self) -> dict[Any, Row]:
        """Return the top rows by key; the first call builds the dictionary."""
        if self._by_key is None:
            top = self.levels[0]
            self._by_key = {top.naming.key(top.parts(row)): row for row, _ in self._top()}
        return self._by_key

    def _find_again(self, changes: LevelChanges) -> None:
        """Update the top rows by key with the changes of a commit."""
        top, by_key = self.levels[0], self._by_key
        assert by_key is not None
        pairs = [*changes.own_changes(top).get(None, {}).values()]
        for row, weight in pairs:
            if weight < 0 and not top.weight(None, row):
                by_key.pop(top.naming.key(top.parts(row)), None)
        by_key.update((top.naming.key(top.parts(row)), row) for row, weight in pairs if weight > 0)


class UnreadDelta(Sequence[Pair]):
    """Deleted and inserted rows, computed at the first read, which must precede the next commit."""

    __slots__ = ("__weakref__", "_changes", "_edits", "_is_some", "_pairs", "_tree")
    is_net = True

    def __init__(self, tree: Tree, changes: LevelChanges) -> None:
        self._tree = tree
        self._changes: LevelChanges | None = changes
        self._pairs: list[Pair] | None = None
        self._edits: tuple[Edit, ...] | None = None
        self._is_some: bool | None = None

    def read(self) -> list[Pair]:
        """Return the pairs; compute them at the first call."""
        if self._pairs is None:
            with self._tree.inside():
                changes = self._changes
                if self._pairs is None and changes is not None:
                    self._tree.apply(changes)
                    self._pairs = changes.pairs()
        assert self._pairs is not None
        return self._pairs

    def touches(self, level: Level, label: Label) -> bool:
        """Return True if `now` can give the contents of a label, because this commit changed it."""
        return self._changes is not None and label in self._changes.changed_rows(level)

    def now(self, level: Level, label: Label) -> Any:
        """Return the contents of a label after this commit."""
        assert self._changes is not None
        return self._changes.now(level, label)

    def end(self) -> None:
        """Compute the pairs, because another commit follows."""
        self.read()
        self._changes = None

    def edits(self) -> tuple[Edit, ...] | None:
        """Return the edits; None if it is too late, and they must be found by comparing rows."""
        if self._edits is None and self._changes is not None:
            with self._tree.inside():
                if self._changes is not None:
                    self._tree.apply(self._changes)
                    self._edits = tuple(self._changes.edits())
        return self._edits

    def __bool__(self) -> bool:
        if self._is_some is None:
            changes = self._changes
            self._is_some = bool(self._pairs) if changes is None else changes.reach()
        return self._is_some

    def __len__(self) -> int:
        return len(self.read())

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.read())

    @overload
    def __getitem__(self, place: int) -> Pair: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Pair]: ...
    def __getitem__(self, place: int | slice) -> Pair | Sequence[Pair]:
        return self.read()[place]
