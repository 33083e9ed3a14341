"""Bags of groups: the values of a group as a bag, and bags in an order.

Group values: a bag that applies all changes of a commit together.

    add(value, weight)     records a change
    bag()                  applies the recorded changes; no bag is made in between

A value removed more often than added has a negative weight: it is not in the bag until it has been
added that many times.

State:  the bag; during a commit, its changes; values of negative weight.
Cost:   O(1) per change, and O(log values) per changed value, for the bag.

Arranged bag: the values of a bag in an order, cached with the bag; a changed bag starts from it.

    bag.plus(changes)       records the changes with the arrangement of the bag
    arranged(bag, order)    applies them: deletes and inserts, each by its key (`order_tree.py`)

So a group that is shown in an order is not sorted again, unless much of it changes in one commit.

State:  the rows of a bag that was read in an order, in a tree.
Cost:   O(log rows) per change; O(n) to find a row among n incomparable ones with its key.
"""

from __future__ import annotations

import sys
from itertools import chain
from typing import Any, Protocol

from reactive.engine.collections import order_tree
from reactive.engine.collections.bag import Bag, bag_from_weights, change_bag
from reactive.engine.collections.long_tuple import row_mark, sequence_from_tree
from reactive.engine.collections.order import sort_key
from reactive.engine.collections.order_tree import Tree, iterate_leaves
from reactive.engine.collections.weight_tree import sum_weights
from reactive.engine.collections.zset import EXACT, canonical

EMPTY: Bag[Any] = bag_from_weights({})


class GroupValues:
    """Values of one group.

    >>> values = GroupValues()
    >>> values.add("a", 1), values.add("b", 1), values.add("a", 1), values.add("c", -1)
    (None, None, None, None)
    >>> values.bag(), values.negative
    (Bag({'a': 2, 'b': 1}), {'c': -1})
    """

    __slots__ = ("_bag", "_changes", "negative")

    def __init__(self) -> None:
        self._bag = EMPTY
        self._changes: dict[Any, int] = {}
        self.negative: dict[Any, int] | None = None
        """The values of negative weight, with the weight."""

    def add(self, value: Any, weight: int) -> None:
        """Add to the weight of a value; `add(value, -weight)` undoes it."""
        if value.__class__ not in EXACT:
            value = canonical(value)
        changes = self._changes
        new = changes.get(value, 0) + weight
        if new:
            changes[value] = new
        else:
            changes.pop(value, 0)

    def plus(self, value: Any, weight: int) -> GroupValues:
        """Return a changed copy."""
        made: GroupValues = GroupValues.__new__(GroupValues)
        bag, negative = self._bag, self.negative
        made._bag, made.negative, made._changes = bag, negative, self._changes.copy()
        if negative is not None or made._changes or bag is EMPTY:
            made.add(value, weight)
            return made
        if value.__class__ not in EXACT:
            value = canonical(value)
        below: dict[Any, int] = {}
        made._bag = change_bag(bag, {value: weight}, below)
        if below:
            made.negative = below
        return made

    def bag(self) -> Bag[Any]:
        """Apply the recorded changes; return all values of positive weight."""
        changes = self._changes
        if changes:
            below: dict[Any, int] = {}
            bag, negative = self._bag, self.negative
            if negative is not None:
                bag = change_bag(bag, sum_weights(chain(negative.items(), changes.items())), below)
            elif bag is EMPTY and min(changes.values()) > 0:
                bag = bag_from_weights(changes)
            else:
                bag = change_bag(bag, changes, below)
            self._bag, self.negative, self._changes = bag, below or None, {}
        return self._bag

    def __len__(self) -> int:
        """Return the number of different values."""
        return len(self.bag().items())

    def __sizeof__(self) -> int:
        parts = (self._bag, self._changes, self.negative)
        return object.__sizeof__(self) + sum(map(sys.getsizeof, parts))


MOST_NOTED = 64
"""Most changes that are recorded before the arrangement is dropped."""


class ValueOrder(order_tree.TreeOrder, Protocol):
    """Sort order of values."""

    def key(self, value: Any) -> Any:
        """Return the sort key of a value."""
        ...


class ArrangedValues:
    """Values of one bag in an order."""

    __slots__ = ("order", "rows", "total", "tree")

    def __init__(self, order: ValueOrder, rows: Any, tree: Tree, total: int) -> None:
        self.order, self.rows, self.tree, self.total = order, rows, tree, total

    def after(self, changes: dict[Any, int]) -> PendingArrangement | None:
        """Return the arrangement with pending changes; None if they are too many to record."""
        return PendingArrangement(self, changes) if len(changes) <= MOST_NOTED else None


class PendingArrangement:
    """Arrangement of a bag before some changes."""

    __slots__ = ("before", "changes")

    def __init__(self, before: ArrangedValues, changes: dict[Any, int]) -> None:
        self.before, self.changes = before, changes

    def after(self, changes: dict[Any, int]) -> PendingArrangement | None:
        """Return the arrangement with more changes; None if they are too many to record."""
        if len(self.changes) + len(changes) > MOST_NOTED:
            return None
        both = sum_weights(chain(self.changes.items(), changes.items()))
        return PendingArrangement(self.before, both)


def arrange_bag(bag: Bag[Any], order: ValueOrder) -> Any:
    """Return the second items of a bag's pairs in an order: a tuple if few, else a `LongTuple`."""
    known = bag._order
    if isinstance(known, ArrangedValues) and known.order == order:
        return known.rows
    if isinstance(known, PendingArrangement) and known.before.order == order:
        made = _rearrange(known.before, known.changes)
    else:
        made = _sort_bag(bag, order)
    bag._order = made
    return made.rows


def _sort_bag(bag: Bag[Any], order: ValueOrder) -> ArrangedValues:
    """Return the second items of a bag's pairs, sorted by their keys."""
    tree = order_tree.sorted_tree([(order.key(value), value[1]) for value in bag], order)
    return _make_arrangement(
        order, tree, sum([row_mark(row) for leaf in iterate_leaves(tree) for row in leaf.rows])
    )


def _make_arrangement(order: ValueOrder, tree: Tree, total: int) -> ArrangedValues:
    return ArrangedValues(order, sequence_from_tree(tree, total), tree, total)


def _rearrange(before: ArrangedValues, changes: dict[Any, int]) -> ArrangedValues:
    """Return an arrangement after the changes; deletions first. `before` stays as it is."""
    order, tree, total = before.order, before.tree, before.total
    for value, weight in sorted(changes.items(), key=_is_more):
        row = value[1]
        tree = order_tree.change_row(tree, sort_key(order.key(value)), row, weight, order)
        total += row_mark(row) * weight
    return _make_arrangement(order, tree, total)


def _is_more(change: tuple[Any, int]) -> bool:
    return change[1] > 0
