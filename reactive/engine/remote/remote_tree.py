"""A nest whose levels are elsewhere, each as parts: rows are made when they are read, of look-ups.

    view[key]    the row, then what is inside of it, a look-up for each level
    a delta      what changed, the rows that show it, and what is inside of these
    all rows     all rows of each level

Nothing is kept. A delta that somebody keeps without reading it is read before the next flush.

State:  none, but what has been looked up for the delta that was told last.
Cost:   of a flush none; of a reading, look-ups by the depth, and the rows that are read.
Source: [slender] shredding; query shredding [cheney2014].
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from reactive.engine.collections.edits import Edit
from reactive.engine.collections.zset import Pair, Pairs, Row, canonical
from reactive.engine.operators.tree.changes import Changes, Touched
from reactive.engine.operators.tree.levels import Label, Level
from reactive.engine.operators.tree.tree import Tree, Unread
from reactive.engine.remote.level_rows import LevelRows

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

    def apply(self, changes: Changes, least: int = 0) -> None:
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

    def bag(self, level: Level, label: Label) -> Any:
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


class RemoteChanges(Changes):
    """What came and went; what is looked up for it is, level by level, together."""

    __slots__ = ()
    _tree: RemoteTree

    def touched(self, level: Level) -> dict[Label, Touched]:
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
