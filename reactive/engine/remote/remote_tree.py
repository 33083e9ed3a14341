"""Views whose rows are elsewhere: leaves, levels of nests, and trees that look rows up.

A nest whose levels are elsewhere, each as parts: rows are made when they are read, of look-ups.

    view[key]    the row, then what is inside of it, a look-up for each level
    a delta      what changed, the rows that show it, and what is inside of these
    all rows     all rows of each level

Nothing is kept. A delta that somebody keeps without reading it is read before the next flush.

State:  none, but what has been looked up for the delta that was told last.
Cost:   of a flush none; of a reading, look-ups by the depth, and the rows that are read.
Source: [slender] shredding; query shredding [cheney2014].

The leaf of a view whose rows are elsewhere: it asks for them when they are read.

State:  how many rows there are.
Cost:   of a commit none; of a lookup that of reading one bucket; of all rows, that of reading all.

The rows of a level of a nest by a key, which a part keeps elsewhere: what an index is here.

    pairs(label)    looks the label up, if that has not been done since something was forgotten
    fetch(labels)   looks several up together
    load()          has all of them, for a reading of everything

State:  what was looked up, until it is forgotten.
Cost:   of a look-up that of reading a bucket, whatever the rows there are; of several together
        little more.
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
from reactive.engine.collections.zset import Pair, Pairs, Row, canonical, consolidate, repeat
from reactive.engine.operators.tree.changes import LevelChanges, Touched
from reactive.engine.operators.tree.levels import Label as LevelLabel
from reactive.engine.operators.tree.levels import Level
from reactive.engine.operators.tree.tree import Tree, Unread
from reactive.engine.remote.remote_operator import RemoteOperator

MOST_HERE = 100_000
"""Rows of all levels up to which all rows are made here."""


class AllRows(Protocol):
    """All rows of a nest, worked out where its levels are."""

    def pieces(self) -> Iterator[list[Pair]]:
        """The rows of now, some at a time."""
        ...

    def to_spark(self, row_type: Any = None) -> Any:
        """The same as a DataFrame."""
        ...


class RemoteTree(Tree):
    """The rows of a nest of which parts elsewhere have the levels.

    Parameters
    ----------
    parts: by their port.
    every: has all rows, where they can be had without those of all levels in the process.
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

    def step(self, *deltas: Pairs) -> Unread:  # type: ignore[override]
        self.outdated()
        self.touched += sum(map(len, deltas))
        keyed = [part.keyed(delta) for part, delta in zip(self.parts, deltas, strict=True)]
        found = Unread(self, RemoteChanges(self, keyed))
        self._last = weakref.ref(found)
        return found

    def outdated(self) -> None:
        """The rows have changed; perhaps it is not told which."""
        for rows in self._read:
            rows.forget()
        for level in self.levels:
            level.bags.clear()

    def settle(self) -> None:
        """There will be another flush: what is read later of the last one is read now."""
        super().settle()
        self.outdated()

    def apply(self, changes: LevelChanges, least: int = 0) -> None:
        """Nothing is kept that would have to follow."""

    # What it has, as of the last flush.

    def __len__(self) -> int:
        return self._rows.operator.size()

    def pairs(self) -> Iterator[Pair]:
        """The rows with their weights, made of all rows of all levels; of many, some at a time."""
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
        """The same of many, as of now, some at a time; None of few."""
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
        return self.made(level, label)

    def fetch(self, level: Level, rows: Iterable[Row]) -> None:
        """Look up all that is inside of rows."""
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
        for row, _ in self._rows.pairs(canonical(key)):
            self.fetch(self.levels[0], (row,))
            return row
        return None

    @contextmanager
    def _as_shown(self) -> Iterator[None]:
        """Read the rows that views show; what is looked up is forgotten."""
        self._show(is_shown=True)
        try:
            yield
        finally:
            self._show(is_shown=False)

    def _show(self, *, is_shown: bool) -> None:
        for rows in self._read:
            rows.forget()
            rows.is_shown = is_shown


class RemoteChanges(LevelChanges):
    """What came and went; what is looked up for it is, level by level, together."""

    __slots__ = ()
    _tree: RemoteTree

    def touched(self, level: Level) -> dict[LevelLabel, Touched]:
        if not self._around_too:
            self._look_up()
        return super().touched(level)

    def pairs(self) -> list[Pair]:
        top = self._tree.levels[0]
        rows = self.touched(top).get(None, {}).values()
        self._tree.fetch(top, (row for row, _ in rows))
        self._look_at_weights()
        return super().pairs()

    def edits(self) -> Iterator[Edit]:
        self._look_at_weights()
        return super().edits()

    def _look_up(self) -> None:
        """Look up which rows show what changed."""
        levels = self._tree.levels
        labels = [set(self.own(level)) for level in levels]
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
        """Look up how often touched rows are there."""
        top, *others = self._tree.levels
        for level in others:
            level.rows.fetch(self.touched(level))
        rows = self.touched(top).get(None, {}).values()
        top.rows.fetch({canonical(top.naming.key(top.parts(row))) for row, _ in rows})


class RemoteLeaf:
    """The rows of a view, which the operator below keeps elsewhere.

    `size` is how many there are, if that is known; otherwise they are counted when asked for. `key`
    gives that of the group of a row.
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

    def outdated(self) -> None:
        """The rows have changed, and it is not told which."""
        self._size = None

    def count(self, row: Row) -> int:
        return self._operator.count(row)

    def items(self) -> Collection[Pair]:
        return list(self._operator.contents())

    def rows(self) -> list[Row]:
        return list(repeat(self._operator.contents()))

    def find(self, key: Any) -> Row | None:
        """The row of a group, or None."""
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
    """Rows that are found by their label; those of the top by the key of the view.

    Parameters
    ----------
    operator: gives pairs of a label and a row.
    key: that of a row of the top; None of other levels.
    """

    __slots__ = ("_found", "_is_loaded", "_key", "is_shown", "operator")

    def __init__(self, operator: RemoteOperator, key: Callable[[Row], Any] | None = None) -> None:
        self.operator = operator
        self._key = key
        self._found: dict[Label, list[Pair]] = {}
        self._is_loaded = False
        self.is_shown = False
        """Whether what is read is as views show it, also while a flush is under way."""

    def keyed(self, delta: Pairs) -> list[KeyedPair]:
        """A delta of the part as one of an index."""
        return [(self._label(row[0]), (row[1], weight)) for row, weight in delta]

    def pairs(self, label: Label) -> Sequence[Pair]:
        """The rows with a label."""
        if label is NO_MATCH:
            return ()
        self.fetch((label,))
        return self._found.get(label, ())

    def fetch(self, labels: Iterable[Label]) -> None:
        """Look labels up that have not been."""
        found = self._found
        new = {label for label in labels if label not in found and label is not NO_MATCH}
        if new and not self._is_loaded:
            found.update((label, []) for label in new)
            self._take(self.operator.near(new, is_shown=self.is_shown), new)

    def load(self) -> None:
        """Have all rows."""
        self.forget()
        self._found = defaultdict(list)
        self._take(self.operator.contents(), None)
        self._is_loaded = True

    def forget(self) -> None:
        """What was looked up may be different by now."""
        self._found, self._is_loaded = {}, False

    def weight(self, label: Label, row: Row) -> int:
        """How often a row is there."""
        if self._key is not None:
            label = canonical(self._key(row))
        return sum(weight for other, weight in self.pairs(label) if other == row)

    def items(self) -> Iterator[KeyedPair]:
        """What was looked up."""
        return ((label, pair) for label, pairs in self._found.items() for pair in pairs)

    def keys(self) -> list[Label]:
        """All labels."""
        return [row[0] for row, _ in self.operator.contents()]

    def _take(self, pairs: Iterable[Pair], among: Collection[Label] | None) -> None:
        for row, weight in pairs:
            label = self._label(row[0])
            if among is None or label in among:
                self._found[label].append((row[1], weight))

    def _label(self, key: Any) -> Label:
        return match_key(key) if self._key is None else key
