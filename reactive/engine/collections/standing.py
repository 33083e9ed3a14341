"""Rows of a tree in an order: where one belongs, and where one is.

    rows of lesser keys | rows of its key, by themselves | rows of greater keys

Rows with equal keys stand by themselves where they can be compared, else in order of arrival
(`order.py`), or by a part of them.

Cost:   O(log rows) per row that comes or goes; one among n with its key that do not compare, O(n).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from reactive.engine.collections import order_tree
from reactive.engine.collections.order import pairs_in_order, precedes, sort_key
from reactive.engine.collections.order_tree import Leaf, Node, Tree
from reactive.engine.collections.zset import Row


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
        made = _with(tree, key, row, order)
        tree = made[0] if len(made) == 1 else Node(made)
    for _ in range(-weight):
        found = _without(tree, key, row, order)
        if found is None:
            tree = order_tree.deleted(tree, _place_of(tree, key, row, order))
        else:
            tree = order_tree.lowered(found)
    return tree


def _with(tree: Tree, key: Any, row: Row, order: Order) -> list[Tree]:
    """The tree with a row, as the newest of those that do not compare, or two of its halves."""
    if isinstance(tree, Leaf):
        place = _newest(tree.keys, tree.rows.__getitem__, key, row, order)
        return order_tree.with_row(tree, place, key, row)
    trees = tree.trees
    place = _newest(tree.keys, lambda n: trees[n].first.rows[0], key, row, order)
    number = max(place - 1, 0)
    return order_tree.with_children(tree, number, _with(trees[number], key, row, order))


def _newest(
    keys: Sequence[Any], row_at: Callable[[int], Row], key: Any, row: Row, order: Order
) -> int:
    """Where a row belongs, as the newest, among rows or among the first ones of trees."""
    start, stop = _run(keys, key, descending=order.descending)
    if start == stop:
        return start
    tie = order.tie(row)
    while start < stop:
        middle = (start + stop) // 2
        if precedes(tie, order.tie(row_at(middle))):
            stop = middle
        else:
            start = middle + 1
    return start


def _without(tree: Tree, key: Any, row: Row, order: Order) -> Tree | None:
    """The tree without a row; None if those with its key may be in other leaves too."""
    if isinstance(tree, Leaf):
        start, stop = _run(tree.keys, key, descending=order.descending)
        is_whole = start and stop < tree.size
        for place in range(start, stop) if is_whole or stop - start == 1 else ():
            found = tree.rows[place]
            if found is row or found == row:
                return order_tree.without_row(tree, place)
        return None
    number = max(_run(tree.keys, key, descending=order.descending)[1] - 1, 0)
    small = _without(tree.trees[number], key, row, order)
    return None if small is None else order_tree.with_less(tree, number, small)


def _run(keys: Sequence[Any], key: Any, *, descending: bool) -> tuple[int, int]:
    """From where to where equal keys stand, or would."""
    if not descending:
        start = bisect_left(keys, key)
        is_there = start < len(keys) and not key < keys[start]
        return start, bisect_right(keys, key, start) if is_there else start
    start, end = 0, len(keys)
    while start < end:
        middle = (start + end) // 2
        if key < keys[middle]:
            start = middle + 1
        else:
            end = middle
    stop, end = start, len(keys)
    while stop < end:
        middle = (stop + end) // 2
        if keys[middle] < key:
            end = middle
        else:
            stop = middle + 1
    return start, stop


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
