"""Rows of a tree in an order: where one belongs, and where one is.

    rows of lesser keys | rows of its key, by themselves | rows of greater keys

Rows with equal keys stand by themselves where they can be compared, else in order of arrival
(`order.py`), or by a part of them.

Cost:   O(log rows) per row that comes or goes; one among n with its key that do not compare, O(n).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from reactive.collections import order_tree
from reactive.collections.order import pairs_in_order, precedes, sort_key
from reactive.collections.order_tree import Tree
from reactive.collections.zset import Row


class Order(Protocol):
    """How rows stand by their keys."""

    @property
    def descending(self) -> bool: ...
    def tie(self, row: Row) -> Any:
        """What rows with equal keys stand by."""
        ...


def sorted_tree(pairs: Iterable[tuple[Any, Row]], order: Order) -> Tree:
    """The tree of rows, with their keys, in the order that they come in."""
    every = pairs_in_order(pairs, order.descending, order.tie)
    return order_tree.made_of([row for _, row in every], [sort_key(key) for key, _ in every])


def changed(tree: Tree, key: Any, row: Row, weight: int, order: Order) -> Tree:
    """The tree after a row has come, or gone, a number of times."""
    for _ in range(weight):
        tree = order_tree.inserted(tree, _place_of_new(tree, key, row, order), key, row)
    for _ in range(-weight):
        tree = order_tree.deleted(tree, _place_of(tree, key, row, order))
    return tree


def places(tree: Tree, key: Any, row: Row, order: Order) -> Iterator[int]:
    """Where a row stands, the oldest of equal ones first."""
    descending, tie = order.descending, order.tie(row)

    def is_before(k: Any, r: Row) -> bool:
        if (key < k) if descending else (k < key):
            return True
        return not ((k < key) if descending else (key < k)) and precedes(order.tie(r), tie)

    place, end = order_tree.count_while(tree, is_before), tree.size
    while place < end:
        found = order_tree.at(tree, place)
        if found is row or found == row:
            yield place
        place += 1


def _place_of(tree: Tree, key: Any, row: Row, order: Order) -> int:
    """Where a row stands, also if the user's callable gives another key than it did."""
    for place in places(tree, key, row, order):
        return place
    return next(n for n, (_, r) in enumerate(order_tree.items(tree)) if r is row or r == row)


def _place_of_new(tree: Tree, key: Any, row: Row, order: Order) -> int:
    """Where a row belongs, as the newest of those that do not compare."""
    descending, tie = order.descending, order.tie(row)

    def stays_before(k: Any, r: Row) -> bool:
        if (k < key) if descending else (key < k):
            return False
        return ((key < k) if descending else (k < key)) or not precedes(tie, order.tie(r))

    return order_tree.count_while(tree, stays_before)
