"""The values of a bag in an order, which is kept with the bag: a changed bag begins from it.

    bag.plus(changes)       notes the changes beside what was arranged of the bag
    arranged(bag, order)    takes them: deletes and inserts, each where its key says (`standing.py`)

So a group whose order is shown is never sorted again, but where much of it changes at once.

State:  of a bag whose order was asked for, its rows in a tree.
Cost:   O(log rows) per change; a row among n with its key that do not compare, O(n).
"""

from __future__ import annotations

from itertools import chain
from typing import Any, Protocol

from reactive.engine.collections import standing
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.long_tuple import mark, rows_of
from reactive.engine.collections.order import sort_key
from reactive.engine.collections.order_tree import Tree, leaves
from reactive.engine.collections.weight_tree import added_up

MOST_NOTED = 64
"""Changes that are noted of a bag whose order nobody asks for."""


class Order(standing.Order, Protocol):
    """What values are arranged by."""

    def key(self, value: Any) -> Any:
        """What a value stands by."""
        ...


class Arranged:
    """The values of one bag in an order."""

    __slots__ = ("order", "rows", "total", "tree")

    def __init__(self, order: Order, rows: Any, tree: Tree, total: int) -> None:
        self.order, self.rows, self.tree, self.total = order, rows, tree, total

    def after(self, changes: dict[Any, int]) -> Noted | None:
        """What is known of the bag with changes."""
        return Noted(self, changes) if len(changes) <= MOST_NOTED else None


class Noted:
    """What was arranged of a bag before some changes."""

    __slots__ = ("before", "changes")

    def __init__(self, before: Arranged, changes: dict[Any, int]) -> None:
        self.before, self.changes = before, changes

    def after(self, changes: dict[Any, int]) -> Noted | None:
        if len(self.changes) + len(changes) > MOST_NOTED:
            return None
        both = added_up(chain(self.changes.items(), changes.items()))
        return Noted(self.before, both)


def arranged(bag: Bag[Any], order: Order) -> Any:
    """The second parts of a bag's pairs in an order: a tuple of a few, a `LongTuple` of more."""
    known = bag._order
    if isinstance(known, Arranged) and known.order == order:
        return known.rows
    if isinstance(known, Noted) and known.before.order == order:
        made = _changed(known.before, known.changes)
    else:
        made = _sorted(bag, order)
    bag._order = made
    return made.rows


def _sorted(bag: Bag[Any], order: Order) -> Arranged:
    tree = standing.sorted_tree([(order.key(value), value[1]) for value in bag], order)
    return _shown(order, tree, sum([mark(row) for leaf in leaves(tree) for row in leaf.rows]))


def _shown(order: Order, tree: Tree, total: int) -> Arranged:
    return Arranged(order, rows_of(tree, total), tree, total)


def _changed(before: Arranged, changes: dict[Any, int]) -> Arranged:
    order, tree, total = before.order, before.tree, before.total
    for value, weight in sorted(changes.items(), key=_is_more):
        row = value[1]
        tree = standing.changed(tree, sort_key(order.key(value)), row, weight, order)
        total += mark(row) * weight
    return _shown(order, tree, total)


def _is_more(change: tuple[Any, int]) -> bool:
    return change[1] > 0
