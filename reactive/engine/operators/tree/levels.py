"""Level of a tree: a flat relation, indexed by label, and the shown form of its rows.

Sequences: the rows of a level in an order, one tree of rows per label.

    step    replace the trees of the changed labels by trees with the new rows in their places
    undo    restore the previous trees

Trees share unchanged parts, so the trees before a commit stay available for comparison. A row that
cannot be ordered raises in the commit, like any error of a row.

State:  every row, with its sort key.
Cost:   O(|dL| log label), as `order_tree.py`; a commit that changes much of a label sorts it again.

Shown sequences: rows in an order are shown as a tuple if few, as a `LongTuple` if many.

    no inner levels    the tree of the rows itself
    inner levels       a tree of the shown rows, each in the place of its row

Cost:   O(1) without inner levels; else O(rows), or O(log rows) per change of a cached sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from optimizer.expressions.text import Level as Naming
from optimizer.expressions.text import Nesting
from reactive.engine.collections import order_tree
from reactive.engine.collections.index import NO_MATCH
from reactive.engine.collections.long_tuple import (
    known_sum,
    row_mark,
    rows_as_tree,
    sequence_from_tree,
)
from reactive.engine.collections.order import add_none_note, sort_key
from reactive.engine.collections.order_tree import Tree, TreeLeaf
from reactive.engine.collections.zset import Pair, Row, canonical

Label = Any


Path = tuple[Any, ...]


class Level:
    """A level of the tree.

    Parameters
    ----------
    naming: the name of the level, and the key of its rows.
    kind: the class of its shown rows, which have inner levels; None without inner levels.
    is_made: True if a row is a tuple of its parts, even of a single one.
    width: the number of parts of a row.
    rows: the rows by label; at the top, by the label of the first inner level. None if the level
        has an order.
    handle: gives the identity of a row.
    port: the input that brings the rows.
    label: gives the label of a row; None at the top.
    order: the order of the rows of a label, if there is one.
    """

    __slots__ = (
        *("bags", "handle", "inside", "is_made", "kind", "label", "name", "naming", "number"),
        *("parent", "place", "port", "rows", "sequences", "shown_in", "under", "width"),
    )

    def __init__(
        self,
        number: int,
        naming: Nesting | Naming,
        kind: Any,
        *,
        is_made: bool,
        width: int,
        rows: Any,
        handle: Callable[[Row], Any],
        port: int,
        label: Callable[[Row], Label] | None,
        order: RowOrder | None = None,
    ) -> None:
        self.number = number
        self.naming = naming
        self.name = getattr(naming, "name", "")
        self.kind = kind
        self.is_made = is_made
        self.width = width
        self.rows = rows
        self.handle = handle
        self.port = port
        self.label = label
        self.sequences = None if order is None else Sequences(order, self.stored_form)
        """The rows of each label, if the level has an order."""
        self.inside: list[Level] = []
        self.parent: Level | None = None
        self.place = 0
        """The column of this level in the rows of its parent."""
        self.shown_in: Any = None
        """The rows of the parent level, by their label of this level."""
        self.under: Callable[[Row], Label] = _no_label
        """Gives the label of a parent row for this level."""
        self.bags: dict[Label, Any] = {}
        """Cached bags or sequences by label."""

    def put(self, level: Level, place: int, shown_in: Any, under: Callable[[Row], Label]) -> None:
        """Add `level` as an inner level."""
        level.parent, level.place, level.shown_in, level.under = self, place, shown_in, under
        self.inside.append(level)

    def parts(self, row: Row) -> tuple[Any, ...]:
        """Return the shown parts of a row, without inner levels."""
        if self.is_made:
            return row[: self.width]  # type: ignore[no-any-return]
        return (row,) if self.width == 1 else row

    @property
    def is_at_hand(self) -> bool:
        """True if the shown sequence of a label is stored and need not be computed."""
        return self.sequences is not None and not self.inside

    def stored_form(self, row: Row) -> Row:
        """Return the object that a sequence stores: the shown form, or the row if there are inner
        levels.
        """
        return row if self.inside else canonical(row[0] if self.is_made else row)

    def show_stored(self, held: Row, bag: Callable[[Level, Label], Any]) -> Row:
        """Return the shown form of a row of a sequence."""
        return self.show_row(held, bag) if self.inside else held

    def show_row(self, row: Row, bag: Callable[[Level, Label], Any]) -> Row:
        """Return the shown form of a row; `bag` gives the contents of inner labels."""
        if not self.inside:
            return canonical(row[0] if self.is_made else row)
        shown = [canonical(part) for part in self.parts(row)]
        for level in self.inside:
            shown.insert(level.place, bag(level, level.under(row)))
        return self.kind(*shown)

    def both(self, row: Row, bags: Callable[[Level, Label], tuple[Any, Any]]) -> tuple[Row, Row]:
        """Return a row as shown before and after the commit; one object if they are equal."""
        old = [canonical(part) for part in self.parts(row)]
        new = old.copy()
        is_same = True
        for level in self.inside:
            before, now = bags(level, level.under(row))
            is_same = is_same and before is now
            old.insert(level.place, before)
            new.insert(level.place, now)
        shown = self.kind(*new)
        return (shown if is_same else self.kind(*old)), shown

    def beginning(self, held: Row) -> Any:
        """Return the part of a row that its replacement has in common: all except inner levels."""
        if self.inside:
            return self.parts(held)[: self.kind.roots]
        is_whole = self.is_made and bool(self.naming.levels)
        return held[: self.naming.kind.roots] if is_whole else held

    def weight(self, label: Label, row: Row) -> int:
        """Return the weight of a row."""
        if self.rows is not None:
            label = self.inside[0].under(row) if self.label is None else label
            return int(self.rows.weight(label, row))
        first = self.inside[0]
        return int(first.shown_in.weight(first.under(row), row))

    def path(self, row: Row, path: Path, inside: Level) -> Path:
        """Return the path of the level `inside` in a row."""
        return (*path, self.naming.key(self.parts(row)), inside.name)


def _no_label(row: Row) -> Label:
    return NO_MATCH


NO_ROWS: Tree = TreeLeaf((), ())
MANY = 16
"""Least number of inserted rows of a label that may sort its tree again."""


class RowOrder:
    """Sort order of rows. Rows with equal keys are sorted by a part of them, or by themselves."""

    __slots__ = ("_key", "_tie", "descending")

    def __init__(
        self, key: Callable[[Row], Any], tie: Callable[[Row], Any] | None, *, descending: bool
    ) -> None:
        self._key = key
        self.descending = descending
        self._tie = tie

    def key(self, row: Row) -> Any:
        """Return the sort key of a row."""
        return sort_key(self._key(row))

    def tie(self, row: Row) -> Any:
        """Return the key that sorts rows with equal sort keys."""
        return row if self._tie is None else self._tie(row)


class Sequences:
    """Trees of rows by label. `held(row)` is the object that a tree stores for a row.

    >>> order = RowOrder(lambda row: -row, None, descending=False)
    >>> sequences = Sequences(order, lambda row: row)
    >>> before = sequences.step({"a": [(1, 1), (3, 2)]})
    >>> sequences.now("a").rows, before["a"].rows
    ((3, 3, 1), ())
    """

    __slots__ = ("_held", "_trees", "_undo", "order")

    def __init__(self, order: RowOrder, held: Callable[[Row], Row]) -> None:
        self.order = order
        self._held = held
        self._trees: dict[Label, Tree] = {}
        self._undo: Mapping[Label, Tree] = {}

    def step(self, changes: Mapping[Label, Collection[Pair]]) -> Mapping[Label, Tree]:
        """Apply net changes, pairs by label; return the previous trees of these labels."""
        trees = self._trees
        before = {label: trees.get(label, NO_ROWS) for label in changes}
        try:
            now = {label: self._apply_changes(before[label], changes[label]) for label in changes}
        except Exception as error:
            add_none_note(error)
            raise
        self._undo = before
        self._put(now)
        return before

    def undo(self) -> None:
        self._put(self._undo)
        self.commit()

    def commit(self) -> None:
        self._undo = {}

    def now(self, label: Label) -> Tree:
        """Return the current rows of a label."""
        return self._trees.get(label, NO_ROWS)

    def places(self, label: Label, row: Row) -> list[int]:
        """Return the places of a row that is in the sequence of a label."""
        tree = self.now(label)
        return list(order_tree.find_places(tree, self.order.key(row), self._held(row), self.order))

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows, and the bytes of the trees."""
        rows = sum([tree.size for tree in self._trees.values()])
        return rows, 100 * len(self._trees) + 16 * rows

    def _put(self, trees: Mapping[Label, Tree]) -> None:
        """Replace the trees of some labels; empty trees are deleted."""
        self._trees.update(trees)
        for label, tree in trees.items():
            if not tree.size:
                del self._trees[label]

    def _apply_changes(self, tree: Tree, pairs: Collection[Pair]) -> Tree:
        """Return a tree after net changes; deletions are applied first."""
        order, held = self.order, self._held
        came = []
        for row, weight in pairs:
            key = order.key(row)
            if weight > 0:
                came.append((key, held(row), weight))
            else:
                tree = order_tree.change_row(tree, key, held(row), weight, order)
        if len(came) > MANY and len(came) * MANY > tree.size:
            new = chain.from_iterable(repeat((key, row), weight) for key, row, weight in came)
            return order_tree.sorted_tree([*order_tree.keyed_rows(tree), *new], order)
        for key, row, weight in came:
            tree = order_tree.change_row(tree, key, row, weight, order)
        return tree


Inside = Callable[[Level, Label], Any]
"""Gives the contents of a label of an inner level."""


def sequence_of(level: Level, tree: Tree, inner: Inside) -> Any:
    """Return the shown sequence of the rows of a tree."""
    if level.inside:
        rows = [
            level.show_row(row, inner)
            for leaf in order_tree.iterate_leaves(tree)
            for row in leaf.rows
        ]
        tree = order_tree.build_tree(rows, rows)
    return sequence_from_tree(tree, None)


def sequence_after(
    level: Level, before: Any, trees: tuple[Tree, Tree], touched: Sequence[int], inner: Inside
) -> Any:
    """Return the shown sequence after a change of `before`.

    `touched` are the new places of rows that stayed, but whose inner levels changed.
    """
    old, new = trees
    parts = order_tree.find_differing_parts(old, new)
    count = len(touched) + sum(max(len(gone), len(came)) for _, gone, _, came in parts)
    if level.inside and count * 2 > new.size:
        return sequence_of(level, new, inner)
    if not level.inside:
        gone = [row for _, went, _, _ in parts for row in went]
        came = [row for _, _, _, come in parts for row in come]
        return sequence_from_tree(new, _sum_after(known_sum(before), gone, came))
    tree, gone, came = rows_as_tree(before), [], []
    for start, went, _, come in reversed(parts):
        shown = [level.show_row(row, inner) for row in come]
        for _ in went:
            gone.append(order_tree.get_row(tree, start))
            tree = order_tree.delete_at(tree, start)
        for row in reversed(shown):
            tree = order_tree.insert_at(tree, start, None, row)
        came += shown
    for place in touched:
        row = level.show_row(order_tree.get_row(new, place), inner)
        gone.append(order_tree.get_row(tree, place))
        came.append(row)
        tree = order_tree.insert_at(order_tree.delete_at(tree, place), place, None, row)
    return sequence_from_tree(tree, _sum_after(known_sum(before), gone, came))


def _sum_after(total: int | None, gone: Sequence[Row], came: Sequence[Row]) -> int | None:
    """Return the sum of the marks of all rows; None if the previous sum is not known."""
    return None if total is None else total - sum(map(row_mark, gone)) + sum(map(row_mark, came))
