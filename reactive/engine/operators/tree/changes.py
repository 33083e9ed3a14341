"""Changes of a tree in one commit: whole rows before and after, and edits with their paths.

    rows after      row + bag of its label, from the index
    rows before     that bag with the changes undone (the two share all else)
    edits           from the label of a change up to the rows that show it, level by level

They are computed from the tree as of this commit, so they must be read before the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from reactive.engine.collections.bag import Bag, change_bag
from reactive.engine.collections.index import NO_MATCH, KeyedPair
from reactive.engine.collections.nested_edits import edits_of_parts, inner_edits
from reactive.engine.collections.order import Edit
from reactive.engine.collections.order_tree import Tree as OrderTree
from reactive.engine.collections.order_tree import find_differing_parts
from reactive.engine.collections.zset import KeyedBatch, Pair, Row
from reactive.engine.operators.tree.levels import Label, Level, Path, sequence_after, sequence_of

if TYPE_CHECKING:
    from reactive.engine.operators.tree.tree import Tree

Touched = dict[Any, tuple[Row, int]]
"""Changed rows of a label by handle, with their net weights; rows that changed only in an inner
level have the weight 0."""


class LevelChanges:
    """Net changes of each level in a commit, and the rows around them."""

    __slots__ = ("_around_too", "_bags", "_before", "_deltas", "_own", "_tree")

    def __init__(self, tree: Tree, deltas: Sequence[Sequence[KeyedPair]]) -> None:
        self._tree = tree
        self._deltas = deltas
        self._own: dict[int, dict[Label, Touched]] = {}
        self._around_too = False
        self._bags: dict[tuple[int, Label], tuple[Any, Any]] = {}
        self._before: dict[int, Mapping[Label, OrderTree]] = {}

    def step(self) -> None:
        """Apply the changes to the levels that have an order."""
        for level in self._tree.levels:
            if level.sequences is not None and self._deltas[level.port]:
                own = {label: rows.values() for label, rows in self.own_changes(level).items()}
                self._before[level.number] = level.sequences.step(own)

    def trees(self, level: Level, label: Label) -> tuple[OrderTree, OrderTree]:
        """Return the ordered rows of a label, before and after the commit."""
        assert level.sequences is not None
        now = level.sequences.now(label)
        return self._before.get(level.number, {}).get(label, now), now

    def own_changes(self, level: Level) -> dict[Label, Touched]:
        """Return the net changes of a level; rows around a change may be included with weight 0."""
        found = self._own.get(level.number)
        if found is None:
            delta = self._deltas[level.port]
            found = self._own[level.number] = _net_by_label(level, delta) if delta else {}
        return found

    def changed_rows(self, level: Level) -> dict[Label, Touched]:
        """Return the changed rows of a level, rows with a changed inner level included."""
        if not self._around_too:
            self._around_too = True
            for each in reversed(self._tree.levels):
                if each.parent is not None:
                    for label in self.own_changes(each):
                        _touch(
                            each.parent, each.shown_in.pairs(label), self.own_changes(each.parent)
                        )
        return self.own_changes(level)

    def reach(self) -> bool:
        """Return True if any row of the top level changed."""
        levels, deltas = self._tree.levels, self._deltas
        if any(len(delta) > 1 and _may_cancel(delta) for delta in deltas):
            return bool(self.changed_rows(levels[0]))
        for level in levels:
            delta = deltas[level.port]
            if delta and (level.parent is None or _reaches(level, delta)):
                return True
        return False

    def inside(self, level: Level, label: Label) -> tuple[Any, Any]:
        """Return the contents of a label before and after; one is derived from the other."""
        rows = self.changed_rows(level).get(label)
        if rows is None:
            bag = self._tree.bag(level, label)
            return bag, bag
        found = self._bags.get((level.number, label))
        if found is None:
            found = self._bags[level.number, label] = self._compare_contents(level, label, rows)
        return found

    def _compare_contents(self, level: Level, label: Label, rows: Touched) -> tuple[Any, Any]:
        """Compute the contents of a label, before and after; the latter are cached if shown."""
        kept = level.bags.get(label)
        if level.sequences is None:
            before, now = self._bags_of(level, label, rows, kept)
        else:
            before, now = self._sequences_of(level, label, rows, kept)
        if now and level.shown_in.pairs(label):
            level.bags[label] = now
        else:
            level.bags.pop(label, None)
        return before, now

    def _bags_of(
        self, level: Level, label: Label, rows: Touched, before: Bag[Any] | None
    ) -> tuple[Bag[Any], Bag[Any]]:
        """Return the bag of a label before and after; `before` is the cached one, if any."""
        changes: dict[Any, int] = {}
        for old, new, went, came in self.rows(level, label, rows):
            if new is old:
                changes[new] = changes.get(new, 0) + came - went
            else:
                changes[new] = changes.get(new, 0) + came
                changes[old] = changes.get(old, 0) - went
        changes = {row: weight for row, weight in changes.items() if weight}
        if before is not None:
            return before, change_bag(before, changes, None)
        now = self._tree.made_of(level, label, self.now)
        return change_bag(now, {row: -weight for row, weight in changes.items()}, None), now

    def _sequences_of(self, level: Level, label: Label, rows: Touched, kept: Any) -> Any:
        """Return the sequence of a label before and after; `kept` is the cached one."""
        old, new = self.trees(level, label)
        before = sequence_of(level, old, self.was) if kept is None else kept
        stay = (row for row, weight in rows.values() if not weight)
        inside = [] if not level.inside else [self._places(level, label, row) for row in stay]
        touched = sorted(chain.from_iterable(inside))
        return before, sequence_after(level, before, (old, new), touched, self.now)

    def _places(self, level: Level, label: Label, row: Row) -> list[int]:
        assert level.sequences is not None
        return level.sequences.places(label, row)

    def now(self, level: Level, label: Label) -> Any:
        """Return the contents of a label after the commit."""
        return self.inside(level, label)[1]

    def was(self, level: Level, label: Label) -> Any:
        """Return the contents of a label before the commit."""
        return self.inside(level, label)[0]

    def rows(
        self, level: Level, label: Label, rows: Touched
    ) -> Iterator[tuple[Row, Row, int, int]]:
        """Yield changed rows: shown before, shown after, weight before, weight after."""
        for row, weight in rows.values():
            now = level.weight(label, row)
            if not level.inside:
                new = level.show_row(row, self.now)
                yield new, new, now - weight, now
            else:
                old, new = level.both(row, self.inside)
                yield old, new, now - weight, now

    def pairs(self) -> list[Pair]:
        """Return the deleted and inserted rows of the top level."""
        top, found = self._tree.levels[0], []
        for old, new, before, now in self.rows(top, None, self.changed_rows(top).get(None, {})):
            if old is new or old == new:
                found.append((new, now - before))
            else:
                found.append((old, -before))
                found.append((new, now))
        return [pair for pair in found if pair[1]]

    def edits(self) -> Iterator[Edit]:
        """Yield the smallest changes, with their paths."""
        return self._edits(self._tree.levels[0], None, ())

    def _edits(self, level: Level, label: Label, path: Path) -> Iterator[Edit]:
        """Yield deletions, then changes of inner levels, then insertions."""
        if level.sequences is not None:
            yield from self._in_order(level, label, path)
            return
        gone: dict[Any, tuple[Row, int]] = {}
        stays, came = [], []
        for row, weight in self.changed_rows(level).get(label, {}).values():
            now = level.weight(label, row)
            if level.inside and now and now > weight:
                stays.append((row, row))
            if weight > 0:
                came.append((row, weight))
            elif weight:
                gone[level.beginning(level.stored_form(row))] = row, weight
        for place, (row, weight) in enumerate(came if gone else ()):
            old, count = gone.pop(level.beginning(level.stored_form(row)), (None, 0))
            if count:
                stays.append((old, row))
                came[place] = row, max(weight + count, 0)
                if weight + count < 0:
                    gone[level.beginning(level.stored_form(row))] = old, weight + count
        for row, weight in gone.values():
            yield Edit(None, level.show_row(row, self.was), weight, path=path)
        for old, new in stays:
            yield from self._inside(level, level.stored_form(old), level.stored_form(new), path)
        for row, weight in came:
            if weight:
                yield Edit(None, level.show_row(row, self.now), weight, path=path)

    def _in_order(self, level: Level, label: Label, path: Path) -> Iterator[Edit]:
        """Yield the edits of rows in an order; each has a place."""
        parts = find_differing_parts(*self.trees(level, label))
        touched = self.changed_rows(level).get(label, {}) if level.inside else {}
        stay = [row for row, weight in touched.values() if 0 <= weight < level.weight(label, row)]

        def inside(pairs: Iterable[tuple[Row, Row]]) -> Iterator[Edit]:
            pairs = [(row, row) for row in stay] + [(a, b) for a, b in pairs if a != b]
            for old, new in {level.beginning(new): (old, new) for old, new in pairs}.values():
                yield from self._inside(level, old, new, path)

        yield from edits_of_parts(
            parts,
            level.beginning,
            path,
            was=lambda row: level.show_stored(row, self.was),
            now=lambda row: level.show_stored(row, self.now),
            inside=inside,
        )

    def _inside(self, level: Level, old: Row, new: Row, path: Path) -> Iterator[Edit]:
        """Yield the changes inside of a stored row: in its inner levels, then in its values."""
        for inner in level.inside:
            label = inner.under(new)
            if label in self.changed_rows(inner):
                yield from self._edits(inner, label, level.path(new, path, inner))
        if old is not new:
            own = level.show_stored(old, self.was), level.show_stored(new, self.now)
            labels = {inner.place for inner in level.inside}
            yield from inner_edits(level.naming, *own, path, labels)


def _net_by_label(level: Level, delta: Sequence[KeyedPair]) -> dict[Label, Touched]:
    """Return a net delta by label, without `NO_MATCH`; the label of the top level is None."""
    handle, is_top = level.handle, level.label is None
    if len(delta) == 1:
        ((key, pair),) = delta
        label = None if is_top else key
        return {} if label is NO_MATCH else {label: {handle(pair[0]): pair}}
    found: dict[Label, Touched] = {}
    for key, (row, weight) in delta:
        label = None if is_top else key
        if label is NO_MATCH:
            continue
        rows = found.setdefault(label, {})
        held, total = rows.pop(handle(row), (row, 0))
        if total + weight:
            rows[handle(row)] = held, total + weight
    return {label: rows for label, rows in found.items() if rows}


def _touch(level: Level, pairs: Iterable[Pair], found: dict[Label, Touched]) -> None:
    """Add to `found` the rows whose inner level changed, by their labels, with weight 0.

    Rows with NO_MATCH as their label are skipped; a row that `found` has keeps its weight.
    """
    handle = level.handle
    for row, _ in pairs:
        label = None if level.label is None else level.label(row)
        if label is not NO_MATCH:
            found.setdefault(label, {}).setdefault(handle(row), (row, 0))


def _may_cancel(delta: Sequence[KeyedPair]) -> bool:
    """Return True if the delta has deletions, which might cancel insertions in it."""
    return type(delta) is not KeyedBatch and any(pair[1] < 0 for _, pair in delta)


def _reaches(level: Level, delta: Sequence[KeyedPair]) -> bool:
    """Return True if a row of the top level shows one of the changes."""
    labels = delta.keys if type(delta) is KeyedBatch else (key for key, _ in delta)
    asked: set[Label] = set()
    for label in labels:
        if label not in asked:
            if _is_shown(level, label):
                return True
            asked.add(label)
    return False


def _is_shown(level: Level, label: Label) -> bool:
    """Return True if a row of the top level shows a label, directly or through other levels."""
    above = level.parent
    if label is NO_MATCH or above is None:
        return above is None
    pairs = level.shown_in.pairs(label)
    if above.label is None or not pairs:
        return bool(pairs)
    return any(_is_shown(above, above.label(row)) for row, _ in pairs)


def change_bags(tree: Tree, changes: LevelChanges, least: int) -> None:
    """Update the cached bags to this commit, and drop bags whose label is not shown any longer.

    If `least` is not 0, also drop bags with fewer rows, and bags that are stored elsewhere.
    """
    for level in tree.levels:
        bags = level.bags
        for label in changes.changed_rows(level) if bags else ():
            if label in bags:
                if least and (level.is_at_hand or len(bags[label]) < least):
                    del bags[label]
                else:
                    changes.inside(level, label)
        for inner in level.inside:
            if inner.bags:
                for rows in changes.own_changes(level).values():
                    for row, weight in rows.values():
                        label = inner.under(row) if weight < 0 else NO_MATCH
                        if label in inner.bags and not inner.shown_in.pairs(label):
                            del inner.bags[label]
