"""What a commit has changed in a tree: whole rows of before and of now, and edits with their paths.

    rows of now     row + bag of its label, of the index
    rows of before  the same bag, with what changed taken back (it shares all else with it)
    edits           from the label of a change to the rows that show it, level by level

It is read of the tree as of after the commit, and before the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from reactive.collections.bag import Bag, changed
from reactive.collections.edits import Edit
from reactive.collections.index import NO_MATCH, KeyedPair
from reactive.collections.keyed_batch import KeyedBatch
from reactive.collections.nested_edits import inside_of
from reactive.collections.zset import Pair, Row, canonical
from reactive.operators.tree.levels import Label, Level, Path

if TYPE_CHECKING:
    from reactive.operators.tree.tree import Tree

Touched = dict[Any, tuple[Row, int]]
"""Rows of a label that changed, or inside of which something did, by their handle; with how often
they came more than went."""


class Changes:
    """What came and went at each level in a commit, and which rows that is inside of."""

    __slots__ = ("_deltas", "_own", "_touched", "_tree", "_was")

    def __init__(self, tree: Tree, deltas: Sequence[Sequence[KeyedPair]]) -> None:
        self._tree = tree
        self._deltas = deltas
        self._own: dict[int, dict[Label, Touched]] = {}
        self._touched: list[dict[Label, Touched]] | None = None
        self._was: dict[tuple[int, Label], Bag[Any]] = {}

    def own(self, level: Level) -> dict[Label, Touched]:
        """What came and went at a level itself, net."""
        found = self._own.get(level.number)
        if found is None:
            found = self._own[level.number] = _net(level, self._deltas[level.port])
        return found

    def touched(self, level: Level) -> dict[Label, Touched]:
        """The same, and rows inside of which something did."""
        if self._touched is None:
            levels = self._tree.levels
            found = [{k: v.copy() for k, v in self.own(each).items()} for each in levels]
            for each in reversed(levels[1:]):
                assert each.parent is not None
                for label in found[each.number]:
                    _touch(each.parent, _around(each, label), found[each.parent.number])
            self._touched = found
        return self._touched[level.number]

    def reach(self) -> bool:
        """Whether any row of the top is touched."""
        levels = self._tree.levels
        if all(len(delta) <= 1 or type(delta) is KeyedBatch for delta in self._deltas):
            return bool(self._deltas[levels[0].port]) or any(
                _is_shown(level, label)
                for level in levels[1:]
                for label in _labels(self._deltas[level.port])
            )
        return bool(self.touched(levels[0]))

    def was(self, level: Level, label: Label) -> Bag[Any]:
        """What was inside of a label before."""
        known = self._was.get((level.number, label))
        if known is None:
            known = self._tree.bag(level, label)
            rows = self.touched(level).get(label)
            if rows:
                changes: dict[Any, int] = {}
                for new, old, now, before in self.rows(level, label, rows):
                    changes[new] = changes.get(new, 0) - now
                    changes[old] = changes.get(old, 0) + before
                known = changed(known, {k: w for k, w in changes.items() if w}, None)
            self._was[level.number, label] = known
        return known

    def rows(
        self, level: Level, label: Label, rows: Touched
    ) -> Iterator[tuple[Row, Row, int, int]]:
        """Touched rows: as they are shown now, and were before; how often now, and before."""
        for row, weight in rows.values():
            now = level.weight(label, row)
            new = canonical(level.seen(row, self._tree.bag))
            old = canonical(level.seen(row, self.was)) if level.inside else new
            yield new, old, now, now - weight

    def pairs(self) -> list[Pair]:
        """The rows of the top that went and came."""
        top, found = self._tree.levels[0], []
        for new, old, now, before in self.rows(top, None, self.touched(top).get(None, {})):
            if old is new or old == new:
                found.append((new, now - before))
            else:
                found += [(old, -before)] if before else []
                found += [(new, now)] if now else []
        return found

    def edits(self) -> Iterator[Edit]:
        """The smallest changes, by their paths."""
        return self._edits(self._tree.levels[0], None, ())

    def _edits(self, level: Level, label: Label, path: Path) -> Iterator[Edit]:
        """What goes, what changes inside, and what comes."""
        gone: dict[Any, tuple[Row, int]] = {}
        stays, came = [], []
        for row, weight in self.touched(level).get(label, {}).values():
            now = level.weight(label, row)
            if level.inside and now and now > weight:
                stays.append((row, row))
            if weight > 0:
                came.append((row, weight))
            elif weight:
                gone[level.beginning(row)] = row, weight
        for place, (row, weight) in enumerate(came if gone else ()):
            old, count = gone.pop(level.beginning(row), (None, 0))
            if count:
                stays.append((old, row))
                came[place] = row, max(weight + count, 0)
                if weight + count < 0:
                    gone[level.beginning(row)] = old, weight + count
        for row, weight in gone.values():
            yield Edit(None, level.seen(row, self.was), weight, path=path)
        for old, new in stays:
            yield from self._inside(level, old, new, path)
        for row, weight in came:
            if weight:
                yield Edit(None, level.seen(row, self._tree.bag), weight, path=path)

    def _inside(self, level: Level, old: Row, new: Row, path: Path) -> Iterator[Edit]:
        """What changed inside of a row: at its labels, and in its values."""
        for inner in level.inside:
            label = inner.under(new)
            if label in self.touched(inner):
                yield from self._edits(inner, label, level.path(new, path, inner))
        if old is not new:
            own = level.seen(old, self.was), level.seen(new, self._tree.bag)
            labels = {inner.place for inner in level.inside}
            yield from inside_of(level.naming, *own, path, labels)


def _net(level: Level, delta: Sequence[KeyedPair]) -> dict[Label, Touched]:
    """A delta by labels, without what came and went; the top has no labels."""
    found: dict[Label, Touched] = {}
    handle, is_top = level.rows._handle, level.label is None
    for key, (row, weight) in delta:
        label = None if is_top else key
        rows = found.setdefault(label, {})
        held, total = rows.pop(handle(row), (row, 0))
        if total + weight:
            rows[handle(row)] = held, total + weight
    return {label: rows for label, rows in found.items() if rows}


def _touch(level: Level, rows: Iterable[Row], found: dict[Label, Touched]) -> None:
    """Note rows inside of which something changed."""
    handle = level.rows._handle
    for row in rows:
        label = None if level.label is None else level.label(row)
        if label is not NO_MATCH:
            found.setdefault(label, {}).setdefault(handle(row), (row, 0))


def _around(level: Level, label: Label) -> Iterable[Row]:
    """The rows that show a label."""
    return [row for row, _ in level.shown_in.pairs(label)]


def _is_shown(level: Level, label: Label) -> bool:
    """Whether a row of the top shows a label, in others or by itself."""
    above = level.parent
    if label is NO_MATCH or above is None:
        return above is None
    if above.label is None:
        return bool(level.shown_in.pairs(label))
    return any(_is_shown(above, above.label(row)) for row in _around(level, label))


def _labels(delta: Sequence[KeyedPair]) -> Iterable[Label]:
    return set(delta.keys) if type(delta) is KeyedBatch else [key for key, _ in delta]


def change_bags(tree: Tree, changes: Changes) -> None:
    """Have the bags that are kept be as of a commit, the innermost first; drop those whose label
    nobody shows any more."""
    for level in reversed(tree.levels):
        for label in level.bags and [
            label for label in changes.touched(level) if label in level.bags
        ]:
            kept = level.bags[label]
            for new, old, now, before in changes.rows(level, label, changes.touched(level)[label]):
                kept.add(new, now)
                kept.add(old, -before)
        for inner in level.inside:
            if inner.bags:
                for rows in changes.own(level).values():
                    for row, weight in rows.values():
                        label = inner.under(row)
                        if weight < 0 and label in inner.bags and not _around(inner, label):
                            del inner.bags[label]
