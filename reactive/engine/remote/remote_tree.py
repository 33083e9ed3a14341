"""Views whose rows are elsewhere: leaves, levels of nests, and trees that look rows up.

`RemoteTree` is a nest whose levels are elsewhere, each as a fragment: rows are built by look-ups
when they are read.

    view[key]    the row, then its inner rows, a look-up for each level
    a delta      the changes, the rows that contain them, and their inner rows
    all rows     all rows of each level

Nothing is stored. A delta that is held and unread is read before the next flush.

State:  none, except look-ups for the last delta.
Cost:   of a flush none; of a reading, look-ups by the depth, and the rows that are read.
Source: [slender] shredding; query shredding [cheney2014].

`RemoteLeaf` is the leaf of a view whose rows are elsewhere: it looks them up when they are read.

State:  the number of rows.
Cost:   of a commit none; of a look-up, reading one bucket; of all rows, reading all.

`LevelRows` are the rows of a level by key, stored elsewhere as a fragment, in place of an index.

    pairs(label)    looks the label up, unless that was done since the last `forget`
    fetch(labels)   looks several up together
    load()          reads all rows, for a reading of everything

State:  the look-ups, until `forget`.
Cost:   of a look-up, reading a bucket, whatever the number of rows; of several together little
        more.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, Protocol

from reactive.engine.collections.index import NO_MATCH, KeyedPair, match_key
from reactive.engine.collections.order import Edit
from reactive.engine.collections.zset import (
    Pair,
    Pairs,
    Row,
    canonical,
    consolidate,
    repeat_by_weight,
)
from reactive.engine.operators.tree.changes import LevelChanges, Touched
from reactive.engine.operators.tree.levels import Label as LevelLabel
from reactive.engine.operators.tree.levels import Level
from reactive.engine.operators.tree.tree import Tree, UnreadDelta
from reactive.engine.remote.remote_operator import RemoteOperator

MOST_HERE = 100_000
"""Maximum number of rows of all levels for building all rows in the process."""


class AllRows(Protocol):
    """All rows of a nest, computed in the place of its levels."""

    def pieces(self) -> Iterator[list[Pair]]:
        """Yield the current rows in pieces."""
        ...

    def to_spark(self, row_type: Any = None) -> Any:
        """Return the current rows as a DataFrame."""
        ...


class RemoteTree(Tree):
    """The rows of a nest whose levels are stored in fragments elsewhere.

    Parameters
    ----------
    parts: the rows of the levels by key, each at the place of its port.
    every: returns all rows, if they can be computed without reading all levels into the process.
    """

    __slots__ = ("_read", "every", "parts")

    def __init__(
        self,
        levels: Sequence[Level],
        parts: Sequence[LevelRows],
        inside: Any,
        every: Callable[[], AllRows | None],
        large: int,
    ) -> None:
        super().__init__(levels, inside, large)
        self.every = every
        self.parts = parts
        self._read = (levels[0].rows, *parts)

    # Flushes.

    def step(self, *deltas: Pairs) -> UnreadDelta:  # type: ignore[override]
        """Return a delta of the nest that looks its rows up only when it is read."""
        self.drop_lookups()
        self.touched += sum(map(len, deltas))
        keyed = [part.add_keys(delta) for part, delta in zip(self.parts, deltas, strict=True)]
        found = UnreadDelta(self, RemoteChanges(self, keyed))
        self._last = weakref.ref(found)
        return found

    def drop_lookups(self) -> None:
        """Drop look-ups after a flush, which need not tell the changed rows."""
        for rows in self._read:
            rows.forget()
        for level in self.levels:
            level.bags.clear()

    def settle(self) -> None:
        """Read lazy changes of the last flush now, before the next flush."""
        super().settle()
        self.drop_lookups()

    def apply(self, changes: LevelChanges, least: int = 0) -> None:
        """Do nothing: no rows are stored that would have to change."""

    # What it has, as of the last flush.

    def __len__(self) -> int:
        return self._rows.operator.size()

    def pairs(self) -> Iterator[Pair]:
        """Yield all rows with their weights: in pieces, if there are some, else from all levels."""
        pieces = self.pieces()
        if pieces is not None:
            for piece in pieces:
                yield from piece
            return
        with self._as_shown():
            for level in self.levels:
                level.rows.load()
            yield from super().pairs()

    def pieces(self) -> Iterator[list[Pair]] | None:
        """Return the current rows in pieces; None if they are few, or must be built here."""
        if sum(level.rows.operator.size() for level in self.levels) <= MOST_HERE:
            return None
        every = self.every()
        return None if every is None else every.pieces()

    def count(self, row: Any) -> int:
        with self._as_shown():
            return super().count(row)

    def find(self, key: Any) -> Row | None:
        with self._as_shown():
            return super().find(key)

    def keys(self) -> list[Any]:
        return self._rows.keys()

    def bag(self, level: Level, label: LevelLabel) -> Any:
        return self.make_contents(level, label)

    def fetch(self, level: Level, rows: Iterable[Row]) -> None:
        """Look up the inner rows of `rows` at all levels below `level`."""
        rows = tuple(rows)
        for inner in level.inside:
            labels = {inner.under(row) for row in rows}
            inner.rows.fetch(labels)
            if inner.inside:
                self.fetch(inner, (row for label in labels for row, _ in inner.rows.pairs(label)))

    @property
    def _rows(self) -> LevelRows:
        found: LevelRows = self.levels[0].rows
        return found

    def _row(self, key: Any) -> Row | None:
        """Return the row of a key, with its inner rows fetched; None if there is none."""
        for row, _ in self._rows.pairs(canonical(key)):
            self.fetch(self.levels[0], (row,))
            return row
        return None

    @contextmanager
    def _as_shown(self) -> Iterator[None]:
        """Read the rows that views show; drop the look-ups afterwards."""
        self._show(is_shown=True)
        try:
            yield
        finally:
            self._show(is_shown=False)

    def _show(self, *, is_shown: bool) -> None:
        """Drop all look-ups, and choose whether later ones read the rows that views show."""
        for rows in self._read:
            rows.forget()
            rows.is_shown = is_shown


class RemoteChanges(LevelChanges):
    """The changes of a flush; their look-ups are done together, level by level."""

    __slots__ = ()
    _tree: RemoteTree

    def changed_rows(self, level: Level) -> dict[LevelLabel, Touched]:
        if not self._around_too:
            self._look_up()
        return super().changed_rows(level)

    def pairs(self) -> list[Pair]:
        """Return the pairs of the delta, after their inner rows are fetched."""
        top = self._tree.levels[0]
        rows = self.changed_rows(top).get(None, {}).values()
        self._tree.fetch(top, (row for row, _ in rows))
        self._look_at_weights()
        return super().pairs()

    def edits(self) -> Iterator[Edit]:
        self._look_at_weights()
        return super().edits()

    def _look_up(self) -> None:
        """Look up the rows that contain changed rows."""
        levels = self._tree.levels
        labels = [set(self.own_changes(level)) for level in levels]
        for level in reversed(levels):
            above = level.parent
            if above is not None:
                level.shown_in.fetch(labels[level.number])
                if above.label is not None:
                    for label in labels[level.number]:
                        labels[above.number] |= {
                            above.label(row) for row, _ in level.shown_in.pairs(label)
                        }

    def _look_at_weights(self) -> None:
        """Look up the weights of touched rows."""
        top, *others = self._tree.levels
        for level in others:
            level.rows.fetch(self.changed_rows(level))
        rows = self.changed_rows(top).get(None, {}).values()
        top.rows.fetch({canonical(top.naming.key(top.parts(row))) for row, _ in rows})


class RemoteLeaf:
    """The rows of a view, stored elsewhere by the operator below.

    `size` is the number of rows, if known; otherwise they are counted on demand. `key` returns the
    group of a row.
    """

    __slots__ = ("_key", "_last", "_operator", "_size", "touched")
    edits: tuple[Edit, ...] = ()

    def __init__(
        self,
        operator: RemoteOperator,
        size: int | None = None,
        key: Callable[[Row], Any] = itemgetter(0),
    ) -> None:
        self._operator = operator
        self._key = key
        self._size = size
        self._last = 0
        self.touched = 0

    def step(self, delta: Pairs) -> Pairs:
        """Return the net delta, and count its rows if the size is known."""
        self.touched += len(delta)
        changes = consolidate(delta)
        self._last = sum(weight for _, weight in changes)
        if self._size is not None:
            self._size += self._last
        return changes

    def undo(self) -> None:
        if self._size is not None:
            self._size -= self._last
        self._last = 0

    def commit(self) -> None:
        self._last = 0

    def __len__(self) -> int:
        if self._size is None:
            self._size = self._operator.size()
        return self._size

    def drop_lookups(self) -> None:
        """Drop the number of rows after a flush that does not tell the changes."""
        self._size = None

    def count(self, row: Row) -> int:
        return self._operator.count(row)

    def items(self) -> Collection[Pair]:
        return list(self._operator.contents())

    def rows(self) -> list[Row]:
        return list(repeat_by_weight(self._operator.contents()))

    def find(self, key: Any) -> Row | None:
        """Return the row of a key; None if there is none."""
        hash(key)
        of = self._operator
        near: Iterable[Pair] = of.at(key) if of.fragment.is_by_group else of.contents()
        for row, _ in near:
            own = self._key(row)
            if own is key or own == key:
                return row
        return None

    def keys(self) -> list[Any]:
        return [canonical(self._key(row)) for row, _ in self._operator.contents()]

    def footprint(self) -> tuple[int, int]:
        return 0, 0


Label = Any


class LevelRows:
    """Rows found by their label; at the top level by the key of the view.

    Parameters
    ----------
    operator: emits pairs of a label and a row.
    key: returns the key of a row at the top level; None at other levels.
    """

    __slots__ = ("_found", "_is_loaded", "_key", "is_shown", "operator")

    def __init__(self, operator: RemoteOperator, key: Callable[[Row], Any] | None = None) -> None:
        self.operator = operator
        self._key = key
        self._found: dict[Label, list[Pair]] = {}
        self._is_loaded = False
        self.is_shown = False
        """True to read rows as views show them, even during a flush."""

    def add_keys(self, delta: Pairs) -> list[KeyedPair]:
        """Return a delta of the fragment as one of an index."""
        return [(self._label(row[0]), (row[1], weight)) for row, weight in delta]

    def pairs(self, label: Label) -> Sequence[Pair]:
        """Return the rows with a label.

        A new label is looked up in the fragment; `fetch` looks several up in one query.
        """
        if label is NO_MATCH:
            return ()
        self.fetch((label,))
        return self._found.get(label, ())

    def fetch(self, labels: Iterable[Label]) -> None:
        """Look up the labels that were not looked up yet."""
        found = self._found
        new = {label for label in labels if label not in found and label is not NO_MATCH}
        if new and not self._is_loaded:
            found.update((label, []) for label in new)
            self._take(self.operator.near(new, is_shown=self.is_shown), new)

    def load(self) -> None:
        """Read all rows."""
        self.forget()
        self._found = defaultdict(list)
        self._take(self.operator.contents(), None)
        self._is_loaded = True

    def forget(self) -> None:
        """Drop all look-ups, which may be outdated."""
        self._found, self._is_loaded = {}, False

    def weight(self, label: Label, row: Row) -> int:
        """Return the number of copies of a row."""
        if self._key is not None:
            label = canonical(self._key(row))
        return sum(weight for other, weight in self.pairs(label) if other == row)

    def items(self) -> Iterator[KeyedPair]:
        """Yield the rows looked up so far."""
        return ((label, pair) for label, pairs in self._found.items() for pair in pairs)

    def keys(self) -> list[Label]:
        """Return all labels."""
        return [row[0] for row, _ in self.operator.contents()]

    def _take(self, pairs: Iterable[Pair], among: Collection[Label] | None) -> None:
        """Store pairs by their labels; if `among` is given, pairs with other labels are skipped."""
        for row, weight in pairs:
            label = self._label(row[0])
            if among is None or label in among:
                self._found[label].append((row[1], weight))

    def _label(self, key: Any) -> Label:
        return match_key(key) if self._key is None else key
