"""The values of a bag in an order, which is kept with the bag: a changed bag begins from it.

    bag.plus(changes)       notes the changes beside what was arranged of the bag
    arranged(bag, order)    takes them: deletes and inserts, each where its key says

So a group whose order is shown is never sorted again, but where much of it changes at once.

State:  of a bag whose order was asked for, its rows in a tree.
Cost:   O(log rows) per change; a row among n with its key that do not compare, O(n).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, Protocol

from reactive.collections import order_tree
from reactive.collections.bag import Bag
from reactive.collections.long_tuple import FEW, mark, of_tree
from reactive.collections.order import pairs_in_order, precedes, sort_key
from reactive.collections.weight_tree import added_up
from reactive.collections.zset import Row

MOST_NOTED = 64
"""Changes that are noted of a bag whose order nobody asks for."""


class Order(Protocol):
    """What rows are arranged by."""

    @property
    def descending(self) -> bool: ...
    def key(self, value: Any) -> Any:
        """What a value stands by."""
        ...


class Arranged:
    """The values of one bag in an order."""

    __slots__ = ("order", "rows", "total", "tree")

    def __init__(self, order: Order, rows: Any, tree: order_tree.Tree, total: int) -> None:
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
    every = pairs_in_order([(order.key(value), value[1]) for value in bag], order.descending)
    rows = tuple([row for _, row in every])
    tree = order_tree.made_of(rows, [sort_key(key) for key, _ in every])
    return _shown(order, tree, sum(map(mark, rows)))


def _shown(order: Order, tree: order_tree.Tree, total: int) -> Arranged:
    if isinstance(tree, order_tree.Leaf):
        return Arranged(order, tree.rows, tree, total)
    rows = of_tree(tree, total)
    return Arranged(order, tuple(rows) if len(rows) <= FEW else rows, tree, total)


def _changed(before: Arranged, changes: dict[Any, int]) -> Arranged:
    order, tree, total = before.order, before.tree, before.total
    for value, weight in _removals_first(changes):
        key, row = sort_key(order.key(value)), value[1]
        for _ in range(abs(weight)):
            tree = (_with if weight > 0 else _without)(tree, key, row, order.descending)
        total += mark(row) * weight
    return _shown(order, tree, total)


def _removals_first(changes: dict[Any, int]) -> Iterable[tuple[Any, int]]:
    return sorted(changes.items(), key=lambda change: change[1] > 0)


def _with(tree: order_tree.Tree, key: Any, row: Row, descending: bool) -> order_tree.Tree:
    """The tree with a row, as the newest of those that do not compare."""

    def stays_before(k: Any, r: Row) -> bool:
        if (k < key) if descending else (key < k):
            return False
        return ((key < k) if descending else (k < key)) or not precedes(row, r)

    return order_tree.inserted(tree, order_tree.count_while(tree, stays_before), key, row)


def _without(tree: order_tree.Tree, key: Any, row: Row, descending: bool) -> order_tree.Tree:
    """The tree without a row, of equal ones the oldest."""

    def is_before(k: Any, r: Row) -> bool:
        if (key < k) if descending else (k < key):
            return True
        return not ((k < key) if descending else (key < k)) and precedes(r, row)

    place = order_tree.count_while(tree, is_before)
    while True:
        found = order_tree.at(tree, place)
        if found is row or found == row:
            return order_tree.deleted(tree, place)
        place += 1
