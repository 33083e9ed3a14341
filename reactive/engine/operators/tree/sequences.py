"""The rows of a level in an order, by label: each label has a tree of them.

    step    the trees of the labels that changed  :=  them, with what came where it belongs
    undo    the trees as they were

Trees share what did not change, so those of before a commit are there for who compares them. What
cannot be put in the order raises in the commit, as all that rows raise does.

State:  every row, with what it stands by.
Cost:   O(|dL| log label), as `standing.py`; a commit that changes much of a label sorts it again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import chain, repeat
from typing import Any

from reactive.engine.collections import order_tree, standing
from reactive.engine.collections.order import advise, sort_key
from reactive.engine.collections.order_tree import Leaf, Tree
from reactive.engine.collections.zset import Pair, Row

Label = Any
NO_ROWS: Tree = Leaf((), ())
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
        return list(standing.places(tree, self.order.key(row), self._held(row), self.order))

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
                tree = standing.changed(tree, key, held(row), weight, order)
        if len(came) > MANY and len(came) * MANY > tree.size:
            new = chain.from_iterable(repeat((key, row), weight) for key, row, weight in came)
            return standing.sorted_tree([*order_tree.items(tree), *new], order)
        for key, row, weight in came:
            tree = standing.changed(tree, key, row, weight, order)
        return tree
