"""Rows of a persistent sequence in the place of others: a few one by one, many by whole leaves.

    spliced(tree, 2, 4, "xyz")      a b c d e f  ->  a b x y z e f

A few rows are changed one after the other, each on a path of its own. Of many, the leaves before
and behind them are kept as they are, and the nodes above are made anew.

State:  none.
Cost:   O(k log n) of k rows out of n; of several, and more than n / `SHARE`, O(k + n / 48).
Source: as `order_tree.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from reactive.engine.collections import order_tree
from reactive.engine.collections.order_tree import Leaf, Node, Tree
from reactive.engine.collections.zset import Row

SHARE = 256
"""Of this part of all rows on, whole leaves are cheaper than paths."""


def spliced(tree: Tree, start: int, stop: int, rows: Sequence[Row]) -> Tree:
    """The tree with other rows in the place of those from `start` up to `stop`.

    >>> tree = order_tree.made_of(range(1000), range(1000))
    >>> tree = spliced(tree, 3, 998, "ab")
    >>> [row for leaf in order_tree.leaves(tree) for row in leaf.rows]
    [0, 1, 2, 'a', 'b', 998, 999]
    """
    count = stop - start
    if not count and len(rows) == 1:
        return order_tree.inserted(tree, start, rows[0], rows[0])
    most = max(count, len(rows))
    if most > 1 and most * SHARE > tree.size:
        return _by_leaves(tree, start, stop, rows)
    stays = min(count, len(rows))
    for place in range(stays):
        tree = replaced(tree, start + place, rows[place])
    for _ in range(count - stays):
        tree = order_tree.deleted(tree, start + stays)
    for place in range(stays, len(rows)):
        tree = order_tree.inserted(tree, start + place, rows[place], rows[place])
    return tree


def replaced(tree: Tree, place: int, row: Row, *, has_keys: bool = False) -> Tree:
    """The tree with another row at a place.

    has_keys: whether rows stand by other keys than themselves, which stay.
    """
    if isinstance(tree, Leaf):
        rows = (*tree.rows[:place], row, *tree.rows[place + 1 :])
        return Leaf(rows, tree.keys if has_keys else rows)
    number, place = order_tree.child(tree, place)
    made = replaced(tree.trees[number], place, row, has_keys=has_keys)
    return tree.with_child(number, made)


def _by_leaves(tree: Tree, start: int, stop: int, rows: Sequence[Row]) -> Tree:
    before: list[Leaf] = []
    behind: list[Leaf] = []
    left: Sequence[Row] = ()
    right: Sequence[Row] = ()
    begin = 0
    for leaf in order_tree.leaves(tree):
        end = begin + leaf.size
        if end <= start:
            before.append(leaf)
        elif begin >= stop:
            behind.append(leaf)
        else:
            left = left or leaf.rows[: max(start - begin, 0)]
            right = leaf.rows[stop - begin :] if stop < end else right
        begin = end
    if before and before[-1].size < order_tree.FILLED and not left:
        left = before.pop().rows
    if behind and behind[0].size < order_tree.FILLED and not right:
        right = behind.pop(0).rows
    return _raised([*before, *_leaves(tuple(chain(left, rows, right))), *behind])


def _leaves(rows: tuple[Row, ...]) -> list[Tree]:
    width = order_tree.FILLED
    cut = [rows[place : place + width] for place in range(0, len(rows), width)]
    return [Leaf(each, each) for each in cut]


def _raised(trees: list[Tree]) -> Tree:
    """One tree of several of one height."""
    if not trees:
        return Leaf((), ())
    width = order_tree.FILLED
    while len(trees) > 1:
        trees = [Node(trees[place : place + width]) for place in range(0, len(trees), width)]
    return trees[0]
