"""What is shown of rows in an order: a tuple of a few, a `LongTuple` of more.

    nothing inside    the tree of the rows itself
    others inside     a tree of the rows as they are shown, each in the place of its row

Cost:   O(1) where nothing is inside; else O(rows), or, of what is kept, O(log rows) per change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reactive.engine.collections import order_tree
from reactive.engine.collections.long_tuple import mark, rows_of, sum_of, tree_of
from reactive.engine.collections.order_tree import Tree
from reactive.engine.collections.zset import Row
from reactive.engine.operators.tree.levels import Label, Level

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
