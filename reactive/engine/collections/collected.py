"""The values of a group as a bag, to which the changes of a commit are added at once.

    add(value, weight)     notes a change
    bag()                  adds what is noted: what is between is never made

A value that was taken away more often than added has a negative weight: it is not in the bag until
it has been added that many times.

State:  the bag; while a commit is under way, its changes; values of negative weight.
Cost:   O(1) per change, and O(log values) per value that changed, for the bag.

The values of a bag in an order, which is kept with the bag: a changed bag begins from it.

    bag.plus(changes)       notes the changes beside what was arranged of the bag
    arranged(bag, order)  takes them: deletes and inserts, each where its key says (`order_tree.py`)

So a group whose order is shown is never sorted again, but where much of it changes at once.

State:  of a bag whose order was asked for, its rows in a tree.
Cost:   O(log rows) per change; a row among n with its key that do not compare, O(n).
"""

from __future__ import annotations

import sys
from itertools import chain
from typing import Any, Protocol

from reactive.engine.collections import order_tree
from reactive.engine.collections.bag import Bag, bag_of, changed
from reactive.engine.collections.long_tuple import mark, rows_of
from reactive.engine.collections.order import sort_key
from reactive.engine.collections.order_tree import Tree, leaves
from reactive.engine.collections.weight_tree import added_up
from reactive.engine.collections.zset import EXACT, canonical

EMPTY: Bag[Any] = bag_of({})


class GroupValues:
    """The values of one group.

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
        """The values of negative weight, with it."""

    def add(self, value: Any, weight: int) -> None:
        """Add to the weight of a value; `add(value, -weight)` takes that back."""
        if value.__class__ not in EXACT:
            value = canonical(value)
        changes = self._changes
        new = changes.get(value, 0) + weight
        if new:
            changes[value] = new
        else:
            changes.pop(value, 0)

    def plus(self, value: Any, weight: int) -> GroupValues:
        """The same with a change; what this one has stays."""
        made: GroupValues = GroupValues.__new__(GroupValues)
        bag, negative = self._bag, self.negative
        made._bag, made.negative, made._changes = bag, negative, self._changes.copy()
        if negative is not None or made._changes or bag is EMPTY:
            made.add(value, weight)
            return made
        if value.__class__ not in EXACT:
            value = canonical(value)
        below: dict[Any, int] = {}
        made._bag = changed(bag, {value: weight}, below)
        if below:
            made.negative = below
        return made

    def bag(self) -> Bag[Any]:
        """All values of positive weight."""
        changes = self._changes
        if changes:
            below: dict[Any, int] = {}
            bag, negative = self._bag, self.negative
            if negative is not None:
                bag = changed(bag, added_up(chain(negative.items(), changes.items())), below)
            elif bag is EMPTY and min(changes.values()) > 0:
                bag = bag_of(changes)
            else:
                bag = changed(bag, changes, below)
            self._bag, self.negative, self._changes = bag, below or None, {}
        return self._bag

    def __len__(self) -> int:
        """How many different values there are."""
        return len(self.bag().items())

    def __sizeof__(self) -> int:
        parts = (self._bag, self._changes, self.negative)
        return object.__sizeof__(self) + sum(map(sys.getsizeof, parts))


MOST_NOTED = 64
"""Changes that are noted of a bag whose order nobody asks for."""


class ValueOrder(order_tree.TreeOrder, Protocol):
    """What values are arranged by."""

    def key(self, value: Any) -> Any:
        """What a value stands by."""
        ...


class ArrangedValues:
    """The values of one bag in an order."""

    __slots__ = ("order", "rows", "total", "tree")

    def __init__(self, order: ValueOrder, rows: Any, tree: Tree, total: int) -> None:
        self.order, self.rows, self.tree, self.total = order, rows, tree, total

    def after(self, changes: dict[Any, int]) -> Noted | None:
        """What is known of the bag with changes."""
        return Noted(self, changes) if len(changes) <= MOST_NOTED else None


class Noted:
    """What was arranged of a bag before some changes."""

    __slots__ = ("before", "changes")

    def __init__(self, before: ArrangedValues, changes: dict[Any, int]) -> None:
        self.before, self.changes = before, changes

    def after(self, changes: dict[Any, int]) -> Noted | None:
        if len(self.changes) + len(changes) > MOST_NOTED:
            return None
        both = added_up(chain(self.changes.items(), changes.items()))
        return Noted(self.before, both)


def arranged(bag: Bag[Any], order: ValueOrder) -> Any:
    """The second parts of a bag's pairs in an order: a tuple of a few, a `LongTuple` of more."""
    known = bag._order
    if isinstance(known, ArrangedValues) and known.order == order:
        return known.rows
    if isinstance(known, Noted) and known.before.order == order:
        made = _changed(known.before, known.changes)
    else:
        made = _sorted(bag, order)
    bag._order = made
    return made.rows


def _sorted(bag: Bag[Any], order: ValueOrder) -> ArrangedValues:
    tree = order_tree.sorted_tree([(order.key(value), value[1]) for value in bag], order)
    return _shown(order, tree, sum([mark(row) for leaf in leaves(tree) for row in leaf.rows]))


def _shown(order: ValueOrder, tree: Tree, total: int) -> ArrangedValues:
    return ArrangedValues(order, rows_of(tree, total), tree, total)


def _changed(before: ArrangedValues, changes: dict[Any, int]) -> ArrangedValues:
    order, tree, total = before.order, before.tree, before.total
    for value, weight in sorted(changes.items(), key=_is_more):
        row = value[1]
        tree = order_tree.changed(tree, sort_key(order.key(value)), row, weight, order)
        total += mark(row) * weight
    return _shown(order, tree, total)


def _is_more(change: tuple[Any, int]) -> bool:
    return change[1] > 0
