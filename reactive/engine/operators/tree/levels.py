"""A level of a tree: a flat relation, arranged by its labels, and how its rows are seen.

The rows of a level in an order, by label: each label has a tree of them.

    step    the trees of the labels that changed  :=  them, with what came where it belongs
    undo    the trees as they were

Trees share what did not change, so those of before a commit are there for who compares them. What
cannot be put in the order raises in the commit, as all that rows raise does.

State:  every row, with what it stands by.
Cost:   O(|dL| log label), as `standing.py`; a commit that changes much of a label sorts it again.

What is shown of rows in an order: a tuple of a few, a `LongTuple` of more.

    nothing inside    the tree of the rows itself
    others inside     a tree of the rows as they are shown, each in the place of its row

Cost:   O(1) where nothing is inside; else O(rows), or, of what is kept, O(log rows) per change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from optimizer.expressions.text import Level as Naming
from optimizer.expressions.text import Nesting
from reactive.engine.collections import order_tree
from reactive.engine.collections.index import NO_MATCH
from reactive.engine.collections.long_tuple import mark, rows_of, sum_of, tree_of
from reactive.engine.collections.order import advise, sort_key
from reactive.engine.collections.order_tree import Tree, TreeLeaf
from reactive.engine.collections.zset import Pair, Row, canonical

Label = Any


Path = tuple[Any, ...]


class Level:
    """A level of the tree, and how its rows are seen.

    Parameters
    ----------
    naming: what it is called, and what tells its rows apart.
    kind: the class of its rows with others inside; None if they have none.
    is_made: whether a row is a tuple of its parts, of the only one if it has nothing inside.
    width: how many parts a row has.
    rows: its rows by their label; of the top by the label of what is inside first. None of those
        in an order.
    handle: what tells its rows apart.
    port: by which they come.
    label: of a row; None of the top.
    order: of the rows of a label, if they stand in one.
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
        self.sequences = None if order is None else Sequences(order, self.held)
        """The rows of each label, if they stand in an order."""
        self.inside: list[Level] = []
        self.parent: Level | None = None
        self.place = 0
        """Its column in the rows that show it."""
        self.shown_in: Any = None
        """The rows that show it, by their label of it."""
        self.under: Callable[[Row], Label] = _no_label
        """The label of a row that shows it."""
        self.bags: dict[Label, Any] = {}
        """What is inside of labels, where it is kept: a bag, or a sequence."""

    def put(self, level: Level, place: int, shown_in: Any, under: Callable[[Row], Label]) -> None:
        """Have rows of another level inside."""
        level.parent, level.place, level.shown_in, level.under = self, place, shown_in, under
        self.inside.append(level)

    def parts(self, row: Row) -> tuple[Any, ...]:
        """What is shown of a row, without what is inside."""
        if self.is_made:
            return row[: self.width]  # type: ignore[no-any-return]
        return (row,) if self.width == 1 else row

    @property
    def is_at_hand(self) -> bool:
        """Whether what is shown of a label is there, and is not to be made."""
        return self.sequences is not None and not self.inside

    def held(self, row: Row) -> Row:
        """What an order has of a row: what is shown, or, if others are inside, itself."""
        return row if self.inside else canonical(row[0] if self.is_made else row)

    def shown(self, held: Row, bag: Callable[[Level, Label], Any]) -> Row:
        """What is shown of what an order has."""
        return self.seen(held, bag) if self.inside else held

    def seen(self, row: Row, bag: Callable[[Level, Label], Any]) -> Row:
        """A row as it is shown, with what a function gives of labels."""
        if not self.inside:
            return canonical(row[0] if self.is_made else row)
        shown = [canonical(part) for part in self.parts(row)]
        for level in self.inside:
            shown.insert(level.place, bag(level, level.under(row)))
        return self.kind(*shown)

    def both(self, row: Row, bags: Callable[[Level, Label], tuple[Any, Any]]) -> tuple[Row, Row]:
        """The same as of before and of now; one object where nothing differs."""
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
        """What a row of before has in common with the one that takes its place: all but what is
        inside of it."""
        if self.inside:
            return self.parts(held)[: self.kind.roots]
        is_whole = self.is_made and bool(self.naming.levels)
        return held[: self.naming.kind.roots] if is_whole else held

    def weight(self, label: Label, row: Row) -> int:
        """How often a row is there."""
        if self.rows is not None:
            label = self.inside[0].under(row) if self.label is None else label
            return int(self.rows.weight(label, row))
        first = self.inside[0]
        return int(first.shown_in.weight(first.under(row), row))

    def path(self, row: Row, path: Path, inside: Level) -> Path:
        """The path of what is inside of a row."""
        return (*path, self.naming.key(self.parts(row)), inside.name)


def _no_label(row: Row) -> Label:
    return NO_MATCH


NO_ROWS: Tree = TreeLeaf((), ())
MANY = 16
"""Rows that come to a label from which on it may be sorted again."""


class RowOrder:
    """By what rows stand. Those of one key stand by a part of them, or by themselves."""

    __slots__ = ("_key", "_tie", "descending")

    def __init__(
        self, key: Callable[[Row], Any], tie: Callable[[Row], Any] | None, *, descending: bool
    ) -> None:
        self._key = key
        self.descending = descending
        self._tie = tie

    def key(self, row: Row) -> Any:
        """What a row is sorted by."""
        return sort_key(self._key(row))

    def tie(self, row: Row) -> Any:
        """What a row stands by among those with equal keys."""
        return row if self._tie is None else self._tie(row)


class Sequences:
    """Trees of rows by label. `held` says what they have of a row.

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
        """Take net changes in, pairs by label; give the trees of before of these labels."""
        trees = self._trees
        before = {label: trees.get(label, NO_ROWS) for label in changes}
        try:
            now = {label: self._changed(before[label], changes[label]) for label in changes}
        except Exception as error:
            advise(error)
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
        """The rows of a label."""
        return self._trees.get(label, NO_ROWS)

    def places(self, label: Label, row: Row) -> list[int]:
        """Where a row stands that is there."""
        tree = self.now(label)
        return list(order_tree.places(tree, self.order.key(row), self._held(row), self.order))

    def footprint(self) -> tuple[int, int]:
        """How many rows there are, and bytes of the trees."""
        rows = sum([tree.size for tree in self._trees.values()])
        return rows, 100 * len(self._trees) + 16 * rows

    def _put(self, trees: Mapping[Label, Tree]) -> None:
        self._trees.update(trees)
        for label, tree in trees.items():
            if not tree.size:
                del self._trees[label]

    def _changed(self, tree: Tree, pairs: Collection[Pair]) -> Tree:
        """A tree after net changes: first what goes."""
        order, held = self.order, self._held
        came = []
        for row, weight in pairs:
            key = order.key(row)
            if weight > 0:
                came.append((key, held(row), weight))
            else:
                tree = order_tree.changed(tree, key, held(row), weight, order)
        if len(came) > MANY and len(came) * MANY > tree.size:
            new = chain.from_iterable(repeat((key, row), weight) for key, row, weight in came)
            return order_tree.sorted_tree([*order_tree.items(tree), *new], order)
        for key, row, weight in came:
            tree = order_tree.changed(tree, key, row, weight, order)
        return tree


Inside = Callable[[Level, Label], Any]
"""What is inside of a label."""


def sequence_of(level: Level, tree: Tree, inner: Inside) -> Any:
    """The rows of a tree, with what is inside of them."""
    if level.inside:
        rows = [level.seen(row, inner) for leaf in order_tree.leaves(tree) for row in leaf.rows]
        tree = order_tree.made_of(rows, rows)
    return rows_of(tree, None)


def sequence_after(
    level: Level, before: Any, trees: tuple[Tree, Tree], touched: Sequence[int], inner: Inside
) -> Any:
    """What is shown after changes of what was; `touched` are the places of now of rows that stayed
    while something inside of them changed."""
    old, new = trees
    parts = order_tree.parts_between(old, new)
    count = len(touched) + sum(max(len(gone), len(came)) for _, gone, _, came in parts)
    if level.inside and count * 2 > new.size:
        return sequence_of(level, new, inner)
    if not level.inside:
        gone = [row for _, went, _, _ in parts for row in went]
        came = [row for _, _, _, come in parts for row in come]
        return rows_of(new, _sum_after(sum_of(before), gone, came))
    tree, gone, came = tree_of(before), [], []
    for start, went, _, come in reversed(parts):
        shown = [level.seen(row, inner) for row in come]
        for _ in went:
            gone.append(order_tree.at(tree, start))
            tree = order_tree.deleted(tree, start)
        for row in reversed(shown):
            tree = order_tree.inserted(tree, start, None, row)
        came += shown
    for place in touched:
        row = level.seen(order_tree.at(new, place), inner)
        gone.append(order_tree.at(tree, place))
        came.append(row)
        tree = order_tree.inserted(order_tree.deleted(tree, place), place, None, row)
    return rows_of(tree, _sum_after(sum_of(before), gone, came))


def _sum_after(total: int | None, gone: Sequence[Row], came: Sequence[Row]) -> int | None:
    """The sum of the marks of all rows, if it was known."""
    return None if total is None else total - sum(map(mark, gone)) + sum(map(mark, came))
